/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/steps_first.c */
#include "common/session/steps_first.h"
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/op.h"

#include <string.h>

enum { X = 0, INITIAL_H = 5, INITIAL_C = 6, INPUTS = 8, OUTPUTS = 3, ATTRS = 16 };

bool wf_is_batch_first(const wf_node *n)
{
    static const char *const recurrent[] = {"RNN", "GRU", "LSTM"};

    for (size_t i = 0; i < WF_COUNT(recurrent); i++)
        if (n->op == wf_op_find(WF_DOMAIN_ONNX, recurrent[i]))
            return wf_node_int(n, "layout", 0) == 1;
    return false;
}

/* [a, b, c] as [b, a, c]: x, and the states before and after all steps. */
static wf_value *swap(wf_emit *e, wf_value *v)
{
    return wf_emit_transpose(e, v, (const int64_t[]){1, 0, 2});
}

static bool is_output(const wf_graph *g, const wf_value *v)
{
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == v)
            return true;
    return false;
}

static wf_status hand_over(wf_graph *g, wf_value *from, wf_value *to, wf_err *err)
{
    char *name = wf_arena_strdup(g->arena, from->name);
    char *aside = wf_arena_printf(g->arena, "%s/batch_first", from->name);

    if (!name || !aside)
        return wf_fail_nomem(err, strlen(from->name));
    if (is_output(g, from)) {
        WF_TRY(wf_graph_rename_value(g, from, aside, err));
        WF_TRY(wf_graph_rename_value(g, to, name, err));
    }
    wf_graph_replace_uses(g, from, to);
    return WF_OK;
}

wf_status wf_steps_first(wf_graph *g, const wf_node *n, wf_err *err)
{
    wf_emit e = wf_emit_begin(g, n->name, err);
    wf_value *in[INPUTS], *out[OUTPUTS], *made[OUTPUTS] = {0};
    wf_attr attrs[ATTRS];
    uint32_t n_attrs = 0;

    wf_assert(n->n_in <= INPUTS && n->n_out <= OUTPUTS && n->n_attrs <= ATTRS);
    for (uint32_t i = 0; i < n->n_in; i++) {
        bool swapped = i == X || i == INITIAL_H || i == INITIAL_C;

        in[i] = swapped && n->in[i] ? swap(&e, n->in[i]) : n->in[i];
    }
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, "layout") != 0)
            attrs[n_attrs++] = n->attrs[i];
    wf_emit_node(&e, n->op->name, n->n_in, in, n_attrs, attrs, n->n_out, out);
    WF_TRY(wf_emit_end(&e));
    /* Output 0, the states of all steps, is [steps, 1 or 2, batch, units]. */
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            made[i] = i == 0 ? wf_emit_transpose(&e, out[i], (const int64_t[]){2, 0, 1, 3})
                             : swap(&e, out[i]);
    WF_TRY(wf_emit_end(&e));
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            WF_TRY(hand_over(g, n->out[i], made[i], err));
    return WF_OK;
}
