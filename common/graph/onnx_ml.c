/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_ml.c - operations of the domain ai.onnx.ml, as scikit-learn's models are
 * exported: linear models, whose weights lie in attributes and become variables NODE.coefficients
 * and NODE.intercepts, and what prepares their inputs. Written out when a file is read.
 *
 * Meaning: ONNX-ML operators, versions 1 to 3. Results are float32, whatever the input is.
 */
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/graph/onnx_function.h"
#include "common/graph/op.h"

#include <math.h>
#include <string.h>

/* A vector of floats as a constant [n]. */
static wf_value *constant(wf_call *c, const char *hint, size_t n, const float values[])
{
    wf_tensor *t = NULL;

    if (c->e->rc != WF_OK)
        return NULL;
    c->e->rc = wf_tensor_new(WF_F32, 1, (int64_t[]){(int64_t)n}, &t, c->e->err);
    if (c->e->rc != WF_OK)
        return NULL;
    memcpy(t->data, values, n * sizeof values[0]);
    return wf_emit_constant(c->e, hint, &t);
}

/* A list attribute that has one element for each feature, or one for all. */
static wf_status need_list(const wf_call *c, const char *name, const float **values, size_t *n,
                           wf_err *err)
{
    const wf_value *x = c->in[0];
    int64_t features = x->rank > 0 ? x->axes[x->rank - 1].size : -1;

    *values = wf_onnx_floats(c->p, name, n);
    if (*n == 0)
        return wf_fail(err, WF_INVALID, NULL, "its list %s is empty", name);
    if (*n != 1 && features >= 0 && (int64_t)*n != features)
        return wf_fail(err, WF_SHAPE, NULL, "%s has %zu elements for %lld features", name, *n,
                       (long long)features);
    return WF_OK;
}

/* (x - offset) scale */
wf_status wf_function_scaler(wf_call *c, wf_err *err)
{
    wf_value *x = wf_emit_cast(c->e, c->in[0], WF_F32);
    const float *offset, *scale;
    size_t n, m;

    WF_TRY(need_list(c, "offset", &offset, &n, err));
    WF_TRY(need_list(c, "scale", &scale, &m, err));
    x = wf_emit_sub(c->e, x, constant(c, "offset", n, offset));
    c->out[0] = wf_emit_mul(c->e, x, constant(c, "scale", m, scale));
    return WF_OK;
}

/* x by the norm of its row; zeros stay zeros. */
static wf_value *by_norm(wf_call *c, const char *reduce, wf_value *x)
{
    wf_value *norm = wf_emit_binary(c->e, reduce, x, wf_emit_ints(c->e, 1, (int64_t[]){-1}));
    wf_value *zero = wf_emit_scalar(c->e, WF_F32, 0), *one = wf_emit_scalar(c->e, WF_F32, 1);

    norm = wf_emit_where(c->e, wf_emit_binary(c->e, "Equal", norm, zero), one, norm);
    return wf_emit_div(c->e, x, norm);
}

wf_status wf_function_normalizer(wf_call *c, wf_err *err)
{
    wf_value *x = wf_emit_cast(c->e, c->in[0], WF_F32);

    WF_TRY(wf_call_need_rank(c, 0, 1, 2, err));
    c->out[0] = by_norm(c,
                        wf_onnx_says(c->p, "norm", "L1")   ? "ReduceL1"
                        : wf_onnx_says(c->p, "norm", "L2") ? "ReduceL2"
                                                           : "ReduceMax",
                        x);
    return WF_OK;
}

/* 1 above the threshold, else 0 */
wf_status wf_function_binarizer(wf_call *c, wf_err *err)
{
    wf_value *x = c->in[0];
    double threshold = (double)wf_onnx_float(c->p, "threshold", 0);

    (void)err;
    x = wf_emit_binary(c->e, "Greater", x, wf_emit_scalar(c->e, x->dtype, threshold));
    c->out[0] = wf_emit_cast(c->e, x, c->in[0]->dtype);
    return WF_OK;
}

