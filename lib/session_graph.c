/* SPDX-License-Identifier: Apache-2.0 */
/* lib/session_graph.c - the graph of a session grows by ONNX models. */
#include "common/onnx/onnx.h"
#include "common/session/extend.h"
#include "lib/session.h"

/* In the cluster; those that are there keep their values. */
static wf_status create_variables(weft_session *s, const wf_graph *model, wf_err *err)
{
    for (size_t i = 0; i < model->n_values; i++) {
        const wf_value *v = model->values[i];

        if (v->variable != WF_VAR_NOT && v->known)
            WF_TRY(wf_lib_variable(s, WF_VARIABLE_CREATE, v->name, v->known, NULL, err));
    }
    return WF_OK;
}

static wf_status extend(weft_session *s, wf_graph *model, wf_err *err)
{
    wf_graph *longer = NULL;
    wf_status rc = WF_OK;

    if (!s->graph)
        rc = wf_extend_begin(&s->graph, err);
    if (rc == WF_OK)
        rc = wf_extend(s->graph, model, &longer, err);
    if (rc == WF_OK)
        rc = create_variables(s, model, err);
    if (rc == WF_OK) {
        wf_graph_free(&s->graph);
        s->graph = longer;
        longer = NULL;
    }
    wf_graph_free(&longer);
    return rc;
}

/* Takes *model. */
static weft_code extend_by(weft_session *s, wf_graph **model, wf_status rc, wf_err *err,
                           weft_error *error)
{
    if (rc == WF_OK)
        rc = wf_lib_session_enter(s, err);
    if (rc == WF_OK) {
        rc = extend(s, *model, err);
        wf_lib_session_leave(s);
    }
    wf_graph_free(model);
    return wf_lib_end(rc, err, error);
}

weft_code weft_session_extend(weft_session *s, const void *model, size_t size, weft_error *error)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(s);
    WF_LIB_NEED(model);
    rc = wf_onnx_decode(model, size, NULL, &g, &err);
    return extend_by(s, &g, rc, &err, error);
}

weft_code weft_session_extend_file(weft_session *s, const char *path, weft_error *error)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(s);
    WF_LIB_NEED(path);
    rc = wf_onnx_read(path, &g, &err);
    return extend_by(s, &g, rc, &err, error);
}
