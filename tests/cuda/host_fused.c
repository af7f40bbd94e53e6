/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_fused.c - what plans of host_dnn.c compute whose graphs hold products, reductions
 * and what stands between them: one operation behind the other, in double, and each result rounded
 * to its type. */
#include "tests/cuda/host_descriptor.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 4, MOST_TENSORS = 48, NONE = -1 };

typedef struct tensor {
    int64_t id, dims[RANK], strides[RANK];
    int type;
    void *at; /* NULL: it is not stored */
    bool is_scalar, is_made;
    float scalar;
} tensor;

typedef struct operation {
    int kind, mode; /* the mode of what is pointwise, or how elements are joined */
    int64_t axis;
    int x, y, choice, to; /* tensors; NONE */
} operation;

typedef struct fused {
    host_execution base; /* first */
    tensor tensors[MOST_TENSORS];
    operation operations[HOST_DNN_VALUES];
    int n_tensors, n_operations;
} fused;

#define need host_dnn_need

/* ---- what operations want ---- */

static const int64_t *dims_of(const wf_cuda_descriptor *d, int attribute)
{
    const wf_cuda_descriptor *t = host_dnn_of(d, attribute);

    need(t->kind == WF_DNN_TENSOR && host_dnn_find(t, WF_DNN_TENSOR_DIMS)->n == RANK,
         "a tensor that has not four axes");
    return host_dnn_ints(t, WF_DNN_TENSOR_DIMS);
}

static bool is_narrow(int type)
{
    return type == WF_DNN_BF16 || type == WF_DNN_F16;
}

static void check_product(const wf_cuda_descriptor *d)
{
    const int64_t *a = dims_of(d, WF_DNN_PRODUCT_A), *b = dims_of(d, WF_DNN_PRODUCT_B),
                  *c = dims_of(d, WF_DNN_PRODUCT_C);
    const int type = host_dnn_number(host_dnn_of(d, WF_DNN_PRODUCT_B), WF_DNN_TENSOR_TYPE);
    int type_of_a;

    need(host_dnn_of(d, WF_DNN_PRODUCT_HOW)->kind == WF_DNN_PRODUCT, "no product");
    need(a[0] == b[0] && a[0] == c[0] && a[1] == b[1] && a[1] == c[1] && a[2] == c[2] &&
             a[3] == b[2] && b[3] == c[3],
         "factors that do not fit each other");
    need(is_narrow(type), "a factor that is not of 16 bits");
    type_of_a = host_dnn_number(host_dnn_of(d, WF_DNN_PRODUCT_A), WF_DNN_TENSOR_TYPE);
    need(type_of_a == type || type_of_a == WF_DNN_F32, "factors of two narrow types");
}

void host_dnn_check_fused(const wf_cuda_descriptor *d)
{
    const int64_t *x, *y;

    if (d->kind == WF_DNN_DO_PRODUCT) {
        check_product(d);
        return;
    }
    if (d->kind == WF_DNN_DO_REDUCTION) {
        x = dims_of(d, WF_DNN_REDUCTION_X);
        y = dims_of(d, WF_DNN_REDUCTION_Y);
        need(host_dnn_of(d, WF_DNN_REDUCTION_HOW)->kind == WF_DNN_REDUCTION, "no reduction");
        for (int i = 0; i < RANK; i++)
            need(y[i] == x[i] || y[i] == 1, "a reduction to other extents than its own or 1");
        return;
    }
    x = dims_of(d, WF_DNN_RESHAPE_X);
    y = dims_of(d, WF_DNN_RESHAPE_Y);
    need(x[0] * x[1] * x[2] * x[3] == y[0] * y[1] * y[2] * y[3], "a shape of another size");
}

/* ---- what an execution has ---- */

/* From the first element in memory to behind the last. */
static size_t span(const tensor *t)
{
    int64_t last = 0;

    for (int i = 0; i < RANK; i++)
        last += (t->dims[i] - 1) * t->strides[i];
    return (size_t)last + 1;
}

