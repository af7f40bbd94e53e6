/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/casts.c - casts that lose nothing, and do nothing. */
#include "common/compile/rules/rules.h"

/* Whether every value of `from` is one of `to`, so that a cast there and onwards loses nothing. */
static bool widens(wf_dtype from, wf_dtype to)
{
    if (wf_dtype_is_float(from) && wf_dtype_is_float(to))
        return from == to || to == WF_F64 || (to == WF_F32 && from != WF_F64);
    if (from == WF_BOOL)
        return true;
    return wf_dtype_is_int(from) && wf_dtype_is_int(to) && wf_dtype_size(from) <= wf_dtype_size(to);
}

static wf_status cast(wf_rewrite *r)
{
    const wf_node *before = wf_rewrite_made_by(r->n, 0, "Cast");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    if (r->n->in[0]->dtype == r->n->out[0]->dtype)
        r->instead = r->n->in[0];
    else if (before && widens(before->in[0]->dtype, before->out[0]->dtype))
        r->instead = wf_emit_cast(&e, before->in[0], r->n->out[0]->dtype);
    return wf_emit_end(&e);
}

static wf_status cast_like(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    r->instead = wf_emit_cast(&e, r->n->in[0], r->n->out[0]->dtype);
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_casts[] = {
    {WF_DOMAIN_ONNX, "Cast", cast},
    {WF_DOMAIN_ONNX, "CastLike", cast_like},
    {0},
};
