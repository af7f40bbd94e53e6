/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed_state.c - the state of a bucket leaves and comes: ids, values and slots as arrays of
 * their own, rows in the order of their last use where there is one.
 *
 *   values            [n, row]             slots, each     [n, row] float32
 *   ids               [n] int64            updated         [n] int64: the update of the last use
 *                                          uses            [n] int64: how often, at that update
 *   waiting/ids       [m] int64            waiting/pushes  [m] int64
 *   waiting/updated   [m] int64
 *
 * Values have the type that rows are held in; `scale` [n] float32 is there with int8. `updated` is
 * there where rows are evicted, `uses` where the least frequently used are, and `waiting` where ids
 * wait for their admission.
 */
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "ps/hashed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char IDS[] = "ids", USES[] = "uses", UPDATED[] = "updated",
                  WAITING_IDS[] = "waiting/ids", WAITING_PUSHES[] = "waiting/pushes",
                  WAITING_UPDATED[] = "waiting/updated";

/* Arrays of a fork; NULL: it has no such. */
struct wf_hashed_copy {
    uint64_t n, n_waiting;
    wf_dtype dtype;
    void *values;
    float *scales, *slots[WF_MAX_SLOTS];
    int64_t *ids, *updated, *uses, *waiting_ids, *waiting_pushes, *waiting_updated;
};

void wf_hashed_free_copy(struct wf_hashed_copy **c)
{
    struct wf_hashed_copy *it = *c;

    *c = NULL;
    if (!it)
        return;
    free(it->values);
    free(it->scales);
    for (int k = 0; k < WF_MAX_SLOTS; k++)
        free(it->slots[k]);
    free(it->ids);
    free(it->updated);
    free(it->uses);
    free(it->waiting_ids);
    free(it->waiting_pushes);
    free(it->waiting_updated);
    free(it);
}

/* ---- a fork ---- */

static bool waits(const wf_slice *s)
{
    return s->policy.admit_after > 1;
}

static wf_status alloc_copy(const wf_hashed *h, struct wf_hashed_copy *c, wf_err *err)
{
    bool ordered = h->rows.ordered, waiting = waits(&h->base), ok;
    size_t bytes;

    c->n = h->rows.records.n;
    c->n_waiting = h->waiting.records.n;
    c->dtype = wf_slice_dtype(&h->base);
    bytes = c->n * h->base.row * sizeof(float) + 1;
    c->values = malloc(wf_row_values_bytes(c->dtype, c->n * h->base.row) + 1);
    c->ids = malloc(c->n * sizeof *c->ids + 1);
    ok = c->values && c->ids;
    if (ok && c->dtype == WF_I8)
        ok = (c->scales = malloc(c->n * sizeof *c->scales + 1)) != NULL;
    for (uint32_t k = 0; ok && k < h->n_slots; k++)
        ok = (c->slots[k] = malloc(bytes)) != NULL;
    if (ok && ordered)
        ok = (c->updated = malloc(c->n * sizeof *c->updated + 1)) != NULL;
    if (ok && h->base.policy.by_frequency)
        ok = (c->uses = malloc(c->n * sizeof *c->uses + 1)) != NULL;
    if (ok && waiting) {
        c->waiting_ids = malloc(c->n_waiting * sizeof *c->waiting_ids + 1);
        c->waiting_pushes = malloc(c->n_waiting * sizeof *c->waiting_pushes + 1);
        ok = c->waiting_ids && c->waiting_pushes;
    }
    if (ok && waiting && ordered)
        ok = (c->waiting_updated = malloc(c->n_waiting * sizeof *c->waiting_updated + 1)) != NULL;
    return ok ? WF_OK : wf_fail_nomem(err, bytes * (1 + h->n_slots));
}

/* Rows from the oldest to the newest, or by their numbers. */
static int32_t first_row(const wf_row_set *set)
{
    return set->ordered ? set->oldest : set->records.n > 0 ? 0 : WF_NO_RECORD;
}

static int32_t next_row(const wf_row_set *set, int32_t row)
{
    if (set->ordered)
        return wf_row_set_newer(set, row);
    return (uint32_t)row + 1 < set->records.n ? row + 1 : WF_NO_RECORD;
}

