/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/train/send.c - Send and Recv: the two ends of a way between tasks. Neither
 * computes anything: whoever runs the graph has the value leave with the one, and come in with the
 * other.
 *
 * Of an edge between stages Recv takes what Send gives (common/compile/stage_cut.c). In graphs of
 * sessions the two meet by their key alone, in one run or in two (common/session/remote.h); a Recv
 * then says what comes. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <inttypes.h>

static wf_status infer_send(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return wf_carry_input(g, n, err);
}

/* What comes from afar is what the attributes say. */
static wf_status infer_far(wf_node *n, wf_err *err)
{
    int64_t dtype = wf_node_int(n, "dtype", 0);
    wf_axis axes[WF_MAX_RANK];
    size_t rank;
    const int64_t *shape = wf_node_ints(n, "shape", &rank);

    if (dtype < 0 || dtype > WF_BF16 || !wf_dtype_computes((wf_dtype)dtype))
        return wf_fail(err, WF_INVALID, "give attribute dtype, as Cast has it",
                       "dtype %" PRId64 " is no type of ONNX that weft has", dtype);
    WF_TRY(wf_need_rank((int64_t)rank, err));
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return wf_fail(err, WF_SHAPE, "sizes are 0 or more", "the shape has a negative size");
        axes[i] = wf_axis_of(shape[i]);
    }
    wf_out_axes(n, 0, (wf_dtype)dtype, (uint32_t)rank, axes);
    return WF_OK;
}

static wf_status infer_recv(wf_graph *g, wf_node *n, wf_err *err)
{
    if (n->n_in == 0 || !n->in[0])
        return infer_far(n, err);
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return wf_carry_input(g, n, err);
}

static const wf_attr_row of_send[] = {
    {"key", WF_ATTR_STRING, true}, {"to", WF_ATTR_STRING, false}, {0}};
static const wf_attr_row of_recv[] = {{"key", WF_ATTR_STRING, true},
                                      {"from", WF_ATTR_STRING, false},
                                      {"dtype", WF_ATTR_INT, false},
                                      {"shape", WF_ATTR_INTS, false},
                                      {0}};

const wf_op wf_op_recv =
    WF_OPERATION(WF_DOMAIN_WEFT, "Recv", 1, 0, 1, 1, 1, WF_OP_STATEFUL | WF_OP_EFFECT, infer_recv,
                 .means = "([what Send gives]) -> value; attr key, as Send has it. In sessions "
                          "without an input: attrs from, the task that sends, "
                          "\"/job:worker/task:0\"; dtype, as Cast has it, and shape (none: a "
                          "scalar) of the value",
                 .attrs = of_recv);

const wf_op wf_op_send =
    WF_OPERATION(WF_DOMAIN_WEFT, "Send", 1, 1, 1, 1, 1, WF_OP_STATEFUL | WF_OP_EFFECT, infer_send,
                 .means = "(value) -> the value on its way to the Recv of the same key; attr key: "
                          "of stages those that it goes from and to, and its name. In sessions "
                          "any text, and attr to, the task that may receive it, "
                          "\"/job:worker/task:1\"",
                 .attrs = of_send);
