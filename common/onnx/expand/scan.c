/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/scan.c - Scan: an iteration for each slice of its inputs. */
#include "common/onnx/expand.h"
#include "common/onnx/expand/unroll.h"
#include "common/onnx/proto.h"
#include "common/onnx/sequence.h"

#include <inttypes.h>

/* Entry i of an optional list of integers. */
static int64_t entry(const Weft__Onnx__Node *p, const char *list, size_t i)
{
    size_t n;
    const int64_t *values = wf_onnx_ints(p, list, &n);

    return i < n ? values[i] : 0;
}

/* The slices of a scanned input along its axis, one for each iteration. */
static wf_status slices(wf_unroll *l, wf_emit *e, size_t i, size_t n_state, int64_t *count,
                        wf_value ***out, wf_err *err)
{
    int64_t along = entry(l->p, "scan_input_axes", i), size;
    wf_attr attrs[] = {wf_attr_int("axis", along), wf_attr_int("num_outputs", 0)};
    wf_value *x;

    WF_TRY(wf_onnx_input(l->g, l->p, l->around, n_state + i, &x, err));
    if (!x || wf_onnx_sequence_of(l->file, x))
        return wf_fail(err, WF_INVALID, NULL, "its input %zu is %s", n_state + i,
                       x ? "a sequence, not a tensor" : "missing");
    if (x->rank < 0 || along < -x->rank || along >= x->rank)
        return wf_fail(err, x->rank < 0 ? WF_UNSUPPORTED : WF_SHAPE, NULL,
                       "it scans axis %" PRId64 " of a tensor of %d axes", along, x->rank);
    size = x->axes[along < 0 ? along + x->rank : along].size;
    if (size < 0)
        return wf_fail(err, WF_UNSUPPORTED, "export it with that axis fixed",
                       "the axis that it scans has a size that is known only during the run, and "
                       "weft unrolls loops");
    if (*count >= 0 && size != *count)
        return wf_fail(err, WF_SHAPE, NULL, "it scans %" PRId64 " and %" PRId64 " slices", *count,
                       size);
    *count = size;
    if (size > (int64_t)(WF_MOST_UNROLLED / wf_unroll_cost(l)))
        return wf_unroll_too_many(l, err);
    *out = wf_arena_array(l->g->arena, (size_t)size + 1, sizeof **out);
    if (!*out)
        return wf_fail_nomem(err, (size_t)size * sizeof **out);
    attrs[1].i = size;
    if (size > 0)
        wf_emit_node(e, "Split", 1, &x, 2, attrs, (uint32_t)size, *out);
    for (int64_t k = 0; k < size; k++)
        (*out)[k] = wf_emit_binary(e, "Squeeze", (*out)[k], wf_emit_ints(e, 1, &along));
    return wf_emit_end(e);
}

static wf_status scan_all(wf_unroll *l, wf_emit *e, size_t n_state, wf_value *args[],
                          wf_value **parts[], wf_err *err)
{
    size_t n_scan = l->p->n_input - n_state;
    int64_t count = -1;

    for (size_t i = 0; i < n_scan; i++)
        WF_TRY(slices(l, e, i, n_state, &count, &parts[i], err));
    while (l->n_iterations < count) {
        for (size_t i = 0; i < n_scan; i++)
            args[n_state + i] =
                parts[i][entry(l->p, "scan_input_directions", i) ? count - 1 - l->n_iterations
                                                                 : l->n_iterations];
        WF_TRY(wf_unroll_once(l, args, err));
        for (size_t i = 0; i < n_state; i++)
            args[i] = l->last->results[i];
    }
    return WF_OK;
}

static wf_status add(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                     const wf_onnx_scope *scope, wf_err *err)
{
    wf_unroll l = {.g = g, .p = p, .file = file, .around = scope};
    int64_t n_scan = wf_onnx_int(p, "num_scan_inputs", 0);
    wf_value **args, ***parts;
    size_t n_state;
    wf_emit e;

    if (n_scan < 1 || (uint64_t)n_scan > p->n_input)
        return wf_fail(err, WF_INVALID, NULL, "it scans %" PRId64 " of its %zu inputs", n_scan,
                       p->n_input);
    n_state = p->n_input - (size_t)n_scan;
    WF_TRY(wf_unroll_begin(&l, p->n_input, n_state, err));
    if (p->n_output > l.body->n_output)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu outputs, and its body makes %zu",
                       p->n_output, l.body->n_output);
    args = wf_arena_array(g->arena, p->n_input, sizeof args[0]);
    parts = wf_arena_array(g->arena, (size_t)n_scan, sizeof parts[0]);
    if (!args || !parts)
        return wf_fail_nomem(err, 2 * p->n_input * sizeof args[0]);
    for (size_t i = 0; i < n_state; i++) {
        WF_TRY(wf_onnx_input(g, p, scope, i, &args[i], err));
        if (!args[i])
            return wf_fail(err, WF_INVALID, NULL, "its input %zu is missing", i);
    }
    e = wf_unroll_emit(&l, err);
    WF_TRY(scan_all(&l, &e, n_state, args, parts, err));
    for (size_t i = 0; i < n_state && i < p->n_output; i++)
        WF_TRY(wf_onnx_bind(g, file, scope, p->output[i], args[i], err));
    for (size_t i = n_state; i < p->n_output; i++)
        WF_TRY(wf_unroll_stack(&l, &e, i, i, entry(p, "scan_output_axes", i - n_state),
                               entry(p, "scan_output_directions", i - n_state) != 0, err));
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"body", WF_ATTR_GRAPH, true},
                                    {"num_scan_inputs", WF_ATTR_INT, true},
                                    {"scan_input_axes", WF_ATTR_INTS, false},
                                    {"scan_input_directions", WF_ATTR_INTS, false},
                                    {"scan_output_axes", WF_ATTR_INTS, false},
                                    {"scan_output_directions", WF_ATTR_INTS, false},
                                    {0}};

const wf_expansion wf_expansion_scan = {
    .op =
        {
            .name = "Scan",
            .domain = WF_DOMAIN_ONNX,
            .since = 16,
            .n_in_min = 1,
            .n_in_max = WF_ANY_NUMBER,
            .n_out_min = 1,
            .n_out_max = WF_ANY_NUMBER,
            .note = WF_UNROLLED,
            .attrs = attrs,
        },
    .from = 9, /* before, it had an axis for the batch */
    .add = add,
};
