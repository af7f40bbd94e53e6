/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/local_file.c - values from files, and the file of a checkpoint: values, then
 * slots, of each variable. What lies on a device passes through the stage, piece by piece. */
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/ckpt/values.h"
#include "common/wire/control.h"
#include "worker/exchange/local_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that are copied at a time: all of them, where they lie in memory of the host. */
static uint64_t piece_of(const wf_local_variable *v)
{
    return v->device->is_host ? v->count : WF_LOCAL_STAGE;
}

/* ---- reading ---- */

/* Reads elements of the weights, or of a slot: those that no file has are as they are first. */
static wf_status read_piece(const wf_local *l, wf_values *from, const wf_local_variable *v,
                            int32_t slot, uint64_t at, uint64_t n, float *to, wf_err *err)
{
    const char *name = v->row->name;
    float first;

    if (slot < 0)
        return wf_values_read(from, name, wf_local_is_frozen(v), at, n, to, err);
    first = wf_opt_slot_initial(&l->opt, (uint32_t)slot);
    for (uint64_t i = 0; i < n; i++)
        to[i] = first;
    return wf_values_read_slot(from, name, wf_opt_slot_name(&l->opt, (uint32_t)slot), at, n, to,
                               err);
}

static wf_status load_array(const wf_local *l, wf_values *from, const wf_local_variable *v,
                            int32_t slot, wf_buf *array, wf_err *err)
{
    uint64_t at = 0, n;

    do { /* once at least: a variable without elements is looked for too */
        n = WF_MIN(v->count - at, piece_of(v));
        WF_TRY(read_piece(l, from, v, slot, at, n, v->device->is_host ? array->data : l->on.stage,
                          err));
        if (!v->device->is_host)
            WF_TRY(wf_local_put(l, array, at, n, err));
        at += n;
    } while (at < v->count);
    return WF_OK;
}

static wf_status load_slots(const wf_local *l, wf_values *from, const wf_local_variable *v,
                            wf_err *err)
{
    for (uint32_t i = 0; i < wf_local_n_slots(l, v); i++)
        WF_TRY(load_array(l, from, v, (int32_t)i, v->slots[i], err));
    return WF_OK;
}

static wf_status load_variable(const wf_local *l, wf_values *from, wf_local_variable *v,
                               wf_err *err)
{
    WF_TRY(load_array(l, from, v, -1, v->weights, err));
    WF_TRY(load_slots(l, from, v, err));
    v->updates = wf_local_is_frozen(v) ? 0 : wf_values_updates(from, v->row->name, 0);
    return WF_OK;
}

/* Another worker gives the others. */
static bool is_read(const wf_local *l, const wf_local_variable *v)
{
    return !v->elsewhere && (!l->conf.start->joins || wf_local_is_frozen(v));
}

wf_status wf_local_load(wf_local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;
    wf_values *from = NULL;
    bool any = false;
    wf_status rc;

    for (uint32_t i = 0; i < l->n_variables; i++)
        any |= is_read(l, &l->variables[i]);
    if (!any)
        return WF_OK;
    WF_TRY(wf_values_open(l->conf.disk, s->checkpoint_dir, s->job, s->initial, s->restore_step,
                          &from, err));
    rc = WF_OK;
    for (uint32_t i = 0; rc == WF_OK && i < l->n_variables; i++)
        if (is_read(l, &l->variables[i]))
            rc = load_variable(l, from, &l->variables[i], err);
    wf_values_close(&from);
    return rc;
}

wf_status wf_local_load_slots(const wf_local *l, wf_err *err)
{
    const Weft__Start *s = l->conf.start;
    wf_values *from = NULL;
    wf_status rc = WF_OK;

    WF_TRY(wf_values_open(l->conf.disk, s->checkpoint_dir, s->job, s->initial, s->restore_step,
                          &from, err));
    for (uint32_t i = 0; rc == WF_OK && i < l->n_variables; i++)
        rc = load_slots(l, from, &l->variables[i], err);
    wf_values_close(&from);
    return rc;
}

