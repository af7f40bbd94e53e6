/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/emit.c */
#include "common/graph/emit.h"
#include "common/graph/infer.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 1280 }; /* of hints and names, which import bounds at 1000 */

wf_emit wf_emit_begin(wf_graph *g, const char *hint, wf_err *err)
{
    return (wf_emit){.g = g, .hint = hint, .err = err};
}

wf_status wf_emit_end(const wf_emit *e)
{
    return e->rc;
}

wf_attr wf_attr_int(const char *name, int64_t value)
{
    return (wf_attr){.name = name, .kind = WF_ATTR_INT, .i = value};
}

wf_attr wf_attr_float(const char *name, float value)
{
    return (wf_attr){.name = name, .kind = WF_ATTR_FLOAT, .f = value};
}

wf_attr wf_attr_string(const char *name, const char *value)
{
    return (wf_attr){.name = name, .kind = WF_ATTR_STRING, .s = value};
}

wf_attr wf_attr_ints(const char *name, size_t n, const int64_t values[])
{
    return (wf_attr){.name = name, .kind = WF_ATTR_INTS, .n = n, .ints = values};
}

static void name_under(const wf_emit *e, const char *what, char *text, size_t size)
{
    if (e->hint && e->hint[0])
        snprintf(text, size, "%s/%s", e->hint, what);
    else
        snprintf(text, size, "%s", what);
}

static wf_status emit(wf_emit *e, const wf_op *op, uint32_t n_in, wf_value *const in[],
                      uint32_t n_attrs, const wf_attr attrs[], uint32_t n_out, wf_value *out[],
                      wf_node **node)
{
    char name[LONGEST], more[LONGEST + 16];

    name_under(e, op->name, name, sizeof name);
    for (uint32_t i = 0; i < n_out; i++) {
        snprintf(more, sizeof more, "%s:%u", name, i);
        WF_TRY(wf_graph_add_value_like(e->g, i ? more : name, &out[i], e->err));
    }
    WF_TRY(wf_graph_add_node_like(e->g, op, name, n_in, in, n_out, out, node, e->err));
    for (uint32_t i = 0; i < n_attrs; i++)
        WF_TRY(wf_node_set_attr(e->g, *node, &attrs[i], e->err));
    return wf_infer_node(e->g, *node, e->err);
}

wf_node *wf_emit_node(wf_emit *e, const char *op_name, uint32_t n_in, wf_value *const in[],
                      uint32_t n_attrs, const wf_attr attrs[], uint32_t n_out, wf_value *out[])
{
    const wf_op *op = wf_op_find(WF_DOMAIN_ONNX, op_name);
    wf_node *node = NULL;

    if (!op)
        op = wf_op_find(WF_DOMAIN_WEFT, op_name);
    if (!op)
        op = wf_op_find(WF_DOMAIN_ML, op_name);
    wf_assert(op);
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = NULL;
    if (e->rc == WF_OK)
        e->rc = emit(e, op, n_in, in, n_attrs, attrs, n_out, out, &node);
    if (e->rc == WF_OK)
        return node;
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = NULL;
    return NULL;
}

wf_value *wf_emit_op(wf_emit *e, const char *op, uint32_t n_in, wf_value *const in[],
                     uint32_t n_attrs, const wf_attr attrs[])
{
    wf_value *out[1];

    wf_emit_node(e, op, n_in, in, n_attrs, attrs, 1, out);
    return out[0];
}

wf_value *wf_emit_unary(wf_emit *e, const char *op, wf_value *x)
{
    return x ? wf_emit_op(e, op, 1, &x, 0, NULL) : NULL;
}

wf_value *wf_emit_binary(wf_emit *e, const char *op, wf_value *a, wf_value *b)
{
    return a && b ? wf_emit_op(e, op, 2, (wf_value *[]){a, b}, 0, NULL) : NULL;
}

wf_value *wf_emit_add(wf_emit *e, wf_value *a, wf_value *b)
{
    return wf_emit_binary(e, "Add", a, b);
}

wf_value *wf_emit_sub(wf_emit *e, wf_value *a, wf_value *b)
{
    return wf_emit_binary(e, "Sub", a, b);
}

wf_value *wf_emit_mul(wf_emit *e, wf_value *a, wf_value *b)
{
    return wf_emit_binary(e, "Mul", a, b);
}

wf_value *wf_emit_div(wf_emit *e, wf_value *a, wf_value *b)
{
    return wf_emit_binary(e, "Div", a, b);
}

wf_value *wf_emit_pow(wf_emit *e, wf_value *a, wf_value *b)
{
    return wf_emit_binary(e, "Pow", a, b);
}

wf_value *wf_emit_neg(wf_emit *e, wf_value *x)
{
    return wf_emit_unary(e, "Neg", x);
}

wf_value *wf_emit_exp(wf_emit *e, wf_value *x)
{
    return wf_emit_unary(e, "Exp", x);
}

wf_value *wf_emit_log(wf_emit *e, wf_value *x)
{
    return wf_emit_unary(e, "Log", x);
}

