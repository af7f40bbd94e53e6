/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/infer.c - running inference, and what infer functions share. */
#include "common/graph/infer.h"
#include "common/base/size.h"
#include "common/graph/narrow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void forget(wf_value *v)
{
    v->dtype = WF_NONE;
    v->rank = -1;
    wf_tensor_free(&v->known);
    v->carried = NULL;
    v->n_carried = 0;
}

static void forget_outputs(wf_node *n)
{
    /* What has no inputs (Pull) has its type from its maker. */
    for (uint32_t i = 0; n->n_in > 0 && i < n->n_out; i++)
        if (n->out[i])
            forget(n->out[i]);
}

/* What to do where an infer function does not say it better: look up what fits. */
static wf_status hint(const wf_node *n, wf_status rc, wf_err *err)
{
    char text[256];

    if (rc != WF_SHAPE && rc != WF_INVALID && rc != WF_UNSUPPORTED)
        return rc;
    if (rc == WF_UNSUPPORTED && n->op->note)
        snprintf(text, sizeof text, "weft has of %s: %s", n->op->name, n->op->note);
    else if (strcmp(n->op->domain, WF_DOMAIN_ONNX) == 0)
        snprintf(text, sizeof text,
                 "https://onnx.ai/onnx/operators/onnx__%s.html says what it takes", n->op->name);
    else
        snprintf(text, sizeof text, "\"weft help operators\" says what it takes");
    return wf_err_hint(err, rc, text);
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_node_attr(n, WF_NARROW) ? wf_narrow_infer(g, n, err) : n->op->infer(g, n, err);
}

wf_status wf_infer_node(wf_graph *g, wf_node *n, wf_err *err)
{
    forget_outputs(n);
    if (n->is_tentative) {
        wf_status rc = infer(g, n, NULL);

        if (rc == WF_SHAPE || rc == WF_UNSUPPORTED) {
            forget_outputs(n);
            return WF_OK;
        }
        if (rc == WF_OK)
            return rc;
        forget_outputs(n);
    }
    return wf_err_wrap(err, hint(n, infer(g, n, err), err), "%s \"%s\"", n->op->name, n->name);
}

wf_status wf_infer(wf_graph *g, wf_err *err)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        WF_TRY(wf_infer_node(g, g->nodes[i], err));
    return WF_OK;
}

bool wf_value_dims(const wf_value *v, int64_t dims[WF_MAX_RANK])
{
    if (v->rank < 0)
        return false;
    for (int32_t i = 0; i < v->rank; i++) {
        if (v->axes[i].size < 0)
            return false;
        dims[i] = v->axes[i].size;
    }
    return true;
}

static bool may_carry(wf_dtype dtype)
{
    return dtype == WF_I64 || dtype == WF_I32 || dtype == WF_BOOL;
}

static int64_t element(const wf_tensor *t, uint32_t i)
{
    switch (t->dtype) {
    case WF_I64:
        return ((const int64_t *)t->data)[i];
    case WF_I32:
        return ((const int32_t *)t->data)[i];
    default:
        return ((const uint8_t *)t->data)[i] != 0;
    }
}

bool wf_value_elems(const wf_value *v, wf_elem elems[WF_MAX_CARRIED], uint32_t *n)
{
    if (v->carried) {
        memcpy(elems, v->carried, v->n_carried * sizeof elems[0]);
        *n = v->n_carried;
        return true;
    }
    if (!wf_value_is_constant(v) || !may_carry(v->known->dtype) || v->known->rank > 1 ||
        wf_elems(v->known) > WF_MAX_CARRIED)
        return false;
    *n = (uint32_t)wf_elems(v->known);
    for (uint32_t i = 0; i < *n; i++)
        elems[i] = wf_elem_of(element(v->known, i));
    return true;
}

