/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/exported.c */
#include "cmd/cli/exported.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"
#include "common/ckpt/ckpt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_PORTS = 4 };

/* "x[batch,784]"; an open first axis is the batch. */
static void put_port(wf_bytes *line, const weft_port *p)
{
    wf_bytes_puts(line, p->name);
    if (p->rank < 0)
        return;
    wf_bytes_puts(line, "[");
    for (int32_t i = 0; i < p->rank; i++) {
        wf_bytes_puts(line, i ? "," : "");
        if (p->shape[i] >= 0)
            wf_bytes_printf(line, "%" PRId64, p->shape[i]);
        else
            wf_bytes_puts(line, i ? "?" : "batch");
    }
    wf_bytes_puts(line, "]");
}

static void put_ports(wf_bytes *line, const weft_model *m, weft_kind kind)
{
    size_t n = weft_model_count(m, kind);
    weft_port p;

    for (size_t i = 0; i < n && i < MOST_PORTS; i++) {
        wf_bytes_puts(line, i ? ", " : "");
        if (weft_model_port(m, kind, i, &p, NULL) == WEFT_OK)
            put_port(line, &p);
    }
    if (n > MOST_PORTS)
        wf_bytes_printf(line, " and %zu more", n - MOST_PORTS);
}

/* The checkpoint that the weights are of; NULL: it is gone meanwhile. */
static wf_ckpt *open_checkpoint(const wf_trained *t, const char *origin)
{
    const char *word = t->run[0] ? t->run : weft_job_name(t->job);
    char run[WF_RUN_NAME];
    wf_ckpt *c = NULL;

    if (strncmp(origin, "step-", 5) != 0 || wf_place_run(t->conf, word, run, NULL) != WF_OK ||
        wf_ckpt_open(wf_disk_posix(), t->conf->checkpoint_dir, run, strtoull(origin + 5, NULL, 10),
                     false, &c, NULL) != WF_OK)
        return NULL;
    return c;
}

/* What the evaluation gave: the metrics, or the loss where there are none. */
static void put_metrics(wf_bytes *line, const wf_trained *t, const char *origin)
{
    wf_ckpt *c = open_checkpoint(t, origin);
    const wf_manifest *m = c ? wf_ckpt_manifest(c) : NULL;
    double epoch = 0; /* of the evaluation, from 1 */
    bool any = false;

    for (size_t i = 0; m && i < m->n_metrics; i++)
        epoch = strcmp(m->metrics[i].name, "epoch") == 0 ? m->metrics[i].value : epoch;
    for (int losses = 0; m && !any && losses < 2; losses++)
        for (size_t i = 0; i < m->n_metrics; i++) {
            const char *name = m->metrics[i].name;

            if (strncmp(name, "val_", 4) != 0 || (strcmp(name, "val_loss") == 0) != losses)
                continue;
            wf_bytes_printf(line, "%s%s %.4f", any ? "  " : ", ", name + 4, m->metrics[i].value);
            any = true;
        }
    /* A checkpoint within an epoch has the numbers of the epoch before. */
    if (any && epoch > 0 && epoch < m->ledger.epoch + 1.0)
        wf_bytes_printf(line, " (eval after epoch %.0f)", epoch);
    else if (any)
        wf_bytes_puts(line, " (eval)");
    wf_ckpt_close(&c);
}

void wf_exported_print(const wf_trained *t, const wf_read_back *r, const weft_model *m,
                       const char *file, const char *mapped)
{
    wf_bytes line = {0};
    char size[32];
    struct stat st;

    wf_bytes_printf(
        &line, "%s: %s, input ", file,
        wf_bytes_text(stat(file, &st) == 0 ? (uint64_t)st.st_size : 0, size, sizeof size));
    put_ports(&line, m, WEFT_INPUT);
    wf_bytes_puts(&line, " -> ");
    put_ports(&line, m, WEFT_OUTPUT);
    put_metrics(&line, t, r->origin);
    wf_bytes_printf(&line, "; %zu weights of %s", r->n, r->origin);
    if (r->most > 0)
        wf_bytes_printf(&line, ", rounded by %g at most", r->most);
    if (mapped[0])
        wf_bytes_printf(
            &line,
            "; the model standardises %s itself: give it records as the data files have them",
            mapped);
    wf_term_print(stdout, "%s\n", wf_bytes_str(&line));
    wf_bytes_close(&line);
}
