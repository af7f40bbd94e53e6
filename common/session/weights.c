/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/weights.c */
#include "common/session/weights.h"
#include "common/base/file.h"
#include "common/ckpt/initial.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/session/model.h"
#include "common/tensor/first_row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void wf_weights_close(wf_weights *w)
{
    wf_named_close(&w->list);
    wf_named_close(&w->optimizer);
    wf_learnt_close(&w->learnt);
    *w = (wf_weights){0};
}

static wf_status compile(const wf_job_conf *job, bool is_blank, wf_compiled **out, wf_err *err)
{
    wf_compile_spec spec;
    wf_model model;

    if (is_blank) {
        wf_model_spec_blank(job, &model, &spec);
    } else {
        wf_compile_spec_of_job(job, WF_COMPILE_INFER, NULL, 0, &model, &spec);
        spec.read_weights = wf_pretrained_read;
    }
    return wf_compile(&spec, out, err);
}

/* The step that the file `best` names. */
static wf_status best_step(const char *dir, const char *job, uint64_t *step, wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_bytes text = {0};
    wf_status rc;

    snprintf(path, sizeof path, "%s/%s/best", dir, job);
    rc = wf_file_read(path, 64, &text, err);
    if (rc == WF_NOTFOUND)
        return wf_fail(err, rc, "give the job the callback model_checkpoint",
                       "no checkpoint of job \"%s\" is marked as the best", job);
    if (rc == WF_OK && sscanf(wf_bytes_str(&text), "step-%" SCNu64, step) != 1)
        rc = wf_fail(err, WF_CORRUPT, NULL, "%s names no checkpoint", path);
    wf_bytes_close(&text);
    return rc;
}

static wf_status open_ckpt(const char *dir, const char *job, const char *digest, int64_t step,
                           wf_ckpt_passed_over *told, void *arg, wf_ckpt **out, wf_err *err)
{
    uint64_t at = (uint64_t)step;

    if (step == WF_STEP_NEWEST)
        return wf_ckpt_newest(wf_disk_posix(), dir, job, digest, UINT64_MAX, told, arg, out, err);
    if (step == WF_STEP_BEST)
        WF_TRY(best_step(dir, job, &at, err));
    WF_TRY(wf_ckpt_open(wf_disk_posix(), dir, job, at, true, out, err));
    if (strcmp(wf_ckpt_manifest(*out)->digest, digest) == 0)
        return WF_OK;
    return wf_fail(err, WF_MISMATCH, "give the job file that it was trained with",
                   "%s of job \"%s\" was saved by graph %s, the job has %s", wf_ckpt_name(*out),
                   job, wf_ckpt_manifest(*out)->digest, digest);
}

/* The row behind those of a table: the mean of first values, as rows hold it. It is where rows of
 * other ids cannot be computed; a table that inference does not use has zeros there. */
static void put_mean(const wf_compiled *of, const char *table, int64_t width, float row[])
{
    int64_t at = wf_compiled_find(of, table);

    if (at >= 0)
        wf_mean_row(&(wf_first_rows){.numbers = of->variables[at].rows.first,
                                     .dtype = of->variables[at].row_dtype},
                    (uint64_t)width, row);
}

/* As wf_compile_spec.rows has them. */
static wf_status read_rows(wf_ckpt *c, const wf_compiled *of, const wf_ckpt_variable *v,
                           wf_named_list *out, wf_err *err)
{
    int64_t dims[2] = {0, v->dims[1]}, n_ids[1];
    wf_tensor *values = NULL, *ids = NULL;
    char name[WF_SHARD_MAX_NAME + sizeof WF_ROW_IDS];
    uint64_t n = 0;
    wf_status rc;

    if (v->rank != 2)
        return wf_fail(err, WF_CORRUPT, NULL, "rows of \"%.200s\" have %u axes, not one", v->name,
                       v->rank - 1);
    WF_TRY(wf_ckpt_count_rows(c, v, &n, err));
    snprintf(name, sizeof name, "%s%s", v->name, WF_ROW_IDS);
    n_ids[0] = (int64_t)n;
    dims[0] = (int64_t)n + 1;
    rc = wf_tensor_new(WF_F32, 2, dims, &values, err);
    if (rc == WF_OK)
        rc = wf_tensor_new(WF_I64, 1, n_ids, &ids, err);
    if (rc == WF_OK)
        rc = wf_ckpt_read_rows(c, v, n, ids->data, wf_f32_mut(values), err);
    if (rc == WF_OK)
        put_mean(of, v->name, dims[1], wf_f32_mut(values) + (int64_t)n * dims[1]);
    if (rc == WF_OK)
        rc = wf_named_add(out, v->name, &values, true, err);
    if (rc == WF_OK)
        rc = wf_named_add(out, name, &ids, true, err);
    wf_tensor_free(&values);
    wf_tensor_free(&ids);
    return rc;
}

