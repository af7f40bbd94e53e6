/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_function.c - operations that ONNX defines by others, and some that are few
 * nodes of others: they are written out when a file is read. Gradients follow from that, and the
 * compiler sees what it knows (attention). */
#include "common/graph/onnx_function.h"
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/op.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

wf_status wf_call_need_rank(const wf_call *c, uint32_t i, int32_t least, int32_t most, wf_err *err)
{
    int32_t rank = c->in[i]->rank;

    if (rank < 0)
        return wf_fail(err, WF_UNSUPPORTED, "export it with that shape",
                       "how many axes its input %u has is not known", i);
    if (rank < least || rank > most)
        return wf_fail(err, WF_SHAPE, NULL, "its input %u has %d axes, and must have %d to %d", i,
                       rank, least, most);
    return WF_OK;
}

wf_status wf_call_need_ints(const wf_call *c, uint32_t i, uint32_t least, uint32_t most,
                            int64_t values[], uint32_t *n, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];

    if (!wf_value_elems(c->in[i], elems, n))
        return wf_fail(err, WF_UNSUPPORTED, "make it a constant",
                       "its input %u is known only during the run", i);
    if (*n < least || *n > most)
        return wf_fail(err, WF_SHAPE, NULL, "its input %u has %u elements, and must have %u to %u",
                       i, *n, least, most);
    for (uint32_t k = 0; k < *n; k++) {
        if (!elems[k].is_known)
            return wf_fail(err, WF_UNSUPPORTED, "make it a constant",
                           "element %u of its input %u is known only during the run", k, i);
        values[k] = elems[k].value;
    }
    return WF_OK;
}

int64_t wf_call_entry(const wf_call *c, const char *list, size_t i, int64_t otherwise)
{
    size_t n;
    const int64_t *values = wf_onnx_ints(c->p, list, &n);

    return i < n ? values[i] : otherwise;
}

wf_value *wf_call_slice(wf_call *c, wf_value *x, int64_t axis, int64_t begin, int64_t end,
                        int64_t step)
{
    wf_value *in[] = {x, wf_emit_ints(c->e, 1, &begin), wf_emit_ints(c->e, 1, &end),
                      wf_emit_ints(c->e, 1, &axis), wf_emit_ints(c->e, 1, &step)};

    return x && in[4] ? wf_emit_op(c->e, "Slice", 5, in, 0, NULL) : NULL;
}

wf_value *wf_call_concat(wf_call *c, wf_value *a, wf_value *b, int64_t axis)
{
    wf_attr along = wf_attr_int("axis", axis);

    return a && b ? wf_emit_op(c->e, "Concat", 2, (wf_value *[]){a, b}, 1, &along) : NULL;
}

wf_value *wf_call_count(wf_call *c, wf_value *n)
{
    wf_value *in[] = {wf_emit_scalar(c->e, WF_I64, 0),
                      n ? wf_emit_reshape(c->e, wf_emit_cast(c->e, n, WF_I64), 0, NULL) : NULL,
                      wf_emit_scalar(c->e, WF_I64, 1)};

    return in[1] && in[2] ? wf_emit_op(c->e, "Range", 3, in, 0, NULL) : NULL;
}

/* (x - mean) / (deviation + 1e-9) over attr axes, by default all but the channels of an image. */
wf_status wf_function_mean_variance_normalization(wf_call *c, wf_err *err)
{
    static const int64_t images[] = {0, 2, 3};
    wf_value *x = c->in[0], *d, *deviation;
    const int64_t *axes;
    size_t n;

    WF_TRY(wf_call_need_rank(c, 0, 1, WF_MAX_RANK, err));
    axes = wf_onnx_ints(c->p, "axes", &n);
    if (!axes) {
        axes = images;
        n = WF_COUNT(images);
    }
    if (n < 1 || n > WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "it has %zu axes", n);
    d = wf_emit_sub(c->e, x, wf_emit_reduce_mean(c->e, x, (uint32_t)n, axes, true));
    deviation = wf_emit_unary(
        c->e, "Sqrt", wf_emit_reduce_mean(c->e, wf_emit_mul(c->e, d, d), (uint32_t)n, axes, true));
    deviation = wf_emit_add(c->e, deviation, wf_emit_scalar(c->e, x->dtype, 1e-9));
    c->out[0] = wf_emit_div(c->e, d, deviation);
    return WF_OK;
}

