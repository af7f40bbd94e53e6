/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand.c - the table of expansions, and how a formula is put in a node's place. */
#include "common/onnx/expand.h"
#include "common/base/cc.h"
#include "common/onnx/proto.h"
#include "common/onnx/sequence.h"

#include <string.h>

#define WF_EXPANSION(name) extern const wf_expansion wf_expansion_##name;
#include "common/onnx/expand/rows.def"
#undef WF_EXPANSION

#define WF_EXPANSION(name) &wf_expansion_##name,
static const wf_expansion *const table[] = {
#include "common/onnx/expand/rows.def"
};
#undef WF_EXPANSION

const wf_expansion *wf_expansion_at(size_t i)
{
    return i < WF_COUNT(table) ? table[i] : NULL;
}

static bool is_of(const wf_expansion *x, int64_t opset)
{
    return opset >= x->from && (x->until == 0 || opset < x->until);
}

const wf_expansion *wf_expansion_find(const char *domain, const char *name, int64_t opset)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = WF_DOMAIN_ONNX;
    for (size_t i = 0; i < WF_COUNT(table); i++)
        if (strcmp(name, table[i]->op.name) == 0 && strcmp(domain, table[i]->op.domain) == 0 &&
            is_of(table[i], opset))
            return table[i];
    return NULL;
}

static wf_status find_inputs(wf_call *c, const wf_op *op, const wf_graph *g,
                             const wf_onnx_file *file, const wf_onnx_scope *scope, wf_err *err)
{
    const Weft__Onnx__Node *p = c->p;

    if (p->n_input < op->n_in_min || p->n_input > op->n_in_max || p->n_output < 1 ||
        p->n_output > op->n_out_max)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu inputs and %zu outputs", p->n_input,
                       p->n_output);
    for (uint32_t i = 0; i < p->n_input; i++) {
        WF_TRY(wf_onnx_input(g, p, scope, i, &c->in[i], err));
        if ((!c->in[i] && i < op->n_in_min) || (c->in[i] && wf_onnx_sequence_of(file, c->in[i])))
            return wf_fail(err, WF_INVALID, NULL, "its input %u is %s", i,
                           c->in[i] ? "a sequence, not a tensor" : "missing");
    }
    return WF_OK;
}

static wf_status call(const wf_expansion *x, wf_graph *g, const Weft__Onnx__Node *p,
                      wf_onnx_file *file, const wf_onnx_scope *scope, wf_err *err)
{
    wf_emit e;
    wf_call c = {.p = p, .e = &e};

    WF_TRY(find_inputs(&c, &x->op, g, file, scope, err));
    for (uint32_t i = 0; i < p->n_output; i++)
        c.wants[i] = p->output[i][0] != 0;
    WF_TRY(wf_onnx_catch_up(g, file, err));
    e = wf_emit_begin(g, p->name && p->name[0] ? p->name : p->output[0], err);
    WF_TRY(x->call(&c, err));
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

wf_status wf_onnx_expand(const wf_expansion *x, wf_graph *g, const Weft__Onnx__Node *p,
                         wf_onnx_file *file, const wf_onnx_scope *scope, wf_err *err)
{
    WF_TRY(wf_onnx_check_attributes(p, &x->op, err));
    return x->add ? x->add(g, p, file, scope, err) : call(x, g, p, file, scope, err);
}
