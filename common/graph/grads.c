/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/grads.c - reverse differentiation: one walk from the loss back, gradients summed as
 * they arrive.
 *
 * Invariant: when a node is visited, all nodes that use its outputs and lie on the way to the loss
 * have been, so that the gradients of its outputs are whole (G1 walked backwards).
 */
#include "common/graph/emit.h"
#include "common/graph/infer.h"

#include <stdlib.h>
#include <string.h>

struct wf_grads {
    wf_emit emit;
    /* By index of the values that were there at the beginning; what is emitted has no gradient. */
    size_t n_values;
    wf_value **grad; /* the sum so far, or NULL */
    bool *on_path;   /* depends on a wrt, through floats */
    bool *is_wrt;
};

/* Where emitted values begin, so that "grad/..." stays free for those that are whole gradients. */
static const char hint_prefix[] = "backward/";

wf_emit *wf_grads_emit(wf_grads *g)
{
    return &g->emit;
}

wf_value *wf_grads_upstream(wf_grads *g, const wf_node *n, uint32_t i)
{
    if (!wf_node_has_out(n, i) || n->out[i]->index >= g->n_values)
        return NULL;
    return g->grad[n->out[i]->index];
}

wf_value *wf_grads_output(wf_grads *g, const wf_node *n, uint32_t i)
{
    wf_value *v = NULL;

    if (g->emit.rc == WF_OK)
        g->emit.rc = wf_node_want_output(g->emit.g, g->emit.g->nodes[n->index], i, &v, g->emit.err);
    return v;
}

bool wf_grads_wanted(const wf_grads *g, const wf_node *n, uint32_t i)
{
    return wf_node_has_in(n, i) && !wf_op_cuts_grad(n->op, i) && n->in[i]->index < g->n_values &&
           g->on_path[n->in[i]->index];
}

wf_status wf_grads_add(wf_grads *g, const wf_node *n, uint32_t i, wf_value *grad)
{
    wf_value **sum;

    if (g->emit.rc != WF_OK || !wf_grads_wanted(g, n, i) || !grad)
        return g->emit.rc;
    sum = &g->grad[n->in[i]->index];
    *sum = *sum ? wf_emit_add(&g->emit, *sum, grad) : grad;
    return g->emit.rc;
}

static bool carries_grad(const wf_value *v)
{
    return wf_dtype_is_float(v->dtype);
}

/* Marks what depends on wrt, forwards. */
static void mark_path(wf_grads *s, const wf_graph *g)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        bool reached = false;

        for (uint32_t k = 0; k < n->n_in; k++)
            reached = reached || wf_grads_wanted(s, n, k);
        for (uint32_t k = 0; reached && k < n->n_out; k++)
            if (n->out[k] && carries_grad(n->out[k]))
                s->on_path[n->out[k]->index] = true;
    }
}

/* d loss / d loss: one, in the loss's shape. */
static wf_status seed(wf_grads *s, wf_value *loss, wf_err *err)
{
    char text[WF_VALUE_STR];
    int64_t dims[WF_MAX_RANK], elements = 0;
    wf_value *one;

    if (!carries_grad(loss))
        return wf_fail(err, WF_SHAPE, "name a float output as the loss",
                       "the loss \"%s\" is %s, which has no gradient", loss->name,
                       wf_value_str(loss, text, sizeof text));
    if (loss->rank < 0 || !wf_value_dims(loss, dims) ||
        !wf_dims_elems((uint32_t)loss->rank, dims, &elements) || elements != 1)
        return wf_fail(err, WF_SHAPE, "reduce it to one number with ReduceMean or ReduceSum",
                       "the loss \"%s\" is %s, and must be one number", loss->name,
                       wf_value_str(loss, text, sizeof text));
    one = wf_emit_scalar(&s->emit, loss->dtype, 1);
    for (int32_t i = 0; i < loss->rank; i++)
        dims[i] = 1;
    s->grad[loss->index] =
        loss->rank ? wf_emit_reshape(&s->emit, one, (uint32_t)loss->rank, dims) : one;
    return wf_emit_end(&s->emit);
}

/* The whole gradient of an inner value is called "grad/<value>", unless it is another's as well. */
static wf_status name_inner(wf_grads *s, const wf_value *v, wf_err *err)
{
    wf_value *grad = v->index < s->n_values ? s->grad[v->index] : NULL;
    const char *name;

    if (!grad || s->is_wrt[v->index] || strncmp(grad->name, hint_prefix, strlen(hint_prefix)) != 0)
        return WF_OK;
    name = wf_arena_printf(s->emit.g->arena, "grad/%s", v->name);
    if (!name)
        return wf_fail_nomem(err, strlen(v->name));
    return wf_graph_value(s->emit.g, name) ? WF_OK
                                           : wf_graph_rename_value(s->emit.g, grad, name, err);
}

