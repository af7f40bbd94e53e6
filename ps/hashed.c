/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed.c */
#include "ps/hashed.h"
#include "common/base/file.h"
#include "common/base/row_key.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    GRAIN = 16 << 10, /* elements that one thread takes at a time */
    BLOCK = 64,       /* rows that a pull looks for at a time */
    FAR = 12,         /* rows whose neighbours are fetched before they are used */
    AHEAD = 4,        /* rows that are fetched before they are worked on */
    LINE = 64         /* bytes of memory that are fetched at once */
};

static wf_hashed *hashed_of(wf_slice *s)
{
    return (wf_hashed *)s;
}

static const wf_hashed *hashed(const wf_slice *s)
{
    return (const wf_hashed *)s;
}

static uint32_t bucket_of(const wf_slice *s)
{
    return (uint32_t)(s->offset / s->row);
}

static wf_status check_place(const wf_slice *s, const wf_opt *opt, wf_err *err)
{
    if (s->row == 0 || s->offset % s->row || s->count != s->row ||
        s->offset / s->row >= WF_ROW_BUCKETS || !s->trainable ||
        s->row > UINT32_MAX / sizeof(float) / (2 + WF_MAX_SLOTS) ||
        (unsigned)s->policy.first.kind >= WF_N_DISTRIBUTIONS)
        return wf_fail(err, WF_INVALID, NULL, "slice %u is no bucket of an unbounded table", s->id);
    if (opt->rule->whole)
        return wf_fail(err, WF_INVALID, "choose another optimizer, or a dense variable",
                       "%s takes norms over a whole variable, and slice %u is of a table",
                       opt->rule->name, s->id);
    if (!wf_row_values_known(wf_slice_dtype(s)))
        return wf_fail(err, WF_INVALID, NULL, "rows of slice %u are of no type that a ps holds",
                       s->id);
    if (wf_slice_dtype(s) == WF_I8 && s->row > WF_INT8_ROW_MOST)
        return wf_fail(err, WF_INVALID, "hold them in bfloat16",
                       "a row of slice %u has %" PRIu64 " elements, and one of int8 %d at most",
                       s->id, s->row, WF_INT8_ROW_MOST);
    if (s->policy.disk && (s->policy.fails_full || s->policy.by_frequency ||
                           (!s->policy.max_rows && !s->policy.max_bytes)))
        return wf_fail(err, WF_INVALID, NULL,
                       "the limits of slice %u do not say which of its rows lie in files", s->id);
    return WF_OK;
}

/* Whether there can be files is known before the first row has to go there. A folder where there
 * cannot be any is a mistake that no waiting mends, as it may a disk that fails. */
static wf_status open_cold(wf_hashed *h, wf_err *err)
{
    const char *folder = h->base.policy.disk;
    wf_status rc;
    wf_err why;

    if (!folder)
        return WF_OK;
    wf_cold_rows_init(&h->cold, folder, bucket_of(&h->base), (uint32_t)wf_hashed_body(h));
    rc = wf_make_dirs(folder, &why);
    if (rc == WF_OK)
        rc = wf_cold_rows_reserve(&h->cold, 1, 1, &why);
    if (rc == WF_OK)
        return WF_OK;
    return wf_fail(err, rc == WF_IO || rc == WF_NOTFOUND ? WF_INVALID : rc, why.hint, "%s",
                   why.what);
}

static wf_status hashed_init(wf_slice *s, const wf_opt *opt, wf_err *err)
{
    wf_hashed *h = hashed_of(s);
    bool ordered = wf_row_policy_evicts(&s->policy);

    WF_TRY(check_place(s, opt, err));
    s->policy.by_frequency &= ordered;
    h->n_slots = wf_opt_n_slots(opt);
    for (uint32_t k = 0; k < h->n_slots; k++) {
        h->slot_names[k] = wf_opt_slot_name(opt, k);
        h->slot_first[k] = wf_opt_slot_initial(opt, k);
    }
    if (s->policy.by_frequency)
        wf_row_set_init_noted(&h->rows, bucket_of(s), (uint32_t)wf_hashed_body(h));
    else
        wf_row_set_init(&h->rows, bucket_of(s), (uint32_t)wf_hashed_body(h), ordered);
    wf_row_set_init(&h->waiting, bucket_of(s), sizeof(uint32_t), ordered);
    if (s->policy.filter_bytes)
        WF_TRY(wf_id_filter_init(&h->filter, s->policy.filter_bytes, err));
    WF_TRY(open_cold(h, err));
    return wf_hashed_limit(h, err);
}

