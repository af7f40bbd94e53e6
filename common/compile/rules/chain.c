/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/chain.c - elementwise operations that follow each other as one ai.weft
 * Chain, which goes over memory once. Results have the same bits.
 *
 * A chain ends in a node that no other takes in, its root; all of its steps have the root's shape,
 * and the result of each but the last is read by one step alone, or by two of which one reads the
 * other: the gradient of a square is such a sum. What a chain reads besides has that shape too, or
 * is its last axes, or one element, or is repeated along axes that lie together. An Expand that
 * does no more than that is passed over.
 */
#include "common/graph/chain.h"
#include "common/compile/rules/rules.h"
#include "common/graph/infer.h"
#include <string.h>

enum { LEAST_REPEATED = 8 };

typedef struct chain {
    const wf_rewrite *r;
    const wf_value *y; /* of the root */
    wf_value *in[WF_CHAIN_INPUTS];
    uint32_t n_in, n_steps;
    uint32_t n_taken;                     /* steps, and those that wait for their operands */
    uint32_t n_leaves;                    /* the most inputs that these want */
    const wf_node *taken[WF_CHAIN_STEPS]; /* [n_taken], and their results, 0 while they wait */
    int64_t results[WF_CHAIN_STEPS];
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

/* An axis of known size, or of any size that y has as well. */
static bool same_axis(const wf_value *v, int32_t i, const wf_value *y)
{
    return wf_axis_same(&v->axes[i], &y->axes[y->rank - v->rank + i]) && v->axes[i].size != 0;
}

/* Whether v lies under y as the kernel wants it: whole, its last axes, one element, or repeated
 * along axes that lie together. Then at least LEAST_REPEATED elements lie together: a kernel copies
 * fewer no faster than Expand. */
static bool lies_under(const wf_value *v, const wf_value *y)
{
    int64_t period = 1;
    int32_t lead = 0, i;

    if (wf_same_shape(v, y))
        return true;
    if (v->rank < 0 || v->rank > y->rank || v->dtype != y->dtype)
        return false;
    while (lead < v->rank && v->axes[lead].size == 1)
        lead++;
    for (i = v->rank - 1; i >= lead && v->axes[i].size >= 1 && same_axis(v, i, y); i--)
        period *= v->axes[i].size;
    if (i < lead)
        return true;
    while (i >= lead && v->axes[i].size == 1)
        i--;
    if (period < LEAST_REPEATED || v->rank != y->rank)
        return false;
    for (; i >= 0 && same_axis(v, i, y); i--)
        ;
    return i < 0;
}

static bool all_lie_under(const wf_node *n, const wf_value *y)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!n->in[i] || !lies_under(n->in[i], y))
            return false;
    return true;
}

/* Whether x's result is read by y alone. */
static bool feeds(const wf_rewrite *r, const wf_node *x, const wf_node *y)
{
    return is_step(x) && wf_rewrite_sole(r, x->out[0]) && x->out[0]->n_uses == 1 &&
           x->out[0]->first_use->node == y;
}

/* The step that reads v last: it alone, or after another whose result it reads alone. NULL: there
 * are more readers. */
static const wf_node *last_reader(const wf_rewrite *r, const wf_value *v)
{
    const wf_use *use = v->first_use;
    const wf_node *a, *b;

    if (wf_rewrite_sole(r, v) && v->n_uses == 1)
        return use->node;
    if (wf_is_output(r->u->graph, v) || v->n_uses != 2)
        return NULL;
    a = use->node;
    b = use->next->node;
    if (feeds(r, b, a))
        return a;
    return feeds(r, a, b) ? b : NULL;
}

/* Whether the maker of v can be a step of a chain that gives y and reads v. */
static bool may_take(const wf_value *v, const wf_value *y)
{
    return is_step(v->producer) && v->dtype == y->dtype && wf_same_shape(v, y) &&
           all_lie_under(v->producer, y);
}

static bool is_root(const wf_rewrite *r, const wf_node *n)
{
    const wf_node *reader;

    if (!is_step(n) || !all_lie_under(n, n->out[0]))
        return false;
    reader = last_reader(r, n->out[0]);
    return !reader || !is_step(reader) || !all_lie_under(reader, reader->out[0]) ||
           !may_take(n->out[0], reader->out[0]);
}

/* The number of a node in the chain; n_taken: it is not there. */
static uint32_t number_of(const chain *c, const wf_node *n)
{
    uint32_t i = 0;

    while (i < c->n_taken && c->taken[i] != n)
        i++;
    return i;
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

/* What an Expand expands no further than a chain does; NULL: v is something else. */
static wf_value *expanded(const chain *c, const wf_value *v)
{
    const wf_node *expand = wf_rewrite_maker(v, "Expand");

    return expand && lies_under(expand->in[0], c->y) ? expand->in[0] : NULL;
}

/* Reads what was expanded, where another input has the shape of the result. True: an Expand is gone
 * by that. */
static bool pass_over(chain *c)
{
    bool is_gone = false, has_whole = false;

    for (uint32_t i = 0; i < c->n_in; i++)
        has_whole |= wf_same_shape(c->in[i], c->y) && !expanded(c, c->in[i]);
    for (uint32_t i = 0; i < c->n_in && has_whole; i++) {
        wf_value *from = expanded(c, c->in[i]);

        is_gone |= from && wf_rewrite_sole(c->r, c->in[i]);
        c->in[i] = from ? from : c->in[i];
    }
    return is_gone;
}

static int64_t take(chain *c, const wf_node *n);

/* What a step of the chain has for an operand. */
static int64_t operand(chain *c, wf_value *v)
{
    const wf_node *reader = last_reader(c->r, v);
    uint32_t number = number_of(c, v->producer);

    if (v->producer && number < c->n_taken)
        return c->results[number];
    if (!reader || number_of(c, reader) == c->n_taken || !may_take(v, c->y) ||
        !has_room(c, v->producer))
        return input(c, v);
    return take(c, v->producer);
}

/* Takes n in after what it reads; gives the operand that its result is. */
static int64_t take(chain *c, const wf_node *n)
{
    int64_t args[2] = {-1, -1};
    uint32_t number = c->n_taken++;

    c->taken[number] = n;
    c->n_leaves += n->n_in - 1;
    for (uint32_t k = 0; k < n->n_in; k++)
        args[k] = operand(c, n->in[k]);
    memcpy(&c->args[2 * (size_t)c->n_steps], args, sizeof args);
    c->steps[c->n_steps] = n->op->name;
    c->results[number] = -2 - (int64_t)c->n_steps++;
    return c->results[number];
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
    if (!pass_over(&c) && c.n_steps < 2)
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