/* The update of the last use, in full. */
static int64_t updated_of(const wf_slice *s, const wf_row_set *set, int32_t row)
{
    return (int64_t)(s->updates - (uint32_t)((uint32_t)s->updates - wf_row_set_used(set, row)));
}

static void fill_copy(const wf_hashed *h, struct wf_hashed_copy *c)
{
    const wf_slice *s = &h->base;
    size_t bytes = s->row * sizeof(float), of_values = wf_row_values_bytes(c->dtype, s->row);
    uint64_t i = 0;

    for (int32_t r = first_row(&h->rows); r != WF_NO_RECORD; r = next_row(&h->rows, r), i++) {
        void *body = wf_row_set_body(&h->rows, r);

        c->ids[i] = wf_row_id_of_key(wf_row_set_key(&h->rows, r));
        memcpy((uint8_t *)c->values + i * of_values, body, of_values);
        if (c->scales)
            c->scales[i] = *wf_hashed_scale(h, body);
        for (uint32_t k = 0; k < h->n_slots; k++)
            memcpy(c->slots[k] + i * s->row, wf_hashed_slot(h, body, k), bytes);
        if (c->updated)
            c->updated[i] = updated_of(s, &h->rows, r);
        if (c->uses)
            c->uses[i] = *wf_hashed_uses(h, body);
    }
    i = 0;
    for (int32_t r = first_row(&h->waiting); r != WF_NO_RECORD; r = next_row(&h->waiting, r), i++) {
        c->waiting_ids[i] = wf_row_id_of_key(wf_row_set_key(&h->waiting, r));
        c->waiting_pushes[i] = *(const uint32_t *)wf_row_set_body(&h->waiting, r);
        if (c->waiting_updated)
            c->waiting_updated[i] = updated_of(s, &h->waiting, r);
    }
}

wf_status wf_hashed_fork(const wf_slice *s, wf_slice *to, wf_err *err)
{
    const wf_hashed *h = (const wf_hashed *)s;
    wf_hashed *f = (wf_hashed *)to;

    f->n_slots = h->n_slots;
    memcpy(f->slot_names, h->slot_names, sizeof f->slot_names);
    f->copy = calloc(1, sizeof *f->copy);
    if (!f->copy)
        return wf_fail_nomem(err, sizeof *f->copy);
    WF_TRY(alloc_copy(h, f->copy, err));
    fill_copy(h, f->copy);
    return WF_OK;
}

/* ---- arrays ---- */

static void add_array(wf_slice_array out[], uint32_t *n, const char *slot, wf_dtype dtype,
                      const void *data, uint64_t count, uint64_t row)
{
    if (data)
        out[(*n)++] =
            (wf_slice_array){.slot = slot,
                             .dtype = dtype,
                             .data = data,
                             .bytes = count * WF_MAX(row, (uint64_t)1) * wf_dtype_size(dtype),
                             .row = row};
}

uint32_t wf_hashed_save(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS])
{
    const wf_hashed *f = (const wf_hashed *)s;
    const struct wf_hashed_copy *c = f->copy;
    uint32_t n = 0;

    wf_assert(c);
    add_array(out, &n, NULL, c->dtype, c->values, c->n, s->row);
    for (uint32_t k = 0; k < f->n_slots; k++)
        add_array(out, &n, f->slot_names[k], WF_F32, c->slots[k], c->n, s->row);
    add_array(out, &n, WF_CKPT_SCALE, WF_F32, c->scales, c->n, 0);
    add_array(out, &n, IDS, WF_I64, c->ids, c->n, 0);
    add_array(out, &n, UPDATED, WF_I64, c->updated, c->n, 0);
    add_array(out, &n, USES, WF_I64, c->uses, c->n, 0);
    add_array(out, &n, WAITING_IDS, WF_I64, c->waiting_ids, c->n_waiting, 0);
    add_array(out, &n, WAITING_PUSHES, WF_I64, c->waiting_pushes, c->n_waiting, 0);
    add_array(out, &n, WAITING_UPDATED, WF_I64, c->waiting_updated, c->n_waiting, 0);
    return n;
}