/* The p-norm along axes [n], which stay. */
static wf_value *p_norm(wf_call *c, wf_value *x, int64_t p, uint32_t n, const int64_t axes[])
{
    wf_value *sum, *list = wf_emit_ints(c->e, n, axes);

    if (p == 1 || p == 2)
        return wf_emit_binary(c->e, p == 1 ? "ReduceL1" : "ReduceL2", x, list);
    sum =
        wf_emit_pow(c->e, wf_emit_unary(c->e, "Abs", x), wf_emit_scalar(c->e, x->dtype, (double)p));
    sum = wf_emit_reduce_sum(c->e, sum, n, axes, true);
    return wf_emit_pow(c->e, sum, wf_emit_scalar(c->e, x->dtype, 1 / (double)p));
}

/* x by its norm along one axis; zeros stay zeros. */
wf_status wf_function_lp_normalization(wf_call *c, wf_err *err)
{
    int64_t axis = wf_onnx_int(c->p, "axis", -1), p = wf_onnx_int(c->p, "p", 2);
    wf_value *x = c->in[0], *norm, *zero, *one;

    WF_TRY(wf_call_need_rank(c, 0, 1, WF_MAX_RANK, err));
    if (p != 1 && p != 2)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "p is %" PRId64 "; weft has 1 and 2", p);
    norm = p_norm(c, x, p, 1, &axis);
    zero = wf_emit_scalar(c->e, x->dtype, 0);
    one = wf_emit_scalar(c->e, x->dtype, 1);
    norm = wf_emit_where(c->e, wf_emit_binary(c->e, "Equal", norm, zero), one, norm);
    c->out[0] = wf_emit_div(c->e, x, norm);
    return WF_OK;
}

wf_status wf_function_global_lp_pool(wf_call *c, wf_err *err)
{
    int64_t p = wf_onnx_int(c->p, "p", 2), axes[WF_MAX_RANK];
    uint32_t n;

    WF_TRY(wf_call_need_rank(c, 0, 3, WF_MAX_RANK, err));
    if (p < 1 || p > 64)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "p is %" PRId64 "; weft has 1 to 64", p);
    n = (uint32_t)c->in[0]->rank - 2;
    for (uint32_t i = 0; i < n; i++)
        axes[i] = i + 2;
    c->out[0] = p_norm(c, c->in[0], p, n, axes);
    return WF_OK;
}

/* a - b cos(2 pi i / n) + d cos(4 pi i / n), i from 0 to size - 1, in f64; n is the size, or one
 * less when it is not periodic. */
static wf_status window(wf_call *c, double a, double b, double d, wf_err *err)
{
    int64_t to = wf_onnx_int(c->p, "output_datatype", WF_F32);
    wf_value *count, *angle, *y;

    if (to != WF_F32 && to != WF_F64 && to != WF_F16 && to != WF_BF16)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "output_datatype is %" PRId64 ", which is no float", to);
    count = wf_emit_reshape(c->e, wf_emit_cast(c->e, c->in[0], WF_F64), 0, NULL);
    if (!wf_onnx_int(c->p, "periodic", 1))
        count = wf_emit_sub(c->e, count, wf_emit_scalar(c->e, WF_F64, 1));
    angle = wf_emit_cast(c->e, wf_call_count(c, c->in[0]), WF_F64);
    angle = wf_emit_div(c->e, wf_emit_scale(c->e, angle, 2 * M_PI), count);
    y = wf_emit_scale(c->e, wf_emit_unary(c->e, "Cos", angle), -b);
    y = wf_emit_add(c->e, y, wf_emit_scalar(c->e, WF_F64, a));
    if (d != 0)
        y = wf_emit_add(
            c->e, y,
            wf_emit_scale(c->e, wf_emit_unary(c->e, "Cos", wf_emit_scale(c->e, angle, 2)), d));
    c->out[0] = wf_emit_cast(c->e, y, (wf_dtype)to);
    return WF_OK;
}

