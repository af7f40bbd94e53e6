/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/attention.c */
#include "common/kernels/cuda/dnn/attention.h"
#include "common/base/status.h"

#include <math.h>

/* Axes are [groups, heads, rows, columns]. */
enum { RANK = 4, ROWS = 2, COLUMNS = 3, MOST_OPERATIONS = 24, EIGHT = 8 };

_Static_assert((int)WF_DNN_ATT_TENSORS <= (int)WF_DNN_MOST_TENSORS &&
                   sizeof(wf_dnn_attention) <= WF_DNN_CASE_BYTES,
               "a graph has room for an attention");

typedef struct builder {
    wf_dnn_builder base;
    const wf_dnn_attention *a;
    int32_t type; /* of the tensors that are narrow */
    wf_cuda_descriptor *operations[MOST_OPERATIONS];
    int64_t n;
} builder;

bool wf_dnn_attention_fits(const wf_dnn_attention *a)
{
    return a->groups > 0 && a->heads > 0 && a->t > 0 && a->s > 0 && a->d > 0 && a->e > 0 &&
           a->d % EIGHT == 0 && a->e % EIGHT == 0;
}

/* ---- tensors ---- */

typedef struct layout {
    int64_t dims[RANK], strides[RANK];
} layout;

/* The same with its last two axes read the other way round. */
static layout turn(layout l)
{
    return (layout){{l.dims[0], l.dims[1], l.dims[COLUMNS], l.dims[ROWS]},
                    {l.strides[0], l.strides[1], l.strides[COLUMNS], l.strides[ROWS]}};
}

/* Without gaps. */
static layout lay(const builder *b, int64_t rows, int64_t columns)
{
    const int64_t heads = b->a->heads, each = rows * columns;

    return (layout){{b->a->groups, heads, rows, columns}, {heads * each, each, columns, 1}};
}

/* Of heads in memory, which may have their rows side by side. */
static layout lay_heads(const builder *b, int64_t rows, int64_t columns)
{
    const int64_t heads = b->a->heads, side = b->a->side;

    if (side == 1)
        return lay(b, rows, columns);
    return (layout){{b->a->groups, heads, rows, columns},
                    {rows * side * columns, columns, side * columns, 1}};
}

static wf_cuda_descriptor *tensor(builder *b, unsigned number, int64_t rows, int64_t columns,
                                  bool turned)
{
    const layout l = lay_heads(b, rows, columns), by = turned ? turn(l) : l;

    return wf_dnn_tensor(&b->base, number, b->type, RANK, by.dims, by.strides);
}

static wf_cuda_descriptor *numbers_of_rows(builder *b, unsigned number)
{
    const layout l = lay(b, b->a->t, 1);

    return wf_dnn_tensor(&b->base, number, WF_DNN_F32, RANK, l.dims, l.strides);
}

static wf_cuda_descriptor *inner(builder *b, int32_t type, layout l)
{
    return wf_dnn_inner(&b->base, type, RANK, l.dims, l.strides);
}

static wf_cuda_descriptor *scores(builder *b, int32_t type)
{
    return inner(b, type, lay(b, b->a->t, b->a->s));
}

static wf_cuda_descriptor *of_rows(builder *b)
{
    return inner(b, WF_DNN_F32, lay(b, b->a->t, 1));
}

static wf_cuda_descriptor *mask(builder *b, unsigned number)
{
    const int64_t t = b->a->t, s = b->a->s;

    return wf_dnn_tensor(&b->base, number, WF_DNN_F32, RANK, (int64_t[]){1, 1, t, s},
                         (int64_t[]){t * s, t * s, s, 1});
}

/* ---- operations; each gives what it makes ---- */

static void add(builder *b, wf_cuda_descriptor *operation)
{
    wf_dnn_finish(&b->base, operation);
    wf_assert(b->n < MOST_OPERATIONS);
    b->operations[b->n++] = operation;
}

static wf_cuda_descriptor *product(builder *b, wf_cuda_descriptor *x, wf_cuda_descriptor *y,
                                   wf_cuda_descriptor *to)
{
    const int32_t type = WF_DNN_F32;
    wf_cuda_descriptor *how = wf_dnn_make(&b->base, WF_DNN_PRODUCT), *d;

    wf_dnn_set(&b->base, how, WF_DNN_PRODUCT_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    wf_dnn_finish(&b->base, how);
    d = wf_dnn_make(&b->base, WF_DNN_DO_PRODUCT);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_PRODUCT_HOW, how);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_PRODUCT_A, x);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_PRODUCT_B, y);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_PRODUCT_C, to);
    add(b, d);
    return to;
}

