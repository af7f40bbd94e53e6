/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/model.c - builds the graph of a list of layers.
 *
 * A chain: each layer takes the value before it and leaves another. A layer is a row of `layers`,
 * named as in common/conf/layers.h, whose rows have checked kinds and bounds of options; what is
 * checked again here would be dangerous if it were not so.
 */
#include "common/compile/model.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 192 };
static const size_t most_variable_bytes = (size_t)1 << 31; /* what one ONNX file can hold */

typedef struct builder {
    const wf_model *m;
    wf_graph *g;
    uint64_t seed;
    wf_value *at;              /* what the next layer takes */
    const wf_conf_item *layer; /* being built */
    const char *name;          /* its name, in the graph's arena */
    wf_err *err;
} builder;

typedef struct layer_row {
    const char *type;
    wf_status (*build)(builder *b);
} layer_row;

typedef struct activation_row {
    const char *name, *op;
    bool last_axis;
} activation_row;

static const activation_row activations[] = {
    {"linear", NULL, false},       {"relu", "Relu", false},
    {"sigmoid", "Sigmoid", false}, {"tanh", "Tanh", false},
    {"softmax", "Softmax", true},  {"log_softmax", "LogSoftmax", true},
    {"exponential", "Exp", false},
};

/* "dense", then "dense_1": Keras's count, by type and of nameless layers only. */
static wf_status name_layer(builder *b, size_t i)
{
    const wf_conf_item *l = b->layer;
    const char *given = wf_conf_text(l, "name", NULL);
    size_t before = 0;

    for (size_t k = 0; k < i; k++)
        if (!strcmp(b->m->layers[k].type, l->type) && !wf_conf_text(&b->m->layers[k], "name", NULL))
            before++;
    if (given)
        b->name = wf_arena_strdup(b->g->arena, given);
    else if (before)
        b->name = wf_arena_printf(b->g->arena, "%s_%zu", l->type, before);
    else
        b->name = wf_arena_strdup(b->g->arena, l->type);
    return b->name ? WF_OK : wf_fail_nomem(b->err, NAME_BYTES);
}

static wf_status activate(builder *b, const char *name)
{
    const char *names[WF_COUNT(activations)], *near;

    for (size_t i = 0; i < WF_COUNT(activations); i++) {
        const activation_row *a = &activations[i];
        wf_attr axis = wf_attr_int("axis", -1);
        wf_emit e = wf_emit_begin(b->g, b->name, b->err);
        wf_value *y;

        names[i] = a->name;
        if (strcmp(a->name, name))
            continue;
        if (!a->op)
            return WF_OK;
        y = wf_emit_op(&e, a->op, 1, &b->at, a->last_axis, &axis);
        if (y)
            b->at = y;
        return wf_emit_end(&e);
    }
    near = wf_nearest(name, names, WF_COUNT(names));
    return wf_fail(b->err, WF_USAGE,
                   "there are linear, relu, sigmoid, tanh, softmax, log_softmax, exponential",
                   "unknown activation \"%s\"%s%s%s", name, near ? "; did you mean \"" : "",
                   near ? near : "", near ? "\"?" : "");
}

/* A trainable f32 variable "<layer>/<part>" with its first content. */
static wf_status variable(builder *b, const char *part, uint32_t rank, const int64_t dims[],
                          const char *initializer, wf_value **out)
{
    wf_status rc;
    wf_tensor *t = NULL;
    char name[NAME_BYTES], text[64];
    int64_t elems;

    if (snprintf(name, sizeof(name), "%s/%s", b->name, part) >= (int)sizeof(name))
        return wf_fail(b->err, WF_USAGE, "give it a shorter name", "the layer's name is too long");
    if (wf_graph_value(b->g, name))
        return wf_fail(b->err, WF_USAGE, "give each layer a name of its own",
                       "there is a variable \"%s\" already", name);
    if (!wf_dims_elems(rank, dims, &elems) || (size_t)elems > most_variable_bytes / sizeof(float))
        return wf_fail(b->err, WF_UNSUPPORTED, "lower \"units\"",
                       "variable \"%s\" of float32%s is larger than 2 GiB", name,
                       wf_dims_str(rank, dims, text, sizeof(text)));
    WF_TRY(wf_tensor_new(WF_F32, rank, dims, &t, b->err));
    rc = wf_initialize(initializer, b->seed, name, t, b->err);
    if (rc == WF_OK)
        rc = wf_graph_add_variable(b->g, name, WF_VAR_TRAINABLE, &t, out, b->err);
    wf_tensor_free(&t);
    return rc;
}

