/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/recurrent.c - lstm, gru, simple_rnn, and bidirectional around one of them.
 *
 * Variables are Keras's: kernel [features, gates units], recurrent_kernel [units, gates units],
 * bias [gates units] ([2, gates units] of a gru with reset_after). The graph turns them into what
 * ONNX has: gates in rows, lstm's in the order i o f c and not i f c o; weights are small beside
 * the steps they serve. */
#include "common/compile/layers/layer.h"
#include <string.h>

enum { LSTM_FORGET = 1 };

typedef struct cell {
    const char *type, *op;
    uint32_t gates;
    uint8_t order[4]; /* ONNX's gate i is Keras's order[i] */
} cell;

static const cell cells[] = {
    {"lstm", "LSTM", 4, {0, 3, 1, 2}},
    {"gru", "GRU", 3, {0, 1, 2}},
    {"simple_rnn", "RNN", 1, {0}},
};

/* v with the parts of its last axis in ONNX's order. */
static wf_value *in_order(wf_layer *l, const cell *c, wf_value *v)
{
    wf_value *parts[4], *ordered[4];
    wf_attr axis = wf_attr_int("axis", -1);
    int64_t sizes[4];
    wf_value *in[2] = {v, NULL};

    if (!v || strcmp(c->type, "lstm") != 0)
        return v;
    for (uint32_t i = 0; i < c->gates; i++)
        sizes[i] = v->axes[v->rank - 1].size / c->gates;
    in[1] = wf_emit_ints(&l->e, c->gates, sizes);
    if (!wf_emit_node(&l->e, "Split", 2, in, 1, &axis, c->gates, parts))
        return NULL;
    for (uint32_t i = 0; i < c->gates; i++)
        ordered[i] = parts[c->order[i]];
    return wf_emit_op(&l->e, "Concat", c->gates, ordered, 1, &axis);
}

/* [in, gates units] as [1, gates units, in]. */
static wf_value *as_rows(wf_layer *l, const cell *c, wf_value *kernel)
{
    static const int64_t turn[] = {1, 0}, first[] = {0};

    return wf_emit_unsqueeze(&l->e, wf_emit_transpose(&l->e, in_order(l, c, kernel), turn), 1,
                             first);
}

static bool resets_after(const wf_layer *l, const cell *c)
{
    return !strcmp(c->type, "gru") && wf_layer_flag(l, "reset_after", true);
}

/* [1, 2 gates units]: of the input, then of the state. NULL without use_bias. */
static wf_value *bias_of(wf_layer *l, const cell *c, int64_t width)
{
    bool two = resets_after(l, c);
    int64_t dims[2] = {2, width}, flat[2] = {1, 2 * width}, one[2] = {1, width};
    wf_attr axis = wf_attr_int("axis", 1);
    wf_tensor *t;
    wf_value *bias, *both[2];

    if (!wf_layer_flag(l, "use_bias", true))
        return NULL;
    t = wf_layer_first(l, "bias", two ? 2 : 1, two ? dims : &width, "zeros", NULL);
    if (t && !strcmp(c->type, "lstm") && wf_layer_flag(l, "unit_forget_bias", true))
        for (int64_t i = 0; i < width / c->gates; i++)
            wf_f32_mut(t)[LSTM_FORGET * (width / c->gates) + i] = 1.0f;
    bias = wf_layer_keep(l, "bias", WF_VAR_TRAINABLE, &t);
    if (two)
        return wf_emit_reshape(&l->e, bias, 2, flat);
    both[0] = wf_emit_reshape(&l->e, in_order(l, c, bias), 2, one);
    both[1] = wf_layer_numbers(l, 2, one, 0.0);
    return wf_emit_op(&l->e, "Concat", 2, both, 1, &axis);
}

/* Steps from the last to the first. */
static wf_value *backwards(wf_layer *l, wf_value *y)
{
    static const int64_t from[] = {-1}, to[] = {INT64_MIN}, axis[] = {1}, step[] = {-1};
    wf_value *in[5] = {y, wf_emit_ints(&l->e, 1, from), wf_emit_ints(&l->e, 1, to),
                       wf_emit_ints(&l->e, 1, axis), wf_emit_ints(&l->e, 1, step)};

    return wf_emit_op(&l->e, "Slice", 5, in, 0, NULL);
}

/* One direction over x [batch, steps, features], by the options of l->item: all steps in the order
 * of x, or the last state. */
