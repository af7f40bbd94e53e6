/* SPDX-License-Identifier: Apache-2.0 */
/* worker/diagnosis.c */
#include "worker/diagnosis.h"
#include "common/base/cc.h"
#include "common/log/log.h"
#include "common/session/kept_step.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What helps where an operation makes no number of one. */
static const struct {
    const char *op, *hint;
} remedies[] = {
    {"Acosh", "clip what it is given (Clip)"},
    {"Asin", "clip what it is given (Clip)"},
    {"Acos", "clip what it is given (Clip)"},
    {"Atanh", "clip what it is given (Clip)"},
    {"Div", "add a small number to what it divides by"},
    {"Exp", "lower the learning rate, or clip what it is given (Clip)"},
    {"Log", "add a small number to what it is given, or clip it (Clip)"},
    {"Pow", "clip what it is given (Clip)"},
    {"Reciprocal", "add a small number to what it is given"},
    {"Sqrt", "add a small number to what it is given"},
};

static const char *remedy(const wf_blame *b)
{
    if (b->kind == WF_BLAME_INPUT && !b->variable)
        return "look at the data of that batch, or leave such steps out (on_nan: skip)";
    for (size_t i = 0; b->kind == WF_BLAME_NODE && i < WF_COUNT(remedies); i++) {
        if (strcmp(b->op, remedies[i].op) == 0)
            return remedies[i].hint;
        for (uint32_t k = 0; k < b->n_parts; k++)
            if (strcmp(b->parts[k], remedies[i].op) == 0)
                return remedies[i].hint;
    }
    return "lower the learning rate, clip the gradients (global_clipnorm: 1.0), or look at the "
           "data of that batch";
}

/* ---- records ---- */

/* The first record of the batch in which a field holds what is bad; the batch's size: none does. */
static uint64_t find_record(const wf_batch *b, const wf_field_info *f, const wf_tensor *t,
                            bool is_nan)
{
    size_t each = f->record_bytes / wf_dtype_size(f->dtype);

    for (size_t i = 0; i < b->n * each; i++) {
        double v = f->dtype == WF_F32   ? (double)((const float *)t->data)[i]
                   : f->dtype == WF_F64 ? ((const double *)t->data)[i]
                                        : 0.0;

        if (is_nan ? isnan(v) : isinf(v))
            return i / each;
    }
    return b->n;
}

/* The name of a record's file without its folder, and its number there; "data" when it has none. */
static const char *file_of(const wf_dataset *d, uint32_t field, uint64_t *record)
{
    const char *path = wf_dataset_file(d, field, record);
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path && path[0] ? path : "the data";
}

/* "record 7 of x.npy", "records 40 to 47 of x.npy", "records 7, 90, 3 and 61 more of x.npy". */
static void put_records(const wf_dataset *d, uint32_t field, const uint64_t at[], uint64_t n,
                        char *text, size_t size)
{
    enum { NAMED = 3 };
    uint64_t first = at[0], last = at[n - 1], shown = n <= NAMED + 1 ? n : NAMED;
    const char *file = file_of(d, field, &first);
    bool in_order = strcmp(file_of(d, field, &last), file) == 0;
    size_t used;

    for (uint64_t i = 1; in_order && i < n; i++)
        in_order = at[i] == at[i - 1] + 1;
    used = (size_t)snprintf(text, size, "record%s %" PRIu64, n > 1 ? "s" : "", first);
    if (n > 1 && in_order)
        used += (size_t)snprintf(text + used, size - used, " to %" PRIu64, last);
    for (uint64_t i = 1; !in_order && i < shown; i++) {
        uint64_t record = at[i];

        (void)wf_dataset_file(d, field, &record);
        used += (size_t)snprintf(text + used, size - used, ", %" PRIu64, record);
    }
    if (!in_order && shown < n)
        used += (size_t)snprintf(text + used, size - used, " and %" PRIu64 " more", n - shown);
    snprintf(text + used, size - used, " of %.100s", file);
}

