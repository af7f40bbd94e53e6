/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_eval.h - runs a small graph through a plan, to see what it means. */
#ifndef WF_TESTS_UNIT_COMPILE_EVAL_H
#define WF_TESTS_UNIT_COMPILE_EVAL_H

#include "common/exec/exec.h"
#include "tests/unit/compile_util.h"
#include <stdlib.h>

enum { EVAL_BATCH = 5 };

typedef struct fed {
    const char *name;
    const void *data;
} fed;

/* Runs g for a batch of EVAL_BATCH; feeds end with a NULL name. The caller frees the plan. */
static inline wf_plan *eval_graph(const wf_graph *g, const fed feeds[])
{
    wf_err err = {0};
    wf_plan *p = NULL;
    wf_plan_symbol batch = {"batch", EVAL_BATCH};
    wf_plan_options o = {.n_symbols = 1, .symbols = &batch};
    wf_step_key key = {.seed = 1};

    must(wf_plan_new(g, &o, &p, &err), &err);
    for (; feeds->name; feeds++) {
        int64_t at = wf_plan_find_input(p, feeds->name);

        if (at >= 0)
            wf_plan_bind_input(p, (uint32_t)at, feeds->data);
    }
    must(wf_plan_run(p, &key, NULL, NULL, &err), &err);
    return p;
}

/* Where an output lies, by its name or its variable. */
static inline const void *output_of(const wf_plan *p, const char *name)
{
    int64_t at = wf_plan_find_output(p, name);

    if (at < 0)
        fail_msg("no output \"%s\"", name);
    return wf_plan_output_data(p, (uint32_t)at);
}

/* n numbers in (-1, 1) that depend on i and salt. */
static inline void fill(float x[], size_t n, uint32_t salt)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 37 + salt * 11) % 53) / 26.5f - 1.0f;
}

#endif