static int tensor_of(fused *f, const wf_cuda_descriptor *d, int attribute,
                     const wf_cuda_descriptor *pack)
{
    const wf_cuda_descriptor *from;
    tensor t = {.at = NULL};

    if (!host_dnn_find(d, attribute))
        return NONE;
    from = host_dnn_of(d, attribute);
    t.id = host_dnn_ints(from, WF_DNN_TENSOR_ID)[0];
    for (int i = 0; i < f->n_tensors; i++)
        if (f->tensors[i].id == t.id)
            return i;
    need(f->n_tensors < MOST_TENSORS && host_dnn_find(from, WF_DNN_TENSOR_DIMS)->n == RANK,
         "a graph that the host does not compute");
    t.type = host_dnn_number(from, WF_DNN_TENSOR_TYPE);
    memcpy(t.dims, host_dnn_ints(from, WF_DNN_TENSOR_DIMS), sizeof t.dims);
    memcpy(t.strides, host_dnn_ints(from, WF_DNN_TENSOR_STRIDES), sizeof t.strides);
    if (host_dnn_find(from, WF_DNN_TENSOR_BY_VALUE)) {
        t.is_scalar = true; /* cuDNN reads it while it queues */
        memcpy(&t.scalar, host_dnn_memory(pack, from, 1), sizeof t.scalar);
    } else if (!host_dnn_find(from, WF_DNN_TENSOR_VIRTUAL)) {
        t.at = host_dnn_memory(pack, from, span(&t));
        need(t.type == WF_DNN_F32 || is_narrow(t.type), "a stored value of another type");
    }
    f->tensors[f->n_tensors] = t;
    return f->n_tensors++;
}

static operation operation_of(fused *f, const wf_cuda_descriptor *d, const wf_cuda_descriptor *pack)
{
    operation o = {.kind = d->kind, .y = NONE, .choice = NONE};
    const wf_cuda_descriptor *how;

    switch (d->kind) {
    case WF_DNN_DO_PRODUCT:
        o.x = tensor_of(f, d, WF_DNN_PRODUCT_A, pack);
        o.y = tensor_of(f, d, WF_DNN_PRODUCT_B, pack);
        o.to = tensor_of(f, d, WF_DNN_PRODUCT_C, pack);
        break;
    case WF_DNN_DO_REDUCTION:
        o.mode = host_dnn_number(host_dnn_of(d, WF_DNN_REDUCTION_HOW), WF_DNN_REDUCTION_OPERATOR);
        o.x = tensor_of(f, d, WF_DNN_REDUCTION_X, pack);
        o.to = tensor_of(f, d, WF_DNN_REDUCTION_Y, pack);
        break;
    case WF_DNN_DO_RESHAPE:
        o.x = tensor_of(f, d, WF_DNN_RESHAPE_X, pack);
        o.to = tensor_of(f, d, WF_DNN_RESHAPE_Y, pack);
        break;
    default:
        need(d->kind == WF_DNN_DO_POINTWISE, "an operation that the host does not compute");
        how = host_dnn_of(d, WF_DNN_EACH_POINTWISE);
        o.mode = host_dnn_number(how, WF_DNN_POINTWISE_MODE);
        if (o.mode == WF_DNN_INDEX)
            o.axis = host_dnn_ints(how, WF_DNN_POINTWISE_AXIS)[0];
        o.x = tensor_of(f, d, WF_DNN_EACH_X, pack);
        o.y = tensor_of(f, d, WF_DNN_EACH_B, pack);
        o.choice = tensor_of(f, d, WF_DNN_EACH_CHOICE, pack);
        o.to = tensor_of(f, d, WF_DNN_EACH_Y, pack);
        break;
    }
    need(!f->tensors[o.to].is_made && !f->tensors[o.to].is_scalar, "a value that is made twice");
    f->tensors[o.to].is_made = true;
    return o;
}

/* ---- computing ---- */

static double rounded(int type, double value)
{
    double at;

    host_element_put(type, &at, 0, value);
    return host_element(type, &at, 0);
}

/* Where an element lies; along an axis of one element it is that for all. */
static size_t offset(const tensor *t, const int64_t at[RANK])
{
    int64_t o = 0;

    for (int i = 0; i < RANK; i++)
        o += (t->dims[i] == 1 ? 0 : at[i]) * t->strides[i];
    return (size_t)o;
}

static bool next(const tensor *t, int64_t at[RANK])
{
    for (int i = RANK - 1; i >= 0; i--) {
        if (++at[i] < t->dims[i])
            return true;
        at[i] = 0;
    }
    return false;
}

static double point(const operation *o, double x, double y, double choice, int64_t index)
{
    switch (o->mode) {
    case WF_DNN_ADD:
        return x + y;
    case WF_DNN_SUB:
        return x - y;
    case WF_DNN_MUL:
        return x * y;
    case WF_DNN_DIV:
        return x / y;
    case WF_DNN_EXP:
        return exp(x);
    case WF_DNN_LOG:
        return log(x);
    case WF_DNN_AT_LEAST:
        return x >= y;
    case WF_DNN_INDEX:
        return (double)index;
    default:
        need(o->mode == WF_DNN_SELECT, "an operation that the host does not compute");
        return choice != 0 ? x : y;
    }
}