wf_value *wf_emit_identity(wf_emit *e, wf_value *x)
{
    return wf_emit_unary(e, "Identity", x);
}

wf_value *wf_emit_where(wf_emit *e, wf_value *condition, wf_value *x, wf_value *y)
{
    if (!condition || !x || !y)
        return NULL;
    return wf_emit_op(e, "Where", 3, (wf_value *[]){condition, x, y}, 0, NULL);
}

wf_value *wf_emit_scale(wf_emit *e, wf_value *x, double factor)
{
    if (!x || factor == 1)
        return x;
    return wf_emit_mul(e, x, wf_emit_scalar(e, x->dtype, factor));
}

wf_value *wf_emit_matmul(wf_emit *e, wf_value *a, wf_value *b)
{
    return wf_emit_binary(e, "MatMul", a, b);
}

wf_value *wf_emit_gemm(wf_emit *e, wf_value *a, wf_value *b, wf_value *c, float alpha, float beta,
                       bool trans_a, bool trans_b)
{
    wf_attr attrs[4];
    uint32_t n = 0;

    if (!a || !b)
        return NULL;
    if (alpha != 1.0f)
        attrs[n++] = wf_attr_float("alpha", alpha);
    if (c && beta != 1.0f)
        attrs[n++] = wf_attr_float("beta", beta);
    if (trans_a)
        attrs[n++] = wf_attr_int("transA", 1);
    if (trans_b)
        attrs[n++] = wf_attr_int("transB", 1);
    return wf_emit_op(e, "Gemm", c ? 3 : 2, (wf_value *[]){a, b, c}, n, attrs);
}

static wf_value *reduce(wf_emit *e, const char *op, wf_value *x, uint32_t n, const int64_t axes[],
                        bool keep_dims)
{
    wf_attr keep = wf_attr_int("keepdims", keep_dims);
    wf_value *list = x && n ? wf_emit_ints(e, n, axes) : NULL;

    if (!x || (n && !list))
        return NULL;
    return wf_emit_op(e, op, n ? 2 : 1, (wf_value *[]){x, list}, 1, &keep);
}

wf_value *wf_emit_reduce_sum(wf_emit *e, wf_value *x, uint32_t n, const int64_t axes[],
                             bool keep_dims)
{
    return reduce(e, "ReduceSum", x, n, axes, keep_dims);
}

wf_value *wf_emit_reduce_mean(wf_emit *e, wf_value *x, uint32_t n, const int64_t axes[],
                              bool keep_dims)
{
    return reduce(e, "ReduceMean", x, n, axes, keep_dims);
}

wf_value *wf_emit_reshape(wf_emit *e, wf_value *x, uint32_t rank, const int64_t dims[])
{
    return x ? wf_emit_binary(e, "Reshape", x, wf_emit_ints(e, rank, dims)) : NULL;
}

bool wf_same_shape(const wf_value *a, const wf_value *b)
{
    if (a->rank < 0 || a->rank != b->rank)
        return a == b;
    for (int32_t i = 0; i < a->rank; i++)
        if (!wf_axis_same(&a->axes[i], &b->axes[i]))
            return a == b;
    return true;
}

wf_value *wf_emit_reshape_like(wf_emit *e, wf_value *x, wf_value *ref)
{
    int64_t dims[WF_MAX_RANK];
    int32_t unknown = 0;
    bool empty = false;

    if (!x || !ref || wf_same_shape(x, ref))
        return x && ref ? x : NULL;
    for (int32_t i = 0; i < ref->rank; i++) {
        dims[i] = ref->axes[i].size;
        unknown += dims[i] < 0;
        empty = empty || dims[i] == 0;
    }
    /* -1 stands for one unknown axis, unless 0 elements leave it open. */
    if (ref->rank >= 0 && unknown <= 1 && !empty)
        return wf_emit_reshape(e, x, (uint32_t)ref->rank, dims);
    return wf_emit_op(e, "Reshape", 2, (wf_value *[]){x, wf_emit_shape_of(e, ref)}, 1,
                      (wf_attr[]){wf_attr_int("allowzero", 1)});
}

wf_value *wf_emit_unsqueeze(wf_emit *e, wf_value *x, uint32_t n, const int64_t axes[])
{
    return x ? wf_emit_binary(e, "Unsqueeze", x, wf_emit_ints(e, n, axes)) : NULL;
}

wf_value *wf_emit_transpose(wf_emit *e, wf_value *x, const int64_t perm[])
{
    wf_attr attr;

    if (!x)
        return NULL;
    attr = wf_attr_ints("perm", (size_t)x->rank, perm);
    return wf_emit_op(e, "Transpose", 1, &x, 1, &attr);
}

wf_value *wf_emit_cast(wf_emit *e, wf_value *x, wf_dtype to)
{
    wf_attr attr = wf_attr_int("to", to);

    return !x || x->dtype == to ? x : wf_emit_op(e, "Cast", 1, &x, 1, &attr);
}