/* y and choice may be NULL. axis: of an INDEX. */
static wf_cuda_descriptor *pointwise(builder *b, int32_t mode, int32_t type, int64_t axis,
                                     wf_cuda_descriptor *x, wf_cuda_descriptor *y,
                                     wf_cuda_descriptor *choice, wf_cuda_descriptor *to)
{
    wf_cuda_descriptor *how = wf_dnn_make(&b->base, WF_DNN_POINTWISE), *d;

    wf_dnn_set(&b->base, how, WF_DNN_POINTWISE_MODE, WF_DNN_IS_POINTWISE_MODE, 1, &mode);
    wf_dnn_set(&b->base, how, WF_DNN_POINTWISE_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    if (mode == WF_DNN_INDEX)
        wf_dnn_set(&b->base, how, WF_DNN_POINTWISE_AXIS, WF_DNN_IS_INT64, 1, &axis);
    wf_dnn_finish(&b->base, how);
    d = wf_dnn_make(&b->base, WF_DNN_DO_POINTWISE);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_EACH_POINTWISE, how);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_EACH_X, x);
    if (y)
        wf_dnn_set_descriptor(&b->base, d, WF_DNN_EACH_B, y);
    if (choice)
        wf_dnn_set_descriptor(&b->base, d, WF_DNN_EACH_CHOICE, choice);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_EACH_Y, to);
    add(b, d);
    return to;
}

static wf_cuda_descriptor *each(builder *b, int32_t mode, wf_cuda_descriptor *x,
                                wf_cuda_descriptor *y, wf_cuda_descriptor *to)
{
    return pointwise(b, mode, WF_DNN_F32, 0, x, y, NULL, to);
}

static wf_cuda_descriptor *reduce(builder *b, int32_t how_joined, wf_cuda_descriptor *x)
{
    const int32_t type = WF_DNN_F32;
    wf_cuda_descriptor *to = of_rows(b), *how = wf_dnn_make(&b->base, WF_DNN_REDUCTION), *d;

    wf_dnn_set(&b->base, how, WF_DNN_REDUCTION_OPERATOR, WF_DNN_IS_REDUCTION, 1, &how_joined);
    wf_dnn_set(&b->base, how, WF_DNN_REDUCTION_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    wf_dnn_finish(&b->base, how);
    d = wf_dnn_make(&b->base, WF_DNN_DO_REDUCTION);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_REDUCTION_HOW, how);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_REDUCTION_X, x);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_REDUCTION_Y, to);
    add(b, d);
    return to;
}

static wf_cuda_descriptor *view(builder *b, wf_cuda_descriptor *x, wf_cuda_descriptor *as)
{
    wf_cuda_descriptor *d = wf_dnn_make(&b->base, WF_DNN_DO_RESHAPE);

    wf_dnn_set_descriptor(&b->base, d, WF_DNN_RESHAPE_X, x);
    wf_dnn_set_descriptor(&b->base, d, WF_DNN_RESHAPE_Y, as);
    add(b, d);
    return as;
}

/* The scores transposed, as a factor. */
static wf_cuda_descriptor *turned_scores(builder *b, wf_cuda_descriptor *of)
{
    return view(b, of, inner(b, b->type, turn(lay(b, b->a->t, b->a->s))));
}

/* ---- graphs ---- */

static wf_cuda_descriptor *hide_later(builder *b, wf_cuda_descriptor *x)
{
    wf_cuda_descriptor *row =
        pointwise(b, WF_DNN_INDEX, WF_DNN_I32, ROWS, x, NULL, NULL, scores(b, WF_DNN_I32));
    wf_cuda_descriptor *column =
        pointwise(b, WF_DNN_INDEX, WF_DNN_I32, COLUMNS, x, NULL, NULL, scores(b, WF_DNN_I32));
    wf_cuda_descriptor *seen =
        pointwise(b, WF_DNN_AT_LEAST, WF_DNN_BOOL, 0, row, column, NULL, scores(b, WF_DNN_BOOL));

    return pointwise(b, WF_DNN_SELECT, WF_DNN_F32, 0, x, wf_dnn_scalar(&b->base, RANK, -INFINITY),
                     seen, scores(b, WF_DNN_F32));
}

/* scale q k^T + mask. */
static wf_cuda_descriptor *masked_scores(builder *b, wf_cuda_descriptor *q, wf_cuda_descriptor *k,
                                         wf_cuda_descriptor *scale, unsigned mask_number)
{
    wf_cuda_descriptor *x = product(b, q, k, scores(b, WF_DNN_F32));

    x = each(b, WF_DNN_MUL, x, scale, scores(b, WF_DNN_F32));
    if (b->a->adds_mask)
        x = each(b, WF_DNN_ADD, x, mask(b, mask_number), scores(b, WF_DNN_F32));
    return x;
}

