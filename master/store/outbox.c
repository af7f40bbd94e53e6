/* SPDX-License-Identifier: Apache-2.0 */
/* master/store/outbox.c - a ring of rows. */
#include "master/store/outbox.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_ROOM = 64 };

static wf_outbox_row *row_at(const wf_outbox *b, size_t i)
{
    return &b->rows[(b->first + i) % b->room];
}

static wf_outbox_row *add(wf_outbox *b)
{
    if (b->n == b->room) {
        size_t room = b->room ? 2 * b->room : LEAST_ROOM;
        wf_outbox_row *rows = calloc(room, sizeof *rows);

        if (!rows)
            return NULL;
        for (size_t i = 0; i < b->n; i++)
            rows[i] = *row_at(b, i);
        free(b->rows);
        *b = (wf_outbox){.rows = rows, .n = b->n, .room = room};
    }
    return row_at(b, b->n++);
}

wf_status wf_outbox_add_message(wf_outbox *b, uint64_t after, wf_peer *to, wf_msg **msg,
                                wf_err *err)
{
    wf_outbox_row *row = add(b);

    if (!row)
        return wf_fail_nomem(err, b->room * sizeof *row);
    wf_assert(b->n < 2 || row_at(b, b->n - 2)->after <= after);
    *row = (wf_outbox_row){.after = after, .to = to, .msg = *msg};
    *msg = NULL;
    return WF_OK;
}

void wf_outbox_add_note(wf_outbox *b, uint64_t after, const char *job, char *json)
{
    wf_outbox_row *row = add(b);

    if (!row) {
        free(json);
        return;
    }
    *row = (wf_outbox_row){.after = after, .json = json};
    snprintf(row->job, sizeof row->job, "%s", job);
}

bool wf_outbox_next(wf_outbox *b, uint64_t durable, wf_outbox_row *out)
{
    if (b->n == 0 || row_at(b, 0)->after > durable)
        return false;
    *out = *row_at(b, 0);
    b->first = (b->first + 1) % b->room;
    b->n--;
    return true;
}

void wf_outbox_purge(wf_outbox *b, wf_net *net, const wf_peer *peer)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->n; i++) {
        wf_outbox_row *row = row_at(b, i);

        if (row->msg && row->to == peer)
            wf_net_free_msg(net, &row->msg);
        else
            *row_at(b, kept++) = *row;
    }
    b->n = kept;
}

void wf_outbox_close(wf_outbox *b)
{
    wf_msg_pool pool = {0}; /* the net, whose pool they are of, may be gone */

    for (size_t i = 0; i < b->n; i++) {
        wf_msg_free(&pool, &row_at(b, i)->msg);
        free(row_at(b, i)->json);
    }
    wf_msg_pool_close(&pool);
    free(b->rows);
    *b = (wf_outbox){0};
}