wf_status wf_function_hann_window(wf_call *c, wf_err *err)
{
    return window(c, 0.5, 0.5, 0, err);
}

wf_status wf_function_hamming_window(wf_call *c, wf_err *err)
{
    return window(c, 25.0 / 46, 21.0 / 46, 0, err);
}

wf_status wf_function_blackman_window(wf_call *c, wf_err *err)
{
    return window(c, 0.42, 0.5, 0.08, err);
}

static wf_function *function_of(const char *op)
{
    static const struct {
        const char *op;
        wf_function *function;
    } rows[] = {
        {"AffineGrid", wf_function_affine_grid},
        {"ArrayFeatureExtractor", wf_function_array_feature_extractor},
        {"Attention", wf_function_attention},
        {"Binarizer", wf_function_binarizer},
        {"BlackmanWindow", wf_function_blackman_window},
        {"Col2Im", wf_function_col2im},
        {"GlobalLpPool", wf_function_global_lp_pool},
        {"HammingWindow", wf_function_hamming_window},
        {"HannWindow", wf_function_hann_window},
        {"Imputer", wf_function_imputer},
        {"LinearClassifier", wf_function_linear_classifier},
        {"LinearRegressor", wf_function_linear_regressor},
        {"LpNormalization", wf_function_lp_normalization},
        {"MaxUnpool", wf_function_max_unpool},
        {"MeanVarianceNormalization", wf_function_mean_variance_normalization},
        {"Normalizer", wf_function_normalizer},
        {"RotaryEmbedding", wf_function_rotary_embedding},
        {"Scaler", wf_function_scaler},
        {"ZipMap", wf_function_zip_map},
    };

    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(op, rows[i].op) == 0)
            return rows[i].function;
    return NULL;
}

bool wf_onnx_is_function(const char *op)
{
    return function_of(op) != NULL;
}

wf_status wf_onnx_function(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,
                           const wf_onnx_scope *scope, wf_err *err)
{
    const wf_op *op = wf_op_find(wf_onnx_domain(p), wf_onnx_op(p));
    wf_emit e;
    wf_call c = {.p = p, .e = &e};

    if (p->n_input < op->n_in_min || p->n_input > op->n_in_max || p->n_output < 1 ||
        p->n_output > op->n_out_max)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu inputs and %zu outputs", p->n_input,
                       p->n_output);
    for (uint32_t i = 0; i < p->n_input; i++) {
        WF_TRY(wf_onnx_input(g, p, scope, i, &c.in[i], err));
        if ((!c.in[i] && i < op->n_in_min) || (c.in[i] && wf_onnx_sequence_of(file, c.in[i])))
            return wf_fail(err, WF_INVALID, NULL, "its input %u is %s", i,
                           c.in[i] ? "a sequence, not a tensor" : "missing");
    }
    for (uint32_t i = 0; i < p->n_output; i++)
        c.wants[i] = p->output[i][0] != 0;
    WF_TRY(wf_onnx_catch_up(g, file, err));
    e = wf_emit_begin(g, p->name && p->name[0] ? p->name : p->output[0], err);
    WF_TRY(function_of(op->name)(&c, err));
    WF_TRY(wf_emit_end(&e));
    for (uint32_t i = 0; i < p->n_output; i++) {
        if (!c.wants[i])
            continue;
        if (!c.out[i])
            return wf_fail(err, WF_UNSUPPORTED, NULL, "weft does not make its output %u", i);
        WF_TRY(wf_onnx_bind(g, file, scope, p->output[i], c.out[i], err));
    }
    return WF_OK;
}