static void forward(builder *b)
{
    const wf_dnn_attention *a = b->a;
    wf_cuda_descriptor *q = tensor(b, WF_DNN_ATT_Q, a->t, a->d, false);
    wf_cuda_descriptor *k = tensor(b, WF_DNN_ATT_K, a->s, a->d, true);
    wf_cuda_descriptor *v = tensor(b, WF_DNN_ATT_V, a->s, a->e, false);
    wf_cuda_descriptor *y = tensor(b, WF_DNN_ATT_Y, a->t, a->e, false);
    wf_cuda_descriptor *stats = numbers_of_rows(b, WF_DNN_ATT_STATS);
    wf_cuda_descriptor *scale = wf_dnn_scalar(&b->base, RANK, (float)a->scale);
    wf_cuda_descriptor *x = masked_scores(b, q, k, scale, WF_DNN_ATT_MASK), *most, *sum, *log;

    if (a->causal)
        x = hide_later(b, x);
    most = reduce(b, WF_DNN_MOST_OF, x);
    x = each(b, WF_DNN_SUB, x, most, scores(b, WF_DNN_F32));
    x = each(b, WF_DNN_EXP, x, NULL, scores(b, WF_DNN_F32));
    sum = reduce(b, WF_DNN_SUM_OF, x);
    log = each(b, WF_DNN_LOG, sum, NULL, of_rows(b));
    each(b, WF_DNN_ADD, most, log, stats);
    x = each(b, WF_DNN_DIV, x, sum, scores(b, b->type));
    product(b, x, v, y);
}

/* From the probabilities p = exp(scores - stats): dv = p^T dy, ds = p (dy v^T - sum of y dy) scale,
 * dk = ds^T q, dq = ds k. That dq is one product, and is not added up from parts, makes its bits
 * the same in each run. */
static void backward(builder *b)
{
    const wf_dnn_attention *a = b->a;
    wf_cuda_descriptor *q = tensor(b, WF_DNN_ATT_Q, a->t, a->d, false);
    wf_cuda_descriptor *k = tensor(b, WF_DNN_ATT_K, a->s, a->d, true);
    wf_cuda_descriptor *v = tensor(b, WF_DNN_ATT_V, a->s, a->e, true);
    wf_cuda_descriptor *y = tensor(b, WF_DNN_ATT_Y, a->t, a->e, false);
    wf_cuda_descriptor *dy = tensor(b, WF_DNN_ATT_DY, a->t, a->e, false);
    wf_cuda_descriptor *stats = numbers_of_rows(b, WF_DNN_ATT_STATS);
    wf_cuda_descriptor *room = numbers_of_rows(b, WF_DNN_ATT_ROOM);
    wf_cuda_descriptor *scale = wf_dnn_scalar(&b->base, RANK, (float)a->scale);
    wf_cuda_descriptor *x, *p, *sum, *turned;

    x = each(b, WF_DNN_MUL, dy, y, inner(b, WF_DNN_F32, lay(b, a->t, a->e)));
    sum = reduce(b, WF_DNN_SUM_OF, x);
    sum = each(b, WF_DNN_MUL, sum, wf_dnn_scalar(&b->base, RANK, 1), room);
    x = masked_scores(b, q, k, scale, WF_DNN_ATT_GRAD_MASK);
    x = each(b, WF_DNN_SUB, x, stats, scores(b, WF_DNN_F32));
    if (a->causal)
        x = hide_later(b, x);
    p = each(b, WF_DNN_EXP, x, NULL, scores(b, WF_DNN_F32));
    product(b, turned_scores(b, p), dy, tensor(b, WF_DNN_ATT_DV, a->s, a->e, false));
    x = product(b, dy, v, scores(b, WF_DNN_F32));
    x = each(b, WF_DNN_SUB, x, sum, scores(b, WF_DNN_F32));
    x = each(b, WF_DNN_MUL, x, p, scores(b, WF_DNN_F32));
    x = each(b, WF_DNN_MUL, x, scale, scores(b, WF_DNN_F32));
    product(b, turned_scores(b, x), q, tensor(b, WF_DNN_ATT_DK, a->s, a->d, false));
    turned = view(b, k, inner(b, b->type, lay_heads(b, a->s, a->d)));
    product(b, x, turned, tensor(b, WF_DNN_ATT_DQ, a->t, a->d, false));
}

static int build(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const void *of, wf_dnn_graph *g)
{
    const wf_dnn_attention *a = of;
    builder b = {
        .base = wf_dnn_build(calls, g), .a = a, .type = wf_dnn_type_of((wf_dtype)a->dtype)};
    unsigned tensors;

    wf_assert(wf_dnn_attention_fits(a) && !(a->causal && a->adds_mask));
    wf_assert(a->dtype == WF_BF16 || a->dtype == WF_F16);
    if (a->is_grad) {
        backward(&b);
        tensors = a->adds_mask ? WF_DNN_ATT_GRAD_MASK + 1 : WF_DNN_ATT_GRAD_MASK;
    } else {
        forward(&b);
        tensors = a->adds_mask ? WF_DNN_ATT_MASK + 1 : WF_DNN_ATT_MASK;
    }
    return wf_dnn_end(&b.base, dnn, tensors, b.n, b.operations);
}

/* Its factors are of 16 bits already: no engine rounds float32. */
/* Sums and scores are not rounded further than the tensors are. */
wf_dnn_asked wf_dnn_ask_attention(const wf_dnn_attention *a)
{
    return (wf_dnn_asked){
        .kind = "cuDNN attention",
        .of = a,
        .bytes = sizeof *a,
        .build = build,
        .rounding = {true, a->dtype == WF_BF16 ? WF_COMPUTE_BF16 : WF_COMPUTE_F16}};
}