void wf_out_axes(wf_node *n, uint32_t i, wf_dtype dtype, uint32_t rank, const wf_axis axes[])
{
    if (!wf_node_has_out(n, i))
        return;
    n->out[i]->dtype = dtype;
    n->out[i]->rank = (int32_t)rank;
    if (rank)
        memcpy(n->out[i]->axes, axes, rank * sizeof axes[0]);
}

void wf_out_like(wf_node *n, uint32_t i, wf_dtype dtype, const wf_value *like)
{
    if (like->rank < 0)
        wf_out_unknown(n, i, dtype);
    else
        wf_out_axes(n, i, dtype, (uint32_t)like->rank, like->axes);
}

void wf_out_unknown(wf_node *n, uint32_t i, wf_dtype dtype)
{
    if (!wf_node_has_out(n, i))
        return;
    n->out[i]->dtype = dtype;
    n->out[i]->rank = -1;
}

/* All elements are known: the constant tensor of them. */
static wf_status make_known(wf_value *v, uint32_t count, const wf_elem elems[], wf_err *err)
{
    int64_t dims[1] = {count};
    wf_tensor *t = NULL;

    WF_TRY(wf_tensor_new(v->dtype, (uint32_t)v->rank, dims, &t, err));
    for (uint32_t i = 0; i < count; i++) {
        if (v->dtype == WF_I64)
            ((int64_t *)t->data)[i] = elems[i].value;
        else if (v->dtype == WF_I32)
            ((int32_t *)t->data)[i] = (int32_t)elems[i].value;
        else
            ((uint8_t *)t->data)[i] = elems[i].value != 0;
    }
    wf_value_set_known(v, &t);
    return WF_OK;
}

wf_status wf_out_carry(wf_graph *g, wf_node *n, uint32_t i, uint32_t count, const wf_elem elems[],
                       wf_err *err)
{
    bool all = true;
    wf_value *v;

    if (!wf_node_has_out(n, i) || count > WF_MAX_CARRIED || !may_carry(n->out[i]->dtype))
        return WF_OK;
    v = n->out[i];
    if (v->rank < 0 || v->rank > 1 || (v->rank == 0 && count != 1))
        return WF_OK;
    v->carried = wf_arena_array(g->arena, count, sizeof elems[0]);
    if (!v->carried)
        return wf_fail_nomem(err, count * sizeof elems[0]);
    v->n_carried = count;
    for (uint32_t k = 0; k < count; k++) {
        v->carried[k] = elems[k];
        if (v->dtype == WF_I32 && elems[k].is_known &&
            (elems[k].value < INT32_MIN || elems[k].value > INT32_MAX))
            v->carried[k] = wf_elem_unknown(); /* it will wrap; nobody should plan with that */
        all = all && v->carried[k].is_known;
    }
    return all ? make_known(v, count, v->carried, err) : WF_OK;
}

wf_status wf_copy_symbol(wf_graph *g, const char **symbol, wf_err *err)
{
    const char *copy = *symbol ? wf_arena_strdup(g->arena, *symbol) : NULL;

    if (*symbol && !copy)
        return wf_fail_nomem(err, strlen(*symbol) + 1);
    *symbol = copy;
    return WF_OK;
}

wf_status wf_need_float(const wf_node *n, uint32_t i, const char *letter, wf_err *err)
{
    wf_dtype dtype = n->in[i]->dtype;

    if (dtype == WF_NONE || wf_dtype_is_float(dtype))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "Cast it first", "%s is %s, and must be a float", letter,
                   wf_dtype_name(dtype));
}

wf_status wf_need_int(const wf_node *n, uint32_t i, const char *letter, wf_err *err)
{
    wf_dtype dtype = n->in[i]->dtype;

    if (dtype == WF_NONE || dtype == WF_I32 || dtype == WF_I64)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "Cast it first", "%s is %s, and must be int64 or int32", letter,
                   wf_dtype_name(dtype));
}

wf_status wf_need_dtype(const wf_node *n, uint32_t i, wf_dtype dtype, const char *letter,
                        wf_err *err)
{
    if (n->in[i]->dtype == WF_NONE || dtype == WF_NONE || n->in[i]->dtype == dtype)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "Cast it first", "%s is %s, and must be %s", letter,
                   wf_dtype_name(n->in[i]->dtype), wf_dtype_name(dtype));
}