static void hashed_close(wf_slice *s)
{
    wf_hashed *h = hashed_of(s);

    wf_row_set_close(&h->rows);
    wf_row_set_close(&h->waiting);
    wf_cold_rows_close(&h->cold);
    wf_id_filter_close(&h->filter);
    wf_hashed_free_copy(&h->copy);
    free(h->found);
}

/* ---- checks ---- */

/* Keys of this bucket in rising order: so that each is named once, and threads share no row. */
static wf_status check_keys(const wf_slice *s, const wf_rows *rows, wf_err *err)
{
    for (uint64_t i = 0; i < rows->n; i++) {
        uint64_t key = wf_row_id(rows, i);

        if (wf_row_bucket(key) != bucket_of(s))
            return wf_fail(err, WF_SHAPE, NULL,
                           "a row with the key %016" PRIx64 " is not in slice %u, bucket %u", key,
                           s->id, bucket_of(s));
        if (i > 0 && key <= wf_row_id(rows, i - 1))
            return wf_fail(err, WF_PROTO, NULL, "keys of slice %u are not in rising order", s->id);
    }
    return WF_OK;
}

/* How many of the keys get a row with this push, and how many wait on. With a filter a key's count
 * may go by the keys before it: all of them may get rows. */
static void count_new(const wf_hashed *h, const wf_rows *rows, uint64_t *made, uint64_t *waiting)
{
    uint32_t admit_after = wf_row_policy_waits(&h->base.policy) ? h->base.policy.admit_after : 1;

    *made = *waiting = 0;
    for (uint64_t i = 0; i < rows->n; i++) {
        uint64_t key = wf_row_id(rows, i);
        int32_t at;

        if (wf_row_set_find(&h->rows, key) != WF_NO_RECORD ||
            wf_row_set_find(&h->cold.heads, key) != WF_NO_RECORD)
            continue;
        at = admit_after > 1 ? wf_row_set_find(&h->waiting, key) : WF_NO_RECORD;
        if (admit_after <= 1 || (at != WF_NO_RECORD &&
                                 *(uint32_t *)wf_row_set_body(&h->waiting, at) + 1 >= admit_after))
            ++*made;
        else
            ++*waiting;
    }
}

/* Where rows leave, they do so when a push has been applied. */
static wf_status check_room(const wf_hashed *h, const wf_rows *rows, wf_err *err)
{
    const wf_row_policy *p = &h->base.policy;
    uint64_t most = p->disk                        ? h->rows_most
                    : p->fails_full && p->max_rows ? p->max_rows
                                                   : WF_RECORDS_MOST;
    uint64_t most_rows = WF_MIN(most, (uint64_t)WF_RECORDS_MOST), made, waiting;
    uint64_t most_waiting = p->max_bytes ? most_rows : WF_RECORDS_MOST;
    uint64_t n = h->rows.records.n + wf_cold_rows_n(&h->cold);

    if (n + rows->n <= most_rows && h->waiting.records.n + rows->n <= most_rows)
        return WF_OK;
    count_new(h, rows, &made, &waiting);
    if (n + made > most_rows)
        return wf_fail(
            err, WF_FULL,
            p->max_bytes ? "raise max_bytes of the table, or let it evict rows (when_full)"
                         : "raise max_rows of the table, or let it evict rows (evict_after, "
                           "when_full)",
            "slice %u of an unbounded table would have %" PRIu64 " rows, and may have %" PRIu64,
            h->base.id, n + made, most_rows);
    if (h->waiting.records.n + waiting > most_waiting)
        return wf_fail(err, WF_FULL, "set evict_after for the table, or lower admit_after",
                       "slice %u of an unbounded table counts pushes of %" PRIu64 " ids and more",
                       h->base.id, most_waiting);
    return WF_OK;
}

static wf_status hashed_check(const wf_slice *s, const wf_slice_part *p, wf_err *err)
{
    if (p->rows.n == 0)
        return wf_fail(err, WF_PROTO, "push the rows of a table by their keys",
                       "slice %u is of a table, and the part names no rows", s->id);
    if (p->n / p->rows.n != s->row || p->n % p->rows.n)
        return wf_fail(err, WF_SHAPE, NULL,
                       "a row of slice %u has %" PRIu64 " elements, and the part %" PRIu64
                       " for %" PRIu64 " rows",
                       s->id, s->row, p->n, p->rows.n);
    WF_TRY(check_keys(s, &p->rows, err));
    return check_room(hashed(s), &p->rows, err);
}