static wf_value *run(wf_layer *l, wf_value *x, bool reverse, bool sequences)
{
    const cell *c = cells;
    int64_t units = wf_conf_int(l->item, "units", 1), dims[2], drop[1];
    wf_value *in[4] = {x}, *out[3], *squeeze[2];
    wf_attr attrs[5];
    const char *const relu[] = {"Relu"};
    uint32_t n = 0;

    while (strcmp(c->type, l->item->type) != 0)
        c++;
    dims[0] = x->axes[2].size;
    dims[1] = units * c->gates;
    in[1] = as_rows(l, c, wf_layer_variable(l, "kernel", 2, dims, "glorot_uniform", NULL));
    dims[0] = units;
    in[2] = as_rows(l, c, wf_layer_variable(l, "recurrent_kernel", 2, dims, "orthogonal", NULL));
    in[3] = bias_of(l, c, dims[1]);
    attrs[n++] = wf_attr_int("hidden_size", units);
    attrs[n++] = wf_attr_int("layout", 1);
    attrs[n++] = wf_attr_string("direction", reverse ? "reverse" : "forward");
    if (resets_after(l, c))
        attrs[n++] = wf_attr_int("linear_before_reset", 1);
    if (!strcmp(wf_conf_text(l->item, "activation", "tanh"), "relu"))
        attrs[n++] = (wf_attr){
            .name = "activations", .kind = WF_ATTR_STRINGS, .n = 1, .strings = (const char **)relu};
    if (!wf_emit_node(&l->e, c->op, in[3] ? 4 : 3, in, n, attrs, 2, out))
        return NULL;
    drop[0] = sequences ? 2 : 1; /* the axis of directions */
    squeeze[0] = sequences ? out[0] : out[1];
    squeeze[1] = wf_emit_ints(&l->e, 1, drop);
    return wf_emit_op(&l->e, "Squeeze", 2, squeeze, 0, NULL);
}

/* Input 0, which must be [batch, steps, features]. */
static wf_value *steps_of(wf_layer *l)
{
    wf_value *x = wf_layer_in(l, 0);
    char text[128];

    if (!x || x->rank == 3)
        return x;
    wf_layer_refuse(l, WF_USAGE, "put a reshape before it",
                    "it takes records of [steps, features]; what comes is %s",
                    wf_layer_shape(wf_layer_give(x), text, sizeof(text)));
    return NULL;
}

static wf_flow one(wf_layer *l)
{
    wf_value *x = steps_of(l);
    bool reverse = wf_layer_flag(l, "go_backwards", false);
    bool sequences = wf_layer_flag(l, "return_sequences", false);

    if (!x)
        return (wf_flow){0};
    x = run(l, x, reverse, sequences);
    /* Keras gives the steps in the order in which it took them. */
    return wf_layer_give(reverse && sequences ? backwards(l, x) : x);
}

static wf_value *merged(wf_layer *l, const char *how, wf_value *a, wf_value *b)
{
    wf_attr axis = wf_attr_int("axis", -1);
    wf_value *both[2] = {a, b};

    if (!strcmp(how, "concat"))
        return wf_emit_op(&l->e, "Concat", 2, both, 1, &axis);
    if (!strcmp(how, "mul"))
        return wf_emit_mul(&l->e, a, b);
    return wf_emit_scale(&l->e, wf_emit_add(&l->e, a, b), !strcmp(how, "ave") ? 0.5 : 1.0);
}

/* The inner layer twice, as "<name>/forward" and "<name>/backward". */
static wf_flow both_ways(wf_layer *l)
{
    const wf_conf_item *outer = l->item;
    const wf_conf_option *inner = wf_conf_find(outer, "layer");
    static const char *const ways[] = {"forward", "backward"};
    wf_value *x = steps_of(l), *y[2] = {NULL, NULL};
    const char *name = l->name;
    bool sequences, first_back;

    if (!x)
        return (wf_flow){0};
    if (!inner || !inner->item)
        return wf_layer_refuse(l, WF_USAGE, "write layer: {lstm: {units: 8}}",
                               "\"layer\" is a layer with its options");
    l->item = inner->item;
    sequences = wf_layer_flag(l, "return_sequences", false);
    first_back = wf_layer_flag(l, "go_backwards", false);
    for (int i = 0; i < 2 && l->e.rc == WF_OK; i++) {
        l->name = wf_arena_printf(l->g->arena, "%s/%s", name, ways[i]);
        if (!l->name) {
            l->name = name;
            wf_layer_stop(l, wf_fail_nomem(l->e.err, strlen(name)));
            break;
        }
        l->e.hint = l->name;
        y[i] = run(l, x, (i == 1) != first_back, sequences);
    }
    l->item = outer;
    l->name = l->e.hint = name;
    return wf_layer_give(merged(l, wf_conf_text(outer, "merge_mode", "concat"), y[0], y[1]));
}

const wf_layer_row wf_layer_bidirectional = {"bidirectional", 1, 1, both_ways};
const wf_layer_row wf_layer_gru = {"gru", 1, 1, one};
const wf_layer_row wf_layer_lstm = {"lstm", 1, 1, one};
const wf_layer_row wf_layer_simple_rnn = {"simple_rnn", 1, 1, one};
