/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/tensors.c */
#include "common/ckpt/tensors.h"
#include "common/ckpt/folder.h"

#include <inttypes.h>
#include <string.h>

wf_status wf_ckpt_shard(wf_ckpt *c, uint32_t file, wf_shard **out, wf_err *err)
{
    char path[WF_CKPT_PATH], cut_text[WF_CUT_TEXT];
    wf_shard_meta meta[WF_CKPT_N_META];

    if (!c->shards[file]) {
        WF_TRY(wf_folder_path(path, err, c->folder, c->m.files[file].name));
        WF_TRY(wf_shard_open(c->disk, path, &c->shards[file], err));
        wf_ckpt_meta(c->m.job, c->m.cut, cut_text, meta);
        for (size_t i = 0; i < WF_CKPT_N_META; i++) {
            const char *has = wf_shard_meta_find(c->shards[file], meta[i].key);

            if (!has || strcmp(has, meta[i].value) != 0)
                return wf_fail(err, WF_CORRUPT, NULL,
                               "%s belongs to another checkpoint: %s \"%.64s\", not \"%s\"", path,
                               meta[i].key, has ? has : "", meta[i].value);
        }
    }
    *out = c->shards[file];
    return WF_OK;
}

/* Rows of an unbounded table are as many as the shard says. */
static bool has_shape(const wf_ckpt_variable *v, const wf_ckpt_slice *s, const wf_shard_tensor *t)
{
    int64_t elems;

    if (v->unbounded)
        return t->rank == 2 && (uint64_t)t->dims[1] == s->count;
    return wf_dims_elems(t->rank, t->dims, &elems) && (uint64_t)elems == s->count;
}

wf_status wf_ckpt_tensor(wf_ckpt *c, const wf_ckpt_variable *v, const char *slot,
                         const wf_ckpt_slice *s, wf_shard **shard, const wf_shard_tensor **t,
                         wf_err *err)
{
    char name[2 * WF_SHARD_MAX_NAME];
    bool whole = v->n_slices == 1;
    wf_dtype dtype = slot ? WF_F32 : v->dtype;

    WF_TRY(wf_ckpt_shard(c, s->file, shard, err));
    wf_ckpt_tensor_name(v->name, slot, s->offset, whole, name, sizeof name);
    *t = wf_shard_find(*shard, name);
    if (!*t || (*t)->dtype != dtype || !has_shape(v, s, *t))
        return wf_fail(err, WF_CORRUPT, NULL, "%s: tensor \"%.200s\" [%" PRIu64 "] is not in it",
                       c->m.files[s->file].name, name, s->count);
    return WF_OK;
}

uint64_t wf_ckpt_row(const wf_ckpt_variable *v)
{
    uint64_t n = 1;

    for (uint32_t i = 1; i < v->rank; i++)
        n *= (uint64_t)v->dims[i]; /* the manifest was checked: its product fits */
    return n;
}

/* Of an unbounded table there are as many as it has rows. */
wf_status wf_ckpt_scales(wf_ckpt *c, const wf_ckpt_variable *v, const wf_ckpt_slice *s,
                         wf_shard **shard, const wf_shard_tensor **t, wf_err *err)
{
    char name[2 * WF_SHARD_MAX_NAME];
    const wf_shard_tensor *values = NULL;
    uint64_t row = wf_ckpt_row(v), rows;
    int64_t elems;

    WF_TRY(wf_ckpt_tensor(c, v, NULL, s, shard, &values, err));
    rows = v->unbounded ? (uint64_t)values->dims[0] : row ? s->count / row : 0;
    wf_ckpt_tensor_name(v->name, WF_CKPT_SCALE, s->offset, v->n_slices == 1, name, sizeof name);
    *t = wf_shard_find(*shard, name);
    if (!*t || (*t)->dtype != WF_F32 || !wf_dims_elems((*t)->rank, (*t)->dims, &elems) ||
        (uint64_t)elems != rows || (row && s->count % row))
        return wf_fail(err, WF_CORRUPT, NULL, "%s: tensor \"%.200s\" [%" PRIu64 "] is not in it",
                       c->m.files[s->file].name, name, rows);
    return WF_OK;
}

wf_status wf_ckpt_check_tensors(wf_ckpt *c, wf_err *err)
{
    wf_shard *shard = NULL;
    const wf_shard_tensor *t = NULL;

    for (size_t i = 0; i < c->m.n_variables; i++) {
        const wf_ckpt_variable *v = &c->m.variables[i];

        for (size_t k = 0; k < v->n_slices; k++) {
            WF_TRY(wf_ckpt_tensor(c, v, NULL, &v->slices[k], &shard, &t, err));
            if (v->dtype == WF_I8)
                WF_TRY(wf_ckpt_scales(c, v, &v->slices[k], &shard, &t, err));
            for (uint32_t slot = 0; slot < v->n_slots; slot++)
                WF_TRY(wf_ckpt_tensor(c, v, v->slots[slot], &v->slices[k], &shard, &t, err));
        }
    }
    return WF_OK;
}