/* What a missing value (by default NaN) is replaced with, feature by feature. */
wf_status wf_function_imputer(wf_call *c, wf_err *err)
{
    float missing = wf_onnx_float(c->p, "replaced_value_float", NAN);
    wf_value *x = wf_emit_cast(c->e, c->in[0], WF_F32), *is_missing;
    const float *values;
    size_t n;

    WF_TRY(need_list(c, "imputed_value_floats", &values, &n, err));
    is_missing = isnan(missing) ? wf_emit_unary(c->e, "IsNaN", x)
                                : wf_emit_binary(c->e, "Equal", x,
                                                 wf_emit_scalar(c->e, WF_F32, (double)missing));
    c->out[0] = wf_emit_where(c->e, is_missing, constant(c, "imputed", n, values), x);
    return WF_OK;
}

/* Elements of the last axis by position: ArrayFeatureExtractor. A vector counts as one row. */
wf_status wf_function_array_feature_extractor(wf_call *c, wf_err *err)
{
    wf_value *x = c->in[0], *at = wf_emit_reshape(c->e, c->in[1], 1, (int64_t[]){-1});
    wf_attr axis = wf_attr_int("axis", -1);

    WF_TRY(wf_call_need_rank(c, 0, 1, WF_MAX_RANK, err));
    if (x->rank == 1)
        x = wf_emit_reshape(c->e, x, 2, (int64_t[]){1, -1});
    c->out[0] = wf_emit_op(c->e, "Gather", 2, (wf_value *[]){x, at}, 1, &axis);
    return WF_OK;
}

/* Maps from label to probability: the probabilities, in the labels' order. */
wf_status wf_function_zip_map(wf_call *c, wf_err *err)
{
    (void)err;
    c->out[0] = c->in[0];
    return WF_OK;
}

/* ---- linear models ---- */

typedef struct linear {
    const float *coefficients, *intercepts; /* [rows, features], [rows] or NULL */
    size_t rows, features;
} linear;

/* rows 0: as many as there are intercepts. */
static wf_status read_linear(const wf_call *c, size_t rows, linear *l, wf_err *err)
{
    const wf_value *x = c->in[0];
    size_t n, n_intercepts;

    WF_TRY(wf_call_need_rank(c, 0, 2, 2, err));
    l->coefficients = wf_onnx_floats(c->p, "coefficients", &n);
    l->intercepts = wf_onnx_floats(c->p, "intercepts", &n_intercepts);
    l->rows = rows ? rows : WF_MAX(n_intercepts, (size_t)1);
    if (n_intercepts == 0)
        l->intercepts = NULL;
    if (n_intercepts != 0 && n_intercepts != l->rows)
        return wf_fail(err, WF_SHAPE, NULL, "it has %zu intercepts for %zu results", n_intercepts,
                       l->rows);
    if (n == 0 || n % l->rows || (x->axes[1].size >= 0 && n / l->rows != (size_t)x->axes[1].size))
        return wf_fail(err, WF_SHAPE, NULL,
                       "it has %zu coefficients, which do not fit %zu results of %lld features", n,
                       l->rows, (long long)x->axes[1].size);
    l->features = n / l->rows;
    return WF_OK;
}

static wf_value *variable(wf_call *c, const char *name, uint32_t rank, const int64_t dims[],
                          const float values[])
{
    const char *full = wf_arena_printf(c->e->g->arena, "%.200s.%s", c->e->hint, name);
    wf_tensor *t = NULL;
    wf_value *v = NULL;

    if (c->e->rc != WF_OK)
        return NULL;
    c->e->rc = full ? wf_tensor_new(WF_F32, rank, dims, &t, c->e->err)
                    : wf_fail_nomem(c->e->err, strlen(name));
    if (c->e->rc != WF_OK)
        return NULL;
    memcpy(t->data, values, wf_tensor_bytes(t));
    c->e->rc = wf_graph_add_variable(c->e->g, full, WF_VAR_TRAINABLE, &t, &v, c->e->err);
    wf_tensor_free(&t);
    return v;
}

