/* SPDX-License-Identifier: Apache-2.0 */
/* ps/shard.c - a fork on disk: the arrays of each slice, values first, as one safetensors file. */
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "ps/ps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether an array is of the whole variable, and has its shape. */
static bool is_whole(const wf_ps_variable *v, const wf_slice *s)
{
    int64_t n;

    return s->offset == 0 && wf_dims_elems(v->rank, v->dims, &n) && (uint64_t)n == s->count;
}

static wf_status declare_one(wf_arena *a, const wf_ps_variable *v, const wf_slice *s,
                             const wf_slice_array *array, wf_shard_tensor *t, wf_err *err)
{
    uint64_t n = array->bytes / wf_dtype_size(array->dtype);
    char name[WF_SHARD_MAX_NAME];
    bool whole = is_whole(v, s);

    *t = (wf_shard_tensor){.dtype = array->dtype, .rank = 1, .dims = {(int64_t)n}};
    t->name = wf_arena_strdup(
        a, wf_ckpt_tensor_name(v->name, array->slot, s->offset, whole, name, sizeof name));
    if (!t->name)
        return wf_fail_nomem(err, sizeof name);
    if (array->row) {
        t->rank = 2;
        t->dims[0] = (int64_t)(n / array->row);
        t->dims[1] = (int64_t)array->row;
    } else if (whole && n == s->count) {
        t->rank = v->rank;
        memcpy(t->dims, v->dims, v->rank * sizeof *v->dims);
    }
    return WF_OK;
}

/* The tensors in the order in which write_all gives their data. */
static wf_status declare(wf_arena *a, const wf_ps_fork *f, wf_shard_tensor **out, size_t *n,
                         wf_err *err)
{
    size_t most = (size_t)f->n_slices * WF_SLICE_ARRAYS;
    wf_shard_tensor *t = wf_arena_array(a, most, sizeof *t);

    if (!t)
        return wf_fail_nomem(err, most * sizeof *t);
    *n = 0;
    for (uint32_t i = 0; i < f->n_slices; i++) {
        const wf_slice *s = f->slices[i];
        wf_slice_array arrays[WF_SLICE_ARRAYS];
        uint32_t n_arrays = s->ops->save(s, arrays);

        for (uint32_t k = 0; k < n_arrays; k++)
            WF_TRY(declare_one(a, &f->variables[s->variable], s, &arrays[k], &t[(*n)++], err));
    }
    *out = t;
    return WF_OK;
}

static wf_status write_all(const wf_ps_fork *f, wf_shard_writer *w, wf_err *err)
{
    for (uint32_t i = 0; i < f->n_slices; i++) {
        wf_slice_array arrays[WF_SLICE_ARRAYS];
        uint32_t n = f->slices[i]->ops->save(f->slices[i], arrays);

        for (uint32_t k = 0; k < n; k++)
            WF_TRY(wf_shard_write(w, arrays[k].data, arrays[k].bytes, err));
    }
    return WF_OK;
}

wf_status wf_ps_fork_write(wf_disk *disk, const wf_ps_fork *f, wf_ps_saved *out, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    wf_shard_tensor *tensors = NULL;
    wf_shard_writer *w = NULL;
    char path[WF_CKPT_PATH], cut[64];
    wf_shard_meta meta[] = {{"job", f->job}, {"cut", cut}, {"format", "weft"}};
    size_t n = 0;
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, 4096);
    snprintf(path, sizeof path, "%s/%s", f->folder, f->file);
    snprintf(cut, sizeof cut, "g%u-c%u-%016lx", f->generation, f->cut, (unsigned long)f->chief);
    rc = declare(a, f, &tensors, &n, err);
    if (rc == WF_OK)
        rc = wf_shard_create(disk, path, tensors, n, meta, WF_COUNT(meta), &w, err);
    if (rc == WF_OK)
        rc = write_all(f, w, err);
    if (rc == WF_OK)
        rc = wf_shard_finish(&w, &out->bytes, out->xxh3, err);
    if (rc != WF_OK)
        rc = wf_ckpt_say_free(disk, f->folder, rc, err);
    wf_shard_abort(&w);
    wf_arena_free(&a);
    return rc;
}
