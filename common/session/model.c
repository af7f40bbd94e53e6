/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/model.c */
#include "common/session/model.h"
#include "common/ckpt/ckpt.h"
#include "common/ckpt/pretrained.h"
#include "common/graph/table_rows.h"
#include "common/session/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wf_status wf_model_refuse_weights(const wf_named_list *w, wf_err *err)
{
    return wf_fail(err, WF_NOTFOUND, "give weights of this job",
                   "the model has none of these weights: the first of %zu is \"%.200s\"", w->n,
                   w->rows[0].name);
}

/* Weights of another model would leave this one as it began. */
static wf_status check_any(const wf_graph *g, const wf_named_list *w, wf_err *err)
{
    bool has_own = false;

    for (size_t i = 0; w && i < w->n; i++)
        if (wf_graph_value(g, w->rows[i].name))
            return WF_OK;
    for (size_t i = 0; i < g->n_values; i++)
        has_own |= wf_is_weight(g->values[i]);
    return w && w->n && has_own ? wf_model_refuse_weights(w, err) : WF_OK;
}

wf_status wf_model_of_job(const wf_job_conf *job, const wf_named_list *weights, wf_graph **out,
                          wf_err *err)
{
    size_t n = weights ? weights->n : 0;
    wf_named_tensor *named = calloc(n + 1, sizeof *named);
    wf_compile_spec spec;
    wf_model model;
    wf_status rc;

    if (!named)
        return wf_fail_nomem(err, n * sizeof *named);
    for (size_t i = 0; i < n; i++)
        named[i] = (wf_named_tensor){weights->rows[i].name, weights->rows[i].tensor};
    wf_compile_spec_of_job(job, WF_COMPILE_INFER, NULL, 0, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    spec.rows = weights;
    rc = wf_compile_export(&spec, n, named, out, err);
    free(named);
    if (rc == WF_OK)
        rc = check_any(*out, weights, err);
    if (rc != WF_OK)
        wf_graph_free(out);
    return rc;
}

void wf_model_spec_blank(const wf_job_conf *job, wf_model *model, wf_compile_spec *spec)
{
    wf_compile_spec_of_job(job, WF_COMPILE_INFER, NULL, 0, model, spec);
    spec->is_portable = true;
    spec->n_stages = 1;
    spec->is_blank = job->n_freeze == 0;
    if (spec->is_blank)
        spec->weights = NULL;
    else
        spec->read_weights = wf_pretrained_read;
}

wf_status wf_model_weight(const wf_graph *g, const char *model, const char *name,
                          const wf_value **out, wf_err *err)
{
    char hint[WF_NEAR_TEXT];

    *out = wf_graph_value(g, name);
    if (*out && wf_is_weight(*out))
        return WF_OK;
    return wf_fail(err, WF_NOTFOUND, wf_near_text(g, false, true, name, hint),
                   "%s has no weight \"%.200s\"", model, name);
}

static wf_status check_fits(const wf_graph *g, const char *model, const wf_named *w, wf_err *err)
{
    const wf_tensor *t = w->tensor;
    char ours[96], theirs[96];
    const wf_value *v = NULL;

    WF_TRY(wf_model_weight(g, model, w->name, &v, err));
    if (v->known->dtype == t->dtype && v->known->rank == t->rank &&
        memcmp(v->known->dims, t->dims, t->rank * sizeof t->dims[0]) == 0)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "give the weights of this model",
                   "weight \"%.200s\" of %s is %s%s, the content for it %s%s", w->name, model,
                   wf_dtype_name(v->known->dtype),
                   wf_dims_str(v->known->rank, v->known->dims, ours, sizeof ours),
                   wf_dtype_name(t->dtype), wf_dims_str(t->rank, t->dims, theirs, sizeof theirs));
}

wf_status wf_model_set_weights(wf_graph *g, const char *model, size_t n, const wf_named weights[],
                               wf_err *err)
{
    wf_tensor **copies = calloc(n + 1, sizeof *copies);
    wf_status rc = copies ? WF_OK : wf_fail_nomem(err, n * sizeof *copies);

    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        rc = check_fits(g, model, &weights[i], err);
        if (rc == WF_OK)
            rc = wf_tensor_copy(weights[i].tensor, &copies[i], err);
    }
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        wf_value_set_known(wf_graph_value(g, weights[i].name), &copies[i]);
    for (size_t i = 0; copies && i < n; i++)
        wf_tensor_free(&copies[i]);
    free(copies);
    return rc;
}

/* ---- safetensors ---- */

/* Variables, and the ids of the rows of unbounded tables. */
static bool is_saved(const wf_value *v)
{
    if (!wf_is_weight(v))
        return false;
    for (const wf_use *u = v->first_use; u && v->variable == WF_VAR_NOT; u = u->next)
        if (wf_is_table_rows(u->node) && u->node->in[WF_TABLE_ROWS_ROW_IDS] == v)
            return true;
    return v->variable != WF_VAR_NOT;
}

static wf_status write_all(const char *path, const wf_graph *g, wf_shard_tensor rows[], wf_err *err)
{
    wf_shard_writer *w = NULL;
    char sum[WF_SUM_TEXT];
    uint64_t bytes;
    size_t n = 0;
    wf_status rc;

    for (size_t i = 0; i < g->n_values; i++) {
        const wf_value *v = g->values[i];

        if (!is_saved(v))
            continue;
        rows[n] =
            (wf_shard_tensor){.name = v->name, .dtype = v->known->dtype, .rank = v->known->rank};
        memcpy(rows[n++].dims, v->known->dims, v->known->rank * sizeof(int64_t));
    }
    WF_TRY(wf_shard_create(wf_disk_posix(), path, rows, n, NULL, 0, &w, err));
    rc = WF_OK;
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        const wf_tensor *t = wf_graph_value(g, rows[i].name)->known;

        rc = wf_shard_write(w, t->data, wf_tensor_bytes(t), err);
    }
    if (rc == WF_OK)
        return wf_shard_finish(&w, &bytes, sum, err);
    wf_shard_abort(&w);
    return rc;
}

/* The file takes its name when it is whole: one that is there stays until then. */
wf_status wf_model_save(const wf_graph *g, const char *path, wf_err *err)
{
    wf_shard_tensor *rows = calloc(g->n_values + 1, sizeof *rows);
    char part[WF_CKPT_PATH];
    wf_status rc;

    if (!rows)
        return wf_fail_nomem(err, g->n_values * sizeof *rows);
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part) {
        free(rows);
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", path);
    }
    rc = write_all(part, g, rows, err);
    free(rows);
    if (rc == WF_OK)
        rc = wf_disk_rename(wf_disk_posix(), part, path, err);
    return rc;
}