/* ---- writing ---- */

static wf_status declare(wf_arena *a, const wf_local_variable *v, const char *slot,
                         wf_shard_tensor *t, wf_err *err)
{
    char name[WF_SHARD_MAX_NAME];

    t->dtype = WF_F32;
    t->rank = (uint32_t)v->row->n_dims;
    memcpy(t->dims, v->row->dims, v->row->n_dims * sizeof *v->row->dims);
    t->name =
        wf_arena_strdup(a, wf_ckpt_tensor_name(v->row->name, slot, 0, true, name, sizeof name));
    return t->name ? WF_OK : wf_fail_nomem(err, sizeof name);
}

static bool is_of(const wf_local_variable *v, uint32_t share)
{
    return !wf_local_is_frozen(v) && v->share == share;
}

static wf_status declare_all(const wf_local *l, uint32_t share, wf_arena *a, wf_shard_tensor **out,
                             size_t *n, wf_err *err)
{
    size_t most = (size_t)l->n_variables * (1 + WF_MAX_SLOTS);
    wf_shard_tensor *t = wf_arena_array(a, most, sizeof *t);

    if (!t)
        return wf_fail_nomem(err, most * sizeof *t);
    *out = t;
    *n = 0;
    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (!is_of(v, share))
            continue;
        WF_TRY(declare(a, v, NULL, &t[(*n)++], err));
        for (uint32_t k = 0; k < wf_local_n_slots(l, v); k++)
            WF_TRY(declare(a, v, wf_opt_slot_name(&l->opt, k), &t[(*n)++], err));
    }
    return WF_OK;
}

static wf_status write_array(const wf_local *l, const wf_local_variable *v, const wf_buf *array,
                             wf_shard_writer *w, wf_err *err)
{
    for (uint64_t at = 0, n; at < v->count; at += n) {
        n = WF_MIN(v->count - at, piece_of(v));
        if (!v->device->is_host)
            WF_TRY(wf_local_get(l, array, at, n, err));
        WF_TRY(wf_shard_write(w, v->device->is_host ? array->data : l->on.stage, n * sizeof(float),
                              err));
    }
    return WF_OK;
}

static wf_status write_all(const wf_local *l, uint32_t share, wf_shard_writer *w, wf_err *err)
{
    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (!is_of(v, share))
            continue;
        WF_TRY(write_array(l, v, v->weights, w, err));
        for (uint32_t k = 0; k < wf_local_n_slots(l, v); k++)
            WF_TRY(write_array(l, v, v->slots[k], w, err));
    }
    return WF_OK;
}

static wf_status write_file(const wf_local *l, wf_cut_id id, uint32_t share, const char *folder,
                            const char *path, uint64_t *bytes, char sum[WF_SUM_TEXT], wf_err *err)
{
    wf_shard_meta meta[WF_CKPT_N_META + 1];
    wf_arena *a = wf_arena_new(0);
    wf_shard_tensor *tensors = NULL;
    wf_shard_writer *w = NULL;
    char cut[WF_CUT_TEXT];
    size_t n = 0;
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, 4096);
    wf_ckpt_meta(l->conf.start->job, id, cut, meta);
    meta[WF_CKPT_N_META] = (wf_shard_meta){"format", "weft"};
    rc = declare_all(l, share, a, &tensors, &n, err);
    if (rc == WF_OK)
        rc = wf_shard_create(l->conf.disk, path, tensors, n, meta, WF_COUNT(meta), &w, err);
    if (rc == WF_OK)
        rc = write_all(l, share, w, err);
    if (rc == WF_OK)
        rc = wf_shard_finish(&w, bytes, sum, err);
    if (rc != WF_OK)
        rc = wf_ckpt_say_free(l->conf.disk, folder, rc, err);
    wf_shard_abort(&w);
    wf_arena_free(&a);
    return rc;
}

