/* SPDX-License-Identifier: Apache-2.0 */
/* lib/model.c - models: from files and jobs, described, with their weights, and written. */
#include "common/session/model.h"
#include "common/onnx/onnx.h"
#include "common/session/front.h"
#include "common/session/portable.h"
#include "lib/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes *g. */
static wf_status make(const char *name, wf_graph **g, weft_model **out, wf_err *err)
{
    weft_model *m = calloc(1, sizeof *m);
    char *copy = strdup(name);

    if (!m || !copy) {
        free(m);
        free(copy);
        wf_graph_free(g);
        return wf_fail_nomem(err, sizeof *m);
    }
    m->name = copy;
    m->graph = *g;
    *g = NULL;
    *out = m;
    return WF_OK;
}

weft_code weft_model_open(const char *path, weft_model **out, weft_error *error)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(path);
    rc = wf_onnx_read(path, &g, &err);
    if (rc == WF_OK)
        rc = make(path, &g, out, &err);
    return wf_lib_end(rc, &err, error);
}

weft_code weft_model_decode(const void *data, size_t size, weft_model **out, weft_error *error)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(data);
    rc = wf_onnx_decode(data, size, NULL, &g, &err);
    if (rc == WF_OK)
        rc = make("the model", &g, out, &err);
    return wf_lib_end(rc, &err, error);
}

weft_code weft_model_of_job(const weft_job *job, const weft_list *weights, weft_model **out,
                            weft_error *error)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(job);
    rc = wf_model_of_job(job->conf, weights ? &weights->named : NULL, &g, &err);
    if (rc == WF_OK)
        rc = make(job->conf->name, &g, out, &err);
    return wf_lib_end(rc, &err, error);
}

/* Its plans use the pool. */
static void forget_plans(weft_model *m)
{
    wf_predictor_free(&m->predictor);
}

weft_code weft_model_take_map(weft_model *m, const weft_job *job, const weft_list *weights,
                              char *inputs, size_t size, weft_error *error)
{
    const wf_learnt_list nothing = {0};
    char names[WF_FRONT_NAMES] = "";
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(m);
    WF_LIB_NEED(job);
    WF_LIB_NEED(inputs);
    wf_predictor_free(&m->predictor);
    rc = wf_front_add(m->graph, job->conf, weights ? &weights->learnt : &nothing, names, &err);
    snprintf(inputs, size, "%s", names);
    return wf_lib_end(rc, &err, error);
}

void weft_model_free(weft_model **m)
{
    if (!m || !*m)
        return;
    forget_plans(*m);
    wf_pool_free(&(*m)->pool);
    wf_graph_free(&(*m)->graph);
    free((*m)->name);
    free(*m);
    *m = NULL;
}

/* ---- what it has ---- */

static const wf_value *port_at(const weft_model *m, weft_kind kind, size_t i)
{
    const wf_graph *g = m->graph;

    if (kind == WEFT_INPUT)
        return i < g->n_inputs ? g->inputs[i] : NULL;
    if (kind == WEFT_OUTPUT)
        return i < g->n_outputs ? g->outputs[i] : NULL;
    for (size_t k = 0; kind == WEFT_VARIABLE && k < g->n_values; k++)
        if (g->values[k]->variable != WF_VAR_NOT && g->values[k]->known && i-- == 0)
            return g->values[k];
    return NULL;
}

size_t weft_model_count(const weft_model *m, weft_kind kind)
{
    size_t n = 0;

    if (!m)
        return 0;
    if (kind == WEFT_INPUT)
        return m->graph->n_inputs;
    if (kind == WEFT_OUTPUT)
        return m->graph->n_outputs;
    for (size_t k = 0; kind == WEFT_VARIABLE && k < m->graph->n_values; k++)
        n += m->graph->values[k]->variable != WF_VAR_NOT && m->graph->values[k]->known;
    return n;
}