static wf_status build_dense(builder *b)
{
    const wf_conf_item *l = b->layer;
    int64_t units = wf_conf_int(l, "units", 0);
    bool use_bias = wf_conf_int(l, "use_bias", 1) != 0;
    wf_value *kernel = NULL, *bias = NULL, *y;
    wf_emit e = wf_emit_begin(b->g, b->name, b->err);
    int64_t dims[2];

    if (units < 1)
        return wf_fail(b->err, WF_USAGE, NULL, "\"units\" is %lld, and must be at least 1",
                       (long long)units);
    if (b->at->rank < 2)
        return wf_fail(b->err, WF_USAGE, "give the input an axis, such as [1]",
                       "it needs an axis besides the batch to work on");
    dims[0] = b->at->axes[b->at->rank - 1].size;
    dims[1] = units;
    if (dims[0] < 1)
        return wf_fail(b->err, WF_USAGE, "put a reshape with fixed extents before it",
                       "the size of the last axis is not known");
    WF_TRY(variable(b, "kernel", 2, dims, wf_conf_text(l, "kernel_initializer", "glorot_uniform"),
                    &kernel));
    if (use_bias)
        WF_TRY(
            variable(b, "bias", 1, &dims[1], wf_conf_text(l, "bias_initializer", "zeros"), &bias));
    if (b->at->rank == 2) {
        y = wf_emit_gemm(&e, b->at, kernel, bias, 1.0f, 1.0f, false, false);
    } else {
        y = wf_emit_matmul(&e, b->at, kernel);
        if (use_bias)
            y = wf_emit_add(&e, y, bias);
    }
    WF_TRY(wf_emit_end(&e));
    b->at = y;
    return activate(b, wf_conf_text(l, "activation", "linear"));
}

static wf_status build_flatten(builder *b)
{
    wf_emit e = wf_emit_begin(b->g, b->name, b->err);
    wf_attr axis = wf_attr_int("axis", 1);

    if (b->at->rank == 2)
        return WF_OK;
    b->at = wf_emit_op(&e, "Flatten", 1, &b->at, 1, &axis);
    return wf_emit_end(&e);
}

/* training_mode false: what the file says; the mode pass turns it on for training. */
static wf_status build_dropout(builder *b)
{
    wf_emit e = wf_emit_begin(b->g, b->name, b->err);
    double rate = wf_conf_number(b->layer, "rate", -1.0);
    wf_value *in[3] = {b->at, NULL, NULL};

    if (!(rate >= 0.0 && rate < 1.0))
        return wf_fail(b->err, WF_USAGE, NULL, "\"rate\" is %g, and must be in [0, 1)", rate);
    in[1] = wf_emit_scalar(&e, WF_F32, rate);
    in[2] = wf_emit_scalar(&e, WF_BOOL, 0.0);
    b->at = wf_emit_op(&e, "Dropout", 3, in, 0, NULL);
    return wf_emit_end(&e);
}

static wf_status build_activation(builder *b)
{
    return activate(b, wf_conf_text(b->layer, "activation", "linear"));
}

/* Elements of a record of v; false when they are not known. */
static bool record_elems(const wf_value *v, int64_t *out)
{
    *out = 1;
    for (int32_t i = 1; i < v->rank; i++)
        if (v->axes[i].size < 0 || !wf_mul_i64(*out, v->axes[i].size, out))
            return false;
    return true;
}

static wf_status build_reshape(builder *b)
{
    wf_emit e = wf_emit_begin(b->g, b->name, b->err);
    const wf_conf_option *shape = wf_conf_find(b->layer, "target_shape");
    int64_t dims[WF_MAX_RANK] = {0}, have, rest = 1, free_axis = -1;
    bool known = record_elems(b->at, &have);

    if (!shape || shape->n + 1 > WF_MAX_RANK)
        return wf_fail(b->err, WF_USAGE, NULL, "\"target_shape\" must have 0 to %d extents",
                       WF_MAX_RANK - 1);
    for (size_t i = 0; i < shape->n; i++) {
        dims[i + 1] = shape->ints[i];
        if (dims[i + 1] == -1 && free_axis < 0)
            free_axis = (int64_t)i + 1;
        else if (dims[i + 1] < 1 || !wf_mul_i64(rest, dims[i + 1], &rest))
            return wf_fail(b->err, WF_USAGE, "one extent may be -1, all others are at least 1",
                           "\"target_shape\" has an extent of %lld", (long long)dims[i + 1]);
    }
    if (known && (free_axis < 0 ? have != rest : have % rest != 0))
        return wf_fail(b->err, WF_USAGE, "make the products agree",
                       "\"target_shape\" holds %lld elements, a record before it %lld",
                       (long long)rest, (long long)have);
    if (known && free_axis > 0)
        dims[free_axis] = have / rest;
    b->at = wf_emit_reshape(&e, b->at, (uint32_t)shape->n + 1, dims); /* dims[0] == 0: the batch */
    return wf_emit_end(&e);
}