/* ---- loading ---- */

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

    WF_TRY(read_numbers(s, from, IDS, false, true, &c->n, &c->ids, err));
    WF_TRY(read_numbers(s, from, UPDATED, true, false, &c->n, &c->updated, err));
    if (s->policy.by_frequency)
        WF_TRY(read_numbers(s, from, USES, true, false, &c->n, &c->uses, err));
    WF_TRY(read_values(s, from, c, err));
    for (uint32_t k = 0; k < h->n_slots; k++)
        WF_TRY(read_rows(s, from, h->slot_names[k], s->row * sizeof(float), c->n,
                         (void **)&c->slots[k], err));
    if (!waits(s))
        return WF_OK;
    WF_TRY(read_numbers(s, from, WAITING_IDS, true, true, &c->n_waiting, &c->waiting_ids, err));
    if (!c->waiting_ids)
        return WF_OK;
    WF_TRY(read_numbers(s, from, WAITING_PUSHES, false, false, &c->n_waiting, &c->waiting_pushes,
                        err));
    return read_numbers(s, from, WAITING_UPDATED, true, false, &c->n_waiting, &c->waiting_updated,
                        err);
}

/* Adds ids [n] in their order; `updated` NULL: they count as used now. */
static wf_status add_ids(const wf_slice *s, wf_row_set *set, const int64_t ids[],
                         const int64_t updated[], uint64_t n, wf_err *err)
{
    WF_TRY(wf_row_set_reserve(set, n, err));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = wf_row_key(ids[i]);
        uint64_t used = updated ? (uint64_t)updated[i] : s->updates;

        if (wf_row_bucket(key) != s->offset / s->row || wf_row_set_find(set, key) != WF_NO_RECORD)
            return wf_fail(err, WF_CORRUPT, NULL,
                           "slice %u has the row of id %" PRId64 " twice, or of another slice",
                           s->id, ids[i]);
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

static wf_status fill_sets(wf_hashed *h, const struct wf_hashed_copy *c, wf_err *err)
{
    const wf_slice *s = &h->base;
    size_t bytes = s->row * sizeof(float);

    WF_TRY(add_ids(s, &h->rows, c->ids, c->updated, c->n, err));
    for (uint64_t i = 0; i < c->n; i++) {
        void *body = wf_row_set_body(&h->rows, (int32_t)i);

        set_values(h, c, i, body);
        if (c->uses && (c->uses[i] < 1 || c->uses[i] > UINT32_MAX))
            return wf_fail(err, WF_CORRUPT, NULL,
                           "slice %u: the row of id %" PRId64 " was used %" PRId64 " times", s->id,
                           c->ids[i], c->uses[i]);
        if (s->policy.by_frequency)
            *wf_hashed_uses(h, body) = c->uses ? (uint32_t)c->uses[i] : 1;
        for (uint32_t k = 0; k < h->n_slots; k++)
            memcpy(wf_hashed_slot(h, body, k), c->slots[k] + i * s->row, bytes);
    }
    WF_TRY(add_ids(s, &h->waiting, c->waiting_ids, c->waiting_updated, c->n_waiting, err));
    for (uint64_t i = 0; i < c->n_waiting; i++) {
        if (wf_row_set_find(&h->rows, wf_row_set_key(&h->waiting, (int32_t)i)) != WF_NO_RECORD)
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
    if (rc == WF_OK)
        rc = fill_sets(h, c, err);
    wf_hashed_free_copy(&c);
    if (rc == WF_OK)
        wf_hashed_evict(h); /* the limits may be lower than they were */
    return rc;
}

/* ---- the digest: a sum over rows, in whatever order they lie ---- */

static uint64_t digest_of(const wf_row_set *set, size_t body)
{
    uint64_t sum = set->records.n;

    for (uint32_t i = 0; i < set->records.n; i++) {
        uint64_t head[] = {wf_row_set_key(set, (int32_t)i),
                           set->ordered ? wf_row_set_used(set, (int32_t)i) : 0};

        sum += XXH3_64bits_withSeed(wf_row_set_body(set, (int32_t)i), body,
                                    XXH3_64bits(head, sizeof head));
    }
    return sum;
}

uint64_t wf_hashed_digest(const wf_slice *s)
{
    const wf_hashed *h = (const wf_hashed *)s;
    uint64_t sums[] = {digest_of(&h->rows, wf_hashed_body(h)),
                       digest_of(&h->waiting, sizeof(uint32_t))};

    return XXH3_64bits_withSeed(sums, sizeof sums, s->updates);
}