wf_status wf_need_same_dtype(const wf_node *n, uint32_t a, uint32_t b, wf_err *err)
{
    wf_dtype x = n->in[a]->dtype, y = n->in[b]->dtype;

    if (x == WF_NONE || y == WF_NONE || x == y)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "Cast one of them to the other's type",
                   "\"%s\" is %s and \"%s\" is %s, and they must be of one type", n->in[a]->name,
                   wf_dtype_name(x), n->in[b]->name, wf_dtype_name(y));
}

wf_status wf_need_choice(const wf_node *n, const char *attr, const char *const known[], wf_err *err)
{
    const char *value = wf_node_string(n, attr, known[0]);
    char list[200] = "weft has ";
    size_t used = strlen(list);

    for (uint32_t i = 0; known[i]; i++) {
        if (strcmp(value, known[i]) == 0)
            return WF_OK;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                     i == 0         ? ""
                                     : known[i + 1] ? ", "
                                                    : " and ",
                                     known[i]);
    }
    return wf_fail(err, WF_UNSUPPORTED, list, "attr %s is \"%.40s\"", attr, value);
}

wf_status wf_need_rank(int64_t rank, wf_err *err)
{
    if (rank <= WF_MAX_RANK)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "merge axes with a Reshape before it",
                   "a result of %" PRId64 " axes, and weft has %d at most", rank, WF_MAX_RANK);
}

wf_status wf_need_known_rank(const wf_node *n, uint32_t i, wf_err *err)
{
    if (n->in[i]->rank >= 0)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "export the model with the ranks of its inputs",
                   "the rank of its input \"%s\" is known at run time only", n->in[i]->name);
}

wf_status wf_shape_input(const wf_node *n, uint32_t i, bool *known, uint32_t *rank,
                         wf_axis axes[WF_MAX_RANK], wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];

    WF_TRY(wf_need_int(n, i, "the shape", err));
    *known = wf_value_elems(n->in[i], elems, rank);
    if (!*known)
        return WF_OK;
    WF_TRY(wf_need_rank(*rank, err));
    for (uint32_t k = 0; k < *rank; k++) {
        if (elems[k].is_known && elems[k].value < 0)
            return wf_fail(err, WF_SHAPE, "sizes are 0 or more",
                           "axis %u of the shape has %" PRId64, k, elems[k].value);
        axes[k] = wf_axis_of_elem(&elems[k]);
    }
    return WF_OK;
}

wf_status wf_axes_input(const wf_node *n, uint32_t i, uint32_t rank, bool *known, uint32_t *mask,
                        int64_t *n_axes, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count = 0;

    *known = true;
    *mask = 0;
    *n_axes = 0;
    if (!wf_node_has_in(n, i))
        return WF_OK;
    WF_TRY(wf_need_int(n, i, "axes", err));
    if (!wf_value_elems(n->in[i], elems, &count)) {
        *known = false;
        *n_axes = n->in[i]->rank == 1 ? n->in[i]->axes[0].size : n->in[i]->rank == 0 ? 1 : -1;
        return WF_OK;
    }
    *n_axes = count;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t axis;

        if (!elems[k].is_known) {
            *known = false;
            continue;
        }
        WF_TRY(wf_axis_number(elems[k].value, rank, &axis, err));
        if (*mask >> axis & 1u)
            return wf_fail(err, WF_SHAPE, NULL, "axis %" PRId64 " is named twice", elems[k].value);
        *mask |= 1u << axis;
    }
    return WF_OK;
}

bool wf_graph_is_open(const wf_graph *g)
{
    int64_t dims[WF_MAX_RANK];

    for (size_t i = 0; i < g->n_values; i++)
        if (!wf_value_dims(g->values[i], dims))
            return true;
    return false;
}
