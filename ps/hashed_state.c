/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed_state.c - the state of a bucket leaves and comes: ids, values and slots as arrays of
 * their own, rows in the order of their last use where there is one.
 *
 *   values            [n, row]             slots, each     [n, row] float32
 *   ids               [n] int64            updated         [n] int64: the update of the last use
 *                                          uses            [n] int64: how often, at that update
 *   waiting/ids       [m] int64            waiting/pushes  [m] int64
 *   waiting/updated   [m] int64            waiting/filter  [bytes] uint8, waiting/named [1] int64
 *
 * Values have the type that rows are held in; `scale` [n] float32 is there with int8. `updated` is
 * there where rows are evicted or go to files, `uses` where the least frequently used are, and
 * `waiting` where ids wait for their admission: each with its count, or the filter that counts them
 * all.
 */
#include "common/base/file_pages.h"
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "ps/hashed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    ALIGN = 64,    /* of arrays of a fork */
    AHEAD = 16,    /* rows whose keys are looked for later */
    FETCHED = 1024 /* rows that are read from files while as many are copied */
};

static void free_block(struct wf_hashed_copy *c)
{
    if (c->in_file)
        wf_file_pages_free(c->block, c->block_bytes);
    else
        free(c->block);
}

void wf_hashed_free_copy(struct wf_hashed_copy **c)
{
    struct wf_hashed_copy *it = *c;

    *c = NULL;
    if (!it)
        return;
    if (it->block) {
        free_block(it);
        free(it);
        return;
    }
    free(it->values);
    free(it->scales);
    free(it->filter);
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

/* The next array of a block, of so many bytes; NULL while the block is only measured. */
static void *place(const struct wf_hashed_copy *c, size_t *at, uint64_t bytes)
{
    void *array = c->block ? (uint8_t *)c->block + *at : NULL;

    *at += wf_align_up(bytes, ALIGN);
    return array;
}

/* The arrays that a copy has, in its block; the bytes of all. */
static size_t place_arrays(const wf_hashed *h, struct wf_hashed_copy *c)
{
    bool ordered = h->rows.ordered, waits = wf_row_policy_waits(&h->base.policy);
    uint64_t row = h->base.row;
    size_t at = 0;

    c->values = place(c, &at, wf_row_values_bytes(c->dtype, c->n * row));
    c->ids = place(c, &at, c->n * sizeof *c->ids);
    if (c->dtype == WF_I8)
        c->scales = place(c, &at, c->n * sizeof *c->scales);
    for (uint32_t k = 0; k < h->n_slots; k++)
        c->slots[k] = place(c, &at, c->n * row * sizeof(float));
    if (ordered)
        c->updated = place(c, &at, c->n * sizeof *c->updated);
    if (h->base.policy.by_frequency)
        c->uses = place(c, &at, c->n * sizeof *c->uses);
    if (waits) {
        c->waiting_ids = place(c, &at, c->n_waiting * sizeof *c->waiting_ids);
        c->waiting_pushes = place(c, &at, c->n_waiting * sizeof *c->waiting_pushes);
    }
    if (waits && ordered)
        c->waiting_updated = place(c, &at, c->n_waiting * sizeof *c->waiting_updated);
    if (c->filter_size)
        c->filter = place(c, &at, c->filter_size);
    return at;
}

/* What may not fit into memory as rows does not as a copy. */
static wf_status alloc_copy(const wf_hashed *h, struct wf_hashed_copy *c, wf_err *err)
{
    c->n = wf_cold_rows_n(&h->cold) + h->rows.records.n;
    c->n_waiting = h->waiting.records.n;
    c->dtype = wf_slice_dtype(&h->base);
    c->filter_size = h->filter.size;
    c->in_file = h->base.policy.disk != NULL;
    c->block_bytes = place_arrays(h, c) + ALIGN;
    if (c->in_file) {
        WF_TRY(wf_file_pages_new(h->base.policy.disk, c->block_bytes, &c->block, err));
    } else {
        c->block = malloc(c->block_bytes);
        if (!c->block)
            return wf_fail_nomem(err, c->block_bytes);
    }
    place_arrays(h, c);
    return WF_OK;
}

/* The update of the last use, in full. */
static int64_t updated_of(const wf_slice *s, uint32_t used)
{
    return (int64_t)(s->updates - (uint32_t)((uint32_t)s->updates - used));
}

/* A row becomes row i of a copy, but for `updated`. */
static void copy_row(const wf_hashed *h, struct wf_hashed_copy *c, uint64_t i,
                     const wf_row_set *heads, int32_t row, void *body)
{
    const wf_slice *s = &h->base;
    size_t bytes = s->row * sizeof(float), of_values = wf_row_values_bytes(c->dtype, s->row);

    c->ids[i] = wf_row_id_of_key(wf_row_set_key(heads, row));
    memcpy((uint8_t *)c->values + i * of_values, body, of_values);
    if (c->scales)
        c->scales[i] = *wf_hashed_scale(h, body);
    for (uint32_t k = 0; k < h->n_slots; k++)
        memcpy(c->slots[k] + i * s->row, wf_hashed_slot(h, body, k), bytes);
    if (c->uses)
        c->uses[i] = wf_hashed_uses(h, row);
}

/* Rows in files become the first of a copy. They are read in the order in which they lie, so that
 * a disk is read from one end to the other; `places` says where each goes. */
static void copy_cold(const wf_hashed *h, struct wf_hashed_copy *c, uint32_t places[])
{
    const wf_cold_rows *cold = &h->cold;
    uint32_t n = wf_cold_rows_n(cold), i = 0;

    for (wf_row_use r = wf_row_set_first(&cold->heads); r.row != WF_NO_RECORD;
         r = wf_row_set_next(&cold->heads, r)) {
        c->updated[i] = updated_of(&h->base, r.used);
        places[r.row] = i++;
    }
    for (i = 0; i < n; i++) {
        if (i % FETCHED == 0)
            wf_file_array_fetch(&cold->bodies, i, WF_MIN(n - i, 2u * FETCHED));
        copy_row(h, c, places[i], &cold->heads, (int32_t)i, wf_cold_rows_body(cold, (int32_t)i));
    }
}

/* The next row of a walk some rows ahead of a copy: what finding the key reads is asked for. */
static wf_row_use fetch_key(const wf_row_set *set, wf_row_use at)
{
    if (at.row == WF_NO_RECORD)
        return at;
    wf_row_set_prefetch_key(set, at.row);
    return wf_row_set_next(set, at);
}

static wf_status fill_copy(const wf_hashed *h, struct wf_hashed_copy *c, wf_err *err)
{
    const wf_slice *s = &h->base;
    uint64_t i = wf_cold_rows_n(&h->cold);
    uint32_t *places = i ? malloc(i * sizeof *places) : NULL;
    wf_row_use ahead = wf_row_set_first(&h->rows);

    if (i && !places)
        return wf_fail_nomem(err, i * sizeof *places);
    if (i)
        copy_cold(h, c, places);
    free(places);
    for (int k = 0; k < AHEAD; k++)
        ahead = fetch_key(&h->rows, ahead);
    for (wf_row_use r = wf_row_set_first(&h->rows); r.row != WF_NO_RECORD;
         r = wf_row_set_next(&h->rows, r), i++) {
        ahead = fetch_key(&h->rows, ahead);
        copy_row(h, c, i, &h->rows, r.row, wf_row_set_body(&h->rows, r.row));
        if (c->updated)
            c->updated[i] = updated_of(s, r.used);
    }
    if (c->filter) {
        memcpy(c->filter, h->filter.counts, c->filter_size);
        c->filter_named = (int64_t)h->filter.named;
    }
    i = 0;
    for (wf_row_use r = wf_row_set_first(&h->waiting); r.row != WF_NO_RECORD;
         r = wf_row_set_next(&h->waiting, r), i++) {
        c->waiting_ids[i] = wf_row_id_of_key(wf_row_set_key(&h->waiting, r.row));
        c->waiting_pushes[i] = *(const uint32_t *)wf_row_set_body(&h->waiting, r.row);
        if (c->waiting_updated)
            c->waiting_updated[i] = updated_of(s, r.used);
    }
    return WF_OK;
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
    return fill_copy(h, f->copy, err);
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
    add_array(out, &n, WF_HASHED_IDS, WF_I64, c->ids, c->n, 0);
    add_array(out, &n, WF_HASHED_UPDATED, WF_I64, c->updated, c->n, 0);
    add_array(out, &n, WF_HASHED_USES, WF_I64, c->uses, c->n, 0);
    if (c->filter) {
        add_array(out, &n, WF_HASHED_FILTER, WF_U8, c->filter, c->filter_size, 0);
        add_array(out, &n, WF_HASHED_FILTER_NAMED, WF_I64, &c->filter_named, 1, 0);
    }
    add_array(out, &n, WF_HASHED_WAITING_IDS, WF_I64, c->waiting_ids, c->n_waiting, 0);
    add_array(out, &n, WF_HASHED_WAITING_PUSHES, WF_I64, c->waiting_pushes, c->n_waiting, 0);
    add_array(out, &n, WF_HASHED_WAITING_UPDATED, WF_I64, c->waiting_updated, c->n_waiting, 0);
    return n;
}

/* ---- the digest: sums over rows, in whatever order they lie ---- */

static uint64_t digest_of_body(uint64_t key, const void *body, size_t bytes)
{
    return 1 + XXH3_64bits_withSeed(body, bytes, XXH3_64bits(&key, sizeof key));
}

/* Of keys and their last uses. */
static uint64_t digest_of_heads(const wf_row_set *set)
{
    uint64_t sum = 0;

    for (wf_row_use r = wf_row_set_first(set); r.row != WF_NO_RECORD; r = wf_row_set_next(set, r)) {
        uint64_t head[] = {wf_row_set_key(set, r.row), r.used};

        sum += XXH3_64bits(head, sizeof head);
    }
    return sum;
}

static uint64_t digest_of(const wf_row_set *set, size_t body)
{
    uint64_t sum = set->ordered ? digest_of_heads(set) : 0;

    for (uint32_t i = 0; i < set->records.n; i++)
        sum +=
            digest_of_body(wf_row_set_key(set, (int32_t)i), wf_row_set_body(set, (int32_t)i), body);
    return sum;
}

static uint64_t digest_of_cold(const wf_cold_rows *cold, size_t body)
{
    uint64_t sum = digest_of_heads(&cold->heads);

    for (uint32_t i = 0; i < wf_cold_rows_n(cold); i++)
        sum += digest_of_body(wf_row_set_key(&cold->heads, (int32_t)i),
                              wf_cold_rows_body(cold, (int32_t)i), body);
    return sum;
}

uint64_t wf_hashed_digest(const wf_slice *s)
{
    const wf_hashed *h = (const wf_hashed *)s;
    uint64_t sums[] = {
        digest_of(&h->rows, wf_hashed_body(h)) + digest_of_cold(&h->cold, wf_hashed_body(h)),
        digest_of(&h->waiting, sizeof(uint32_t)),
        h->filter.size ? XXH3_64bits_withSeed(h->filter.counts, h->filter.size, h->filter.named)
                       : 0};

    return XXH3_64bits_withSeed(sums, sizeof sums, s->updates);
}
