/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/transposes.c - transposes that meet, or that a product does on its way. */
#include "common/compile/rules/rules.h"

/* Whether a transpose leaves every axis where it is. */
static bool is_still(const wf_node *n)
{
    size_t n_perm;
    const int64_t *perm = wf_node_ints(n, "perm", &n_perm);

    for (size_t i = 0; i < n_perm; i++)
        if (perm[i] != (int64_t)i)
            return false;
    return perm && n_perm > 0;
}

static wf_status transpose(wf_rewrite *r)
{
    const wf_node *before = wf_rewrite_made_by(r->n, 0, "Transpose");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    int64_t perm[WF_MAX_RANK];
    size_t n_outer, n_inner;
    const int64_t *outer = wf_node_ints(r->n, "perm", &n_outer), *inner;
    bool identity = true;

    if (is_still(r->n))
        r->instead = r->n->in[0];
    if (r->instead || !before)
        return WF_OK;
    inner = wf_node_ints(before, "perm", &n_inner);
    for (int32_t i = 0, rank = r->n->out[0]->rank; i < rank; i++) {
        int64_t mid = outer && (size_t)i < n_outer ? outer[i] : rank - 1 - i;

        perm[i] = inner && (size_t)mid < n_inner ? inner[mid] : rank - 1 - mid;
        identity = identity && perm[i] == i;
    }
    if (r->n->out[0]->rank < 0)
        return WF_OK;
    r->instead = identity ? before->in[0] : wf_emit_transpose(&e, before->in[0], perm);
    return wf_emit_end(&e);
}

/* Gemm reads a transposed matrix as it is: a transpose of a matrix is one of its attributes. */
static wf_status gemm(wf_rewrite *r)
{
    static const char *const flags[] = {"transA", "transB"};

    for (uint32_t i = 0; i < 2; i++) {
        const wf_node *t = wf_rewrite_made_by(r->n, i, "Transpose");
        size_t n = 0;
        const int64_t *perm = t ? wf_node_ints(t, "perm", &n) : NULL;

        if (!t || t->out[0]->rank != 2 || (n == 2 && perm[0] == 0))
            continue;
        wf_node_set_in(r->n, i, t->in[0]);
        r->changed = true;
        WF_TRY(
            wf_node_set_int(r->u->graph, r->n, flags[i], !wf_node_int(r->n, flags[i], 0), r->err));
    }
    return WF_OK;
}

const wf_rewrite_rule wf_rules_transposes[] = {
    {WF_DOMAIN_ONNX, "Transpose", transpose},
    {WF_DOMAIN_ONNX, "Gemm", gemm},
    {0},
};
