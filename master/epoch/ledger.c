/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/ledger.c */
#include "master/epoch/ledger.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SPLITS = 1 << 24 };

static uint64_t splits_of(uint64_t records, uint64_t each)
{
    return each ? records / each + (records % each != 0) : 0;
}

/* How many splits there are; MOST_SPLITS + 1: too many. */
static uint64_t count_splits(uint64_t records, uint64_t each, size_t n_files, const uint64_t ends[])
{
    uint64_t begin = 0, n = 0;

    if (!n_files)
        return splits_of(records, each);
    for (size_t i = 0; i < n_files && begin < records && n <= MOST_SPLITS; begin = ends[i++])
        n += splits_of(WF_MIN(ends[i], records) - begin, each);
    return n;
}

/* Where each split begins, and of which file it is. */
static void cut_files(wf_ledger *l, const uint64_t ends[])
{
    uint64_t begin = 0, id = 0;

    for (size_t i = 0; begin < l->records; i++) {
        uint64_t end = WF_MIN(ends[i], l->records);
        wf_ledger_file *f = &l->files[l->n_files];

        *f = (wf_ledger_file){.first = id, .begin = begin, .end = ends[i]};
        for (uint64_t at = begin; at < end; at += l->split_records, id++) {
            l->begins[id] = at;
            l->file_of[id] = (uint32_t)l->n_files;
        }
        f->last = id;
        if (f->last > f->first)
            wf_todo_add(&l->unbegun, l->n_files++);
        begin = end;
    }
    l->begins[id] = l->records;
    wf_assert(id == l->n);
}

static wf_status make_files(wf_ledger *l, size_t n_files, const uint64_t ends[], wf_err *err)
{
    if (!n_files)
        return WF_OK;
    l->begins = calloc(l->n + 1, sizeof *l->begins);
    l->file_of = calloc(l->n, sizeof *l->file_of);
    l->files = calloc(n_files, sizeof *l->files);
    if (!l->begins || !l->file_of || !l->files)
        return wf_fail_nomem(err, (size_t)l->n * sizeof *l->begins);
    WF_TRY(wf_todo_init(&l->unbegun, n_files, err));
    cut_files(l, ends);
    return WF_OK;
}

wf_status wf_ledger_begin_files(wf_ledger *l, uint32_t epoch, uint64_t records,
                                uint64_t split_records, size_t n_files, const uint64_t ends[],
                                wf_err *err)
{
    uint64_t n = count_splits(records, split_records, n_files, ends);
    wf_ledger fresh = {.epoch = epoch, .records = records, .split_records = split_records, .n = n};
    wf_status rc;

    if (n == 0 || n > MOST_SPLITS || n_files > MOST_SPLITS ||
        (n_files && ends[n_files - 1] < records))
        return wf_fail(err, WF_INVALID, "check \"data:\" and \"split_records\"",
                       "%lu records in splits of %lu cannot be dealt", (unsigned long)records,
                       (unsigned long)split_records);
    fresh.rows = calloc(n, sizeof *fresh.rows);
    rc = fresh.rows ? WF_OK : wf_fail_nomem(err, n * sizeof *fresh.rows);
    if (rc == WF_OK)
        rc = wf_todo_init(&fresh.plain, n, err);
    if (rc == WF_OK)
        rc = wf_todo_init(&fresh.suspects, n, err);
    if (rc == WF_OK)
        rc = make_files(&fresh, n_files, ends, err);
    if (rc != WF_OK) {
        wf_ledger_close(&fresh);
        return rc;
    }
    for (uint64_t i = 0; i < n; i++) {
        fresh.rows[i].next = wf_ledger_begins(&fresh, i);
        wf_todo_add(&fresh.plain, i);
    }
    wf_ledger_close(l);
    *l = fresh;
    return WF_OK;
}

wf_status wf_ledger_begin(wf_ledger *l, uint32_t epoch, uint64_t records, uint64_t split_records,
                          wf_err *err)
{
    return wf_ledger_begin_files(l, epoch, records, split_records, 0, NULL, err);
}

static void forget_near(wf_ledger *l)
{
    for (uint32_t i = 0; l->near_plain && i <= l->n_hosts; i++)
        wf_todo_close(&l->near_plain[i]);
    free(l->near_plain);
    free(l->near);
    l->near_plain = NULL;
    l->near = NULL;
    l->n_hosts = 0;
}

