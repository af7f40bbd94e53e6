/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/values.c */
#include "common/ckpt/values.h"
#include "common/ckpt/ckpt.h"
#include "common/ckpt/initial.h"

#include <stdio.h>
#include <stdlib.h>

struct wf_values {
    wf_disk *disk;
    wf_ckpt *ckpt;    /* NULL: first values */
    wf_shard *first;  /* opened when it is needed */
    char *first_path; /* of that file */
};

wf_status wf_values_open(wf_disk *disk, const char *dir, const char *job, bool initial,
                         uint64_t step, wf_values **out, wf_err *err)
{
    wf_values *v = calloc(1, sizeof *v);
    wf_status rc = WF_OK;

    *out = v;
    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    v->disk = disk;
    if (asprintf(&v->first_path, "%s/%s/" WF_INITIAL_NAME, dir, job) < 0) {
        v->first_path = NULL;
        rc = wf_fail_nomem(err, WF_CKPT_PATH);
    }
    if (rc == WF_OK && !initial)
        rc = wf_ckpt_open(disk, dir, job, step, false, &v->ckpt, err);
    if (rc != WF_OK)
        wf_values_close(out);
    return rc;
}

void wf_values_close(wf_values **v)
{
    if (!*v)
        return;
    wf_ckpt_close(&(*v)->ckpt);
    wf_shard_close(&(*v)->first);
    free((*v)->first_path);
    free(*v);
    *v = NULL;
}

static wf_status open_first(wf_values *v, wf_err *err)
{
    return v->first ? WF_OK : wf_shard_open(v->disk, v->first_path, &v->first, err);
}

/* What first values have of a variable beside its value; NULL: they have none. */
static wf_status find_beside(wf_values *v, const char *variable, const char *slot,
                             const wf_shard_tensor **out, wf_err *err)
{
    char name[WF_SHARD_MAX_NAME];

    WF_TRY(open_first(v, err));
    *out = wf_shard_find(v->first, wf_ckpt_tensor_name(variable, slot, 0, true, name, sizeof name));
    return WF_OK;
}

static wf_status read_first(wf_values *v, const char *variable, uint64_t offset, uint64_t count,
                            float *to, wf_err *err)
{
    const wf_shard_tensor *t;

    WF_TRY(open_first(v, err));
    t = wf_shard_find(v->first, variable);
    if (!t || t->dtype != WF_F32)
        return wf_fail(err, WF_CORRUPT, NULL, "%s has no float32 \"%s\"", v->first_path, variable);
    return wf_shard_read(v->first, t, offset * sizeof *to, to, count * sizeof *to, err);
}

bool wf_values_begin_with(wf_values *v, const char *variable)
{
    wf_err ignored;

    return open_first(v, &ignored) != WF_OK || wf_shard_find(v->first, variable);
}

wf_dtype wf_values_dtype(const wf_values *v, const char *variable)
{
    const wf_ckpt_variable *row = v->ckpt ? wf_ckpt_variable_find(v->ckpt, variable) : NULL;

    return row ? row->dtype : WF_F32;
}

wf_status wf_values_read_as(wf_values *v, const char *variable, wf_dtype as, uint64_t offset,
                            uint64_t count, void *to, wf_err *err)
{
    if (!v->ckpt)
        return read_first(v, variable, offset, count, to, err);
    if (!wf_ckpt_variable_find(v->ckpt, variable))
        return wf_fail(err, WF_MISMATCH, "train it as a new run, without --resume",
                       "%s has no variable \"%s\"", wf_ckpt_name(v->ckpt), variable);
    return wf_ckpt_read_as(v->ckpt, variable, NULL, as, offset, count, to, err);
}

wf_status wf_values_read_scales(wf_values *v, const char *variable, uint64_t first, uint64_t n,
                                float *to, wf_err *err)
{
    wf_assert(v->ckpt); /* first values have none: wf_values_dtype */
    return wf_ckpt_read_scales(v->ckpt, variable, first, n, to, err);
}

wf_status wf_values_read(wf_values *v, const char *variable, bool frozen, uint64_t offset,
                         uint64_t count, float *to, wf_err *err)
{
    if (frozen)
        return read_first(v, variable, offset, count, to, err);
    return wf_values_read_as(v, variable, WF_F32, offset, count, to, err);
}

wf_status wf_values_read_slot(wf_values *v, const char *variable, const char *slot, uint64_t offset,
                              uint64_t count, float *to, wf_err *err)
{
    const wf_shard_tensor *t;

    if (v->ckpt)
        return wf_ckpt_read_range(v->ckpt, variable, slot, offset, count, to, err);
    WF_TRY(find_beside(v, variable, slot, &t, err));
    if (!t)
        return WF_OK;
    if (t->dtype != WF_F32)
        return wf_fail(err, WF_CORRUPT, NULL, "%s has no float32 \"%s\"", v->first_path, t->name);
    return wf_shard_read(v->first, t, offset * sizeof *to, to, count * sizeof *to, err);
}

wf_status wf_values_read_array(wf_values *v, const char *variable, const char *slot,
                               uint64_t offset, void **out, uint64_t *bytes, wf_err *err)
{
    if (!v->ckpt)
        return wf_fail(err, WF_NOTFOUND, NULL, "%s has no \"%s\" of \"%s\"", v->first_path,
                       slot ? slot : "", variable);
    return wf_ckpt_read_array(v->ckpt, variable, slot, offset, out, bytes, err);
}

/* A file that cannot be read has failed as the values were. */
static uint64_t first_updates(wf_values *v, const char *variable)
{
    const wf_shard_tensor *t;
    int64_t n;

    if (find_beside(v, variable, WF_INITIAL_UPDATES, &t, NULL) != WF_OK || !t ||
        t->dtype != WF_I64 || t->bytes != sizeof n ||
        wf_shard_read(v->first, t, 0, &n, sizeof n, NULL) != WF_OK || n < 0)
        return 0;
    return (uint64_t)n;
}

uint64_t wf_values_updates(wf_values *v, const char *variable, uint64_t offset)
{
    const wf_ckpt_variable *row;

    if (!v->ckpt)
        return first_updates(v, variable);
    row = wf_ckpt_variable_find(v->ckpt, variable);
    return row ? wf_ckpt_updates_at(row, offset) : 0;
}
