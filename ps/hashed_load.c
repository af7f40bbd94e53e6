/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed_load.c - the state of a bucket comes, as hashed_state.c saves it. */
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "ps/hashed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An array of n numbers of 8 bytes; n is set by the first. `may_lack`: *out is NULL when the source
 * has none. */
static wf_status read_numbers(const wf_slice *s, const wf_slice_source *from, const char *name,
                              bool may_lack, bool first, uint64_t *n, int64_t **out, wf_err *err)
{
    uint64_t bytes = 0;
    wf_status rc = from->read_all(from->arg, s, name, (void **)out, &bytes, err);

    if (rc == WF_NOTFOUND && may_lack)
        return WF_OK;
    WF_TRY(rc);
    if (first)
        *n = bytes / sizeof(int64_t);
    if (bytes != *n * sizeof(int64_t))
        return wf_fail(err, WF_CORRUPT, NULL, "slice %u has %" PRIu64 " bytes of \"%s\"", s->id,
                       bytes, name);
    return WF_OK;
}

static wf_status read_rows(const wf_slice *s, const wf_slice_source *from, const char *slot,
                           uint64_t each, uint64_t n, void **out, wf_err *err)
{
    uint64_t bytes = 0;

    WF_TRY(from->read_all(from->arg, s, slot, out, &bytes, err));
    if (bytes / each != n || bytes % each)
        return wf_fail(err, WF_CORRUPT, NULL,
                       "slice %u has %" PRIu64 " bytes of \"%s\" for %" PRIu64 " rows", s->id,
                       bytes, slot ? slot : "values", n);
    return WF_OK;
}

/* In the type that they were saved in. */
static wf_status read_values(const wf_slice *s, const wf_slice_source *from,
                             struct wf_hashed_copy *c, wf_err *err)
{
    c->dtype = wf_slice_source_dtype(from, s);
    if (!wf_row_values_known(c->dtype))
        return wf_fail(err, WF_CORRUPT, NULL, "slice %u has rows of %s, which no ps holds", s->id,
                       wf_dtype_name(c->dtype));
    WF_TRY(read_rows(s, from, NULL, wf_row_values_bytes(c->dtype, s->row), c->n, &c->values, err));
    if (c->dtype != WF_I8)
        return WF_OK;
    WF_TRY(read_rows(s, from, WF_CKPT_SCALE, sizeof *c->scales, c->n, (void **)&c->scales, err));
    for (uint64_t i = 0; i < c->n; i++)
        if (c->scales[i] < 0 || isinf(c->scales[i]))
            return wf_fail(err, WF_CORRUPT, NULL,
                           "slice %u: the row of id %" PRId64 " is scaled by %g", s->id, c->ids[i],
                           (double)c->scales[i]);
    return WF_OK;
}

static wf_status read_copy(wf_hashed *h, const wf_slice_source *from, struct wf_hashed_copy *c,
                           wf_err *err)
{
    const wf_slice *s = &h->base;

    WF_TRY(read_numbers(s, from, WF_HASHED_IDS, false, true, &c->n, &c->ids, err));
    WF_TRY(read_numbers(s, from, WF_HASHED_UPDATED, true, false, &c->n, &c->updated, err));
    if (s->policy.by_frequency)
        WF_TRY(read_numbers(s, from, WF_HASHED_USES, true, false, &c->n, &c->uses, err));
    WF_TRY(read_values(s, from, c, err));
    for (uint32_t k = 0; k < h->n_slots; k++)
        WF_TRY(read_rows(s, from, h->slot_names[k], s->row * sizeof(float), c->n,
                         (void **)&c->slots[k], err));
    if (!wf_row_policy_waits(&s->policy))
        return WF_OK;
    WF_TRY(read_numbers(s, from, WF_HASHED_WAITING_IDS, true, true, &c->n_waiting, &c->waiting_ids,
                        err));
    if (!c->waiting_ids)
        return WF_OK;
    WF_TRY(read_numbers(s, from, WF_HASHED_WAITING_PUSHES, false, false, &c->n_waiting,
                        &c->waiting_pushes, err));
    return read_numbers(s, from, WF_HASHED_WAITING_UPDATED, true, false, &c->n_waiting,
                        &c->waiting_updated, err);
}