void wf_ledger_close(wf_ledger *l)
{
    forget_near(l);
    free(l->rows);
    wf_todo_close(&l->plain);
    wf_todo_close(&l->suspects);
    wf_index_close(&l->held);
    free(l->begins);
    free(l->file_of);
    free(l->files);
    wf_todo_close(&l->unbegun);
    wf_index_close(&l->begun);
    *l = (wf_ledger){0};
}

uint64_t wf_ledger_begins(const wf_ledger *l, uint64_t id)
{
    return l->begins ? l->begins[id] : id * l->split_records;
}

uint64_t wf_ledger_ends(const wf_ledger *l, uint64_t id)
{
    return l->begins ? l->begins[id + 1] : WF_MIN((id + 1) * l->split_records, l->records);
}

void wf_ledger_order_of(const wf_ledger *l, uint64_t id, uint64_t *begin, uint64_t *end)
{
    *begin = l->files ? l->files[l->file_of[id]].begin : 0;
    *end = l->files ? l->files[l->file_of[id]].end : 0;
}

/* The split of a position. */
static uint64_t split_at(const wf_ledger *l, uint64_t position)
{
    uint64_t low = 0, high = l->n;

    if (!l->begins)
        return position / l->split_records;
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;

        if (l->begins[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- plain splits, and those near a host ---- */

/* In each of the sets that a split is in. */
static void change_near(wf_ledger *l, uint64_t id, void (*change)(wf_todo *t, uint64_t i))
{
    for (uint32_t i = 0; l->near && i < l->n_hosts; i++)
        if (l->near[id] >> i & 1)
            change(&l->near_plain[i], id);
    if (l->near && !l->near[id])
        change(&l->near_plain[l->n_hosts], id);
}

static void add_plain(wf_ledger *l, uint64_t id)
{
    wf_todo_add(&l->plain, id);
    change_near(l, id, wf_todo_add);
}

static void remove_plain(wf_ledger *l, uint64_t id)
{
    wf_todo_remove(&l->plain, id);
    change_near(l, id, wf_todo_remove);
}

wf_status wf_ledger_place(wf_ledger *l, uint32_t n_hosts, const uint64_t near[], wf_err *err)
{
    wf_status rc = WF_OK;

    forget_near(l);
    if (n_hosts > WF_LEDGER_HOSTS)
        return wf_fail(err, WF_INVALID, "name fewer", "splits near %u hosts; %d may be", n_hosts,
                       WF_LEDGER_HOSTS);
    l->near = malloc((size_t)l->n * sizeof *l->near + 1);
    l->near_plain = calloc(n_hosts + 1, sizeof *l->near_plain);
    if (!l->near || !l->near_plain) {
        forget_near(l);
        return wf_fail_nomem(err, (size_t)l->n * sizeof *l->near);
    }
    l->n_hosts = n_hosts;
    memcpy(l->near, near, (size_t)l->n * sizeof *l->near);
    for (uint32_t i = 0; rc == WF_OK && i <= n_hosts; i++)
        rc = wf_todo_init(&l->near_plain[i], l->n, err);
    if (rc != WF_OK) {
        forget_near(l);
        return rc;
    }
    for (uint64_t id = 0; wf_todo_next(&l->plain, id, &id); id++)
        change_near(l, id, wf_todo_add);
    return WF_OK;
}

bool wf_ledger_is_near(const wf_ledger *l, uint64_t id, int host)
{
    return l->near && host >= 0 && (uint32_t)host < l->n_hosts && id < l->n &&
           (l->near[id] >> host & 1);
}

/* The plain split that a worker of that host takes next. */
static bool next_plain(const wf_ledger *l, int host, uint64_t *id)
{
    if (l->near && host >= 0 && (uint32_t)host < l->n_hosts &&
        wf_todo_next(&l->near_plain[host], 0, id))
        return true;
    if (l->near && wf_todo_next(&l->near_plain[l->n_hosts], 0, id))
        return true;
    return wf_todo_next(&l->plain, 0, id);
}

/* ---- files, and who has begun them ---- */

/* The first plain split of a file. */
static bool next_of_file(const wf_ledger *l, const wf_ledger_file *f, uint64_t *id)
{
    return wf_todo_next(&l->plain, f->first, id) && *id < f->last;
}

/* How far a split is from a host: 0 for one that is near it, 1 for one that is near none. */
static int distance(const wf_ledger *l, uint64_t id, int host)
{
    if (!l->near || !l->near[id])
        return l->near ? 1 : 0;
    return wf_ledger_is_near(l, id, host) ? 0 : 2;
}

/* The first split of the nearest file that nobody has begun. */
static bool next_unbegun(wf_ledger *l, int host, uint64_t *id)
{
    int least = INT32_MAX;

    for (uint64_t f = 0; least > 0 && wf_todo_next(&l->unbegun, f, &f); f++) {
        uint64_t first;

        if (!next_of_file(l, &l->files[f], &first)) {
            wf_todo_remove(&l->unbegun, f); /* until one of its splits comes back */
            continue;
        }
        if (distance(l, first, host) < least) {
            least = distance(l, first, host);
            *id = first;
        }
    }
    return least < INT32_MAX;
}

static bool next_of_files(wf_ledger *l, uint64_t incarnation, int host, uint64_t *id)
{
    const wf_ledger_file *own = wf_index_get(&l->begun, incarnation);

    return (own && next_of_file(l, own, id)) || next_unbegun(l, host, id) ||
           next_plain(l, host, id);
}

/* Without memory for who has begun a file it is dealt like one that another worker has. */
static void begin_file(wf_ledger *l, uint64_t id, uint64_t incarnation)
{
    wf_ledger_file *f = l->files ? &l->files[l->file_of[id]] : NULL;

    if (!f || (f->begun_by && f->begun_by != incarnation))
        return;
    f->begun_by = incarnation;
    wf_todo_remove(&l->unbegun, l->file_of[id]);
    (void)!wf_index_put(&l->begun, incarnation, f, NULL);
}

static void leave_file(wf_ledger *l, wf_ledger_file *f, uint64_t incarnation)
{
    if (!f || f->begun_by != incarnation)
        return;
    f->begun_by = 0;
    wf_todo_add(&l->unbegun, (uint64_t)(f - l->files));
}

/* ---- who holds what ---- */

static bool held_by(const wf_ledger *l, uint64_t id, uint64_t incarnation)
{
    return id < l->n && l->rows[id].state == WF_SPLIT_LEASED &&
           l->rows[id].incarnation == incarnation;
}

static wf_split_row *newest_of(const wf_ledger *l, uint64_t incarnation)
{
    return wf_index_get(&l->held, incarnation);
}

bool wf_ledger_held(const wf_ledger *l, uint64_t incarnation, uint64_t *id)
{
    const wf_split_row *newest = newest_of(l, incarnation);

    if (*id != UINT64_MAX)
        *id = (uint64_t)l->rows[*id].after - 1; /* after the last one: UINT64_MAX again */
    else if (newest)
        *id = (uint64_t)(newest - l->rows);
    return *id != UINT64_MAX;
}

/* Where there is no memory for a new holder the split stays to do. */
static bool lease(wf_ledger *l, uint64_t id, uint64_t incarnation)
{
    wf_split_row *row = &l->rows[id], *newest = newest_of(l, incarnation);

    if (wf_index_put(&l->held, incarnation, row, NULL) != WF_OK)
        return false;
    wf_assert(row->state == WF_SPLIT_TODO); /* S3 */
    row->before = 0;
    row->after = newest ? (uint32_t)(newest - l->rows) + 1 : 0;
    if (newest)
        newest->before = (uint32_t)id + 1;
    row->state = WF_SPLIT_LEASED;
    row->incarnation = incarnation;
    remove_plain(l, id);
    wf_todo_remove(&l->suspects, id);
    begin_file(l, id, incarnation);
    return true;
}

static void unlease(wf_ledger *l, uint64_t id)
{
    wf_split_row *row = &l->rows[id];

    if (row->state != WF_SPLIT_LEASED)
        return;
    if (row->after)
        l->rows[row->after - 1].before = row->before;
    if (row->before)
        l->rows[row->before - 1].after = row->after;
    else if (!row->after)
        wf_index_remove(&l->held, row->incarnation);
    else if (wf_index_put(&l->held, row->incarnation, &l->rows[row->after - 1], NULL) != WF_OK)
        wf_assert(false && "the key is there, so no memory is taken");
    row->before = row->after = 0;
    row->incarnation = 0;
}

static bool is_suspect(const wf_split_row *row)
{
    return row->deaths + 1 >= WF_SPLIT_DEATHS;
}

static void move_on(wf_ledger *l, uint64_t id, uint64_t next)
{
    wf_assert(next >= l->rows[id].next && next <= wf_ledger_ends(l, id)); /* S1 */
    l->trained += next - l->rows[id].next;
    l->rows[id].next = next;
    wf_assert(l->trained <= l->records);
}

/* ---- what happens ---- */

bool wf_ledger_any_to_do(const wf_ledger *l)
{
    uint64_t id;

    return l->n && (wf_todo_next(&l->plain, 0, &id) || wf_todo_next(&l->suspects, 0, &id));
}

bool wf_ledger_deal_near(wf_ledger *l, uint64_t incarnation, int host, uint64_t *id)
{
    uint64_t held = UINT64_MAX, suspect;
    bool holds = false, any;

    while (wf_ledger_held(l, incarnation, &held)) {
        if (is_suspect(&l->rows[held]))
            return false;
        holds = true;
    }
    any = l->n && (l->files ? next_of_files(l, incarnation, host, id) : next_plain(l, host, id));
    if (l->n && !holds && wf_todo_next(&l->suspects, 0, &suspect) && (!any || suspect < *id)) {
        any = true;
        *id = suspect;
    }
    return any && lease(l, *id, incarnation);
}

bool wf_ledger_deal(wf_ledger *l, uint64_t incarnation, uint64_t *id)
{
    return wf_ledger_deal_near(l, incarnation, -1, id);
}

void wf_ledger_progress(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next)
{
    if (!held_by(l, id, incarnation) || next <= l->rows[id].next || next > wf_ledger_ends(l, id))
        return;
    move_on(l, id, next);
    l->rows[id].deaths = 0;
}

bool wf_ledger_claim(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next)
{
    if (id >= l->n)
        return false;
    if (l->rows[id].state == WF_SPLIT_TODO && !lease(l, id, incarnation))
        return false;
    if (!held_by(l, id, incarnation))
        return false;
    wf_ledger_progress(l, id, incarnation, next);
    return true;
}

bool wf_ledger_finish(wf_ledger *l, uint64_t id, uint64_t incarnation)
{
    if (id >= l->n || l->rows[id].state == WF_SPLIT_FINISHED)
        return false;
    if (incarnation && !held_by(l, id, incarnation))
        return false;
    unlease(l, id);
    remove_plain(l, id);
    wf_todo_remove(&l->suspects, id);
    l->rows[id].state = WF_SPLIT_FINISHED;
    move_on(l, id, wf_ledger_ends(l, id));
    l->done++;
    wf_assert(l->done <= l->n);
    return true;
}

uint32_t wf_ledger_release(wf_ledger *l, uint64_t incarnation, bool died)
{
    const wf_split_row *newest;
    uint32_t n = 0;

    while ((newest = newest_of(l, incarnation))) {
        uint64_t id = (uint64_t)(newest - l->rows);
        wf_split_row *row = &l->rows[id];

        wf_assert(row->state == WF_SPLIT_LEASED && row->incarnation == incarnation);
        unlease(l, id);
        if (l->files)
            leave_file(l, &l->files[l->file_of[id]], incarnation);
        row->state = WF_SPLIT_TODO;
        if (died && row->deaths < UINT8_MAX)
            row->deaths++;
        if (is_suspect(row))
            wf_todo_add(&l->suspects, id);
        else
            add_plain(l, id);
        n++;
    }
    leave_file(l, wf_index_get(&l->begun, incarnation), incarnation);
    wf_index_remove(&l->begun, incarnation);
    return n;
}

bool wf_ledger_deadly(const wf_ledger *l, uint64_t *id)
{
    for (uint64_t at = 0; l->n && wf_todo_next(&l->suspects, at, id); at = *id + 1)
        if (l->rows[*id].deaths >= WF_SPLIT_DEATHS)
            return true;
    return false;
}

void wf_ledger_restore(wf_ledger *l, uint64_t begin, uint64_t end)
{
    for (uint64_t i = split_at(l, begin); i < l->n && wf_ledger_begins(l, i) < end; i++) {
        wf_split_row *row = &l->rows[i];

        if (row->state == WF_SPLIT_FINISHED || begin > row->next || end <= row->next)
            continue;
        if (end >= wf_ledger_ends(l, i))
            wf_ledger_finish(l, i, 0);
        else
            move_on(l, i, end);
    }
}

uint64_t wf_ledger_trained(const wf_ledger *l)
{
    return l->trained;
}
