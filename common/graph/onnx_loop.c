/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_loop.c - Loop and Scan: their turns become part of the graph around them, one
 * after the other.
 *
 * That needs a number of turns that is known while the file is read: a count, a condition that
 * follows from the turn's number, or the size of the axis that is scanned. Sequences may pass from
 * turn to turn (onnx_sequence.c). Gradients need nothing new. What all turns share, initializers
 * and constants, is added once. The nodes that loops may make in one file are bounded, whatever
 * their counts say.
 */
#include "common/graph/emit.h"
#include "common/graph/onnx_parts.h"

#include <inttypes.h>
#include <string.h>

/* Nodes and results of all turns in a file. */
enum { MOST_UNROLLED = 4 * 4096 };

/* What a turn gave. */
typedef struct turn {
    const struct turn *before;
    wf_value **results; /* [outputs of the body] */
} turn;

typedef struct loop {
    wf_graph *g;
    const Weft__Onnx__Node *p;
    wf_onnx_file *file;
    const wf_onnx_scope *around;
    const Weft__Onnx__Graph *body;
    wf_onnx_scope shared; /* of what all turns share */
    const turn *last;
    int64_t n_turns;
} loop;

static bool is_constant(const Weft__Onnx__Node *p)
{
    return !wf_onnx_domain(p)[0] && strcmp(wf_onnx_op(p), "Constant") == 0;
}

static size_t cost_of_turn(const loop *l)
{
    return 1 + l->body->n_node + l->body->n_input + l->body->n_output;
}

static wf_status too_many(const loop *l, wf_err *err)
{
    return wf_fail(err, WF_UNSUPPORTED, "write it without a loop, or with fewer turns",
                   "unrolled, the loops of the file would be more than %d nodes, turn %" PRId64
                   " of this one among them",
                   MOST_UNROLLED, l->n_turns);
}

static wf_status begin(loop *l, size_t n_in, size_t n_out_min, wf_err *err)
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
            WF_TRY(wf_onnx_node(l->g, l->body->node[i], l->file, &l->shared, err));
    return wf_onnx_catch_up(l->g, l->file, err);
}

/* One more turn, with what the inputs of the body stand for in it. */
static wf_status take_turn(loop *l, wf_value *const args[], wf_err *err)
{
    const Weft__Onnx__Graph *body = l->body;
    size_t before = l->g->n_nodes;
    wf_onnx_scope scope = l->shared;
    turn *t = wf_arena_alloc(l->g->arena, sizeof *t);

    if (l->file->n_unrolled + cost_of_turn(l) > MOST_UNROLLED)
        return too_many(l, err);
    scope.around = &l->shared;
    scope.prefix = wf_arena_printf(l->g->arena, "%s%" PRId64 "/", l->shared.prefix, l->n_turns);
    if (!t || !scope.prefix)
        return wf_fail_nomem(err, sizeof *t);
    for (size_t i = 0; i < body->n_input; i++)
        WF_TRY(wf_onnx_bind(l->g, l->file, &scope, body->input[i]->name, args[i], err));
    for (size_t i = 0; i < body->n_node; i++)
        if (!is_constant(body->node[i]))
            WF_TRY(wf_onnx_node(l->g, body->node[i], l->file, &scope, err));
    t->before = l->last;
    t->results = wf_arena_array(l->g->arena, body->n_output + 1, sizeof t->results[0]);
    if (!t->results)
        return wf_fail_nomem(err, body->n_output * sizeof t->results[0]);
    WF_TRY(wf_onnx_results(l->g, body, &scope, t->results, err));
    l->last = t;
    l->n_turns++;
    l->file->n_unrolled += 1 + body->n_output + (l->g->n_nodes - before);
    return wf_onnx_catch_up(l->g, l->file, err);
}

/* Output i of the node: what result k was in each turn, along a new axis. */
static wf_status stack(const loop *l, wf_emit *e, size_t i, size_t k, int64_t along,
                       bool is_reversed, wf_err *err)
{
    wf_attr axis = wf_attr_int("axis", along);
    wf_value **items, *y;
    int64_t at = l->n_turns;

    if (i >= l->p->n_output || !l->p->output[i][0])
        return WF_OK;
    if (!l->n_turns)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "it takes no turn, so that the shape of its output %zu is not known", i);
    items = wf_arena_array(l->g->arena, (size_t)l->n_turns, sizeof items[0]);
    if (!items)
        return wf_fail_nomem(err, (size_t)l->n_turns * sizeof items[0]);
    for (const turn *t = l->last; t; t = t->before) {
        wf_value *v = t->results[k];

        at--;
        if (wf_onnx_sequence_of(l->file, v))
            return wf_fail(err, WF_INVALID, NULL, "its output %zu gathers sequences", i);
        items[is_reversed ? l->n_turns - 1 - at : at] = wf_emit_unsqueeze(e, v, 1, &along);
    }
    WF_TRY(wf_emit_end(e));
    y = wf_emit_op(e, "Concat", (uint32_t)l->n_turns, items, 1, &axis);
    WF_TRY(wf_emit_end(e));
    return wf_onnx_bind(l->g, l->file, l->around, l->p->output[i], y, err);
}

static loop loop_of(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                    const wf_onnx_scope *scope)
{
    return (loop){.g = g, .p = p, .file = file, .around = scope};
}

static wf_emit emit_for(const loop *l, wf_err *err)
{
    const wf_onnx_scope *s = &l->shared;

    return wf_emit_begin(l->g, l->p->name && l->p->name[0] ? l->p->name : s->prefix, err);
}