static const char no_gradient[] = "choose a loss or trainable variables that do not go through it";

static wf_status visit(wf_grads *s, const wf_node *n, wf_err *err)
{
    bool has_upstream = false, wanted = false;
    const char *hint;
    wf_status rc;

    for (uint32_t i = 0; i < n->n_out; i++)
        has_upstream = has_upstream || wf_grads_upstream(s, n, i);
    for (uint32_t i = 0; i < n->n_in; i++)
        wanted = wanted || wf_grads_wanted(s, n, i);
    if (!has_upstream || !wanted)
        return WF_OK;
    if (!n->op->grad)
        return wf_fail(err, WF_UNSUPPORTED, no_gradient,
                       "%s \"%s\" lies between the loss and what is trained, and weft has no "
                       "gradient for %s",
                       n->op->name, n->name, n->op->name);
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            WF_TRY(name_inner(s, n->out[i], err));
    hint = wf_arena_printf(s->emit.g->arena, "%s%s", hint_prefix, n->name);
    if (!hint)
        return wf_fail_nomem(err, strlen(n->name));
    s->emit.hint = hint;
    s->emit.g->device = n->device; /* where its operands are */
    rc = n->op->grad(s, n, err);
    s->emit.g->device = NULL;
    s->emit.hint = "backward";
    if (rc == WF_OK)
        rc = wf_emit_end(&s->emit);
    wf_err_hint(err, rc, no_gradient);
    return wf_err_wrap(err, rc, "the gradient of %s \"%s\"", n->op->name, n->name);
}

/* grads[i], under its own name: what is no value of our own, or the gradient of an earlier wrt too,
 * is copied. */
static wf_status finish(wf_grads *s, wf_value *const wrt[], size_t i, wf_value *grads[],
                        wf_err *err)
{
    wf_value *sum = s->grad[wrt[i]->index];
    bool shared = false;
    const char *name;

    grads[i] = NULL;
    if (!sum)
        return WF_OK;
    for (size_t k = 0; k < i; k++)
        shared = shared || grads[k] == sum;
    if (!wf_same_shape(sum, wrt[i])) /* it is the same in every run; say so */
        sum = wf_emit_reshape_like(&s->emit, sum, wrt[i]);
    else if (shared || !sum->producer || sum->index < s->n_values)
        sum = wf_emit_identity(&s->emit, sum);
    WF_TRY(wf_emit_end(&s->emit));
    grads[i] = sum;
    name = wf_arena_printf(s->emit.g->arena, "grad/%s", wrt[i]->name);
    if (!name)
        return wf_fail_nomem(err, strlen(wrt[i]->name));
    /* A second differentiation of one graph leaves the first one's names alone. */
    return wf_graph_value(s->emit.g, name) ? WF_OK
                                           : wf_graph_rename_value(s->emit.g, sum, name, err);
}

static wf_status differentiate(wf_grads *s, wf_graph *g, wf_value *loss, wf_value *const wrt[],
                               size_t n, wf_value *grads[], wf_err *err)
{
    size_t n_nodes = g->n_nodes;

    for (size_t i = 0; i < n; i++)
        if (carries_grad(wrt[i]))
            s->on_path[wrt[i]->index] = s->is_wrt[wrt[i]->index] = true;
    mark_path(s, g);
    WF_TRY(seed(s, loss, err));
    for (size_t i = n_nodes; i-- > 0;)
        WF_TRY(visit(s, g->nodes[i], err));
    for (size_t i = 0; i < n; i++)
        WF_TRY(finish(s, wrt, i, grads, err));
    return WF_OK;
}

wf_status wf_graph_differentiate(wf_graph *g, wf_value *loss, wf_value *const wrt[], size_t n,
                                 wf_value *grads[], wf_err *err)
{
    wf_grads s = {.emit = wf_emit_begin(g, "backward", err), .n_values = g->n_values};
    wf_status rc;

    s.grad = calloc(g->n_values + 1, sizeof s.grad[0]);
    s.on_path = calloc(g->n_values + 1, sizeof s.on_path[0]);
    s.is_wrt = calloc(g->n_values + 1, sizeof s.is_wrt[0]);
    if (s.grad && s.on_path && s.is_wrt)
        rc = differentiate(&s, g, loss, wrt, n, grads, err);
    else
        rc = wf_fail_nomem(err, g->n_values * sizeof s.grad[0]);
    free(s.grad);
    free(s.on_path);
    free(s.is_wrt);
    return rc;
}
