/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/chain.c - elementwise operations that follow each other as one ai.weft
 * Chain, which goes over memory once. Results have the same bits.
 *
 * A chain ends in a node that no other takes in, its root; all of its steps have the root's shape,
 * and the result of each but the last is read by one step alone. What it reads besides has that
 * shape too, or is its last axes, or one element.
 */
#include "common/graph/chain.h"
#include "common/compile/rules/rules.h"
#include <string.h>

typedef struct chain {
    const wf_rewrite *r;
    const wf_value *y; /* of the root */
    wf_value *in[WF_CHAIN_INPUTS];
    uint32_t n_in, n_steps;
    uint32_t n_taken;  /* steps, and those that wait for their operands */
    uint32_t n_leaves; /* the most inputs that these want */
    const char *steps[WF_CHAIN_STEPS];
    int64_t args[2 * WF_CHAIN_STEPS]; /* results of steps as -2 - step: n_in is not known yet */
} chain;

static bool is_step(const wf_node *n)
{
    const wf_chain_op *op =
        n && (n->op->flags & WF_OP_ELEMENTWISE) ? wf_chain_find(n->op->name) : NULL;

    return op && n->n_in == op->n_args && n->n_attrs == 0 && wf_node_has_out(n, 0) &&
           wf_dtype_is_float(n->out[0]->dtype) && wf_dtype_size(n->out[0]->dtype) >= 4;
}

/* Whether v lies under y as the kernel wants it: whole, its last axes, or one element. */
static bool lies_under(const wf_value *v, const wf_value *y)
{
    int32_t lead = 0;

    if (wf_same_shape(v, y))
        return true;
    if (v->rank < 0 || v->rank > y->rank || v->dtype != y->dtype)
        return false;
    while (lead < v->rank && v->axes[lead].size == 1)
        lead++;
    for (int32_t i = lead; i < v->rank; i++) {
        int64_t size = v->axes[i].size;

        if (size < 1 || size != y->axes[y->rank - v->rank + i].size)
            return false;
    }
    return true;
}

static bool all_lie_under(const wf_node *n, const wf_value *y)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!n->in[i] || !lies_under(n->in[i], y))
            return false;
    return true;
}

/* Whether the maker of v can be a step of a chain that gives y and reads v. */
static bool may_take(const wf_rewrite *r, const wf_value *v, const wf_value *y)
{
    return is_step(v->producer) && v->dtype == y->dtype && wf_same_shape(v, y) &&
           wf_rewrite_sole(r, v) && all_lie_under(v->producer, y);
}

static bool is_root(const wf_rewrite *r, const wf_node *n)
{
    const wf_node *reader;

    if (!is_step(n) || !all_lie_under(n, n->out[0]))
        return false;
    reader =
        wf_rewrite_sole(r, n->out[0]) && n->out[0]->n_uses == 1 ? n->out[0]->first_use->node : NULL;
    return !reader || !is_step(reader) || !all_lie_under(reader, reader->out[0]) ||
           !may_take(r, n->out[0], reader->out[0]);
}

/* Whether there is room for one more node: its step, and an input for each operand, as if it took
 * none of them in. */
static bool has_room(const chain *c, const wf_node *n)
{
    return c->n_taken < WF_CHAIN_STEPS && c->n_leaves + n->n_in - 1 <= WF_CHAIN_INPUTS;
}

/* An input, once. */
static int64_t input(chain *c, wf_value *v)
{
    uint32_t i = 0;

    while (i < c->n_in && c->in[i] != v)
        i++;
    c->in[i] = v;
    c->n_in = i == c->n_in ? i + 1 : c->n_in;
    return i;
}

/* Takes n in after what it reads; gives the operand that its result is. */
static int64_t take(chain *c, const wf_node *n)
{
    int64_t args[2] = {-1, -1};

    c->n_taken++;
    c->n_leaves += n->n_in - 1;
    for (uint32_t k = 0; k < n->n_in; k++) {
        wf_value *v = n->in[k];

        args[k] = may_take(c->r, v, c->y) && has_room(c, v->producer) ? take(c, v->producer)
                                                                      : input(c, v);
    }
    memcpy(&c->args[2 * (size_t)c->n_steps], args, sizeof args);
    c->steps[c->n_steps] = n->op->name;
    return -2 - (int64_t)c->n_steps++;
}

static wf_status fuse(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    chain c = {.r = r, .n_leaves = 1};
    wf_attr attrs[2] = {{.name = "steps", .kind = WF_ATTR_STRINGS, .strings = c.steps}};

    if (!is_root(r, r->n))
        return WF_OK;
    c.y = r->n->out[0];
    take(&c, r->n);
    if (c.n_steps < 2)
        return WF_OK;
    for (uint32_t i = 0; i < 2 * c.n_steps; i++)
        if (c.args[i] <= -2)
            c.args[i] = (int64_t)c.n_in - 2 - c.args[i];
    attrs[0].n = c.n_steps;
    attrs[1] = wf_attr_ints("args", 2 * (size_t)c.n_steps, c.args);
    r->instead = wf_emit_op(&e, "Chain", c.n_in, c.in, 2, attrs);
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_chain[] = {
    {.run = fuse},
    {0},
};