/* The record that holds the bad value, or all of the batch. */
static void name_records(const wf_bad_step *bad, const wf_blame *b, char *text, size_t size)
{
    const wf_dataset *d = bad->side->data;
    int field = b->kind == WF_BLAME_INPUT && !b->variable ? wf_dataset_find(d, b->name) : -1;
    uint64_t at = bad->batch->n;

    text[0] = 0;
    if (field >= 0)
        at = find_record(bad->batch, wf_dataset_field(d, (uint32_t)field),
                         &bad->batch->fields[field], b->is_nan);
    if (at < bad->batch->n)
        put_records(d, (uint32_t)field, &bad->batch->at[at], 1, text, size);
    else if (b->kind != WF_BLAME_INPUT || !b->variable)
        put_records(d, 0, bad->batch->at, bad->batch->n, text, size);
}

/* ---- the step, kept ---- */

static bool is_plain(const char *path)
{
    for (; *path; path++)
        if (strchr(" \t\n\"'\\$`&|;<>()*?[]{}~!", *path))
            return false;
    return true;
}

/* "replay: weft grad FOLDER; ", or why there is nothing to replay. */
static wf_status keep(const wf_plan *p, const wf_step_key *key, const wf_bad_step *bad,
                      const char *what, char *text, size_t size, wf_err *err)
{
    const wf_side *side = bad->side;
    const Weft__Start *start = side->spec.start;
    char run_dir[PATH_MAX], path[PATH_MAX];
    const void **inputs = calloc(side->n_inputs + (size_t)1, sizeof *inputs);
    wf_kept_step s = {.graph = side->spec.graph->data,
                      .graph_bytes = side->spec.graph->len,
                      .plan = p,
                      .inputs = inputs,
                      .key = *key,
                      .compute = (wf_compute)start->compute,
                      .output = bad->output,
                      .what = what,
                      .records = bad->batch->at,
                      .n_records = bad->batch->n,
                      .step = bad->step,
                      .worker = bad->worker};
    wf_status rc;

    if (!inputs)
        return wf_fail_nomem(err, side->n_inputs * sizeof *inputs);
    for (uint32_t i = 0; i < side->n_inputs; i++)
        inputs[i] = wf_side_input(side, i, bad->exchange, bad->set, bad->batch);
    snprintf(run_dir, sizeof run_dir, "%s/%s", bad->jobs_dir, start->job);
    rc = wf_kept_step_write(&s, run_dir, path, err);
    free(inputs);
    if (rc == WF_OK)
        snprintf(text, size, "replay%s%.64s: weft grad %s%s%s; ", bad->host ? " on " : "",
                 bad->host ? bad->host : "", is_plain(path) ? "" : "'", path,
                 is_plain(path) ? "" : "'");
    return rc;
}

wf_status wf_diagnose(wf_plan *p, const wf_step_key *key, const wf_bad_step *bad, wf_err *err)
{
    const char *kind = bad->is_nan ? "NaN" : "infinity";
    char what[320], source[500], records[200], replay[PATH_MAX + 128] = "", hint[PATH_MAX + 384];
    wf_blame blame;
    wf_err why;

    WF_TRY(wf_plan_blame(p, key, bad->output, &blame, err));
    if (bad->is_loss)
        snprintf(what, sizeof what, "the %.120s is %s", bad->label,
                 bad->is_nan ? kind : "infinite");
    else
        snprintf(what, sizeof what, "%s in the gradient of \"%.200s\"", kind, bad->label);
    wf_blame_text(&blame, source, sizeof source);
    name_records(bad, &blame, records, sizeof records);
    if (bad->jobs_dir && keep(p, key, bad, what, replay, sizeof replay, &why) != WF_OK) {
        WF_LOG_WARN("worker.step_not_kept", "why=\"%s\"", why.what);
        snprintf(replay, sizeof replay, "its inputs are not kept (%.100s); ", why.what);
    }
    snprintf(hint, sizeof hint, "%s%s", replay, remedy(&blame));
    return wf_fail(err, WF_NUMERIC, hint,
                   "%s at step %u (worker/%u, epoch %u, split %" PRIu64 ", batch %" PRIu64
                   ")%s%s%s%s",
                   what, bad->step, bad->worker, bad->id.epoch + 1, bad->id.split, bad->id.number,
                   source[0] ? "; " : "", source, records[0] ? "; " : "", records);
}
