/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/linear_models.c - LinearRegressor and LinearClassifier of ai.onnx.ml, as
 * scikit-learn's models are exported: their weights lie in attributes, and become the variables
 * NODE.coefficients and NODE.intercepts. */
#include "common/base/size.h"
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

#include <string.h>

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

static wf_status linear_regressor(wf_call *c, wf_err *err)
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
static wf_status linear_classifier(wf_call *c, wf_err *err)
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

#define TRAINED "its coefficients and intercepts become variables"

static const wf_attr_row regressor_attrs[] = {{"coefficients", WF_ATTR_FLOATS, true},
                                              {"intercepts", WF_ATTR_FLOATS, false},
                                              {"post_transform", WF_ATTR_STRING, false},
                                              {"targets", WF_ATTR_INT, false},
                                              {0}};

static const wf_attr_row classifier_attrs[] = {{"classlabels_ints", WF_ATTR_INTS, false},
                                               {"classlabels_strings", WF_ATTR_STRINGS, false},
                                               {"coefficients", WF_ATTR_FLOATS, true},
                                               {"intercepts", WF_ATTR_FLOATS, false},
                                               {"multi_class", WF_ATTR_INT, false},
                                               {"post_transform", WF_ATTR_STRING, false},
                                               {0}};

const wf_expansion wf_expansion_linear_regressor =
    WF_EXPANDS(WF_DOMAIN_ML, "LinearRegressor", 1, 1, 1, 1, 1, linear_regressor, .note = TRAINED,
               .attrs = regressor_attrs);

const wf_expansion wf_expansion_linear_classifier = WF_EXPANDS(
    WF_DOMAIN_ML, "LinearClassifier", 1, 1, 1, 1, 2, linear_classifier,
    .note = TRAINED "; of labels that are words, the numbers", .attrs = classifier_attrs);
