/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/eye_like.c - EyeLike: ones on diagonal attr k, zeros elsewhere, in the
 * shape of input 0; of attr dtype, or of the input's. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    int64_t dtype = wf_node_int(n, "dtype", n->in[0]->dtype);

    (void)g;
    if (dtype < 0 || dtype > 64 || (dtype && !wf_dtype_computes((wf_dtype)dtype)))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "weft has no element type of ONNX's number %lld",
                       (long long)dtype);
    if (n->in[0]->rank >= 0 && n->in[0]->rank != 2)
        return wf_fail(err, WF_SHAPE, NULL, "the input has %d axes, and must have two",
                       n->in[0]->rank);
    wf_out_like(n, 0, (wf_dtype)dtype, n->in[0]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"dtype", WF_ATTR_INT, false}, {"k", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_eye_like =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "EyeLike", 9, 1, 1, infer, .no_grad_in = 1u << 0, .attrs = attrs);
