/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/names.c - weights under names that the exporter made up. That
 * it folded shows for some exporters that the file is one for inference. */
#include "common/compile/exporter/exporter.h"
#include "common/onnx/onnx.h"

wf_status wf_finding_names(wf_unit *u, const wf_exporter *by, wf_err *err)
{
    const wf_graph *g = u->graph;
    const wf_value *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < g->n_values; i++) {
        const wf_value *v = g->values[i];

        if (v->variable != WF_VAR_TRAINABLE || !(by->renames || wf_onnx_made_up(v->name)))
            continue;
        first = first ? first : v;
        n++;
    }
    if (!n)
        return WF_OK;
    return wf_unit_warn(u, err,
                        "%zu weight%s name%s that the exporter made up (\"%.100s\"): trained, but "
                        "not to be loaded back into the model by name%s%s",
                        n, n == 1 ? " has a" : "s have", n == 1 ? "" : "s", first->name,
                        by->infers && !wf_exporter_has_dropout(g)
                            ? "; a Dropout of the model is not in the file"
                            : "",
                        wf_exporter_advice(u, by));
}
