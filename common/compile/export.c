/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/export.c - the inference form of a model with trained weights in it. */
#include "common/compile/compile.h"
#include "common/compile/pass.h"

static wf_status put(wf_compiled *c, const wf_named_tensor *w, wf_err *err)
{
    const wf_value *v = wf_graph_value(c->graph, w->name);
    int64_t at = wf_compiled_find(c, w->name);
    wf_tensor *copy = NULL;
    wf_status rc;

    /* Weights that only the loss used (class weights) are gone from this form; rows of unbounded
     * tables are in it (wf_compile_spec.rows). */
    if (at < 0 || c->variables[at].is_unbounded)
        return WF_OK;
    /* What was trained in float32 goes back to what the file has. */
    if (v && w->tensor->dtype == WF_F32 && (v->dtype == WF_F16 || v->dtype == WF_BF16))
        WF_TRY(wf_narrowed(w->tensor, v->dtype, &copy, err));
    else
        WF_TRY(wf_tensor_copy(w->tensor, &copy, err));
    rc = wf_compiled_set_variable(c, w->name, &copy, err);
    wf_tensor_free(&copy);
    return rc;
}

wf_status wf_compile_export(const wf_compile_spec *spec, size_t n, const wf_named_tensor weights[],
                            wf_graph **out, wf_err *err)
{
    wf_status rc;
    wf_compiled *c = NULL;
    wf_compile_spec infer = *spec;

    infer.mode = WF_COMPILE_INFER;
    infer.strategy = NULL;
    infer.is_portable = true;
    infer.stop_after = NULL;
    rc = wf_compile(&infer, &c, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        rc = put(c, &weights[i], err);
    *out = rc == WF_OK ? wf_compiled_take_graph(c) : NULL;
    wf_compiled_free(&c);
    return rc;
}
