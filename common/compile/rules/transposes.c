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

/* Axis i of a transpose's output is axis axis_of(n, i) of its input. */
static int64_t axis_of(const wf_node *n, int32_t i)
{
    size_t n_perm;
    const int64_t *perm = wf_node_ints(n, "perm", &n_perm);

    return perm && (size_t)i < n_perm ? perm[i] : n->out[0]->rank - 1 - i;
}

/* (A' B')^T = B'^T A'^T: the gradient of a weight that is transposed on its way. */
static wf_status of_product(wf_rewrite *r)
{
    const wf_node *gemm = wf_rewrite_made_by(r->n, 0, "Gemm");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    if (!gemm || wf_node_has_in(gemm, 2) || !wf_rewrite_sole(r, gemm->out[0]))
        return WF_OK;
    r->instead = wf_emit_gemm(&e, gemm->in[1], gemm->in[0], NULL, wf_node_float(gemm, "alpha", 1),
                              1, !wf_node_int(gemm, "transB", 0), !wf_node_int(gemm, "transA", 0));
    return wf_emit_end(&e);
}

static wf_status transpose(wf_rewrite *r)
{
    const wf_node *before = wf_rewrite_made_by(r->n, 0, "Transpose");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    int64_t perm[WF_MAX_RANK];
    bool identity = true;

    if (is_still(r->n))
        r->instead = r->n->in[0];
    if (r->instead || r->n->out[0]->rank < 0)
        return WF_OK;
    if (!before)
        return of_product(r);
    for (int32_t i = 0; i < r->n->out[0]->rank; i++) {
        perm[i] = axis_of(before, (int32_t)axis_of(r->n, i));
        identity = identity && perm[i] == i;
    }
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