/* The optional input i, a single number that must be known now. */
static wf_status number(const loop *l, size_t i, bool *is_there, int64_t *content, wf_err *err)
{
    wf_value *v;

    WF_TRY(wf_onnx_input(l->g, l->p, l->around, i, &v, err));
    *is_there = v != NULL;
    if (!v || wf_onnx_known(v, content))
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "export it with fixed sizes, or write it without a loop",
                   "how many turns it takes is known only during the run, and weft unrolls loops");
}

static wf_status run_turns(loop *l, wf_emit *e, wf_value *args[], bool counted, int64_t count,
                           bool going, wf_err *err)
{
    size_t n_state = l->p->n_input - 2;

    args[1] = wf_emit_scalar(e, WF_BOOL, 1);
    while (going && (!counted || l->n_turns < count)) {
        int64_t goes_on = 1;

        args[0] = wf_emit_scalar(e, WF_I64, (double)l->n_turns);
        WF_TRY(wf_emit_end(e));
        WF_TRY(take_turn(l, args, err));
        for (size_t i = 0; i < n_state; i++)
            args[2 + i] = l->last->results[1 + i];
        /* After the last turn the condition does not matter. */
        if (!(counted && l->n_turns == count) && !wf_onnx_known(l->last->results[0], &goes_on))
            return wf_fail(err, WF_UNSUPPORTED,
                           "export it with fixed sizes, or write it without a loop",
                           "whether it takes a turn %" PRId64
                           " is known only during the run, and weft unrolls loops",
                           l->n_turns);
        going = goes_on != 0;
    }
    return WF_OK;
}

wf_status wf_onnx_loop(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                       const wf_onnx_scope *scope, wf_err *err)
{
    loop l = loop_of(g, p, file, scope);
    int64_t count = 0, going = 1;
    bool counted, has_condition;
    wf_value **args;
    size_t n_state;
    wf_emit e;

    if (p->n_input < 2)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu inputs, and takes 2 or more", p->n_input);
    n_state = p->n_input - 2;
    WF_TRY(begin(&l, p->n_input, p->n_input - 1, err));
    if (p->n_output > l.body->n_output - 1)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu outputs, and its body makes %zu",
                       p->n_output, l.body->n_output - 1);
    WF_TRY(number(&l, 0, &counted, &count, err));
    WF_TRY(number(&l, 1, &has_condition, &going, err));
    if (counted && going && count > (int64_t)(MOST_UNROLLED / cost_of_turn(&l)))
        return too_many(&l, err);
    args = wf_arena_array(g->arena, p->n_input, sizeof args[0]);
    if (!args)
        return wf_fail_nomem(err, p->n_input * sizeof args[0]);
    for (size_t i = 2; i < p->n_input; i++) {
        WF_TRY(wf_onnx_input(g, p, scope, i, &args[i], err));
        if (!args[i])
            return wf_fail(err, WF_INVALID, NULL, "its input %zu is missing", i);
    }
    e = emit_for(&l, err);
    WF_TRY(run_turns(&l, &e, args, counted, count, going != 0, err));
    for (size_t i = 0; i < n_state && i < p->n_output; i++)
        WF_TRY(wf_onnx_bind(g, file, scope, p->output[i], args[2 + i], err));
    for (size_t i = n_state; i < p->n_output; i++)
        WF_TRY(stack(&l, &e, i, 1 + i, 0, false, err));
    return WF_OK;
}

/* Entry i of an optional list of integers. */
static int64_t entry(const Weft__Onnx__Node *p, const char *list, size_t i)
{
    size_t n;
    const int64_t *values = wf_onnx_ints(p, list, &n);

    return i < n ? values[i] : 0;
}

/* The slices of a scanned input along its axis, one for each turn. */
static wf_status slices(loop *l, wf_emit *e, size_t i, size_t n_state, int64_t *count,
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
    if (size > (int64_t)(MOST_UNROLLED / cost_of_turn(l)))
        return too_many(l, err);
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

static wf_status scan_all(loop *l, wf_emit *e, size_t n_state, wf_value *args[], wf_value **parts[],
                          wf_err *err)
{
    size_t n_scan = l->p->n_input - n_state;
    int64_t count = -1;

    for (size_t i = 0; i < n_scan; i++)
        WF_TRY(slices(l, e, i, n_state, &count, &parts[i], err));
    while (l->n_turns < count) {
        for (size_t i = 0; i < n_scan; i++)
            args[n_state + i] =
                parts[i][entry(l->p, "scan_input_directions", i) ? count - 1 - l->n_turns
                                                                 : l->n_turns];
        WF_TRY(take_turn(l, args, err));
        for (size_t i = 0; i < n_state; i++)
            args[i] = l->last->results[i];
    }
    return WF_OK;
}

wf_status wf_onnx_scan(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                       const wf_onnx_scope *scope, wf_err *err)
{
    loop l = loop_of(g, p, file, scope);
    int64_t n_scan = wf_onnx_int(p, "num_scan_inputs", 0);
    wf_value **args, ***parts;
    size_t n_state;
    wf_emit e;

    if (n_scan < 1 || (uint64_t)n_scan > p->n_input)
        return wf_fail(err, WF_INVALID, NULL, "it scans %" PRId64 " of its %zu inputs", n_scan,
                       p->n_input);
    n_state = p->n_input - (size_t)n_scan;
    WF_TRY(begin(&l, p->n_input, n_state, err));
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
    e = emit_for(&l, err);
    WF_TRY(scan_all(&l, &e, n_state, args, parts, err));
    for (size_t i = 0; i < n_state && i < p->n_output; i++)
        WF_TRY(wf_onnx_bind(g, file, scope, p->output[i], args[i], err));
    for (size_t i = n_state; i < p->n_output; i++)
        WF_TRY(stack(&l, &e, i, i, entry(p, "scan_output_axes", i - n_state),
                     entry(p, "scan_output_directions", i - n_state) != 0, err));
    return WF_OK;
}