static const layer_row layers[] = {
    {"dense", build_dense},           {"flatten", build_flatten}, {"dropout", build_dropout},
    {"activation", build_activation}, {"reshape", build_reshape},
};

static wf_status build_layer(builder *b)
{
    const char *names[WF_COUNT(layers)], *near;

    for (size_t i = 0; i < WF_COUNT(layers); i++) {
        names[i] = layers[i].type;
        if (!strcmp(layers[i].type, b->layer->type))
            return layers[i].build(b);
    }
    near = wf_nearest(b->layer->type, names, WF_COUNT(names));
    return wf_fail(b->err, WF_USAGE, "there are dense, flatten, dropout, activation, reshape",
                   "unknown layer%s%s%s", near ? "; did you mean \"" : "", near ? near : "",
                   near ? "\"?" : "");
}

static wf_status add_input(builder *b, int64_t batch)
{
    const wf_conf_input *in = &b->m->inputs[0];
    int64_t dims[WF_MAX_RANK] = {-1};

    if (in->rank + 1 > WF_MAX_RANK)
        return wf_fail(b->err, WF_USAGE, NULL, "input \"%s\" has %u axes; %d are allowed", in->name,
                       in->rank, WF_MAX_RANK - 1);
    for (uint32_t i = 0; i < in->rank; i++) {
        dims[i + 1] = in->dims[i];
        if (in->dims[i] < 1)
            return wf_fail(b->err, WF_USAGE, NULL, "input \"%s\" has an extent of %lld", in->name,
                           (long long)in->dims[i]);
    }
    WF_TRY(wf_graph_add_value(b->g, in->name, &b->at, b->err));
    wf_value_set_type(b->at, WF_F32, in->rank + 1, dims);
    b->at->axes[0].symbol = "batch";
    b->at->axes[0].bound = batch > 0 ? batch : -1;
    return wf_graph_add_input(b->g, b->at, b->err);
}

/* The last value becomes the model's output; one that is the input itself needs a node first. */
static wf_status add_output(builder *b)
{
    wf_emit e = wf_emit_begin(b->g, WF_MODEL_OUTPUT, b->err);

    if (!b->at->producer) {
        b->at = wf_emit_identity(&e, b->at);
        WF_TRY(wf_emit_end(&e));
    }
    WF_TRY(wf_graph_rename_value(b->g, b->at, WF_MODEL_OUTPUT, b->err));
    return wf_graph_add_output(b->g, b->at, b->err);
}

wf_status wf_model_build(const wf_model *m, int64_t batch, uint64_t seed, wf_graph **out,
                         wf_err *err)
{
    wf_status rc;
    builder b = {.m = m, .seed = seed, .err = err};
    const char *file = m->file ? m->file : "model";

    if (m->n_inputs != 1)
        return wf_fail(err, m->n_inputs ? WF_UNSUPPORTED : WF_USAGE,
                       "give one input, or a model with more as onnx",
                       "%s: a list of layers takes one input, not %zu", file, m->n_inputs);
    if (!m->n_layers)
        return wf_fail(err, WF_USAGE, "add a dense layer", "%s: the model has no layers", file);
    WF_TRY(wf_graph_new("model", &b.g, err));
    rc = wf_err_wrap(err, add_input(&b, batch), "%s:%d", file, m->inputs[0].line);
    for (size_t i = 0; rc == WF_OK && i < m->n_layers; i++) {
        b.layer = &m->layers[i];
        rc = name_layer(&b, i);
        if (rc == WF_OK)
            rc = wf_err_wrap(err, build_layer(&b), "%s:%d: layer \"%s\"", file, b.layer->line,
                             b.layer->type);
    }
    if (rc == WF_OK)
        rc = add_output(&b);
    if (rc != WF_OK)
        wf_graph_free(&b.g);
    *out = b.g;
    return rc;
}
