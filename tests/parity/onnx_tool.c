/* SPDX-License-Identifier: Apache-2.0 */
/* tests/parity/onnx_tool.c - what the parity tests drive: reads a model, and writes it back as weft
 * holds it, or with the gradients of a loss as further outputs.
 *
 *   onnx_tool copy MODEL.onnx OUT.onnx
 *   onnx_tool grad MODEL.onnx OUT.onnx LOSS      outputs "grad/<name>" for each trainable variable
 */
#include "common/graph/emit.h"
#include "common/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status add_gradients(wf_graph *g, const char *loss_name, wf_err *err)
{
    wf_value *loss = wf_graph_value(g, loss_name);
    wf_value **wrt = calloc(g->n_values, sizeof wrt[0]);
    wf_value **grads = calloc(g->n_values, sizeof grads[0]);
    wf_status rc;
    size_t n = 0;

    if (!loss || !wrt || !grads) {
        rc = wf_fail(err, WF_NOTFOUND, NULL, "there is no value \"%s\"", loss_name);
        goto out;
    }
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i]->variable == WF_VAR_TRAINABLE)
            wrt[n++] = g->values[i];
    rc = wf_graph_differentiate(g, loss, wrt, n, grads, err);
    for (size_t i = 0; i < n && rc == WF_OK; i++)
        if (grads[i])
            rc = wf_graph_add_output(g, grads[i], err);
    if (rc == WF_OK)
        rc = wf_graph_check(g, err);
out:
    free(wrt);
    free(grads);
    return rc;
}

int main(int argc, char **argv)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc;

    if (argc < 4)
        return wf_exit_code(WF_USAGE);
    rc = wf_onnx_read(argv[2], &g, &err);
    if (rc == WF_OK && strcmp(argv[1], "grad") == 0)
        rc = add_gradients(g, argc > 4 ? argv[4] : "loss", &err);
    if (rc == WF_OK)
        rc = wf_infer(g, &err);
    if (rc == WF_OK)
        rc = wf_onnx_write(g, argv[3], &err);
    wf_graph_free(&g);
    if (rc != WF_OK)
        fprintf(stderr, "%s%s%s\n", err.what, err.hint[0] ? "; " : "", err.hint);
    return wf_exit_code(rc);
}