/* Lists what each slice has had of updates, in *body. */
static wf_status list_slices(const wf_local *l, uint32_t share, wf_arena *a, Weft__Saved *body,
                             wf_err *err)
{
    const Weft__Start *s = l->conf.start;

    body->slices = wf_arena_array(a, s->n_slices, sizeof(*body->slices));
    if (!body->slices)
        return wf_fail_nomem(err, s->n_slices * sizeof(*body->slices));
    for (uint32_t i = 0; i < s->n_slices; i++) {
        const wf_local_variable *v = &l->variables[s->slices[i]->variable];
        Weft__SliceSaved *row;

        if (v->elsewhere || v->share != share)
            continue;
        row = wf_arena_alloc(a, sizeof *row);
        if (!row)
            return wf_fail_nomem(err, sizeof *row);
        weft__slice_saved__init(row);
        row->slice = i;
        row->updates = v->updates;
        body->slices[body->n_slices++] = row;
    }
    return WF_OK;
}

wf_status wf_local_write_share(const wf_local *l, wf_cut_id cut, const char *folder,
                               const char *file, uint32_t share, Weft__Saved **result, wf_err *err)
{
    Weft__Saved body = WEFT__SAVED__INIT;
    char path[WF_CKPT_PATH], sum[WF_SUM_TEXT] = "";
    wf_arena *a = wf_arena_new(0);
    wf_err why = {0};
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, 4096);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    body.folder = (char *)folder;
    body.file = (char *)file;
    rc = list_slices(l, share, a, &body, err);
    if (rc == WF_OK && write_file(l, cut, share, folder, path, &body.bytes, sum, &why) != WF_OK) {
        body.what = why.what;
        body.hint = why.hint;
    }
    body.xxh3 = sum;
    if (rc == WF_OK)
        rc = wf_control_copy(&body.base, result, err);
    wf_arena_free(&a);
    return rc;
}

wf_status wf_local_save(wf_exchange *x, wf_err *err)
{
    const wf_local *l = (const wf_local *)x;
    wf_cut_id cut = {l->conf.generation, x->saving.cut, l->conf.incarnation};
    struct wf_exchange_shard *shard = &x->saving.shards[l->shard];
    char file[64];

    if (l->conf.start->n_stages > 0) /* each stage writes one */
        wf_ckpt_shard_name(l->conf.start->stage, (uint32_t)l->conf.start->n_stages, file,
                           sizeof file);
    else
        wf_ckpt_shard_name(l->shard, x->saving.n, file, sizeof file);
    WF_TRY(wf_local_write_share(l, cut, x->saving.folder, file, 0, &shard->result, err));
    shard->copied = true;
    return WF_OK;
}

/* ---- shares ---- */

static uint64_t bytes_of(const wf_local *l, const wf_local_variable *v)
{
    return v->count * sizeof(float) * (1 + wf_local_all_slots(l, v));
}

/* The largest that has no share yet; NULL: all have. */
static wf_local_variable *find_largest(const wf_local *l, uint32_t none)
{
    wf_local_variable *largest = NULL;

    for (uint32_t i = 0; i < l->n_variables; i++) {
        wf_local_variable *v = &l->variables[i];

        if (v->share == none && (!largest || bytes_of(l, v) > bytes_of(l, largest)))
            largest = v;
    }
    return largest;
}

/* The largest first, each to the share with the fewest bytes. */
wf_status wf_local_share(wf_local *l, uint32_t shares, wf_err *err)
{
    uint64_t *bytes = calloc(shares, sizeof *bytes);
    wf_local_variable *v;

    if (!bytes)
        return wf_fail_nomem(err, shares * sizeof *bytes);
    for (uint32_t i = 0; i < l->n_variables; i++)
        l->variables[i].share = wf_local_is_frozen(&l->variables[i]) ? 0 : shares;
    while ((v = find_largest(l, shares))) {
        uint32_t least = 0;

        for (uint32_t k = 1; k < shares; k++)
            if (bytes[k] < bytes[least])
                least = k;
        v->share = least;
        bytes[least] += bytes_of(l, v);
    }
    free(bytes);
    return WF_OK;
}
