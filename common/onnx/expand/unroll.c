/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/unroll.c - see unroll.h. */
#include "common/onnx/expand/unroll.h"
#include "common/onnx/proto.h"
#include "common/onnx/sequence.h"

#include <inttypes.h>
#include <string.h>

static bool is_constant(const Weft__Onnx__Node *p)
{
    return !wf_onnx_domain(p)[0] && strcmp(wf_onnx_op(p), "Constant") == 0;
}

size_t wf_unroll_cost(const wf_unroll *l)
{
    return 1 + l->body->n_node + l->body->n_input + l->body->n_output;
}

wf_status wf_unroll_too_many(const wf_unroll *l, wf_err *err)
{
    return wf_fail(err, WF_UNSUPPORTED, "write it without a loop, or with fewer iterations",
                   "unrolled, the loops of the file would be more than %d nodes, iteration %" PRId64
                   " of this one among them",
                   WF_MOST_UNROLLED, l->n_iterations);
}

wf_status wf_unroll_begin(wf_unroll *l, size_t n_in, size_t n_out_min, wf_err *err)
{
    const char *name = "";

    l->body = wf_onnx_subgraph(l->p, "body");
    if (!l->body)
        return wf_fail(err, WF_INVALID, NULL, "it has no body");
    if (l->body->n_input != n_in || l->body->n_output < n_out_min || l->body->n_sparse_initializer)
        return wf_fail(
            err, WF_INVALID, NULL,
            "its body has %zu inputs and %zu outputs, and must have %zu and at least %zu",
            l->body->n_input, l->body->n_output, n_in, n_out_min);
    for (size_t i = 0; i < n_in; i++)
        if (!l->body->input[i]->name)
            return wf_fail(err, WF_INVALID, NULL, "input %zu of its body has no name", i);
    for (size_t i = 0; i < l->p->n_output && !name[0]; i++)
        name = l->p->output[i];
    WF_TRY(wf_onnx_enter(l->g, l->around, name, false, &l->shared, err));
    for (size_t i = 0; i < l->body->n_initializer; i++)
        WF_TRY(wf_onnx_initializer(l->g, l->body->initializer[i], l->file->folder, l->shared.prefix,
                                   err));
    for (size_t i = 0; i < l->body->n_node; i++)
        if (is_constant(l->body->node[i]))
            WF_TRY(l->file->add_node(l->g, l->body->node[i], l->file, &l->shared, err));
    return wf_onnx_catch_up(l->g, l->file, err);
}

/* One more iteration, with what the inputs of the body stand for in it. */
wf_status wf_unroll_once(wf_unroll *l, wf_value *const args[], wf_err *err)
{
    const Weft__Onnx__Graph *body = l->body;
    size_t before = l->g->n_nodes;
    wf_onnx_scope scope = l->shared;
    wf_iteration *t = wf_arena_alloc(l->g->arena, sizeof *t);

    if (l->file->n_unrolled + wf_unroll_cost(l) > WF_MOST_UNROLLED)
        return wf_unroll_too_many(l, err);
    scope.around = &l->shared;
    scope.prefix =
        wf_arena_printf(l->g->arena, "%s%" PRId64 "/", l->shared.prefix, l->n_iterations);
    if (!t || !scope.prefix)
        return wf_fail_nomem(err, sizeof *t);
    for (size_t i = 0; i < body->n_input; i++)
        WF_TRY(wf_onnx_bind(l->g, l->file, &scope, body->input[i]->name, args[i], err));
    for (size_t i = 0; i < body->n_node; i++)
        if (!is_constant(body->node[i]))
            WF_TRY(l->file->add_node(l->g, body->node[i], l->file, &scope, err));
    t->before = l->last;
    t->results = wf_arena_array(l->g->arena, body->n_output + 1, sizeof t->results[0]);
    if (!t->results)
        return wf_fail_nomem(err, body->n_output * sizeof t->results[0]);
    WF_TRY(wf_onnx_results(l->g, body, &scope, t->results, err));
    l->last = t;
    l->n_iterations++;
    l->file->n_unrolled += 1 + body->n_output + (l->g->n_nodes - before);
    return wf_onnx_catch_up(l->g, l->file, err);
}

/* Output i of the node: what result k was in each iteration, along a new axis. */
wf_status wf_unroll_stack(const wf_unroll *l, wf_emit *e, size_t i, size_t k, int64_t along,
                          bool is_reversed, wf_err *err)
{
    wf_attr axis = wf_attr_int("axis", along);
    wf_value **items, *y;
    int64_t at = l->n_iterations;

    if (i >= l->p->n_output || !l->p->output[i][0])
        return WF_OK;
    if (!l->n_iterations)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "it takes no iteration, so that the shape of its output %zu is not known",
                       i);
    items = wf_arena_array(l->g->arena, (size_t)l->n_iterations, sizeof items[0]);
    if (!items)
        return wf_fail_nomem(err, (size_t)l->n_iterations * sizeof items[0]);
    for (const wf_iteration *t = l->last; t; t = t->before) {
        wf_value *v = t->results[k];

        at--;
        if (wf_onnx_sequence_of(l->file, v))
            return wf_fail(err, WF_INVALID, NULL, "its output %zu gathers sequences", i);
        items[is_reversed ? l->n_iterations - 1 - at : at] = wf_emit_unsqueeze(e, v, 1, &along);
    }
    WF_TRY(wf_emit_end(e));
    y = wf_emit_op(e, "Concat", (uint32_t)l->n_iterations, items, 1, &axis);
    WF_TRY(wf_emit_end(e));
    return wf_onnx_bind(l->g, l->file, l->around, l->p->output[i], y, err);
}

wf_emit wf_unroll_emit(const wf_unroll *l, wf_err *err)
{
    const wf_onnx_scope *s = &l->shared;

    return wf_emit_begin(l->g, l->p->name && l->p->name[0] ? l->p->name : s->prefix, err);
}
