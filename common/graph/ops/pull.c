/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/pull.c - ai.weft Pull: the current value of a variable, from its parameter
 * servers. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* The type comes from attrs dtype and shape, else from the variable if it is in this graph; without
 * either the output keeps what was set. */
static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const char *name = wf_node_string(n, "variable", "");
    const wf_value *variable = wf_graph_value(g, name);
    int64_t dtype = wf_node_int(n, "dtype", 0);
    size_t rank;
    const int64_t *dims = wf_node_ints(n, "shape", &rank);

    if (!wf_node_has_out(n, 0))
        return WF_OK;
    if (dtype) {
        if (dtype < 0 || dtype > 64 || !wf_dtype_size((wf_dtype)dtype) || rank > WF_MAX_RANK)
            return wf_fail(err, WF_INVALID, NULL, "it pulls \"%s\" in a type that there is not",
                           name);
        wf_value_set_type(n->out[0], (wf_dtype)dtype, (uint32_t)rank, dims);
    } else if (variable && variable->variable != WF_VAR_NOT) {
        wf_out_like(n, 0, variable->dtype, variable);
    }
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"variable", WF_ATTR_STRING, true},
                                    {"dtype", WF_ATTR_INT, false},
                                    {"shape", WF_ATTR_INTS, false},
                                    {0}};

const wf_op wf_op_pull = {
    .name = "Pull",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 0,
    .n_in_max = 0,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_STATEFUL,
    .attrs = attrs,
    .infer = infer,
};
