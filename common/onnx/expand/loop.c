/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/loop.c - Loop: iterations by a count, a condition or both. */
#include "common/onnx/expand.h"
#include "common/onnx/expand/unroll.h"
#include "common/onnx/known.h"
#include "common/onnx/sequence.h"

#include <inttypes.h>

/* The optional input i, a single number that must be known now. */
static wf_status number(const wf_unroll *l, size_t i, bool *is_there, int64_t *content, wf_err *err)
{
    wf_value *v;

    WF_TRY(wf_onnx_input(l->g, l->p, l->around, i, &v, err));
    *is_there = v != NULL;
    if (!v || wf_onnx_known(v, content))
        return WF_OK;
    return wf_fail(
        err, WF_UNSUPPORTED, "export it with fixed sizes, or write it without a loop",
        "how many iterations it takes is known only during the run, and weft unrolls loops");
}

static wf_status run_iterations(wf_unroll *l, wf_emit *e, wf_value *args[], bool counted,
                                int64_t count, bool going, wf_err *err)
{
    size_t n_state = l->p->n_input - 2;

    args[1] = wf_emit_scalar(e, WF_BOOL, 1);
    while (going && (!counted || l->n_iterations < count)) {
        int64_t goes_on = 1;

        args[0] = wf_emit_scalar(e, WF_I64, (double)l->n_iterations);
        WF_TRY(wf_emit_end(e));
        WF_TRY(wf_unroll_once(l, args, err));
        for (size_t i = 0; i < n_state; i++)
            args[2 + i] = l->last->results[1 + i];
        /* After the last iteration the condition does not matter. */
        if (!(counted && l->n_iterations == count) && !wf_onnx_known(l->last->results[0], &goes_on))
            return wf_fail(err, WF_UNSUPPORTED,
                           "export it with fixed sizes, or write it without a loop",
                           "whether it takes an iteration %" PRId64
                           " is known only during the run, and weft unrolls loops",
                           l->n_iterations);
        going = goes_on != 0;
    }
    return WF_OK;
}

static wf_status add(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                     const wf_onnx_scope *scope, wf_err *err)
{
    wf_unroll l = {.g = g, .p = p, .file = file, .around = scope};
    int64_t count = 0, going = 1;
    bool counted, has_condition;
    wf_value **args;
    size_t n_state;
    wf_emit e;

    if (p->n_input < 2)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu inputs, and takes 2 or more", p->n_input);
    n_state = p->n_input - 2;
    WF_TRY(wf_unroll_begin(&l, p->n_input, p->n_input - 1, err));
    if (p->n_output > l.body->n_output - 1)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu outputs, and its body makes %zu",
                       p->n_output, l.body->n_output - 1);
    WF_TRY(number(&l, 0, &counted, &count, err));
    WF_TRY(number(&l, 1, &has_condition, &going, err));
    if (counted && going && count > (int64_t)(WF_MOST_UNROLLED / wf_unroll_cost(&l)))
        return wf_unroll_too_many(&l, err);
    args = wf_arena_array(g->arena, p->n_input, sizeof args[0]);
    if (!args)
        return wf_fail_nomem(err, p->n_input * sizeof args[0]);
    for (size_t i = 2; i < p->n_input; i++) {
        WF_TRY(wf_onnx_input(g, p, scope, i, &args[i], err));
        if (!args[i])
            return wf_fail(err, WF_INVALID, NULL, "its input %zu is missing", i);
    }
    e = wf_unroll_emit(&l, err);
    WF_TRY(run_iterations(&l, &e, args, counted, count, going != 0, err));
    for (size_t i = 0; i < n_state && i < p->n_output; i++)
        WF_TRY(wf_onnx_bind(g, file, scope, p->output[i], args[2 + i], err));
    for (size_t i = n_state; i < p->n_output; i++)
        WF_TRY(wf_unroll_stack(&l, &e, i, 1 + i, 0, false, err));
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"body", WF_ATTR_GRAPH, true}, {0}};

const wf_expansion wf_expansion_loop = {
    .op =
        {
            .name = "Loop",
            .domain = WF_DOMAIN_ONNX,
            .since = 16,
            .n_in_min = 2,
            .n_in_max = WF_ANY_NUMBER,
            .n_out_min = 1,
            .n_out_max = WF_ANY_NUMBER,
            .note = WF_UNROLLED,
            .attrs = attrs,
        },
    .add = add,
};
