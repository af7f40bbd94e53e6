/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/view.c - the view is made, journaled, and sent to the ps. */
#include "master/member/view.h"
#include "common/log/log.h"
#include "common/wire/control.h"

#include <stdlib.h>
#include <string.h>

static void fill_member(const wf_master *m, const wf_member *who, Weft__Member *row)
{
    weft__member__init(row);
    row->role = who->task.role;
    row->index = who->task.index;
    row->incarnation = who->incarnation;
    row->address = (char *)(who->fellows[0] ? who->fellows : who->address);
    row->pid = who->pid;
    row->steps = m->job && who->generation == m->job_generation ? who->steps : 0;
}

/* Of live members: all; the ps alone; or those who have a part in a generation, if it is not 0. */
static wf_status make_view(const wf_master *m, bool of_ps, uint16_t part_of, Weft__View *out,
                           wf_err *err)
{
    uint32_t most = of_ps ? m->n_ps : m->n_members;
    Weft__Member *rows = calloc(most + 1, sizeof *rows);
    Weft__Member **list = calloc(most + 1, sizeof(*list));

    weft__view__init(out);
    out->number = m->view;
    out->members = list;
    if (!rows || !list) {
        free(rows);
        free(list);
        out->members = NULL;
        return wf_fail_nomem(err, most * sizeof *rows);
    }
    list[0] = rows; /* so that freeing finds the rows, also of an empty view */
    for (uint32_t i = 0; i < m->n_members && out->n_members < most; i++) {
        const wf_member *who = &m->members[i];
        Weft__Member *row = &rows[out->n_members];

        if (!wf_member_is_live(who) || (of_ps && who->task.role != WF_ROLE_PS) ||
            (part_of && !wf_member_has_part(who, part_of)))
            continue;
        fill_member(m, who, row);
        list[out->n_members++] = row;
    }
    return WF_OK;
}

wf_status wf_view_make(const wf_master *m, Weft__View *out, wf_err *err)
{
    return make_view(m, false, 0, out, err);
}

wf_status wf_view_of_ps(const wf_master *m, Weft__View *out, wf_err *err)
{
    return make_view(m, true, 0, out, err);
}

wf_status wf_view_of_part(const wf_master *m, uint16_t generation, Weft__View *out, wf_err *err)
{
    return make_view(m, false, generation, out, err);
}

void wf_view_free(Weft__View *v)
{
    if (v->members)
        free(v->members[0]);
    free(v->members);
    v->members = NULL;
    v->n_members = 0;
}

/* M1: who the members are is on disk before anyone hears it, so that a master that starts again
 * does not take those for dead that only have not found it yet. */
wf_status wf_view_journal(wf_master *m, Weft__View *view, uint64_t lost_steps, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;

    view->lost_steps = lost_steps;
    record.view = view;
    record.number = m->job_number;
    return wf_journal_append(m->journal, &record, err);
}

/* ---- to the ps ---- */

/* The newest view as a difference to the one before: who joined, and the incarnations that left. */
typedef struct difference {
    Weft__View body;
    Weft__Member *rows, **joined;
    uint64_t *left;
} difference;

static void close_difference(difference *d)
{
    free(d->rows);
    free(d->joined);
    free(d->left);
}

/* Finds it, and notes for the next one who is in this view. */
static wf_status find_difference(wf_master *m, difference *d, wf_err *err)
{
    *d = (difference){.rows = calloc(m->n_members + 1, sizeof *d->rows),
                      .joined = calloc(m->n_members + 1, sizeof(*d->joined)),
                      .left = calloc(m->n_members + 1, sizeof *d->left)};
    weft__view__init(&d->body);
    if (!d->rows || !d->joined || !d->left)
        return wf_fail_nomem(err, m->n_members * sizeof *d->rows);
    d->body.number = m->view;
    d->body.since = m->view - 1;
    d->body.members = d->joined;
    d->body.left = d->left;
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];
        uint64_t now = wf_member_is_live(who) ? who->incarnation : 0;
        Weft__Member *row = &d->rows[d->body.n_members];

        if (now == who->viewed)
            continue;
        if (who->viewed)
            d->left[d->body.n_left++] = who->viewed;
        who->viewed = now;
        if (!now)
            continue;
        fill_member(m, who, row);
        d->joined[d->body.n_members++] = row;
    }
    return WF_OK;
}

typedef struct packed {
    uint8_t *data;
    size_t size;
} packed;

static wf_status pack(const Weft__View *view, packed *out, wf_err *err)
{
    *out = (packed){.size = weft__view__get_packed_size(view)};
    out->data = malloc(out->size + 1);
    if (!out->data)
        return wf_fail_nomem(err, out->size);
    weft__view__pack(view, out->data);
    return WF_OK;
}

static wf_status send_packed(wf_master *m, const wf_member *to, const packed *p, wf_err *err)
{
    wf_msg *msg = NULL;
    uint8_t *control;
    wf_status rc;

    WF_TRY(wf_net_msg(m->net, WF_VIEW, &msg, err));
    control = wf_msg_control(msg, p->size);
    if (control || !p->size) {
        if (p->size)
            memcpy(control, p->data, p->size);
        rc = wf_master_send(m, to->peer, &msg, err);
    } else {
        rc = wf_fail_nomem(err, p->size);
    }
    wf_net_free_msg(m->net, &msg);
    return rc;
}

/* A ps that has the view before gets the difference, any other the whole; each is packed once.
 */
static wf_status send_to_ps(wf_master *m, const Weft__View *view, wf_err *err)
{
    packed whole = {0}, part = {0};
    difference d;
    wf_status rc = find_difference(m, &d, err);

    if (rc == WF_OK)
        rc = pack(view, &whole, err);
    if (rc == WF_OK)
        rc = pack(&d.body, &part, err);
    for (uint32_t i = 0; rc == WF_OK && i < m->n_members; i++) {
        const wf_member *who = &m->members[i];
        bool has_base = who->view_acked && who->view_acked == d.body.since;

        if (wf_member_is_live(who) && who->peer && who->task.role == WF_ROLE_PS)
            rc = send_packed(m, who, has_base ? &part : &whole, err);
    }
    free(whole.data);
    free(part.data);
    close_difference(&d);
    return rc;
}

wf_status wf_view_advance(wf_master *m, uint64_t lost_steps, wf_err *err)
{
    Weft__View view;
    wf_status rc;

    if (!m->view_stale)
        return WF_OK;
    WF_TRY(wf_view_make(m, &view, err));
    view.number = m->view + 1;
    rc = wf_view_journal(m, &view, lost_steps, err);
    wf_assert(!m->replaying);
    if (rc == WF_OK) {
        m->view++;
        m->view_stale = false;
        m->facts_known = false;
    }
    if (rc == WF_OK)
        rc = send_to_ps(m, &view, err);
    WF_LOG_INFO("view.new", "view=%u members=%zu", m->view, view.n_members);
    wf_view_free(&view);
    return rc;
}