/* Asks for the memory of `bytes` of the body of a row, if it is one of `rows`. */
static void fetch(const wf_hashed *h, int32_t row, uint64_t bytes)
{
    const uint8_t *body;

    if (row < 0)
        return;
    body = wf_row_set_body(&h->rows, row);
    for (uint64_t k = 0; k < bytes; k += LINE)
        WF_PREFETCH(body + k);
    WF_PREFETCH(body + bytes - 1);
}

/* ---- updates ---- */

/* Room for the rows that go to files at the end of a push that adds so many to memory, of which so
 * many are new. */
static wf_status make_cold_room(wf_hashed *h, uint64_t added, uint64_t made, wf_err *err)
{
    uint64_t n = h->rows.records.n + added, all = h->rows.records.n + wf_cold_rows_n(&h->cold);
    uint64_t most = wf_hashed_in_memory(h, all + made), eras = h->rows.order.n_eras + UINT64_C(1);

    return n > most ? wf_cold_rows_reserve(&h->cold, n - most, WF_MIN(n - most, eras), err) : WF_OK;
}

static wf_status make_room(wf_hashed *h, const wf_rows *rows, wf_err *err)
{
    uint64_t missing = 0, cold = 0;

    if (h->found_room < rows->n) {
        int32_t *found = realloc(h->found, rows->n * sizeof *found);

        if (!found)
            return wf_fail_nomem(err, rows->n * sizeof *found);
        h->found = found;
        h->found_room = rows->n;
    }
    wf_row_set_find_all(&h->rows, rows, 0, rows->n, h->found);
    wf_cold_rows_find_all(&h->cold, rows, 0, rows->n, h->found);
    for (uint64_t i = 0; i < rows->n; i++) {
        missing += h->found[i] == WF_NO_RECORD;
        cold += wf_is_cold_row(h->found[i]);
    }
    WF_TRY(wf_row_set_reserve(&h->rows, missing + cold, 1, err));
    if (h->base.policy.disk)
        WF_TRY(make_cold_room(h, missing + cold, missing, err));
    return wf_row_policy_waits(&h->base.policy) ? wf_row_set_reserve(&h->waiting, missing, 1, err)
                                                : WF_OK;
}

/* The new row of a key, or WF_NO_RECORD when its id has to be named more often. */
static int32_t admit(wf_hashed *h, uint64_t key, uint32_t now)
{
    if (h->filter.size &&
        wf_id_filter_add(&h->filter, key) < WF_MIN(h->base.policy.admit_after, WF_ID_FILTER_MOST))
        return WF_NO_RECORD;
    if (wf_row_policy_waits(&h->base.policy)) {
        int32_t at = wf_row_set_find(&h->waiting, key);
        uint32_t *count;

        if (at == WF_NO_RECORD) {
            at = wf_row_set_add(&h->waiting, key, now);
            *(uint32_t *)wf_row_set_body(&h->waiting, at) = 0;
        } else {
            wf_row_set_use(&h->waiting, at, now);
        }
        count = wf_row_set_body(&h->waiting, at);
        if (++*count < h->base.policy.admit_after)
            return WF_NO_RECORD;
        wf_row_set_remove(&h->waiting, at);
    }
    return wf_hashed_add(h, key, now);
}

/* Brings the rows of a push back to memory. Where one lies in a file may have changed since it was
 * looked for: with each that leaves, another gets its place. */
static void bring_back(wf_hashed *h, const wf_rows *rows, uint32_t now)
{
    for (uint64_t i = 0; i < rows->n; i++) {
        uint64_t key = wf_row_id(rows, i);
        int32_t from;

        if (!wf_is_cold_row(h->found[i]))
            continue;
        from = wf_row_set_find(&h->cold.heads, key);
        h->found[i] = wf_row_set_add(&h->rows, key, now);
        memcpy(wf_row_set_body(&h->rows, h->found[i]), wf_cold_rows_body(&h->cold, from),
               wf_hashed_body(h));
        wf_cold_rows_remove(&h->cold, from);
    }
}

