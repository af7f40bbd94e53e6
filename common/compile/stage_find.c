/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/stage_find.c - `place: auto`: stages of about the same memory.
 *
 * Variables, in the order in which nodes of the forward pass first read them, are divided into
 * runs, one for each stage, so that the largest run is as small as can be: a bound is halved until
 * runs that are filled up to it are no longer enough. Those that a node reads together stay
 * together. A variable counts with its gradient and its slots, and with the activations up to the
 * next such node. Those are counted once for each stage: that many micro-batches may be kept at the
 * first one, which has most. Where nothing trains a variable counts by itself, and activations
 * once.
 */
#include "common/base/size.h"
#include "common/compile/pass.h"

#include <stdlib.h>

/* The variables that a node is the first to read. */
typedef struct item {
    uint64_t bytes;
} item;

/* Bytes of what a node makes for a micro-batch. */
static uint64_t activation_bytes(const wf_node *n)
{
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < n->n_out; k++) {
        int64_t elems = n->out[k] ? wf_most_elems(n->out[k]) : 0;

        if (elems > 0)
            bytes += (uint64_t)elems * wf_dtype_size(n->out[k]->dtype);
    }
    return bytes;
}

static uint64_t variable_bytes(const wf_stages *s, size_t variable)
{
    const wf_compiled_variable *v = &s->u->c->variables[variable];

    if (v->kind != WF_VAR_TRAINABLE || s->u->spec->mode != WF_COMPILE_TRAIN)
        return v->bytes;
    return (uint64_t)v->bytes * (3 + s->u->spec->slots); /* itself, gradient, sum of gradients */
}

/* Lists them in the order of the nodes; at [n_variables] is a variable's number in the list + 1. */
static size_t list(const wf_stages *s, item items[], size_t at[])
{
    const wf_graph *g = s->u->graph;
    uint32_t kept = s->u->spec->mode == WF_COMPILE_TRAIN ? s->u->spec->n_stages : 1;
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *node = g->nodes[i];
        bool any = false;

        if (!(s->kinds[i] & WF_STAGE_FORWARD))
            continue;
        for (uint32_t k = 0; k < node->n_in; k++) {
            const wf_node *p = node->in[k] ? node->in[k]->producer : NULL;
            int64_t v = p ? s->variable[p->index] : -1;

            if (v < 0 || at[v])
                continue;
            n += !any;
            any = true;
            items[n - 1].bytes += variable_bytes(s, (size_t)v);
            at[v] = n;
        }
        if (n > 0 && s->variable[i] < 0)
            items[n - 1].bytes += activation_bytes(node) * kept;
    }
    return n;
}

/* Fills stages up to a bound, each with one item at least; whether all items found room. */
static bool fill(const item items[], size_t n, uint32_t n_stages, uint64_t bound, uint32_t of[])
{
    uint32_t stage = 0;
    uint64_t load = 0;

    for (size_t i = 0; i < n; i++) {
        bool must = n - i < n_stages - stage, first = i == 0 || of[i - 1] != stage;

        if (i > 0 && !first && (load + items[i].bytes > bound || must) && stage + 1 < n_stages) {
            stage++;
            load = 0;
        }
        load += items[i].bytes;
        of[i] = stage;
        if (load > bound)
            return false;
    }
    return stage + 1 == n_stages;
}

static void divide(const item items[], size_t n, uint32_t n_stages, uint32_t of[])
{
    uint64_t low = 0, high = 0;

    for (size_t i = 0; i < n; i++)
        high += items[i].bytes;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (fill(items, n, n_stages, middle, of))
            high = middle;
        else
            low = middle;
    }
    (void)fill(items, n, n_stages, high, of);
}

wf_status wf_stages_find(wf_stages *s, wf_err *err)
{
    wf_compiled *c = s->u->c;
    item *items = calloc(c->n_variables + 1, sizeof *items);
    size_t *at = calloc(c->n_variables + 1, sizeof *at), n = 0;
    uint32_t *of = calloc(c->n_variables + 1, sizeof *of);
    wf_status rc = WF_OK;

    if (items && at && of)
        n = list(s, items, at);
    else
        rc = wf_fail_nomem(err, c->n_variables * sizeof *items);
    if (rc == WF_OK && n < s->u->spec->n_stages)
        rc = wf_unit_in_file(
            s->u, s->u->spec->place_line,
            wf_fail(err, WF_USAGE, "take fewer workers",
                    "place: the model has %zu layers with variables, which %u workers "
                    "cannot divide among them",
                    n, s->u->spec->n_stages),
            err);
    if (rc == WF_OK)
        divide(items, n, s->u->spec->n_stages, of);
    for (size_t v = 0; rc == WF_OK && v < c->n_variables; v++) {
        if (!at[v]) /* it follows what it is made of */
            continue;
        c->variables[v].stage = of[at[v] - 1];
        s->placed[v] = true;
    }
    free(items);
    free(at);
    free(of);
    return rc;
}
