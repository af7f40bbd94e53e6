/* SPDX-License-Identifier: Apache-2.0 */
/* bench/mlp_graph.c */
#include "mlp_graph.h"
#include "common/graph/emit.h"

static const char *const names[MLP_VARIABLES] = {"w1", "b1", "w2", "b2"};
static const int64_t dims[MLP_VARIABLES][2] = {
    {MLP_IN, MLP_HIDDEN}, {MLP_HIDDEN, 0}, {MLP_HIDDEN, MLP_OUT}, {MLP_OUT, 0}};

static wf_status add_input(wf_graph *g, const char *name, wf_dtype dtype, uint32_t rank,
                           const int64_t d[], wf_value **out, wf_err *err)
{
    WF_TRY(wf_graph_add_value(g, name, out, err));
    wf_value_set_type(*out, dtype, rank, d);
    return wf_graph_add_input(g, *out, err);
}

wf_status mlp_graph_make(int64_t batch, wf_graph **out, wf_err *err)
{
    wf_graph *g;
    wf_value *x, *y, *v[MLP_VARIABLES], *grads[MLP_VARIABLES], *loss;
    wf_emit e;

    WF_TRY(wf_graph_new("mlp", &g, err));
    *out = g;
    WF_TRY(add_input(g, "x", WF_F32, 2, (int64_t[]){batch, MLP_IN}, &x, err));
    WF_TRY(add_input(g, "y", WF_I64, 1, &batch, &y, err));
    for (int i = 0; i < MLP_VARIABLES; i++)
        WF_TRY(add_input(g, names[i], WF_F32, dims[i][1] ? 2 : 1, dims[i], &v[i], err));
    e = wf_emit_begin(g, "mlp", err);
    x = wf_emit_unary(&e, "Relu", wf_emit_gemm(&e, x, v[0], v[1], 1, 1, false, false));
    x = wf_emit_gemm(&e, x, v[2], v[3], 1, 1, false, false);
    loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2, (wf_value *[]){x, y}, 0, NULL);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_graph_add_output(g, loss, err));
    WF_TRY(wf_graph_differentiate(g, loss, v, MLP_VARIABLES, grads, err));
    for (int i = 0; i < MLP_VARIABLES; i++)
        WF_TRY(wf_graph_add_output(g, grads[i], err));
    return wf_graph_sort(g, err);
}
