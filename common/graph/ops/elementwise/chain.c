/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/chain.c - ai.weft Chain: elementwise operations one after the other,
 * tile by tile.
 *
 * attr steps names them, attr args has two operands for each: below n_in an input of the node, else
 * n_in + i the result of step i, which comes earlier; -1 for the second of an operation of one.
 * The last step gives the output, which has the shape of the largest input; the others are as large
 * or broadcast to it.
 */
#include "common/graph/chain.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <inttypes.h>
#include <string.h>

static const wf_chain_op chain_ops[] = {
    {"Abs", WF_CHAIN_ABS, 1},
    {"Add", WF_CHAIN_ADD, 2},
    {"Div", WF_CHAIN_DIV, 2},
    {"Exp", WF_CHAIN_EXP, 1},
    {"Mul", WF_CHAIN_MUL, 2},
    {"Neg", WF_CHAIN_NEG, 1},
    {"Reciprocal", WF_CHAIN_RECIPROCAL, 1},
    {"Relu", WF_CHAIN_RELU, 1},
    {"ReluGrad", WF_CHAIN_RELU_GRAD, 2},
    {"Sigmoid", WF_CHAIN_SIGMOID, 1},
    {"SigmoidGrad", WF_CHAIN_SIGMOID_GRAD, 2},
    {"Sqrt", WF_CHAIN_SQRT, 1},
    {"Sub", WF_CHAIN_SUB, 2},
    {"Tanh", WF_CHAIN_TANH, 1},
    {"TanhGrad", WF_CHAIN_TANH_GRAD, 2},
};

const wf_chain_op *wf_chain_find(const char *name)
{
    for (size_t i = 0; i < sizeof chain_ops / sizeof chain_ops[0]; i++)
        if (strcmp(chain_ops[i].name, name) == 0)
            return &chain_ops[i];
    return NULL;
}

static wf_status read_step(const wf_node *n, const wf_attr *steps, const wf_attr *args, size_t i,
                           wf_chain_step *out, wf_err *err)
{
    const wf_chain_op *op = wf_chain_find(steps->strings[i]);
    int64_t earlier = (int64_t)(n->n_in + i);

    if (!op)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its step %zu is \"%.40s\", which weft has not",
                       i, steps->strings[i]);
    out->op = op;
    for (uint32_t k = 0; k < 2; k++) {
        int64_t arg = args->ints[2 * i + k];

        if (k < op->n_args ? arg < 0 || arg >= earlier : arg != -1)
            return wf_fail(err, WF_INVALID, NULL,
                           "operand %u of its step %zu (%s) is number %" PRId64 ", of %" PRId64
                           " that there are",
                           k, i, op->name, arg, earlier);
        if (arg >= 0 && arg < n->n_in && !n->in[arg])
            return wf_fail(err, WF_INVALID, NULL,
                           "its step %zu reads input %" PRId64 ", which is absent", i, arg);
        out->args[k] = (int32_t)arg;
    }
    return WF_OK;
}

wf_status wf_chain_read(const wf_node *n, wf_chain *out, wf_err *err)
{
    const wf_attr *steps = wf_node_attr(n, "steps"), *args = wf_node_attr(n, "args");

    if (!steps || !args || steps->n < 1 || steps->n > WF_CHAIN_STEPS || args->n != 2 * steps->n ||
        n->n_in > WF_CHAIN_INPUTS)
        return wf_fail(err, WF_INVALID, NULL,
                       "it must have 1 to %d steps, twice as many args and at most %d inputs",
                       (int)WF_CHAIN_STEPS, (int)WF_CHAIN_INPUTS);
    out->n_steps = (uint32_t)steps->n;
    for (size_t i = 0; i < steps->n; i++)
        WF_TRY(read_step(n, steps, args, i, &out->steps[i], err));
    return WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_axis axes[WF_MAX_RANK];
    uint32_t rank = 0;
    wf_chain chain;

    (void)g;
    WF_TRY(wf_chain_read(n, &chain, err));
    WF_TRY(wf_need_float(n, 0, "A", err));
    wf_out_unknown(n, 0, n->in[0]->dtype);
    for (uint32_t i = 0; i < n->n_in; i++) {
        WF_TRY(wf_need_same_dtype(n, 0, i, err));
        if (n->in[i]->rank < 0)
            return WF_OK;
    }
    for (uint32_t i = 0; i < n->n_in; i++)
        WF_TRY(wf_axes_broadcast(axes, &rank, n->in[i], err));
    wf_out_axes(n, 0, n->in[0]->dtype, rank, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"args", WF_ATTR_INTS, true}, {"steps", WF_ATTR_STRINGS, true}, {0}};

const wf_op wf_op_chain = WF_OPERATION(
    WF_DOMAIN_WEFT, "Chain", 1, 1, WF_CHAIN_INPUTS, 1, 1, WF_OP_ELEMENTWISE | WF_OP_FOLDABLE, infer,
    .means = "(x1, ... xn) -> y; attrs steps: names of elementwise operations, args: "
             "two operands for each, an input, or n + i for the result of step i, or "
             "-1 for none (common/graph/chain.h)",
    .attrs = attrs);