weft_code weft_model_port(const weft_model *m, weft_kind kind, size_t i, weft_port *out,
                          weft_error *error)
{
    const wf_value *v;
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = (weft_port){0};
    WF_LIB_NEED(m);
    v = port_at(m, kind, i);
    if (!v)
        return wf_lib_end(wf_fail(&err, WF_INVALID, "ask weft_model_count",
                                  "%s has %zu of kind %d, and number %zu is asked for", m->name,
                                  weft_model_count(m, kind), (int)kind, i),
                          &err, error);
    *out = (weft_port){.name = v->name,
                       .dtype = (weft_dtype)v->dtype,
                       .rank = v->rank,
                       .trainable = v->variable == WF_VAR_TRAINABLE};
    for (int32_t k = 0; k < v->rank; k++)
        out->shape[k] = v->axes[k].size < 0 ? -1 : v->axes[k].size;
    return wf_lib_end(WF_OK, &err, error);
}

/* ---- weights ---- */

static wf_status weight(const weft_model *m, const char *name, weft_tensor **out, wf_err *err)
{
    const wf_value *v = NULL;
    wf_tensor *copy = NULL;

    WF_TRY(wf_model_weight(m->graph, m->name, name, &v, err));
    WF_TRY(wf_tensor_copy(v->known, &copy, err));
    return wf_lib_give(&copy, out, err);
}

weft_code weft_model_weight(const weft_model *m, const char *name, weft_tensor **out,
                            weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(m);
    WF_LIB_NEED(name);
    return wf_lib_end(weight(m, name, out, &err), &err, error);
}

weft_code weft_model_set_weight(weft_model *m, const char *name, const weft_tensor *t,
                                weft_error *error)
{
    wf_tensor *over = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(m);
    WF_LIB_NEED(name);
    WF_LIB_NEED(t);
    rc = wf_lib_take(t, name, &over, &err);
    if (rc == WF_OK)
        rc =
            wf_model_set_weights(m->graph, m->name, 1, &(wf_named){(char *)name, over, true}, &err);
    if (rc == WF_OK)
        forget_plans(m);
    wf_tensor_free(&over);
    return wf_lib_end(rc, &err, error);
}

weft_code weft_model_set_weights(weft_model *m, const weft_list *weights, weft_error *error)
{
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(m);
    WF_LIB_NEED(weights);
    rc = wf_model_set_weights(m->graph, m->name, weights->named.n, weights->named.rows, &err);
    if (rc == WF_OK)
        forget_plans(m);
    return wf_lib_end(rc, &err, error);
}

/* ---- files ---- */

weft_code weft_model_write(const weft_model *m, const char *path, weft_error *error)
{
    wf_graph *portable = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(m);
    WF_LIB_NEED(path);
    rc = wf_portable(m->graph, &portable, &err);
    if (rc == WF_OK)
        rc = wf_onnx_write(portable ? portable : m->graph, path, &err);
    wf_graph_free(&portable);
    return wf_lib_end(rc, &err, error);
}

weft_code weft_model_note(const weft_model *m, char *note, size_t size, weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(m);
    WF_LIB_NEED(note);
    wf_portable_note(m->graph, note, size);
    return wf_lib_end(WF_OK, &err, error);
}

weft_code weft_model_encode(const weft_model *m, void **data, size_t *size, weft_error *error)
{
    wf_graph *portable = NULL;
    wf_bytes bytes = {0};
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(data);
    *data = NULL;
    WF_LIB_NEED(size);
    *size = 0;
    WF_LIB_NEED(m);
    rc = wf_portable(m->graph, &portable, &err);
    if (rc == WF_OK)
        rc = wf_onnx_encode(portable ? portable : m->graph, &bytes, &err);
    wf_graph_free(&portable);
    if (rc == WF_OK) {
        *data = bytes.data;
        *size = bytes.size;
        bytes = (wf_bytes){0};
    }
    wf_bytes_close(&bytes);
    return wf_lib_end(rc, &err, error);
}

void weft_bytes_free(void **data)
{
    if (data) {
        free(*data);
        *data = NULL;
    }
}

weft_code weft_model_save(const weft_model *m, const char *path, weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(m);
    WF_LIB_NEED(path);
    return wf_lib_end(wf_model_save(m->graph, path, &err), &err, error);
}