/* Finds the rows or makes them, so that threads need not change the sets. */
static wf_status hashed_apply_begin(wf_slice_update *u, wf_err *err)
{
    wf_hashed *h = hashed_of(u->slice);
    const wf_rows *rows = &u->part.rows;
    uint32_t now = (uint32_t)(u->slice->updates + 1);

    WF_TRY(make_room(h, rows, err));
    bring_back(h, rows, now);
    h->first_new = (int32_t)h->rows.records.n;
    for (uint64_t i = 0; i < rows->n; i++) {
        if (i + FAR < rows->n && h->found[i + FAR] != WF_NO_RECORD)
            wf_row_set_prefetch_use(&h->rows, h->found[i + FAR]);
        if (h->found[i] == WF_NO_RECORD)
            h->found[i] = admit(h, wf_row_id(rows, i), now);
        else
            wf_hashed_use(h, h->found[i], now);
    }
    u->units = rows->n;
    u->grain = WF_MAX((uint64_t)GRAIN / u->slice->row, (uint64_t)1);
    return WF_OK;
}

static void hashed_apply_range(const wf_slice_update *u, const wf_opt *opt, uint64_t begin,
                               uint64_t end)
{
    const wf_slice *s = u->slice;
    const wf_hashed *h = hashed(s);

    for (uint64_t i = begin; i < end; i++) {
        if (i + AHEAD < end)
            fetch(h, h->found[i + AHEAD], wf_hashed_body(h));
        if (h->found[i] == WF_NO_RECORD)
            continue;
        if (h->found[i] >= h->first_new)
            wf_hashed_begin_row(h, h->found[i], wf_row_id(&u->part.rows, i));
        wf_hashed_update_row(h, opt, h->found[i], &u->part, i);
    }
}

static void hashed_apply_end(wf_slice_update *u)
{
    wf_hashed_evict(hashed_of(u->slice));
}

/* ---- pulls ---- */

static void answer_block(const wf_slice *s, const wf_rows *rows, uint64_t first, uint64_t n,
                         float out[])
{
    uint64_t of_values = wf_row_values_room(wf_slice_dtype(s), s->row);
    const wf_hashed *h = hashed(s);
    int32_t found[BLOCK];

    wf_row_set_find_all(&h->rows, rows, first, n, found);
    wf_cold_rows_find_all(&h->cold, rows, first, n, found);
    for (uint64_t i = 0; i < n; i++) {
        float *to = out + i * s->row;

        if (i + AHEAD < n)
            fetch(h, found[i + AHEAD], of_values);
        if (found[i] == WF_NO_RECORD)
            wf_hashed_answer_first(s, wf_row_id(rows, first + i), to);
        else if (wf_is_cold_row(found[i]))
            wf_hashed_read_body(h, wf_cold_rows_body(&h->cold, wf_cold_row(found[i])), to);
        else
            wf_hashed_read_body(h, wf_row_set_body(&h->rows, found[i]), to);
    }
}

static void hashed_answer_rows(const wf_slice *s, const wf_rows *rows, float out[])
{
    for (uint64_t at = 0; at < rows->n; at += BLOCK)
        answer_block(s, rows, at, WF_MIN(rows->n - at, (uint64_t)BLOCK), out + at * s->row);
}

static uint64_t hashed_held(const wf_slice *s)
{
    return wf_row_set_bytes(&hashed(s)->rows) + wf_row_set_bytes(&hashed(s)->waiting) +
           wf_cold_rows_bytes(&hashed(s)->cold) + hashed(s)->filter.size;
}

static uint64_t hashed_on_disk(const wf_slice *s)
{
    return wf_cold_rows_on_disk(&hashed(s)->cold);
}

const wf_slice_ops wf_slice_hashed = {
    .name = "hashed",
    .size = sizeof(wf_hashed),
    .init = hashed_init,
    .close = hashed_close,
    .check = hashed_check,
    .check_rows = check_keys,
    .apply_begin = hashed_apply_begin,
    .apply_range = hashed_apply_range,
    .apply_end = hashed_apply_end,
    .answer_rows = hashed_answer_rows,
    .fork = wf_hashed_fork,
    .save = wf_hashed_save,
    .held = hashed_held,
    .on_disk = hashed_on_disk,
    .load = wf_hashed_load,
    .digest = wf_hashed_digest,
};