/* x w' + b: [batch, rows] */
static wf_value *scores(wf_call *c, const linear *l)
{
    int64_t dims[] = {(int64_t)l->rows, (int64_t)l->features};
    wf_value *x = wf_emit_cast(c->e, c->in[0], WF_F32), *b = NULL;
    wf_value *w = variable(c, "coefficients", 2, dims, l->coefficients);

    if (l->intercepts)
        b = variable(c, "intercepts", 1, dims, l->intercepts);
    return w ? wf_emit_gemm(c->e, x, w, b, 1, 1, false, true) : NULL;
}

static wf_status transformed(wf_call *c, wf_value *x, wf_value **out, wf_err *err)
{
    if (wf_onnx_says(c->p, "post_transform", "LOGISTIC"))
        *out = wf_emit_unary(c->e, "Sigmoid", x);
    else if (wf_onnx_says(c->p, "post_transform", "SOFTMAX"))
        *out = wf_emit_unary(c->e, "Softmax", x);
    else if (wf_onnx_says(c->p, "post_transform", "NONE") ||
             wf_onnx_says(c->p, "post_transform", ""))
        *out = x;
    else
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "weft has its post_transform NONE, LOGISTIC and SOFTMAX");
    return WF_OK;
}

wf_status wf_function_linear_regressor(wf_call *c, wf_err *err)
{
    int64_t targets = wf_onnx_int(c->p, "targets", 1);
    linear l;

    if (targets < 1)
        return wf_fail(err, WF_INVALID, NULL, "it has %lld targets", (long long)targets);
    WF_TRY(read_linear(c, (size_t)targets, &l, err));
    return transformed(c, scores(c, &l), &c->out[0], err);
}

/* Two rows of which each is the other's negative, as scikit-learn's models of two classes have. */
static bool is_mirrored(const linear *l)
{
    bool mirrored = l->rows == 2;

    for (size_t i = 0; mirrored && i < l->features; i++)
        mirrored = l->coefficients[i] == -l->coefficients[l->features + i];
    return mirrored && (!l->intercepts || l->intercepts[0] == -l->intercepts[1]);
}

/* The labels of the greatest scores [batch, classes]; where labels are words, their numbers. */
static wf_status labels(wf_call *c, wf_value *score, size_t classes, wf_value **out, wf_err *err)
{
    wf_attr attrs[] = {wf_attr_int("axis", 1), wf_attr_int("keepdims", 0)};
    const int64_t *values;
    size_t n;

    *out = wf_emit_op(c->e, "ArgMax", 1, &score, 2, attrs);
    values = wf_onnx_ints(c->p, "classlabels_ints", &n);
    if (n == 0)
        return WF_OK;
    if (n != classes)
        return wf_fail(err, WF_SHAPE, NULL, "it has %zu labels for %zu classes", n, classes);
    *out = wf_emit_op(c->e, "Gather", 2,
                      (wf_value *[]){wf_emit_ints(c->e, (uint32_t)n, values), *out}, 0, NULL);
    return WF_OK;
}

/* Of two classes there is one row, or two that mirror each other: the second class's alone is
 * trained then, and the first has what it leaves. Trained apart they would not stay probabilities.
 */
wf_status wf_function_linear_classifier(wf_call *c, wf_err *err)
{
    bool logistic = wf_onnx_says(c->p, "post_transform", "LOGISTIC"), one;
    wf_value *p;
    linear l;

    WF_TRY(read_linear(c, 0, &l, err));
    one = l.rows == 1 || (logistic && is_mirrored(&l));
    if (l.rows == 1 && !logistic)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "of one row weft has the post_transform LOGISTIC alone");
    if (one && l.rows == 2) {
        l.rows = 1;
        l.coefficients += l.features;
        l.intercepts = l.intercepts ? l.intercepts + 1 : NULL;
    }
    WF_TRY(transformed(c, scores(c, &l), &p, err));
    if (one)
        p = wf_call_concat(c, wf_emit_sub(c->e, wf_emit_scalar(c->e, WF_F32, 1), p), p, 1);
    c->out[1] = p;
    return p ? labels(c, p, one ? 2 : l.rows, &c->out[0], err) : WF_OK;
}