static wf_status read_variable(wf_ckpt *c, const wf_compiled *of, const wf_ckpt_variable *v,
                               wf_named_list *out, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    if (v->dtype != WF_F32 && v->dtype != WF_BF16 && v->dtype != WF_F16 && v->dtype != WF_I8)
        return wf_fail(err, WF_UNSUPPORTED, "train it in float32",
                       "exporting \"%.200s\", which is %s, is not built yet", v->name,
                       wf_dtype_name(v->dtype));
    if (v->unbounded)
        return read_rows(c, of, v, out, err);
    WF_TRY(wf_tensor_new(WF_F32, v->rank, v->dims, &t, err));
    rc = wf_ckpt_read_range(c, v->name, NULL, 0, (uint64_t)wf_elems(t), wf_f32_mut(t), err);
    if (rc == WF_OK)
        rc = wf_named_add(out, v->name, &t, true, err);
    wf_tensor_free(&t);
    return rc;
}

static wf_status add_beside(const wf_ckpt_variable *v, const char *slot, wf_tensor **t,
                            wf_named_list *out, wf_err *err)
{
    char name[WF_SHARD_MAX_NAME];

    return wf_named_add(out, wf_ckpt_tensor_name(v->name, slot, 0, true, name, sizeof name), t,
                        true, err);
}

static wf_status read_slot(wf_ckpt *c, const wf_ckpt_variable *v, const char *slot,
                           wf_named_list *out, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    WF_TRY(wf_tensor_new(WF_F32, v->rank, v->dims, &t, err));
    rc = wf_ckpt_read_range(c, v->name, slot, 0, (uint64_t)wf_elems(t), wf_f32_mut(t), err);
    if (rc == WF_OK)
        rc = add_beside(v, slot, &t, out, err);
    wf_tensor_free(&t);
    return rc;
}

/* Slices of one variable may have had different numbers of updates where several ps had them; the
 * first one's counts. */
static wf_status read_optimizer(wf_ckpt *c, const wf_ckpt_variable *v, wf_named_list *out,
                                wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    if (v->unbounded)
        return WF_OK;
    for (uint32_t i = 0; i < v->n_slots; i++)
        WF_TRY(read_slot(c, v, v->slots[i], out, err));
    WF_TRY(wf_tensor_new(WF_I64, 1, (const int64_t[]){1}, &t, err));
    *(int64_t *)t->data = (int64_t)wf_ckpt_updates_at(v, 0);
    rc = add_beside(v, WF_INITIAL_UPDATES, &t, out, err);
    wf_tensor_free(&t);
    return rc;
}

wf_status wf_weights_read(const char *dir, const char *run, const wf_job_conf *job, int64_t step,
                          wf_ckpt_passed_over *told, void *arg, wf_weights *w, wf_err *err)
{
    char digest[WF_DIGEST_TEXT];
    const wf_manifest *m;
    wf_compiled *of = NULL;
    wf_ckpt *c = NULL;
    wf_status rc;

    WF_TRY(compile(job, w->skips_values, &of, err));
    snprintf(digest, sizeof digest, "%016" PRIx64, of->digest);
    rc = open_ckpt(dir, run, digest, step, told, arg, &c, err);
    m = rc == WF_OK ? wf_ckpt_manifest(c) : NULL;
    for (size_t i = 0; rc == WF_OK && !w->skips_values && i < m->n_variables; i++)
        rc = read_variable(c, of, &m->variables[i], &w->list, err);
    for (size_t i = 0; rc == WF_OK && w->wants_optimizer && i < m->n_variables; i++)
        rc = read_optimizer(c, &m->variables[i], &w->optimizer, err);
    if (rc == WF_OK)
        rc = wf_learnt_keep(m->learnt, m->n_learnt, &w->learnt, err);
    if (rc == WF_OK)
        snprintf(w->from, sizeof w->from, "%s", wf_ckpt_name(c));
    wf_ckpt_close(&c);
    wf_compiled_free(&of);
    return rc;
}

wf_status wf_weights_read_learnt(const char *dir, const char *run, uint64_t step, wf_weights *w,
                                 wf_err *err)
{
    const wf_manifest *m;
    wf_ckpt *c = NULL;
    wf_status rc = wf_ckpt_open(wf_disk_posix(), dir, run, step, false, &c, err);

    if (rc != WF_OK)
        return rc;
    m = wf_ckpt_manifest(c);
    rc = wf_learnt_keep(m->learnt, m->n_learnt, &w->learnt, err);
    snprintf(w->from, sizeof w->from, "%s", wf_ckpt_name(c));
    wf_ckpt_close(&c);
    return rc;
}
