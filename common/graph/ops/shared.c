/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shared.c - what several operations share. */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

wf_status wf_infer_like_number(wf_graph *g, wf_node *n, wf_err *err)
{
    if (n->in[0]->dtype == WF_BOOL)
        return wf_fail(err, WF_SHAPE, "Cast it first", "X is bool, and must be a number");
    return wf_infer_like_input(g, n, err);
}

wf_status wf_carry_cast(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count;

    if (!wf_value_elems(n->in[0], elems, &count))
        return WF_OK;
    for (uint32_t i = 0; n->out[0]->dtype == WF_BOOL && i < count; i++)
        elems[i] = elems[i].is_known ? wf_elem_of(elems[i].value != 0) : wf_elem_unknown();
    return wf_out_carry(g, n, 0, count, elems, err);
}

wf_status wf_grad_by_node(wf_grads *g, const wf_node *n, wf_err *err)
{
    return wf_grad_node(g, n, n->op->grad_op, n->op->grad_takes, NULL, err);
}

/* What the place "d0", "x1" or "y0" of a gradient node is. */
static wf_value *taken(wf_grads *g, const wf_node *n, const char *place)
{
    uint32_t i = (uint32_t)(place[1] - '0');

    if (place[0] == 'd')
        return wf_grads_upstream(g, n, i);
    if (place[0] == 'y')
        return wf_grads_output(g, n, i);
    return wf_node_has_in(n, i) ? n->in[i] : NULL;
}

static bool knows_attr(const wf_op *op, const char *name)
{
    for (const wf_attr_row *row = op->attrs; row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return true;
    return false;
}

wf_status wf_grad_node(wf_grads *g, const wf_node *n, const char *op, const char *takes,
                       const wf_attr *more, wf_err *err)
{
    enum { MOST_IN = 8, MOST_ATTRS = 16 };
    const wf_op *row = wf_op_find(WF_DOMAIN_WEFT, op);
    wf_value *in[MOST_IN], *out[MOST_IN];
    uint32_t n_in = 0, n_out, last = 0, n_attrs = 0;
    wf_attr attrs[MOST_ATTRS + 1];

    row = row ? row : wf_op_find(WF_DOMAIN_ONNX, op);
    wf_assert(row && strlen(takes) < 3 * MOST_IN && n->n_attrs <= MOST_ATTRS);
    for (uint32_t i = 1; i < n->n_out; i++)
        if (wf_grads_upstream(g, n, i))
            return wf_fail(err, WF_UNSUPPORTED, "let the loss depend on its first output alone",
                           "the loss depends on its output %u, for which weft has no gradient", i);
    for (const char *place = takes; *place; place += place[2] ? 3 : 2) {
        in[n_in++] = taken(g, n, place);
        last = in[n_in - 1] ? n_in : last;
    }
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (knows_attr(row, n->attrs[i].name))
            attrs[n_attrs++] = n->attrs[i];
    if (more)
        attrs[n_attrs++] = *more;
    for (n_out = WF_MIN(n->n_in, row->n_out_max); n_out > row->n_out_min; n_out--)
        if (wf_grads_wanted(g, n, n_out - 1))
            break;
    if (!wf_emit_node(wf_grads_emit(g), op, last, in, n_attrs, attrs, n_out, out))
        return wf_emit_end(wf_grads_emit(g));
    for (uint32_t i = 0; i < n_out; i++)
        WF_TRY(wf_grads_add(g, n, i, out[i]));
    return WF_OK;
}

wf_status wf_upgrade_axes(wf_graph *g, wf_node *n, int64_t from, wf_err *err)
{
    return from < 13 ? wf_upgrade_list(g, n, "axes", err) : WF_OK;
}

wf_status wf_upgrade_list(wf_graph *g, wf_node *n, const char *name, wf_err *err)
{
    size_t count;
    const int64_t *list = wf_node_ints(n, name, &count);
    wf_emit e = wf_emit_begin(g, n->name, err);
    wf_value *in[2];

    if (!list)
        return WF_OK;
    if (n->n_in != 1 || count > WF_MAX_CARRIED)
        return wf_fail(err, WF_INVALID, NULL, "%s \"%s\" has its %s twice, or too many of them",
                       n->op->name, n->name, name);
    in[0] = n->in[0];
    in[1] = wf_emit_ints(&e, (uint32_t)count, list);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_node_set_ins(g, n, 2, in, err));
    wf_node_drop_attr(n, name);
    return WF_OK;
}
