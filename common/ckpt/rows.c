/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/rows.c - all rows of an unbounded table, by rising ids, however its buckets lie in
 * the shards. */
#include "common/base/size.h"
#include "common/ckpt/tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A row of the checkpoint: its id, and its number in the order of the buckets. */
typedef struct saved_row {
    int64_t id, from;
} saved_row;

static int by_id(const void *a, const void *b)
{
    const saved_row *u = a, *v = b;

    return (u->id > v->id) - (u->id < v->id);
}

/* The ids of one bucket into list, which has room for `room` of them from number `first` on. */
static wf_status read_ids(wf_ckpt *c, const wf_ckpt_variable *v, const wf_ckpt_slice *s,
                          uint64_t first, uint64_t room, saved_row list[], uint64_t *n, wf_err *err)
{
    char name[2 * WF_SHARD_MAX_NAME];
    const wf_shard_tensor *values = NULL, *t;
    wf_shard *shard = NULL;
    int64_t block[512];

    WF_TRY(wf_ckpt_tensor(c, v, NULL, s, &shard, &values, err));
    wf_ckpt_tensor_name(v->name, WF_CKPT_IDS, s->offset, v->n_slices == 1, name, sizeof name);
    t = wf_shard_find(shard, name);
    if (!t || t->dtype != WF_I64 || t->rank != 1 || t->dims[0] != values->dims[0] ||
        (uint64_t)t->dims[0] > room)
        return wf_fail(err, WF_CORRUPT, NULL, "%s: tensor \"%.200s\" [%" PRId64 "] is not in it",
                       c->m.files[s->file].name, name, values->dims[0]);
    *n = (uint64_t)t->dims[0];
    for (uint64_t at = 0, each; at < *n; at += each) {
        each = WF_MIN(*n - at, (uint64_t)WF_COUNT(block));
        WF_TRY(wf_shard_read(shard, t, at * sizeof block[0], block, each * sizeof block[0], err));
        for (uint64_t i = 0; i < each; i++)
            list[at + i] = (saved_row){block[i], (int64_t)(first + at + i)};
    }
    return WF_OK;
}

static wf_status find_rows(wf_ckpt *c, const wf_ckpt_variable *v, uint64_t n, saved_row list[],
                           wf_err *err)
{
    uint64_t at = 0, of_slice = 0;

    for (size_t i = 0; i < v->n_slices; i++, at += of_slice)
        WF_TRY(read_ids(c, v, &v->slices[i], at, n - at, list + at, &of_slice, err));
    if (n > 1)
        qsort(list, n, sizeof list[0], by_id);
    for (uint64_t i = 1; i < n; i++)
        if (list[i].id == list[i - 1].id)
            return wf_fail(err, WF_CORRUPT, NULL, "%s: \"%.200s\" has two rows of id %" PRId64,
                           c->name, v->name, list[i].id);
    return WF_OK;
}

/* Rows of the checkpoint, in pieces, each to its place. places [n] by the order of the buckets. */
static wf_status read_values(wf_ckpt *c, const wf_ckpt_variable *v, const int64_t places[],
                             float values[], wf_err *err)
{
    enum { PIECE = 1 << 16 }; /* elements */
    uint64_t width = wf_ckpt_row(v), most = WF_MAX(PIECE / WF_MAX(width, UINT64_C(1)), UINT64_C(1));
    float *piece = malloc(WF_MAX(most * width, UINT64_C(1)) * sizeof *piece);
    const wf_shard_tensor *t = NULL;
    wf_shard *shard = NULL;
    wf_status rc = piece ? WF_OK : wf_fail_nomem(err, most * width * sizeof *piece);

    for (size_t i = 0; rc == WF_OK && i < v->n_slices; i++) {
        const wf_ckpt_slice *s = &v->slices[i];
        uint64_t n;

        rc = wf_ckpt_tensor(c, v, NULL, s, &shard, &t, err);
        n = rc == WF_OK ? (uint64_t)t->dims[0] : 0;
        for (uint64_t at = 0, each; rc == WF_OK && at < n; at += each) {
            each = WF_MIN(n - at, most);
            rc = wf_ckpt_read_part(c, v, NULL, s, WF_F32, at * width, each * width, piece, err);
            for (uint64_t k = 0; rc == WF_OK && k < each; k++)
                memcpy(values + (uint64_t)places[at + k] * width, piece + k * width,
                       width * sizeof *piece);
        }
        places += n;
    }
    free(piece);
    return rc;
}

wf_status wf_ckpt_read_rows(wf_ckpt *c, const wf_ckpt_variable *v, uint64_t n, int64_t ids[],
                            float values[], wf_err *err)
{
    saved_row *list = calloc(n + 1, sizeof *list);
    int64_t *places = calloc(n + 1, sizeof *places);
    wf_status rc = list && places ? WF_OK : wf_fail_nomem(err, n * sizeof *list);

    if (rc == WF_OK)
        rc = find_rows(c, v, n, list, err);
    for (uint64_t i = 0; rc == WF_OK && i < n; i++) {
        ids[i] = list[i].id;
        places[list[i].from] = (int64_t)i;
    }
    free(list);
    if (rc == WF_OK)
        rc = read_values(c, v, places, values, err);
    free(places);
    return rc;
}
