/* SPDX-License-Identifier: Apache-2.0 */
/* master/ledger.c */
#include "master/ledger.h"
#include "common/base/size.h"

#include <stdlib.h>

enum { MOST_SPLITS = 1 << 24 };

wf_status wf_ledger_begin(wf_ledger *l, uint32_t epoch, uint64_t records, uint64_t split_records,
                          wf_err *err)
{
    uint64_t n = split_records ? records / split_records + (records % split_records != 0) : 0;
    wf_split_row *rows;

    if (n == 0 || n > MOST_SPLITS)
        return wf_fail(err, WF_INVALID, "check \"data:\" and \"split_records\"",
                       "%lu records in splits of %lu cannot be dealt", (unsigned long)records,
                       (unsigned long)split_records);
    rows = calloc(n, sizeof *rows);
    if (!rows)
        return wf_fail_nomem(err, n * sizeof *rows);
    free(l->rows);
    *l = (wf_ledger){
        .epoch = epoch, .records = records, .split_records = split_records, .n = n, .rows = rows};
    for (uint64_t i = 0; i < n; i++)
        rows[i].next = i * split_records;
    return WF_OK;
}

void wf_ledger_close(wf_ledger *l)
{
    free(l->rows);
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

static bool held_by(const wf_ledger *l, uint64_t id, uint64_t incarnation)
{
    return id < l->n && l->rows[id].state == WF_SPLIT_LEASED &&
           l->rows[id].incarnation == incarnation;
}

static bool is_suspect(const wf_split_row *row)
{
    return row->deaths + 1 >= WF_SPLIT_DEATHS;
}

bool wf_ledger_deal(wf_ledger *l, uint64_t incarnation, uint64_t *id)
{
    bool holds = false;

    for (uint64_t i = 0; i < l->n; i++) {
        if (!held_by(l, i, incarnation))
            continue;
        if (is_suspect(&l->rows[i]))
            return false;
        holds = true;
    }
    for (uint64_t i = 0; i < l->n; i++)
        if (l->rows[i].state == WF_SPLIT_TODO && !(holds && is_suspect(&l->rows[i]))) {
            l->rows[i].state = WF_SPLIT_LEASED;
            l->rows[i].incarnation = incarnation;
            *id = i;
            return true;
        }
    return false;
}

void wf_ledger_progress(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next)
{
    if (!held_by(l, id, incarnation) || next <= l->rows[id].next || next > wf_ledger_ends(l, id))
        return;
    l->rows[id].next = next;
    l->rows[id].deaths = 0;
}

bool wf_ledger_claim(wf_ledger *l, uint64_t id, uint64_t incarnation, uint64_t next)
{
    if (id >= l->n)
        return false;
    if (l->rows[id].state == WF_SPLIT_TODO) {
        l->rows[id].state = WF_SPLIT_LEASED;
        l->rows[id].incarnation = incarnation;
    }
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
    l->rows[id].state = WF_SPLIT_FINISHED;
    l->rows[id].incarnation = 0;
    l->rows[id].next = wf_ledger_ends(l, id);
    l->done++;
    return true;
}

uint32_t wf_ledger_release(wf_ledger *l, uint64_t incarnation, bool died)
{
    uint32_t n = 0;

    for (uint64_t i = 0; i < l->n; i++) {
        if (!held_by(l, i, incarnation))
            continue;
        l->rows[i].state = WF_SPLIT_TODO;
        l->rows[i].incarnation = 0;
        if (died && l->rows[i].deaths < UINT8_MAX)
            l->rows[i].deaths++;
        n++;
    }
    return n;
}

bool wf_ledger_deadly(const wf_ledger *l, uint64_t *id)
{
    for (uint64_t i = 0; i < l->n; i++)
        if (l->rows[i].state == WF_SPLIT_TODO && l->rows[i].deaths >= WF_SPLIT_DEATHS) {
            *id = i;
            return true;
        }
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
            row->next = end;
    }
}

uint64_t wf_ledger_trained(const wf_ledger *l)
{
    uint64_t trained = 0;

    for (uint64_t i = 0; i < l->n; i++)
        trained += l->rows[i].next - wf_ledger_begins(l, i);
    return trained;
}