wf_value *wf_emit_expand_like(wf_emit *e, wf_value *x, wf_value *ref)
{
    if (!x || !ref || wf_same_shape(x, ref))
        return x && ref ? x : NULL;
    return wf_emit_binary(e, "Expand", x, wf_emit_shape_of(e, ref));
}

/* The axes of x that were made or stretched by broadcasting ref to it; false when that is not
 * certain. *n_lead is how many of them come before ref's first axis. */
static bool stretched(const wf_value *x, const wf_value *ref, uint32_t *n, int64_t axes[],
                      int32_t *n_lead)
{
    *n = 0;
    if (x->rank < 0 || ref->rank < 0 || x->rank < ref->rank)
        return false;
    *n_lead = x->rank - ref->rank;
    for (int32_t i = 0; i < x->rank; i++) {
        const wf_axis *to = i < *n_lead ? NULL : &ref->axes[i - *n_lead];

        if (!to || (to->size == 1 && x->axes[i].size != 1))
            axes[(*n)++] = i;
        else if (!wf_axis_same(&x->axes[i], to))
            return false;
    }
    return true;
}

wf_value *wf_emit_sum_to(wf_emit *e, wf_value *x, wf_value *ref)
{
    int64_t axes[WF_MAX_RANK];
    int32_t n_lead;
    uint32_t n;

    if (!x || !ref || wf_same_shape(x, ref))
        return x && ref ? x : NULL;
    if (!stretched(x, ref, &n, axes, &n_lead))
        return wf_emit_binary(e, "SumToLike", x, ref);
    if (n == 0)
        return x;
    /* Leading axes go, stretched ones stay as 1: one ReduceSum does it when there is but one kind.
     */
    if ((int32_t)n == n_lead)
        return wf_emit_reduce_sum(e, x, n, axes, false);
    if (n_lead == 0)
        return wf_emit_reduce_sum(e, x, n, axes, true);
    return wf_emit_reshape_like(e, wf_emit_reduce_sum(e, x, n, axes, true), ref);
}

wf_value *wf_emit_shape_of(wf_emit *e, wf_value *x)
{
    int64_t dims[WF_MAX_RANK];

    if (!x)
        return NULL;
    if (wf_value_dims(x, dims))
        return wf_emit_ints(e, (uint32_t)x->rank, dims);
    return wf_emit_op(e, "Shape", 1, &x, 0, NULL);
}

wf_value *wf_emit_dim_of(wf_emit *e, wf_value *x, uint32_t axis)
{
    if (!x)
        return NULL;
    if (x->rank > (int32_t)axis && x->axes[axis].size >= 0)
        return wf_emit_ints(e, 1, &x->axes[axis].size);
    return wf_emit_op(
        e, "Shape", 1, &x, 2,
        (wf_attr[]){wf_attr_int("start", axis), wf_attr_int("end", (int64_t)axis + 1)});
}

static void store(wf_tensor *t, double value)
{
    switch (t->dtype) {
    case WF_F32:
        *(float *)t->data = (float)value;
        break;
    case WF_F64:
        *(double *)t->data = value;
        break;
    case WF_F16:
        *(uint16_t *)t->data = wf_f32_to_f16((float)value);
        break;
    case WF_BF16:
        *(uint16_t *)t->data = wf_f32_to_bf16((float)value);
        break;
    case WF_I32:
        *(int32_t *)t->data = (int32_t)value;
        break;
    case WF_I64:
        *(int64_t *)t->data = (int64_t)value;
        break;
    case WF_U8:
        *(uint8_t *)t->data = (uint8_t)value;
        break;
    case WF_BOOL:
        *(uint8_t *)t->data = value != 0;
        break;
    case WF_I8: /* no graph has it */
    case WF_NONE:
        break;
    }
}

wf_value *wf_emit_scalar(wf_emit *e, wf_dtype dtype, double value)
{
    wf_tensor *t = NULL;

    if (e->rc == WF_OK)
        e->rc = wf_tensor_new(dtype, 0, NULL, &t, e->err);
    if (e->rc != WF_OK)
        return NULL;
    store(t, value);
    return wf_emit_constant(e, "const", &t);
}

wf_value *wf_emit_ints(wf_emit *e, uint32_t n, const int64_t values[])
{
    int64_t dims[1] = {n};
    wf_tensor *t = NULL;

    if (e->rc == WF_OK)
        e->rc = wf_tensor_new(WF_I64, 1, dims, &t, e->err);
    if (e->rc != WF_OK)
        return NULL;
    if (n)
        memcpy(t->data, values, n * sizeof values[0]);
    return wf_emit_constant(e, "const", &t);
}

wf_value *wf_emit_constant(wf_emit *e, const char *hint, wf_tensor **t)
{
    wf_value *v = NULL;
    char name[LONGEST];

    name_under(e, hint, name, sizeof name);
    if (e->rc == WF_OK)
        e->rc = wf_graph_add_constant(e->g, name, t, &v, e->err);
    wf_tensor_free(t);
    return e->rc == WF_OK ? v : NULL;
}
