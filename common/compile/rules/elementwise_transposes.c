/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/elementwise_transposes.c - two transposes that undo each other with
 * elementwise operations between them, as exporters of channels-last models write every activation:
 *
 *     Transpose(Relu(Add(Transpose(x), row))) = Relu(Add(x, column))
 *
 * The operations move to the other side of both; what they read besides (numbers, a row along the
 * last axis, other values under the same transpose) follows them.
 */
#include "common/compile/rules/rules.h"
#include "common/graph/chain.h"

enum { MOST_MOVED = 16 };

typedef struct move {
    wf_rewrite *r;
    const wf_node *last; /* the transpose at the end */
    int32_t rank;
    int left;      /* how many nodes more may be moved */
    bool met;      /* a transpose that goes */
    wf_emit *emit; /* NULL: only looks whether all can move */
} move;

/* Axis i of the transpose's output is this axis of its input. */
static int64_t axis_of(const wf_node *n, int32_t i)
{
    size_t n_perm;
    const int64_t *perm = wf_node_ints(n, "perm", &n_perm);

    return perm && (size_t)i < n_perm ? perm[i] : n->out[0]->rank - 1 - i;
}

/* Whether `first`, and then the last transpose, leave every axis where it was. */
static bool undone(const move *m, const wf_node *first)
{
    if (first->out[0]->rank != m->rank)
        return false;
    for (int32_t i = 0; i < m->rank; i++)
        if (axis_of(first, (int32_t)axis_of(m->last, i)) != i)
            return false;
    return true;
}

static bool is_single(const wf_value *v)
{
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size != 1)
            return false;
    return v->rank >= 0;
}

/* A row along the last axis, standing along the axis that this becomes. */
static wf_value *turned_row(move *m, wf_value *row)
{
    int64_t dims[WF_MAX_RANK];

    if (!m->emit)
        return row;
    for (int32_t i = 0; i < m->rank; i++)
        dims[i] = axis_of(m->last, i) == m->rank - 1 ? row->axes[0].size : 1;
    return wf_emit_reshape(m->emit, row, (uint32_t)m->rank, dims);
}

static bool may_move(const move *m, const wf_node *n)
{
    return n && (n->op->flags & WF_OP_ELEMENTWISE) && n->n_in > 0 && n->n_out == 1 &&
           !(n->op->flags & (WF_OP_RANDOM | WF_OP_STATEFUL)) && n->out[0]->rank == m->rank &&
           wf_rewrite_sole(m->r, n->out[0]);
}

static wf_value *turned(move *m, wf_value *v);

/* The same operation on what its inputs are before the transpose. */
static wf_value *moved(move *m, const wf_node *n)
{
    wf_value *in[WF_CHAIN_INPUTS];

    if (n->n_in > WF_CHAIN_INPUTS || m->left-- <= 0)
        return NULL;
    for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = n->in[i] ? turned(m, n->in[i]) : NULL;
        if (n->in[i] && !in[i])
            return NULL;
    }
    return m->emit ? wf_emit_op(m->emit, n->op->name, n->n_in, in, n->n_attrs, n->attrs)
                   : n->out[0];
}

/* What v is before the transpose that goes; NULL when it cannot be had. */
static wf_value *turned(move *m, wf_value *v)
{
    const wf_node *first = wf_rewrite_maker(v, "Transpose");

    if (is_single(v))
        return v;
    if (first && undone(m, first)) {
        m->met = true;
        return first->in[0];
    }
    if ((!v->producer || v->producer->op->flags & WF_OP_SOURCE) && v->rank == 1 &&
        v->axes[0].size > 0)
        return turned_row(m, v);
    return may_move(m, v->producer) ? moved(m, v->producer) : NULL;
}

static wf_status transpose(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    move m = {.r = r, .last = r->n, .rank = r->n->out[0]->rank, .left = MOST_MOVED};
    wf_value *y;

    if (m.rank < 2 || !may_move(&m, r->n->in[0]->producer) || !turned(&m, r->n->in[0]) || !m.met)
        return WF_OK;
    m.emit = &e;
    m.left = MOST_MOVED;
    y = turned(&m, r->n->in[0]);
    WF_TRY(wf_emit_end(&e));
    /* Broadcasting must not have made it larger than what it stands for. */
    if (wf_same_shape(y, r->n->out[0]))
        r->instead = y;
    return WF_OK;
}

const wf_rewrite_rule wf_rules_elementwise_transposes[] = {
    {WF_DOMAIN_ONNX, "Transpose", transpose},
    {0},
};
