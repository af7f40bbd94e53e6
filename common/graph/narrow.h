/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/narrow.h - nodes between whose values bfloat16 or float16 is kept.
 *
 * A node with attr `narrow`, "bfloat16" or "float16", computes what it computes without it, in
 * float32: it may round the factors of its products to that type, and sums stay float32. Its float
 * inputs may each be of that type or of float32, and the outputs whose bits are set in attr
 * `narrow_out` are of that type. Any operation may have these attributes, which the pass
 * `precision` writes (common/compile/precision.c); so operations know nothing of them, and kernels
 * of float32 compute what has none of its own (common/kernels/widened.h).
 *
 * GPUs keep more values narrow than processors do, and none fewer. A graph has the types of
 * processors; where a node differs on GPUs, attr `narrow_out_gpu` has its bits there (0: it only
 * reads what is narrow there), and wf_narrow_for_gpus puts them in place.
 */
#ifndef WF_GRAPH_NARROW_H
#define WF_GRAPH_NARROW_H

#include "common/graph/graph.h"

#define WF_NARROW "narrow"
#define WF_NARROW_OUT "narrow_out"
#define WF_NARROW_OUT_GPU "narrow_out_gpu"

/* Inputs that such a node may have. */
enum { WF_NARROW_INPUTS = 16 };

static inline bool wf_dtype_is_narrow(wf_dtype dtype)
{
    return dtype == WF_BF16 || dtype == WF_F16;
}

/* The narrow type of a node; WF_NONE when it has none. */
wf_dtype wf_node_narrow(const wf_node *n);
/* Bit i: output i is of that type. 0 of a node that has none. */
uint32_t wf_node_narrow_out(const wf_node *n);
/* Whether the file's attribute is one of the two, and of its kind. */
bool wf_narrow_attr(const wf_attr *attr);
/* Infers the outputs of a node with the attribute. For infer.c. Errors: WF_INVALID for another type
 * and for more than WF_NARROW_INPUTS inputs; those of the operation's own. */
WF_MUST_USE wf_status wf_narrow_infer(wf_graph *g, wf_node *n, wf_err *err);

/* Gives nodes the attributes that they have on GPUs, whose narrow type is `to`; inference has to
 * follow. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_narrow_for_gpus(wf_graph *g, wf_dtype to, wf_err *err);
/* Makes all of a graph float32, for devices and runs that keep nothing narrow: its nodes lose the
 * attributes, and inference has to follow. */
void wf_narrow_drop(wf_graph *g);

#endif
