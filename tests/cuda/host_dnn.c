/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_dnn.c - the descriptors; host_convolution.c, host_fused.c and host_norm.c
 * compute. */
#include "tests/cuda/host_descriptor.h"
#include "tests/cuda/host_memory.h"
#include "tests/cuda/host_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_MEMORY = WF_CUDA_OF_DNN + 4003, REFUSES_GRAPH = WF_CUDA_DNN_REFUSES + 1 };
enum { WORKSPACE = 4000, TOO_MUCH = 512 << 20, NOBODY = -1 };

/* Engines, by what they may do; see host_dnn.h. */
enum { FAST, HUNGRY, PLAIN };

static cuda_host_dnn_state state;
static size_t objects, asked, executed;

void host_dnn_set_state(cuda_host_dnn_state to)
{
    state = to;
}

size_t host_dnn_objects(void)
{
    return objects;
}

size_t host_dnn_asked(void)
{
    return asked;
}

size_t host_dnn_executed(void)
{
    return executed;
}

void host_dnn_need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "cuDNN was given %s\n", what);
    abort();
}

#define need host_dnn_need

/* ---- attributes ---- */

typedef struct row {
    int kind, attribute, type;
    int64_t least, most; /* values; least 0: it may be missing */
} row;

/* Those that are set. A factor has one of two types. */
static const row rows[] = {
    {WF_DNN_TENSOR, WF_DNN_TENSOR_ALIGNED, WF_DNN_IS_INT64, 1, 1},
    {WF_DNN_TENSOR, WF_DNN_TENSOR_TYPE, WF_DNN_IS_DATA_TYPE, 1, 1},
    {WF_DNN_TENSOR, WF_DNN_TENSOR_DIMS, WF_DNN_IS_INT64, 3, 8},
    {WF_DNN_TENSOR, WF_DNN_TENSOR_STRIDES, WF_DNN_IS_INT64, 3, 8},
    {WF_DNN_TENSOR, WF_DNN_TENSOR_ID, WF_DNN_IS_INT64, 1, 1},
    {WF_DNN_TENSOR, WF_DNN_TENSOR_VIRTUAL, WF_DNN_IS_BOOL, 0, 1},
    {WF_DNN_TENSOR, WF_DNN_TENSOR_BY_VALUE, WF_DNN_IS_BOOL, 0, 1},
    {WF_DNN_CONVOLUTION, WF_DNN_CONV_TYPE, WF_DNN_IS_DATA_TYPE, 1, 1},
    {WF_DNN_CONVOLUTION, WF_DNN_CONV_MODE, WF_DNN_IS_CONV_MODE, 1, 1},
    {WF_DNN_CONVOLUTION, WF_DNN_CONV_AXES, WF_DNN_IS_INT64, 1, 1},
    {WF_DNN_CONVOLUTION, WF_DNN_CONV_DILATIONS, WF_DNN_IS_INT64, 2, 3},
    {WF_DNN_CONVOLUTION, WF_DNN_CONV_STRIDES, WF_DNN_IS_INT64, 2, 3},
    {WF_DNN_CONVOLUTION, WF_DNN_CONV_BEFORE, WF_DNN_IS_INT64, 2, 3},
    {WF_DNN_CONVOLUTION, WF_DNN_CONV_AFTER, WF_DNN_IS_INT64, 2, 3},
    {WF_DNN_POINTWISE, WF_DNN_POINTWISE_MODE, WF_DNN_IS_POINTWISE_MODE, 1, 1},
    {WF_DNN_POINTWISE, WF_DNN_POINTWISE_TYPE, WF_DNN_IS_DATA_TYPE, 1, 1},
    {WF_DNN_POINTWISE, WF_DNN_POINTWISE_AXIS, WF_DNN_IS_INT64, 0, 1},
    {WF_DNN_PRODUCT, WF_DNN_PRODUCT_TYPE, WF_DNN_IS_DATA_TYPE, 1, 1},
    {WF_DNN_REDUCTION, WF_DNN_REDUCTION_OPERATOR, WF_DNN_IS_REDUCTION, 1, 1},
    {WF_DNN_REDUCTION, WF_DNN_REDUCTION_TYPE, WF_DNN_IS_DATA_TYPE, 1, 1},
    {WF_DNN_DO_FORWARD, WF_DNN_FORWARD_ALPHA, WF_DNN_IS_FLOAT, 1, 1},
    {WF_DNN_DO_FORWARD, WF_DNN_FORWARD_BETA, WF_DNN_IS_FLOAT, 1, 1},
    {WF_DNN_DO_FORWARD, WF_DNN_FORWARD_CONV, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_FORWARD, WF_DNN_FORWARD_W, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_FORWARD, WF_DNN_FORWARD_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_FORWARD, WF_DNN_FORWARD_Y, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_DATA, WF_DNN_DATA_ALPHA, WF_DNN_IS_FLOAT, 1, 1},
    {WF_DNN_DO_DATA, WF_DNN_DATA_BETA, WF_DNN_IS_FLOAT, 1, 1},
    {WF_DNN_DO_DATA, WF_DNN_DATA_CONV, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_DATA, WF_DNN_DATA_W, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_DATA, WF_DNN_DATA_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_DATA, WF_DNN_DATA_Y, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_WEIGHTS, WF_DNN_WEIGHTS_ALPHA, WF_DNN_IS_FLOAT, 1, 1},
    {WF_DNN_DO_WEIGHTS, WF_DNN_WEIGHTS_BETA, WF_DNN_IS_FLOAT, 1, 1},
    {WF_DNN_DO_WEIGHTS, WF_DNN_WEIGHTS_CONV, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_WEIGHTS, WF_DNN_WEIGHTS_W, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_WEIGHTS, WF_DNN_WEIGHTS_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_WEIGHTS, WF_DNN_WEIGHTS_Y, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_POINTWISE, WF_DNN_EACH_POINTWISE, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_POINTWISE, WF_DNN_EACH_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_POINTWISE, WF_DNN_EACH_B, WF_DNN_IS_DESCRIPTOR, 0, 1},
    {WF_DNN_DO_POINTWISE, WF_DNN_EACH_CHOICE, WF_DNN_IS_DESCRIPTOR, 0, 1},
    {WF_DNN_DO_POINTWISE, WF_DNN_EACH_Y, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_PRODUCT, WF_DNN_PRODUCT_HOW, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_PRODUCT, WF_DNN_PRODUCT_A, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_PRODUCT, WF_DNN_PRODUCT_B, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_PRODUCT, WF_DNN_PRODUCT_C, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_REDUCTION, WF_DNN_REDUCTION_HOW, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_REDUCTION, WF_DNN_REDUCTION_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_REDUCTION, WF_DNN_REDUCTION_Y, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_MODE, WF_DNN_IS_NORM_MODE, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_PHASE, WF_DNN_IS_NORM_PHASE, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_MEAN, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_INVERSE, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_SCALE, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_BIAS, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_EPSILON, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM, WF_DNN_NORM_Y, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_MODE, WF_DNN_IS_NORM_MODE, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_MEAN, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_INVERSE, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_DY, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_SCALE, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_DSCALE, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_DBIAS, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_DX, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_RESHAPE, WF_DNN_RESHAPE_X, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_DO_RESHAPE, WF_DNN_RESHAPE_Y, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_GRAPH, WF_DNN_GRAPH_HANDLE, WF_DNN_IS_HANDLE, 1, 1},
    {WF_DNN_GRAPH, WF_DNN_GRAPH_OPERATIONS, WF_DNN_IS_DESCRIPTOR, 1, HOST_DNN_VALUES},
    {WF_DNN_HEURISTIC, WF_DNN_HEURISTIC_GRAPH, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_HEURISTIC, WF_DNN_HEURISTIC_MODE, WF_DNN_IS_HEUR_MODE, 1, 1},
    {WF_DNN_PLAN, WF_DNN_PLAN_HANDLE, WF_DNN_IS_HANDLE, 1, 1},
    {WF_DNN_PLAN, WF_DNN_PLAN_CONFIG, WF_DNN_IS_DESCRIPTOR, 1, 1},
    {WF_DNN_PACK, WF_DNN_PACK_IDS, WF_DNN_IS_INT64, 1, HOST_DNN_VALUES},
    {WF_DNN_PACK, WF_DNN_PACK_POINTERS, WF_DNN_IS_POINTER, 1, HOST_DNN_VALUES},
    {WF_DNN_PACK, WF_DNN_PACK_WORKSPACE, WF_DNN_IS_POINTER, 1, 1},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static size_t size_of(int type)
{
    switch (type) {
    case WF_DNN_IS_BOOL:
        return sizeof(bool);
    case WF_DNN_IS_INT64:
    case WF_DNN_IS_DOUBLE:
    case WF_DNN_IS_POINTER:
    case WF_DNN_IS_HANDLE:
    case WF_DNN_IS_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

const host_dnn_value *host_dnn_find(const wf_cuda_descriptor *d, int attribute)
{
    for (unsigned i = 0; i < d->n_values; i++)
        if (d->values[i].attribute == attribute)
            return &d->values[i];
    return NULL;
}

const int64_t *host_dnn_ints(const wf_cuda_descriptor *d, int attribute)
{
    return host_dnn_find(d, attribute)->of.ints;
}

int host_dnn_number(const wf_cuda_descriptor *d, int attribute)
{
    return host_dnn_find(d, attribute)->of.numbers[0];
}

wf_cuda_descriptor *host_dnn_of(const wf_cuda_descriptor *d, int attribute)
{
    return host_dnn_find(d, attribute)->of.descriptors[0];
}

double host_dnn_factor(const wf_cuda_descriptor *d, int attribute)
{
    const host_dnn_value *v = host_dnn_find(d, attribute);

    return v->type == WF_DNN_IS_FLOAT ? (double)v->of.floats[0] : v->of.doubles[0];
}

/* ---- objects ---- */

int host_dnn_new(wf_cuda_dnn **out)
{
    if (state == CUDA_HOST_DNN_MISSING)
        return WF_CUDA_NO_DNN;
    *out = calloc(1, sizeof **out);
    objects += *out != NULL;
    return *out ? 0 : NO_MEMORY;
}

int host_dnn_free(wf_cuda_dnn *dnn)
{
    free(dnn);
    objects--;
    return 0;
}

int host_dnn_stream(wf_cuda_dnn *dnn, wf_cuda_stream *s)
{
    dnn->stream = s;
    return 0;
}

int host_dnn_make(int kind, wf_cuda_descriptor **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return NO_MEMORY;
    (*out)->kind = kind;
    (*out)->engine = NOBODY;
    objects++;
    return 0;
}

static void refer(wf_cuda_descriptor *d, int by)
{
    d->users = (unsigned)((int)d->users + by);
}

/* Whether cuDNN copies what a descriptor refers to is not documented. */
int host_dnn_unmake(wf_cuda_descriptor *d)
{
    need(d->users == 0, "a descriptor to free to which another refers");
    for (unsigned i = 0; i < d->n_values; i++)
        if (d->values[i].type == WF_DNN_IS_DESCRIPTOR)
            for (int64_t k = 0; k < d->values[i].n; k++)
                refer(d->values[i].of.descriptors[k], -1);
    if (d->graph)
        refer(d->graph, -1);
    free(d);
    objects--;
    return 0;
}

static const row *row_of(int kind, int attribute)
{
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].kind == kind && rows[i].attribute == attribute)
            return &rows[i];
    return NULL;
}

int host_dnn_set(wf_cuda_descriptor *d, int attribute, int type, int64_t n, const void *values)
{
    const row *r = row_of(d->kind, attribute);
    host_dnn_value *v = &d->values[d->n_values];

    need(r != NULL, "an attribute that its descriptor does not have");
    need(!d->finished, "an attribute of a descriptor that is finished");
    need(type == r->type || (r->type == WF_DNN_IS_FLOAT && type == WF_DNN_IS_DOUBLE),
         "an attribute of another type");
    need(n >= 1 && n >= r->least && n <= r->most, "another number of values than an attribute has");
    need(!host_dnn_find(d, attribute), "an attribute twice");
    *v = (host_dnn_value){.attribute = attribute, .type = type, .n = n};
    memcpy(&v->of, values, (size_t)n * size_of(type));
    d->n_values++;
    if (type != WF_DNN_IS_DESCRIPTOR)
        return 0;
    for (int64_t i = 0; i < n; i++) {
        need(v->of.descriptors[i]->finished, "a descriptor that is not finished");
        refer(v->of.descriptors[i], 1);
    }
    return 0;
}

/* ---- what heuristics name ---- */

static uint64_t mix(uint64_t sum, uint64_t with)
{
    sum = (sum ^ with) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

/* A number for all that a descriptor says, and those that it refers to. */
static uint64_t described(const wf_cuda_descriptor *d, uint64_t sum)
{
    sum = mix(sum, (uint64_t)d->kind);
    for (unsigned i = 0; i < d->n_values; i++) {
        const host_dnn_value *v = &d->values[i];
        const unsigned char *bytes = (const unsigned char *)&v->of;

        sum = mix(sum, (uint64_t)v->attribute);
        for (int64_t k = 0; v->type == WF_DNN_IS_DESCRIPTOR && k < v->n; k++)
            sum = described(v->of.descriptors[k], sum);
        if (v->type == WF_DNN_IS_DESCRIPTOR || v->type == WF_DNN_IS_HANDLE ||
            v->type == WF_DNN_IS_POINTER)
            continue;
        for (size_t k = 0; k < (size_t)v->n * size_of(v->type); k++)
            sum = mix(sum, bytes[k]);
    }
    return sum;
}

/* What is decided of a graph at random, each decision by a number of its own. */
enum { NOTE, REFUSES_ENGINE, WANTS_MUCH, REFUSES_MODE, REFUSES_BIAS };

static uint64_t decide(const wf_cuda_descriptor *graph, uint64_t what, uint64_t end)
{
    return host_random_of(described(graph, what), end);
}

static int first_kind(const wf_cuda_descriptor *graph)
{
    return host_dnn_of(graph, WF_DNN_GRAPH_OPERATIONS)->kind;
}

static bool is_convolution(const wf_cuda_descriptor *graph)
{
    int kind = first_kind(graph);

    return kind == WF_DNN_DO_FORWARD || kind == WF_DNN_DO_DATA || kind == WF_DNN_DO_WEIGHTS;
}

static bool adds_bias(const wf_cuda_descriptor *graph)
{
    return is_convolution(graph) && host_dnn_find(graph, WF_DNN_GRAPH_OPERATIONS)->n > 1;
}

static void fill_config(wf_cuda_descriptor *config, wf_cuda_descriptor *graph, int engine)
{
    static const int notes[] = {WF_DNN_NOTE_TENSOR_CORE, WF_DNN_NOTE_DOWN_CONVERTS,
                                WF_DNN_NOTE_NONDETERMINISTIC};
    uint64_t note = engine == FAST ? decide(graph, NOTE, 4) : 3;

    need(config->kind == WF_DNN_CONFIG && config->engine == NOBODY,
         "something else than an empty configuration");
    config->engine = engine;
    config->n_notes = note < 3;
    if (note < 3)
        config->note = notes[note];
    config->compiles = !is_convolution(graph);
    config->graph = graph;
    refer(graph, 1);
    config->finished = true;
}

/* Those that are counted are one more than those that can be had. */
static int64_t results(const wf_cuda_descriptor *heuristic, int64_t most,
                       wf_cuda_descriptor *const configs[])
{
    const bool falls_back =
        host_dnn_number(heuristic, WF_DNN_HEURISTIC_MODE) == WF_DNN_MODE_FALLBACK;
    const int64_t n = falls_back ? 1 : 2;

    for (int64_t i = 0; i < n && i < most; i++)
        fill_config(configs[i], host_dnn_of(heuristic, WF_DNN_HEURISTIC_GRAPH),
                    falls_back ? PLAIN : (int)i);
    return most == 0 ? n + 1 : n;
}

static const int32_t knob_kind = 2;

/* One: the engine. As cuDNN's own, these settings are not counted for a caller that has no room. */
static int64_t read_knobs(const wf_cuda_descriptor *config, int64_t most,
                          wf_cuda_descriptor *const knobs[])
{
    if (most > 0) {
        need(knobs[0]->kind == WF_DNN_KNOB, "no setting to fill");
        knobs[0]->engine = config->engine;
        knobs[0]->finished = true;
    }
    return most > 0;
}

uint64_t host_dnn_version(void)
{
    return 9;
}

int host_dnn_get(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
                 void *values)
{
    wf_cuda_descriptor *engine;

    need(d->finished, "a descriptor to read that is not finished");
    *n = 1;
    switch (attribute) {
    case WF_DNN_HEURISTIC_RESULTS:
        need(d->kind == WF_DNN_HEURISTIC && type == WF_DNN_IS_DESCRIPTOR, "no heuristic to read");
        *n = results(d, most, values);
        return 0;
    case WF_DNN_CONFIG_ENGINE:
        engine = *(wf_cuda_descriptor **)values;
        need(d->kind == WF_DNN_CONFIG && type == WF_DNN_IS_DESCRIPTOR && most == 1 &&
                 engine->kind == WF_DNN_ENGINE,
             "no engine to fill");
        engine->note = d->note;
        engine->n_notes = d->n_notes;
        engine->compiles = d->compiles;
        engine->finished = true;
        return 0;
    case WF_DNN_CONFIG_KNOBS:
        need(d->kind == WF_DNN_CONFIG && type == WF_DNN_IS_DESCRIPTOR, "no settings to read");
        *n = read_knobs(d, most, values);
        return 0;
    case WF_DNN_KNOB_KIND:
        need(d->kind == WF_DNN_KNOB && type == WF_DNN_IS_KNOB_KIND && most == 1, "no setting");
        memcpy(values, &knob_kind, sizeof knob_kind);
        return 0;
    case WF_DNN_KNOB_VALUE:
        need(d->kind == WF_DNN_KNOB && type == WF_DNN_IS_INT64 && most == 1, "no setting");
        memcpy(values, &(int64_t){d->engine}, sizeof(int64_t));
        return 0;
    case WF_DNN_ENGINE_INDEX:
        need(d->kind == WF_DNN_ENGINE && type == WF_DNN_IS_INT64 && most == 1, "no engine to read");
        memcpy(values, &(int64_t){0}, sizeof(int64_t)); /* they differ in their setting */
        return 0;
    case WF_DNN_ENGINE_NOTES:
        need(d->kind == WF_DNN_ENGINE && type == WF_DNN_IS_NOTE && most >= 10, "no room for notes");
        *n = d->n_notes;
        if (d->n_notes)
            memcpy(values, &d->note, sizeof d->note);
        return 0;
    case WF_DNN_ENGINE_BEHAVIOURS:
        need(d->kind == WF_DNN_ENGINE && type == WF_DNN_IS_BEHAVIOUR && most >= 5,
             "no room for behaviours");
        *n = d->compiles;
        if (d->compiles)
            memcpy(values, &(int32_t){WF_DNN_BEHAVIOUR_COMPILES}, sizeof(int32_t));
        return 0;
    case WF_DNN_PLAN_WORKSPACE:
        need(d->kind == WF_DNN_PLAN && type == WF_DNN_IS_INT64 && most == 1, "no plan to read");
        memcpy(values, &d->workspace, sizeof d->workspace);
        return 0;
    default:
        need(false, "an attribute that weft does not read");
        return 0;
    }
}

/* ---- finishing ---- */

static void check_tensor(const wf_cuda_descriptor *d)
{
    const host_dnn_value *dims = host_dnn_find(d, WF_DNN_TENSOR_DIMS);
    const host_dnn_value *strides = host_dnn_find(d, WF_DNN_TENSOR_STRIDES);
    int64_t aligned = host_dnn_ints(d, WF_DNN_TENSOR_ALIGNED)[0];
    int type = host_dnn_number(d, WF_DNN_TENSOR_TYPE);

    need(dims->n == strides->n, "other numbers of strides than of extents");
    need(aligned > 0 && (aligned & (aligned - 1)) == 0, "an alignment that is no power of two");
    need(type == WF_DNN_F32 || type == WF_DNN_F64 || type == WF_DNN_F16 || type == WF_DNN_BF16 ||
             type == WF_DNN_I32 || type == WF_DNN_BOOL,
         "a type that weft does not use");
    for (int64_t i = 0; i < dims->n; i++)
        need(dims->of.ints[i] > 0 && strides->of.ints[i] > 0, "a tensor without elements");
}

static void check_window(const wf_cuda_descriptor *d)
{
    static const int lists[] = {WF_DNN_CONV_DILATIONS, WF_DNN_CONV_STRIDES, WF_DNN_CONV_BEFORE,
                                WF_DNN_CONV_AFTER};
    const int64_t axes = host_dnn_ints(d, WF_DNN_CONV_AXES)[0];

    need(host_dnn_number(d, WF_DNN_CONV_MODE) == WF_DNN_CORRELATION, "a mode that weft has not");
    for (int k = 0; k < 4; k++) {
        const host_dnn_value *list = host_dnn_find(d, lists[k]);

        need(list->n == axes, "other numbers of strides, dilations or paddings than of axes");
        for (int64_t i = 0; i < axes; i++)
            need(list->of.ints[i] >= (k < 2), "a window that does not move, or negative padding");
    }
}

/* Whether each of b's extents is a's, or 1. */
static bool spreads(const wf_cuda_descriptor *a, const wf_cuda_descriptor *b, bool ones)
{
    const host_dnn_value *of_a = host_dnn_find(a, WF_DNN_TENSOR_DIMS);
    const host_dnn_value *of_b = host_dnn_find(b, WF_DNN_TENSOR_DIMS);

    for (int64_t i = 0; i < of_a->n && of_a->n == of_b->n; i++)
        if (of_b->of.ints[i] != of_a->of.ints[i] && !(ones && of_b->of.ints[i] == 1))
            return false;
    return of_a->n == of_b->n;
}

static void check_pointwise(const wf_cuda_descriptor *d)
{
    static const int operands[] = {WF_DNN_EACH_B, WF_DNN_EACH_CHOICE};
    const wf_cuda_descriptor *x = host_dnn_of(d, WF_DNN_EACH_X), *y = host_dnn_of(d, WF_DNN_EACH_Y);

    need(host_dnn_of(d, WF_DNN_EACH_POINTWISE)->kind == WF_DNN_POINTWISE,
         "no pointwise descriptor");
    need(spreads(y, x, false), "an operand that does not fit the result");
    for (int i = 0; i < 2; i++)
        if (host_dnn_find(d, operands[i]))
            need(spreads(y, host_dnn_of(d, operands[i]), true),
                 "an operand that does not fit the result");
}

static void check_pack(const wf_cuda_descriptor *d)
{
    need(host_dnn_find(d, WF_DNN_PACK_IDS)->n == host_dnn_find(d, WF_DNN_PACK_POINTERS)->n,
         "other numbers of addresses than of tensors");
}

/* Refuses as it pleases; see host_dnn.h. */
static int finish_heuristic(const wf_cuda_descriptor *d)
{
    const bool falls_back = host_dnn_number(d, WF_DNN_HEURISTIC_MODE) == WF_DNN_MODE_FALLBACK;
    const wf_cuda_descriptor *graph = host_dnn_of(d, WF_DNN_HEURISTIC_GRAPH);

    need(graph->kind == WF_DNN_GRAPH, "no graph to ask for");
    asked++;
    if (state == CUDA_HOST_DNN_REFUSES)
        return REFUSES_GRAPH;
    if (adds_bias(graph) ? decide(graph, REFUSES_BIAS, 2) == 0
                         : !falls_back && decide(graph, REFUSES_MODE, 4) == 0)
        return REFUSES_GRAPH;
    return 0;
}

static int finish_plan(wf_cuda_descriptor *d)
{
    const wf_cuda_descriptor *config = host_dnn_of(d, WF_DNN_PLAN_CONFIG);

    need(config->kind == WF_DNN_CONFIG && config->engine != NOBODY, "no engine to plan for");
    if (config->engine == FAST && decide(config->graph, REFUSES_ENGINE, 2) == 0)
        return WF_CUDA_DNN_REFUSES;
    if (config->engine == HUNGRY && decide(config->graph, WANTS_MUCH, 4) == 0)
        d->workspace = TOO_MUCH;
    else if (config->engine != PLAIN)
        d->workspace = config->engine == HUNGRY ? 2 * WORKSPACE : WORKSPACE;
    return 0;
}

int host_dnn_finish(wf_cuda_descriptor *d)
{
    int error = 0;

    need(!d->finished, "a descriptor to finish again");
    for (int i = 0; i < N_ROWS; i++)
        need(rows[i].kind != d->kind || rows[i].least == 0 || host_dnn_find(d, rows[i].attribute),
             "a descriptor that lacks an attribute");
    switch (d->kind) {
    case WF_DNN_TENSOR:
        check_tensor(d);
        break;
    case WF_DNN_CONVOLUTION:
        check_window(d);
        break;
    case WF_DNN_DO_FORWARD:
    case WF_DNN_DO_DATA:
    case WF_DNN_DO_WEIGHTS:
        host_dnn_check_convolution(d);
        break;
    case WF_DNN_DO_POINTWISE:
        check_pointwise(d);
        break;
    case WF_DNN_DO_NORM:
    case WF_DNN_DO_NORM_GRAD:
        host_dnn_check_norm(d);
        break;
    case WF_DNN_DO_PRODUCT:
    case WF_DNN_DO_REDUCTION:
    case WF_DNN_DO_RESHAPE:
        host_dnn_check_fused(d);
        break;
    case WF_DNN_PACK:
        check_pack(d);
        break;
    case WF_DNN_HEURISTIC:
        error = finish_heuristic(d);
        break;
    case WF_DNN_PLAN:
        error = finish_plan(d);
        break;
    default:
        break;
    }
    d->finished = error == 0;
    return error;
}

/* ---- executions ---- */

double host_execution_ms(const wf_cuda_descriptor *plan)
{
    enum { OF_CUDNN = 1 << 20 };

    return host_time_of(OF_CUDNN + (uint64_t)host_dnn_of(plan, WF_DNN_PLAN_CONFIG)->engine);
}

void *host_dnn_memory(const wf_cuda_descriptor *pack, const wf_cuda_descriptor *tensor, size_t n)
{
    const host_dnn_value *ids = host_dnn_find(pack, WF_DNN_PACK_IDS);
    const size_t size = host_element_size(host_dnn_number(tensor, WF_DNN_TENSOR_TYPE));
    void *at = NULL;

    need(!host_dnn_find(tensor, WF_DNN_TENSOR_VIRTUAL), "a value that nothing makes");
    for (int64_t i = 0; i < ids->n; i++)
        if (ids->of.ints[i] == host_dnn_ints(tensor, WF_DNN_TENSOR_ID)[0])
            at = host_dnn_find(pack, WF_DNN_PACK_POINTERS)->of.pointers[i];
    need(at != NULL, "no address of a tensor");
    if (host_dnn_find(tensor, WF_DNN_TENSOR_BY_VALUE))
        return at;
    need((uintptr_t)at % (uintptr_t)host_dnn_ints(tensor, WF_DNN_TENSOR_ALIGNED)[0] == 0,
         "a tensor that is not aligned as it says");
    need(host_memory_has(at, n * size), "a tensor that is not in memory of the device");
    return at;
}

host_execution *host_execution_new(wf_cuda_dnn *dnn, const wf_cuda_descriptor *plan,
                                   const wf_cuda_descriptor *pack, wf_cuda_stream **s)
{
    const wf_cuda_descriptor *config;

    need(dnn->stream && plan->kind == WF_DNN_PLAN && plan->finished && pack->kind == WF_DNN_PACK &&
             pack->finished,
         "something else than a plan and a pack to execute");
    need(host_memory_has(host_dnn_find(pack, WF_DNN_PACK_WORKSPACE)->of.pointers[0],
                         (size_t)plan->workspace),
         "a workspace that is too small");
    executed++;
    *s = dnn->stream;
    config = host_dnn_of(plan, WF_DNN_PLAN_CONFIG);
    need(!config->n_notes || config->note != WF_DNN_NOTE_NONDETERMINISTIC,
         "an engine that is not deterministic");
    if (is_convolution(config->graph))
        return host_convolution_new(config, pack);
    if (first_kind(config->graph) == WF_DNN_DO_NORM ||
        first_kind(config->graph) == WF_DNN_DO_NORM_GRAD)
        return host_norm_new(config, pack);
    return host_fused_new(config, pack);
}

void host_execution_do(const host_execution *e)
{
    e->act(e);
}