/* One of another size, or none, as when the job file has changed: counting begins anew. */
static wf_status read_filter(wf_hashed *h, const wf_slice_source *from, wf_err *err)
{
    const wf_slice *s = &h->base;
    uint64_t bytes = 0, n = 0;
    int64_t *named = NULL;
    void *counts = NULL;
    wf_status rc = from->read_all(from->arg, s, WF_HASHED_FILTER, &counts, &bytes, err);

    if (rc == WF_NOTFOUND)
        return WF_OK;
    if (rc == WF_OK)
        rc = read_numbers(s, from, WF_HASHED_FILTER_NAMED, false, true, &n, &named, err);
    if (rc == WF_OK && (n != 1 || named[0] < 0))
        rc = wf_fail(err, WF_CORRUPT, NULL, "slice %u has %" PRIu64 " numbers of \"%s\"", s->id, n,
                     WF_HASHED_FILTER_NAMED);
    if (rc == WF_OK && bytes == h->filter.size) {
        memcpy(h->filter.counts, counts, bytes);
        h->filter.named = (uint64_t)named[0];
    }
    free(counts);
    free(named);
    return rc;
}

static wf_status fail_twice(const wf_slice *s, int64_t id, wf_err *err)
{
    return wf_fail(err, WF_CORRUPT, NULL,
                   "slice %u has the row of id %" PRId64 " twice, or of another slice", s->id, id);
}

/* How many eras (row_order.h) the last uses of rows [first, end) are in, which come in their order.
 */
static uint64_t eras_of(const int64_t updated[], uint64_t first, uint64_t end)
{
    uint64_t n = 1;

    for (uint64_t i = first + 1; updated && i < end; i++)
        n += wf_row_order_era((uint32_t)updated[i]) != wf_row_order_era((uint32_t)updated[i - 1]);
    return n;
}

/* Adds ids [first, end) in their order; `updated` NULL: they count as used now. */
static wf_status add_ids(const wf_slice *s, wf_row_set *set, const int64_t ids[],
                         const int64_t updated[], uint64_t first, uint64_t end, wf_err *err)
{
    WF_TRY(wf_row_set_reserve(set, end - first, eras_of(updated, first, end), err));
    for (uint64_t i = first; i < end; i++) {
        uint64_t key = wf_row_key(ids[i]);
        uint64_t used = updated ? (uint64_t)updated[i] : s->updates;

        if (wf_row_bucket(key) != s->offset / s->row || wf_row_set_find(set, key) != WF_NO_RECORD)
            return fail_twice(s, ids[i], err);
        if (used > s->updates || (updated && i > 0 && updated[i] < updated[i - 1]))
            return wf_fail(err, WF_CORRUPT, NULL,
                           "slice %u: the row of id %" PRId64 " has its last update out of order",
                           s->id, ids[i]);
        wf_row_set_add(set, key, (uint32_t)used);
    }
    return WF_OK;
}

/* Values of row i as they were saved; of another type, rounded to the nearest. */
static void set_values(const wf_hashed *h, const struct wf_hashed_copy *c, uint64_t i, void *body)
{
    uint64_t row = h->base.row, width = wf_row_values_bytes(c->dtype, 1);
    wf_dtype dtype = wf_slice_dtype(&h->base);
    const uint8_t *from = (const uint8_t *)c->values + i * row * width;
    float piece[WF_SLICE_READ];

    memset(body, 0, wf_row_values_room(dtype, row));
    if (c->dtype == dtype) {
        memcpy(body, from, row * width);
        if (c->scales)
            *wf_hashed_scale(h, body) = c->scales[i];
        return;
    }
    for (uint64_t at = 0, n; at < row; at += n) {
        n = WF_MIN(row - at, (uint64_t)WF_SLICE_READ);
        wf_row_values_read(c->dtype, from + at * width, c->scales ? &c->scales[i] : NULL, n, piece);
        wf_row_values_round(dtype, piece, n, (uint8_t *)body + wf_row_values_bytes(dtype, at),
                            wf_hashed_scale(h, body));
    }
}

/* A body becomes what row i of a copy is. */
static void fill_body(const wf_hashed *h, const struct wf_hashed_copy *c, uint64_t i, void *body)
{
    const wf_slice *s = &h->base;

    set_values(h, c, i, body);
    for (uint32_t k = 0; k < h->n_slots; k++)
        memcpy(wf_hashed_slot(h, body, k), c->slots[k] + i * s->row, s->row * sizeof(float));
}

