/* SPDX-License-Identifier: Apache-2.0 */
/* worker/diagnosis.c */
#include "worker/diagnosis.h"
#include "common/base/cc.h"

#include <inttypes.h>
#include <stdio.h>
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
           "data "
           "of that batch";
}

wf_status wf_diagnose(wf_plan *p, const wf_step_key *key, const wf_bad_step *bad, wf_err *err)
{
    const char *kind = bad->is_nan ? "NaN" : "infinity";
    char what[320], source[500];
    wf_blame blame;

    WF_TRY(wf_plan_blame(p, key, bad->output, &blame, err));
    if (bad->is_loss)
        snprintf(what, sizeof what, "the %.120s is %s", bad->label,
                 bad->is_nan ? kind : "infinite");
    else
        snprintf(what, sizeof what, "%s in the gradient of \"%.200s\"", kind, bad->label);
    wf_blame_text(&blame, source, sizeof source);
    return wf_fail(err, WF_NUMERIC, remedy(&blame),
                   "%s at step %u (worker/%u, epoch %u, split %" PRIu64 ", batch %" PRIu64 ")%s%s",
                   what, bad->step, bad->worker, bad->batch.epoch + 1, bad->batch.split,
                   bad->batch.number, source[0] ? "; " : "", source);
}
