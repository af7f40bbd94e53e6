/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/bernoulli.c - Bernoulli: 1 with the probability that the input gives, else 0, of
 * attr dtype or the input's. attr seed goes into the key of the run, as in random.c. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <inttypes.h>

static bool is_drawn(int64_t dtype)
{
    return dtype == WF_F32 || dtype == WF_F64 || dtype == WF_I32 || dtype == WF_I64 ||
           dtype == WF_U8 || dtype == WF_BOOL;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    int64_t dtype = wf_node_int(n, "dtype", n->in[0]->dtype);

    (void)g;
    WF_TRY(wf_need_float(n, 0, "the probability", err));
    if (dtype != WF_NONE && !is_drawn(dtype))
        return wf_fail(err, WF_UNSUPPORTED, "put a Cast after it",
                       "its result has the ONNX type %" PRId64
                       ", and weft draws float32, float64, int32, int64, uint8 and bool",
                       dtype);
    wf_out_like(n, 0, (wf_dtype)dtype, n->in[0]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"dtype", WF_ATTR_INT, false}, {"seed", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_bernoulli = {
    .name = "Bernoulli",
    .domain = WF_DOMAIN_ONNX,
    .since = 15,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_RANDOM,
    .no_grad_in = 1u << 0,
    .attrs = attrs,
    .infer = infer,
};
