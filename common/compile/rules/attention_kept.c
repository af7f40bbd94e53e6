/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/attention_kept.c - the gradient of attention reads what the forward pass
 * knew: y, and a number for each row of scores. Kernels that keep no probabilities (cuDNN's) need
 * not run the forward pass again then.
 */
#include "common/compile/rules/rules.h"
#include <math.h>

static bool same_numbers(const wf_node *a, const wf_node *b)
{
    static const char *const flags[] = {"causal", "headsLast", "transK"};

    for (size_t i = 0; i < WF_COUNT(flags); i++)
        if (!wf_node_int(a, flags[i], 0) != !wf_node_int(b, flags[i], 0))
            return false;
    return !(wf_node_float(a, "scale", 1) < wf_node_float(b, "scale", 1)) &&
           !(wf_node_float(a, "scale", 1) > wf_node_float(b, "scale", 1)) &&
           !(wf_node_float(a, "fill", -INFINITY) < wf_node_float(b, "fill", -INFINITY)) &&
           !(wf_node_float(a, "fill", -INFINITY) > wf_node_float(b, "fill", -INFINITY));
}

static const wf_value *mask_of(const wf_node *n, uint32_t at)
{
    return wf_node_has_in(n, at) ? n->in[at] : NULL;
}

/* The attention whose gradient this is, of all that read q the first; or NULL. */
static wf_node *forward_of(const wf_node *grad)
{
    wf_node *found = NULL;

    for (const wf_use *u = grad->in[1]->first_use; u; u = u->next) {
        wf_node *n = u->node;

        if (wf_node_is(n, WF_DOMAIN_WEFT, "DotAttention") && n->in[0] == grad->in[1] &&
            n->in[1] == grad->in[2] && n->in[2] == grad->in[3] &&
            mask_of(n, 3) == mask_of(grad, 4) && n->device == grad->device &&
            wf_node_has_out(n, 0) && same_numbers(n, grad) && (!found || n->index < found->index))
            found = n;
    }
    return found;
}

static wf_status keep(wf_rewrite *r)
{
    wf_graph *g = r->u->graph;
    wf_node *n = wf_node_has_in(r->n, 5) ? NULL : forward_of(r->n);
    wf_value *in[7] = {NULL};

    if (!n)
        return WF_OK;
    for (uint32_t i = 0; i < r->n->n_in; i++)
        in[i] = r->n->in[i];
    in[5] = n->out[0];
    WF_TRY(wf_node_want_output(g, n, 1, &in[6], r->err));
    r->changed = true;
    return wf_node_set_ins(g, r->n, 7, in, r->err);
}

const wf_rewrite_rule wf_rules_attention_kept[] = {
    {WF_DOMAIN_WEFT, "DotAttentionGrad", keep},
    {0},
};
