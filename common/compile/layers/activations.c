/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/activations.c - activations by Keras's names (keras/src/activations). */
#include "common/base/nearest.h"
#include "common/compile/compile.h"
#include "common/compile/layers/layer.h"
#include <string.h>

typedef struct activation_row {
    const char *name, *op; /* op NULL: made by `make` alone, or nothing to do */
    const char *attrs[2];  /* of op; NULL: none */
    float values[2];
    wf_value *(*make)(wf_layer *l, wf_value *x);
    bool last_axis; /* works along the last axis in Keras's order */
} activation_row;

static wf_value *between(wf_layer *l, wf_value *x, double least, double most)
{
    wf_value *in[3] = {x, wf_layer_number(l, least), wf_layer_number(l, most)};

    return wf_emit_op(&l->e, "Clip", 3, in, 0, NULL);
}

static wf_value *relu6(wf_layer *l, wf_value *x)
{
    return between(l, x, 0.0, 6.0);
}

static wf_value *hard_tanh(wf_layer *l, wf_value *x)
{
    return between(l, x, -1.0, 1.0);
}

/* x Sigmoid(x), which files of the inner opset can say; Swish came with opset 24. */
static wf_value *silu(wf_layer *l, wf_value *x)
{
    return wf_emit_mul(&l->e, x, wf_emit_unary(&l->e, "Sigmoid", x));
}

static wf_value *log_sigmoid(wf_layer *l, wf_value *x)
{
    return wf_emit_neg(&l->e, wf_emit_unary(&l->e, "Softplus", wf_emit_neg(&l->e, x)));
}

static wf_value *tanh_shrink(wf_layer *l, wf_value *x)
{
    return wf_emit_sub(&l->e, x, wf_emit_unary(&l->e, "Tanh", x));
}

/* (x + sqrt(x^2 + 4)) / 2 */
static wf_value *squareplus(wf_layer *l, wf_value *x)
{
    wf_value *square = wf_emit_add(&l->e, wf_emit_mul(&l->e, x, x), wf_layer_number(l, 4.0));

    return wf_emit_scale(&l->e, wf_emit_add(&l->e, x, wf_emit_unary(&l->e, "Sqrt", square)), 0.5);
}

static const activation_row activations[] = {
    {.name = "linear"},
    {.name = "relu", .op = "Relu"},
    {.name = "sigmoid", .op = "Sigmoid"},
    {.name = "tanh", .op = "Tanh"},
    {.name = "softmax", .op = "Softmax", .attrs = {"axis"}, .last_axis = true},
    {.name = "log_softmax", .op = "LogSoftmax", .attrs = {"axis"}, .last_axis = true},
    {.name = "exponential", .op = "Exp"},
    {.name = "elu", .op = "Elu", .attrs = {"alpha"}, .values = {1.0f}},
    {.name = "selu", .op = "Selu"},
    {.name = "celu", .op = "Celu", .attrs = {"alpha"}, .values = {1.0f}},
    {.name = "gelu", .op = "Gelu"},
    {.name = "silu", .make = silu},
    {.name = "swish", .make = silu},
    {.name = "softplus", .op = "Softplus"},
    {.name = "softsign", .op = "Softsign"},
    {.name = "mish", .op = "Mish"},
    {.name = "leaky_relu", .op = "LeakyRelu", .attrs = {"alpha"}, .values = {0.2f}},
    {.name = "relu6", .make = relu6},
    {.name = "hard_sigmoid",
     .op = "HardSigmoid",
     .attrs = {"alpha", "beta"},
     .values = {1.0f / 6.0f, 0.5f}},
    {.name = "hard_silu", .op = "HardSwish"},
    {.name = "hard_swish", .op = "HardSwish"},
    {.name = "hard_tanh", .make = hard_tanh},
    {.name = "hard_shrink", .op = "Shrink", .attrs = {"lambd", "bias"}, .values = {0.5f, 0.0f}},
    {.name = "soft_shrink", .op = "Shrink", .attrs = {"lambd", "bias"}, .values = {0.5f, 0.5f}},
    {.name = "tanh_shrink", .make = tanh_shrink},
    {.name = "log_sigmoid", .make = log_sigmoid},
    {.name = "squareplus", .make = squareplus},
};

const char *wf_compile_activation_at(size_t i)
{
    return i < WF_COUNT(activations) ? activations[i].name : NULL;
}

static wf_flow apply(wf_layer *l, const activation_row *a, wf_flow f)
{
    wf_attr attrs[2];
    uint32_t n = 0;

    if (a->last_axis) {
        attrs[n++] = wf_attr_int("axis", -1);
        f = wf_layer_give(wf_layer_plain(l, f));
    }
    for (; !a->last_axis && n < 2 && a->attrs[n]; n++)
        attrs[n] = wf_attr_float(a->attrs[n], a->values[n]);
    if (a->make)
        f.value = a->make(l, f.value);
    else if (a->op)
        f.value = wf_emit_op(&l->e, a->op, 1, &f.value, n, attrs);
    return f;
}

wf_flow wf_layer_activate(wf_layer *l, wf_flow f, const char *option, const char *otherwise)
{
    const char *name = wf_conf_text(l->item, option, otherwise);
    const char *names[WF_COUNT(activations)];
    char hint[WF_NEAREST_HINT];

    if (!f.value)
        return f;
    for (size_t i = 0; i < WF_COUNT(activations); i++) {
        names[i] = activations[i].name;
        if (!strcmp(names[i], name))
            return apply(l, &activations[i], f);
    }
    return wf_layer_refuse(
        l, WF_USAGE, wf_nearest_hint(name, names, WF_COUNT(names), "weft help activations", hint),
        "unknown activation \"%s\"", name);
}
