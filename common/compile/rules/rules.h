/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/rules.h - rewriting by rules: what a rule is, and the driver that applies
 * them. For this folder and the passes that are made of rules.
 *
 * A rule looks at one node of its operation and either says which value everyone may read instead
 * of its first output, or rewrites the node in place, or does nothing. Each file of this folder
 * holds the rules of one idea, as a list; a pass names lists. Rules meet graphs of every stage:
 * before a rewrite drops an inner value it asks whether it is read by this node alone
 * (wf_rewrite_sole).
 *
 * Rules run until none finds anything. Each makes the graph smaller or a node simpler, so that this
 * ends; a bound on the sweeps turns a pair of rules that undo each other into an unfinished pass,
 * never into a compiler that hangs.
 */
#ifndef WF_COMPILE_RULES_RULES_H
#define WF_COMPILE_RULES_RULES_H

#include "common/compile/pass.h"
#include "common/graph/emit.h"

typedef struct wf_rewrite {
    wf_unit *u;
    wf_node *n;
    wf_value *instead; /* set: read this instead of the node's first output */
    bool changed;      /* set: the node was rewritten in place */
    wf_err *err;
} wf_rewrite;

typedef struct wf_rewrite_rule {
    const char *domain, *op; /* of the nodes that it looks at; op NULL: all */
    wf_status (*run)(wf_rewrite *r);
} wf_rewrite_rule;

/* Lists of rules; each ends with a row whose `run` is NULL. */
extern const wf_rewrite_rule wf_rules_attention[];
extern const wf_rewrite_rule wf_rules_attention_forms[];
extern const wf_rewrite_rule wf_rules_attention_kept[];
extern const wf_rewrite_rule wf_rules_bags[];
extern const wf_rewrite_rule wf_rules_casts[];
extern const wf_rewrite_rule wf_rules_chain[];
extern const wf_rewrite_rule wf_rules_cross_entropy[];
extern const wf_rewrite_rule wf_rules_elementwise_transposes[];
extern const wf_rewrite_rule wf_rules_gelu[];
extern const wf_rewrite_rule wf_rules_identities[];
extern const wf_rewrite_rule wf_rules_layer_norm[];
extern const wf_rewrite_rule wf_rules_linear[];
extern const wf_rewrite_rule wf_rules_log_sigmoid[];
extern const wf_rewrite_rule wf_rules_norm_fold[];
extern const wf_rewrite_rule wf_rules_powers[];
extern const wf_rewrite_rule wf_rules_product[];
extern const wf_rewrite_rule wf_rules_recurrent[];
extern const wf_rewrite_rule wf_rules_shapes[];
extern const wf_rewrite_rule wf_rules_slices[];
extern const wf_rewrite_rule wf_rules_squares[];
extern const wf_rewrite_rule wf_rules_sums[];
extern const wf_rewrite_rule wf_rules_transposes[];

/* Applies the lists in order, sweep after sweep; the graph is sorted and inferred then. `lists`
 * ends with NULL. `prunes`: what was bypassed is dropped; not to be asked for before differentiate,
 * which has a word to say about variables that the loss does not reach. */
WF_MUST_USE wf_status wf_rules_apply(wf_unit *u, const wf_rewrite_rule *const lists[], bool prunes,
                                     wf_err *err);

/* The node that makes input i, if it is that operation of ONNX. */
wf_node *wf_rewrite_made_by(const wf_node *n, uint32_t i, const char *op);
/* The same for a value. */
wf_node *wf_rewrite_maker(const wf_value *v, const char *op);
/* Whether v is read once, and that not as an output of the graph: who reads it may make it. A
 * CastLike that asks for v's dtype alone does not count. */
bool wf_rewrite_sole(const wf_rewrite *r, const wf_value *v);
/* The number that all elements of v are, if that is known: a constant, or one filled at run time,
 * also through casts. */
bool wf_rewrite_uniform(const wf_value *v, double *out);
/* Whether v is that number everywhere, but for what f32 rounds off. */
bool wf_rewrite_is(const wf_value *v, double number);

#endif
