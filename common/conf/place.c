/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/place.c - what a job says of a model that is divided among workers: `place` and
 * `micro_batches`. */
#include "common/conf/place.h"
#include "common/tensor/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char TASK[] = "worker/";
static const char hint[] =
    "write it as {\"block0/*\": worker/0, \"block1/*\": worker/1}, or auto; a "
    "device of a worker as worker/0/cuda:1";

static bool is_device(const char *text)
{
    int index;

    return wf_device_is_gpu(text, &index) || wf_device_is_cpu(text);
}

/* worker/0, worker/0/cuda:1, or cuda:1. */
static wf_status read_home(wf_conf_reader *r, const wf_tree *node, wf_conf_stage *out, wf_err *err)
{
    enum { MOST = 65535 };
    const char *text, *number;
    unsigned long n;
    char *end;

    WF_TRY(wf_read_text(r, node, &text, err));
    if (is_device(text)) {
        out->device = text;
        out->is_any = true;
        return WF_OK;
    }
    number = text + strlen(TASK);
    if (strncmp(text, TASK, strlen(TASK)) != 0 || number[0] < '0' || number[0] > '9')
        return wf_read_fail(r, node, err, WF_USAGE, hint,
                            "\"%.80s\" is no worker, which is written as worker/0", text);
    n = strtoul(number, &end, 10);
    if ((*end && *end != '/') || n > MOST)
        return wf_read_fail(r, node, err, WF_USAGE, hint,
                            "\"%.80s\" is no worker, which is written as worker/0", text);
    out->worker = (uint32_t)n;
    if (!*end)
        return WF_OK;
    out->device = end + 1;
    if (is_device(end + 1))
        return WF_OK;
    return wf_read_fail(r, node, err, WF_USAGE, hint,
                        "\"%.80s\" names no device, which is written as cuda:0 or cpu:1", text);
}

wf_status wf_read_place(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    wf_conf_stage *stages;
    const char *word;

    j->place_line = node->line;
    if (node->kind != WF_TREE_MAP) {
        if (node->kind == WF_TREE_LIST || wf_read_text(r, node, &word, err) != WF_OK ||
            strcmp(word, "auto") != 0)
            return wf_read_fail(
                r, node, err, WF_USAGE, hint,
                "\"place\" gives patterns of variables' names a worker or a device");
        j->finds_stages = true;
        return WF_OK;
    }
    if (node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, hint, "\"place\" names no worker");
    stages = wf_arena_array(r->arena, node->n, sizeof *stages);
    if (!stages)
        return wf_fail_nomem(err, node->n * sizeof *stages);
    for (const wf_tree *t = node->first; t; t = t->next) {
        wf_conf_stage *s = &stages[j->n_stages++];

        *s = (wf_conf_stage){.match = t->key->text, .line = t->line};
        WF_TRY(read_home(r, t, s, err));
    }
    j->stages = stages;
    return WF_OK;
}

wf_status wf_read_micro_batches(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    enum { MOST = 4096 };
    wf_job_conf *j = into;

    j->micro_batches_line = node->line;
    return wf_read_u64(r, node, 1, MOST, &j->micro_batches, err);
}

bool wf_job_is_divided(const wf_job_conf *job)
{
    return job->place_line && (!job->strategy || strcmp(job->strategy, "stages") == 0);
}

/* What a step of a divided model cannot do, since no worker has all of its gradients. */
static wf_status refuse(const wf_conf_reader *r, int line, const char *what, const char *why,
                        const char *instead, wf_err *err)
{
    return wf_fail(err, WF_UNSUPPORTED, instead,
                   "%s:%d: \"place\" divides the model among workers, and %s %s", r->path, line,
                   what, why);
}

/* `batch` counts all records of a step here, and those of a part of it there. A number that is out
 * of its range is for the optimizer to refuse. */
static wf_status check_accumulation(const wf_conf_reader *r, const wf_job_conf *j, wf_err *err)
{
    enum { MOST = 1 << 16 };
    const double wanted = wf_conf_number(&j->optimizer, "gradient_accumulation_steps", 1);
    uint64_t steps;

    if (!(wanted >= 2 && wanted <= MOST))
        return WF_OK;
    steps = (uint64_t)wanted;
    return wf_fail(err, WF_UNSUPPORTED, "leave gradient_accumulation_steps out",
                   "%s:%d: \"place\" adds up gradients over \"micro_batches\": raise these "
                   "instead; batch: %" PRIu64 " with micro_batches: %" PRIu64
                   " has the records of %" PRIu64 " batches in each step",
                   r->path, j->place_line, j->batch * steps,
                   steps * (j->micro_batches ? j->micro_batches : 1), steps);
}

wf_status wf_check_place(const wf_conf_reader *r, const wf_job_conf *j, wf_err *err)
{
    if (!j->place_line && j->micro_batches_line)
        return wf_fail(err, WF_USAGE, "write place beside it, or leave it out",
                       "%s:%d: \"micro_batches\" divides batches for the workers of \"place\"",
                       r->path, j->micro_batches_line);
    if (!wf_job_is_divided(j)) /* a job may go on under another strategy */
        return WF_OK;
    if (j->micro_batches && j->batch % j->micro_batches)
        return wf_fail(err, WF_USAGE, "take a divisor of the batch",
                       "%s:%d: a batch of %lu is not divided by %lu micro-batches", r->path,
                       j->micro_batches_line, (unsigned long)j->batch,
                       (unsigned long)j->micro_batches);
    if (j->n_tables)
        return refuse(r, j->tables_line, "tables", "lie on parameter servers", "leave tables out",
                      err);
    if (j->compute == WF_COMPUTE_F16)
        return refuse(r, j->place_line, "compute: float16",
                      "scales the loss by what it finds in all gradients of a step",
                      "take compute: bfloat16", err);
    WF_TRY(check_accumulation(r, j, err));
    if (j->grows)
        return refuse(r, j->place_line, "new_files", "wants all workers to open the files",
                      "leave new_files out", err);
    return WF_OK;
}
