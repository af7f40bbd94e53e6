/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_eval.h - computes a small graph node by node, to see what it means. */
#ifndef WF_TESTS_UNIT_COMPILE_EVAL_H
#define WF_TESTS_UNIT_COMPILE_EVAL_H

#include "common/kernels/kernel.h"
#include "tests/unit/compile_util.h"
#include <stdlib.h>

enum { EVAL_BATCH = 5 };

typedef struct fed {
    const char *name;
    void *data;
} fed;

/* A computed graph: the tensor of each value, by its index. */
typedef struct evaluated {
    wf_graph *g;
    wf_tensor **of; /* [g->n_values] */
} evaluated;

static inline wf_value *bind_feed(wf_graph *g, const fed *f)
{
    wf_value *v = wf_graph_value(g, f->name);

    if (!v || !v->is_input)
        return NULL; /* pruned: nothing needs it */
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size < 0)
            v->axes[i].size = EVAL_BATCH;
    return v;
}

/* Computes g for a batch of EVAL_BATCH; feeds end with a NULL name. */
static inline evaluated eval_graph(const wf_graph *g, const fed feeds[])
{
    evaluated r = {0};
    wf_err err = {0};

    must(wf_graph_copy(g, &r.g, &err), &err);
    for (size_t i = 0; feeds[i].name; i++)
        bind_feed(r.g, &feeds[i]);
    must(wf_infer(r.g, &err), &err);
    r.of = calloc(r.g->n_values, sizeof(*r.of));
    assert_non_null(r.of);
    for (size_t i = 0; i < r.g->n_values; i++)
        if (r.g->values[i]->known)
            must(wf_tensor_copy(r.g->values[i]->known, &r.of[i], &err), &err);
    for (size_t i = 0; feeds[i].name; i++) {
        const wf_value *v = bind_feed(r.g, &feeds[i]);
        int64_t dims[WF_MAX_RANK];

        if (!v)
            continue;
        assert_true(wf_value_dims(v, dims));
        must(
            wf_tensor_over(v->dtype, (uint32_t)v->rank, dims, feeds[i].data, &r.of[v->index], &err),
            &err);
    }
    for (size_t i = 0; i < r.g->n_nodes; i++) {
        const wf_node *n = r.g->nodes[i];
        const wf_tensor *in[2 * WF_KERNEL_PORTS] = {NULL};
        wf_tensor *out[WF_KERNEL_PORTS] = {NULL};

        assert_true(n->n_in <= WF_COUNT(in));
        for (uint32_t k = 0; k < n->n_in; k++)
            in[k] = n->in[k] ? r.of[n->in[k]->index] : NULL;
        must(wf_kernel_eval(n, n->n_in, in, n->n_out, out, SIZE_MAX / 2, &err), &err);
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k]) {
                wf_tensor_free(&r.of[n->out[k]->index]);
                r.of[n->out[k]->index] = out[k];
            }
    }
    return r;
}

static inline const wf_tensor *output_of(const evaluated *r, const char *name)
{
    const wf_value *v = wf_graph_value(r->g, name);

    if (!v || !r->of[v->index])
        fail_msg("no output \"%s\"", name);
    return r->of[v->index];
}

static inline void eval_free(evaluated *r)
{
    for (size_t i = 0; i < r->g->n_values; i++)
        wf_tensor_free(&r->of[i]);
    free(r->of);
    wf_graph_free(&r->g);
}

/* n numbers in (-1, 1) that depend on i and salt. */
static inline void fill(float x[], size_t n, uint32_t salt)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 37 + salt * 11) % 53) / 26.5f - 1.0f;
}

#endif