static void do_pointwise(const fused *f, const operation *o, double *const values[])
{
    const tensor *t = f->tensors, *to = &t[o->to];
    int64_t at[RANK] = {0};

    do {
        double x = values[o->x][offset(&t[o->x], at)];
        double y = o->y == NONE ? 0 : values[o->y][offset(&t[o->y], at)];
        double choice = o->choice == NONE ? 0 : values[o->choice][offset(&t[o->choice], at)];

        values[o->to][offset(to, at)] = rounded(to->type, point(o, x, y, choice, at[o->axis]));
    } while (next(to, at));
}

static void do_product(const fused *f, const operation *o, double *const values[])
{
    const tensor *a = &f->tensors[o->x], *b = &f->tensors[o->y], *to = &f->tensors[o->to];
    int64_t at[RANK] = {0};

    do {
        double sum = 0;

        for (int64_t k = 0; k < a->dims[3]; k++)
            sum += values[o->x][offset(a, (int64_t[]){at[0], at[1], at[2], k})] *
                   values[o->y][offset(b, (int64_t[]){at[0], at[1], k, at[3]})];
        values[o->to][offset(to, at)] = rounded(to->type, sum);
    } while (next(to, at));
}

static void do_reduction(const fused *f, const operation *o, double *const values[])
{
    const tensor *x = &f->tensors[o->x], *to = &f->tensors[o->to];
    const bool sums = o->mode == WF_DNN_SUM_OF;
    const size_t n = span(to);
    int64_t at[RANK] = {0};

    for (size_t i = 0; i < n; i++)
        values[o->to][i] = sums ? 0 : -INFINITY;
    do {
        double *joined = &values[o->to][offset(to, at)], value = values[o->x][offset(x, at)];

        *joined = sums ? *joined + value : fmax(*joined, value);
    } while (next(x, at));
    for (size_t i = 0; i < n; i++)
        values[o->to][i] = rounded(to->type, values[o->to][i]);
}

/* Both have one memory, which each reads by its own strides. */
static void do_reshape(const fused *f, const operation *o, double *const values[])
{
    const tensor *to = &f->tensors[o->to];
    const size_t n = span(to);

    need(n == span(&f->tensors[o->x]), "a shape with gaps");
    for (size_t i = 0; i < n; i++)
        values[o->to][i] = rounded(to->type, values[o->x][i]);
}

static void load(const tensor *t, double values[])
{
    const size_t n = span(t);

    for (size_t i = 0; i < n; i++)
        if (t->is_scalar)
            values[i] = (double)t->scalar;
        else
            values[i] = host_element(t->type, t->at, i);
}

/* What is between its elements stays as it is. */
static void store(const tensor *t, const double values[])
{
    int64_t at[RANK] = {0};

    do {
        const size_t i = offset(t, at);

        host_element_put(t->type, t->at, i, values[i]);
    } while (next(t, at));
}

static void compute(const host_execution *e)
{
    const fused *f = (const fused *)e;
    double *values[MOST_TENSORS];

    for (int i = 0; i < f->n_tensors; i++) {
        values[i] = calloc(span(&f->tensors[i]), sizeof *values[i]);
        need(values[i] != NULL, "more than the host has memory for");
        if (!f->tensors[i].is_made)
            load(&f->tensors[i], values[i]);
    }
    for (int i = 0; i < f->n_operations; i++) {
        const operation *o = &f->operations[i];

        if (o->kind == WF_DNN_DO_PRODUCT)
            do_product(f, o, values);
        else if (o->kind == WF_DNN_DO_REDUCTION)
            do_reduction(f, o, values);
        else if (o->kind == WF_DNN_DO_RESHAPE)
            do_reshape(f, o, values);
        else
            do_pointwise(f, o, values);
    }
    for (int i = 0; i < f->n_tensors; i++) {
        if (f->tensors[i].is_made && f->tensors[i].at)
            store(&f->tensors[i], values[i]);
        free(values[i]);
    }
}

host_execution *host_fused_new(const wf_cuda_descriptor *config, const wf_cuda_descriptor *pack)
{
    const host_dnn_value *operations = host_dnn_find(config->graph, WF_DNN_GRAPH_OPERATIONS);
    fused *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->base.act = compute;
    for (int64_t i = 0; i < operations->n; i++)
        f->operations[f->n_operations++] = operation_of(f, operations->of.descriptors[i], pack);
    for (int i = 0; i < f->n_tensors; i++)
        need(f->tensors[i].is_made || f->tensors[i].at || f->tensors[i].is_scalar,
             "a value that nothing makes");
    return &f->base;
}
