/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/ledger.c */
#include "master/epoch/ledger.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SPLITS = 1 << 24 };

wf_status wf_ledger_begin(wf_ledger *l, uint32_t epoch, uint64_t records, uint64_t split_records,
                          wf_err *err)
{
    uint64_t n = split_records ? records / split_records + (records % split_records != 0) : 0;
    wf_ledger fresh = {.epoch = epoch, .records = records, .split_records = split_records, .n = n};
    wf_status rc;

    if (n == 0 || n > MOST_SPLITS)
        return wf_fail(err, WF_INVALID, "check \"data:\" and \"split_records\"",
                       "%lu records in splits of %lu cannot be dealt", (unsigned long)records,
                       (unsigned long)split_records);
    fresh.rows = calloc(n, sizeof *fresh.rows);
    rc = fresh.rows ? WF_OK : wf_fail_nomem(err, n * sizeof *fresh.rows);
    if (rc == WF_OK)
        rc = wf_todo_init(&fresh.plain, n, err);
    if (rc == WF_OK)
        rc = wf_todo_init(&fresh.suspects, n, err);
    if (rc != WF_OK) {
        wf_ledger_close(&fresh);
        return rc;
    }
    for (uint64_t i = 0; i < n; i++) {
        fresh.rows[i].next = i * split_records;
        wf_todo_add(&fresh.plain, i);
    }
    wf_ledger_close(l);
    *l = fresh;
    return WF_OK;
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
    *l = (wf_ledger){0};
}

uint64_t wf_ledger_begins(const wf_ledger *l, uint64_t id)
{
    return id * l->split_records;
}

uint64_t wf_ledger_ends(const wf_ledger *l, uint64_t id)
{
    return WF_MIN((id + 1) * l->split_records, l->records);
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
    any = l->n && next_plain(l, host, id);
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
        row->state = WF_SPLIT_TODO;
        if (died && row->deaths < UINT8_MAX)
            row->deaths++;
        if (is_suspect(row))
            wf_todo_add(&l->suspects, id);
        else
            add_plain(l, id);
        n++;
    }
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
    for (uint64_t i = begin / l->split_records; i < l->n && wf_ledger_begins(l, i) < end; i++) {
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