/* A row was used as often as row i of a copy. */
static wf_status fill_uses(const wf_hashed *h, const struct wf_hashed_copy *c, uint64_t i,
                           int32_t row, wf_err *err)
{
    const wf_slice *s = &h->base;

    if (c->uses && c->uses[i] < 1)
        return wf_fail(err, WF_CORRUPT, NULL,
                       "slice %u: the row of id %" PRId64 " was used %" PRId64 " times", s->id,
                       c->ids[i], c->uses[i]);
    wf_hashed_set_uses(h, row, c->uses ? (uint64_t)c->uses[i] : 1,
                       (uint32_t)(c->updated ? (uint64_t)c->updated[i] : s->updates));
    return WF_OK;
}

/* Rows [0, n) were used before all others, and go to files. */
static wf_status fill_cold(wf_hashed *h, const struct wf_hashed_copy *c, uint64_t n, wf_err *err)
{
    WF_TRY(wf_cold_rows_reserve(&h->cold, n, eras_of(c->updated, 0, n), err));
    WF_TRY(add_ids(&h->base, &h->cold.heads, c->ids, c->updated, 0, n, err));
    for (uint64_t i = 0; i < n; i++)
        fill_body(h, c, i, wf_cold_rows_body(&h->cold, (int32_t)i));
    return WF_OK;
}

static bool has_row(const wf_hashed *h, uint64_t key)
{
    return wf_row_set_find(&h->rows, key) != WF_NO_RECORD ||
           wf_row_set_find(&h->cold.heads, key) != WF_NO_RECORD;
}

static wf_status fill_rows(wf_hashed *h, const struct wf_hashed_copy *c, wf_err *err)
{
    uint64_t n_cold = h->base.policy.disk ? c->n - wf_hashed_in_memory(h, c->n) : 0;

    if (n_cold)
        WF_TRY(fill_cold(h, c, n_cold, err));
    WF_TRY(add_ids(&h->base, &h->rows, c->ids, c->updated, n_cold, c->n, err));
    for (uint64_t i = n_cold; i < c->n; i++) {
        int32_t row = (int32_t)(i - n_cold);

        if (wf_row_set_find(&h->cold.heads, wf_row_set_key(&h->rows, row)) != WF_NO_RECORD)
            return fail_twice(&h->base, c->ids[i], err);
        fill_body(h, c, i, wf_row_set_body(&h->rows, row));
        WF_TRY(fill_uses(h, c, i, row, err));
    }
    return WF_OK;
}

static wf_status fill_sets(wf_hashed *h, const struct wf_hashed_copy *c, wf_err *err)
{
    const wf_slice *s = &h->base;

    WF_TRY(fill_rows(h, c, err));
    WF_TRY(add_ids(s, &h->waiting, c->waiting_ids, c->waiting_updated, 0, c->n_waiting, err));
    for (uint64_t i = 0; i < c->n_waiting; i++) {
        if (has_row(h, wf_row_set_key(&h->waiting, (int32_t)i)))
            return wf_fail(err, WF_CORRUPT, NULL,
                           "slice %u has a row of id %" PRId64 ", which waits for one", s->id,
                           c->waiting_ids[i]);
        *(uint32_t *)wf_row_set_body(&h->waiting, (int32_t)i) =
            (uint32_t)WF_MIN((uint64_t)c->waiting_pushes[i], (uint64_t)UINT32_MAX - 1);
    }
    return WF_OK;
}

wf_status wf_hashed_load(wf_slice *s, const wf_slice_source *from, bool values_only, wf_err *err)
{
    wf_hashed *h = (wf_hashed *)s;
    struct wf_hashed_copy *c;
    wf_status rc;

    if (values_only) /* they follow from the ids */
        return WF_OK;
    c = calloc(1, sizeof *c);
    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    rc = read_copy(h, from, c, err);
    if (rc == WF_OK && h->filter.size)
        rc = read_filter(h, from, err);
    if (rc == WF_OK)
        rc = fill_sets(h, c, err);
    wf_hashed_free_copy(&c);
    if (rc == WF_OK)
        wf_hashed_evict(h); /* the limits may be lower than they were */
    return rc;
}
