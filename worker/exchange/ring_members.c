/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_members.c - who takes part, and where they begin together.
 *
 * The master says who the members are, in views. With a new view, and when a link has broken and
 * may have lost messages, all begin a new round of steps: it has the view's number and that of an
 * attempt. Nobody uses messages of an older round. Each says to all where it is: its clock, and
 * whether it has the variables' values. Who has heard that of all members knows where all begin:
 *
 *   - at the latest clock that a member has. Whoever has applied a step had the gradients of all,
 *     so nobody can be more than one step behind;
 *   - with the values of the first member that is there. It gives them to those who are behind, and
 *     to those who have none since they have just joined;
 *   - what was given to the step after that is given again, from the gradients that each keeps
 * until a step is over. Who died has no part in it.
 *
 * So a step that any member has acknowledged (R3) is in the history of all who are left.
 */
#include "common/log/log.h"
#include "common/wire/host.h"
#include "worker/exchange/ring_state.h"

#include <stdlib.h>
#include <string.h>

static int by_index(const void *a, const void *b)
{
    const wf_ring_member *x = a, *y = b;

    return x->index < y->index ? -1 : x->index > y->index;
}

/* Finds this worker among the members, which are sorted. */
static wf_status find_me(const wf_ring *r, const wf_ring_member *list, uint32_t n, uint32_t *me,
                         wf_err *err)
{
    *me = n;
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && list[i].index == list[i - 1].index)
            return wf_fail(err, WF_PROTO, NULL, "worker %u is twice in a view", list[i].index);
        if (list[i].incarnation == r->local.conf.incarnation)
            *me = i;
    }
    return *me < n ? WF_OK : wf_fail(err, WF_PROTO, NULL, "a view that lacks this worker");
}

static wf_status list_members(const wf_ring *r, const Weft__View *view, wf_ring_member **out,
                              uint32_t *n, uint32_t *me, wf_err *err)
{
    wf_ring_member *list = NULL;
    wf_status rc;

    if (view->n_members > WF_REDUCE_MEMBERS_MOST)
        return wf_fail(err, WF_UNSUPPORTED, "take parameter_server for so many workers",
                       "gradients are added up between %d workers at most", WF_REDUCE_MEMBERS_MOST);
    list = calloc(view->n_members + 1, sizeof *list);
    if (!list)
        return wf_fail_nomem(err, view->n_members * sizeof *list);
    *n = 0;
    for (size_t i = 0; i < view->n_members; i++)
        if (view->members[i]->role == WF_ROLE_WORKER)
            list[(*n)++] = (wf_ring_member){.index = view->members[i]->index,
                                            .incarnation = view->members[i]->incarnation};
    qsort(list, *n, sizeof *list, by_index);
    rc = find_me(r, list, *n, me, err);
    if (rc == WF_OK)
        *out = list;
    else
        free(list);
    return rc;
}

/* Whether the workers of a view are all on one host, as far as their addresses tell: all who have
 * the view say the same. */
static bool are_on_one_host(const Weft__View *view)
{
    char first[WF_HOST_NAME], name[WF_HOST_NAME];
    bool any = false;

    for (size_t i = 0; i < view->n_members; i++) {
        if (view->members[i]->role != WF_ROLE_WORKER)
            continue;
        wf_host_of(view->members[i]->address, any ? name : first);
        if (any && strcmp(name, first) != 0)
            return false;
        any = true;
    }
    return true;
}

static bool are_members(const wf_ring *r, const wf_ring_member *list, uint32_t n)
{
    for (uint32_t i = 0; n == r->n_members && i < n; i++)
        if (r->members[i].incarnation != list[i].incarnation)
            return false;
    return n == r->n_members;
}

bool wf_ring_is_linked(const wf_ring *r)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && !r->members[i].peer)
            return false;
    return true;
}

uint32_t wf_ring_place_of(const wf_ring *r, const wf_peer *peer)
{
    uint32_t i = 0;

    while (i < r->n_members && (i == r->me || r->members[i].index != peer->task.index ||
                                r->members[i].incarnation != peer->incarnation))
        i++;
    return peer->task.role == WF_ROLE_WORKER ? i : r->n_members;
}

/* ---- all agree ---- */

static bool lacks_values(const wf_ring *r, const wf_ring_member *m)
{
    return !m->has_values || m->clock < r->start;
}

/* The latest clock, and the first member that is there. */
static wf_status choose_start(wf_ring *r, wf_err *err)
{
    r->giver = r->n_members;
    for (uint32_t i = 0; i < r->n_members; i++) {
        const wf_ring_member *m = &r->members[i];

        if (m->has_values && (r->giver == r->n_members || m->clock > r->start)) {
            r->giver = i;
            r->start = m->clock;
        }
    }
    if (r->giver == r->n_members)
        return wf_fail(err, WF_AGAIN, "the job goes back to its newest checkpoint",
                       "no worker is left that has the variables");
    if (r->has_values && r->start > r->clock && (r->start > r->clock + 1 || !r->is_given))
        return wf_fail(err, WF_BROKEN, NULL, "worker %u is at step %u, and this one at step %u",
                       r->members[r->giver].index, r->start, r->clock);
    if (r->early && r->early != r->start + 1)
        return wf_fail(err, WF_BROKEN, NULL, "messages of step %u came before step %u", r->early,
                       r->start + 1);
    return WF_OK;
}

static wf_status give_values(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->n_members && r->giver == r->me; i++)
        if (lacks_values(r, &r->members[i]))
            WF_TRY(wf_ring_give_values(r, i, err));
    return WF_OK;
}

/* Nobody can be given its slots. */
static wf_status check_divided(const wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; r->is_divided && i < r->n_members; i++)
        if (!r->members[i].has_values || r->members[i].clock != r->clock)
            return wf_ring_cannot_go_on(err);
    return WF_OK;
}

static wf_status agree(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (!r->members[i].heard)
            return WF_OK;
    WF_TRY(check_divided(r, err));
    WF_TRY(choose_start(r, err));
    for (uint32_t i = 0; i < r->n_members; i++)
        if (!lacks_values(r, &r->members[i])) /* the others say so when they have them */
            r->members[i].done = r->start;
    r->is_agreed = true;
    r->local.base.late = r->n_members > 1;
    WF_LOG_INFO(
        "worker.adds_up", "workers=%u by=%s view=%u attempt=%u clock=%u buckets=%u bytes=%zu%s",
        r->n_members, wf_reduce_way_name(r->way), r->view, r->attempt, r->start, r->n_buckets,
        r->means->bytes, r->n_members == 1 ? " why=\"there is one worker: nothing is sent\"" : "");
    WF_TRY(give_values(r, err));
    if (wf_ring_is_current(r)) {
        WF_TRY(wf_ring_give_again(r, err));
        return wf_ring_advance(r, err);
    }
    return wf_ring_take_values(r, err);
}

/* A round begins: nothing of an older one counts. */
static wf_status enter(wf_ring *r, uint32_t attempt, wf_err *err)
{
    r->is_agreed = false;
    if (r->is_updated) /* others have not, or have not heard of it */
        return wf_ring_cannot_go_on(err);
    wf_ring_forget_files(r);
    r->attempt = attempt;
    r->start = r->early = 0;
    wf_ring_drop_values(r);
    for (uint32_t i = 0; i < r->n_members; i++) {
        wf_ring_member *m = &r->members[i];

        m->heard = i == r->me;
        m->has_values = r->has_values;
        m->clock = r->clock;
        m->done = 0;
        for (int k = 0; k < WF_RING_AT_ONCE; k++)
            m->words[k] = (wf_ring_word){0};
    }
    WF_TRY(wf_ring_restart(r, err));
    for (uint32_t i = 0; i < r->n_members; i++)
        WF_TRY(wf_ring_say_place(r, i, err));
    return agree(r, err);
}

wf_status wf_ring_on_place(wf_ring *r, uint32_t from, uint32_t attempt, uint32_t clock,
                           bool has_values, wf_err *err)
{
    wf_ring_member *m = &r->members[from];

    if (attempt > r->attempt)
        WF_TRY(enter(r, attempt, err));
    if (attempt < r->attempt) /* it does not know of this attempt yet */
        return wf_ring_say_place(r, from, err);
    if (m->heard)
        return WF_OK;
    m->heard = true;
    m->clock = clock;
    m->has_values = has_values;
    /* What was said before may have come to it before it began this round. */
    WF_TRY(wf_ring_say_place(r, from, err));
    return agree(r, err);
}

/* ---- members and links ---- */

wf_status wf_ring_on_view(wf_exchange *x, const Weft__View *view, uint32_t number, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;
    wf_ring_member *list = NULL;
    uint32_t n = 0, me = 0;
    bool changed;

    if (number <= r->view)
        return WF_OK;
    WF_TRY(list_members(r, view, &list, &n, &me, err));
    changed = !are_members(r, list, n);
    /* Whatever fails here: nothing is sent by a plan for the members of before. */
    r->is_agreed = false;
    free(r->members);
    r->members = list;
    r->n_members = n;
    r->me = me;
    r->on_one_host = are_on_one_host(view);
    r->view = number;
    if (r->is_divided && changed)
        WF_TRY(wf_ring_divide(r, err));
    WF_TRY(wf_ring_plan(r, err));
    return enter(r, 0, err);
}

wf_status wf_ring_on_up(wf_exchange *x, const wf_peer *peer, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;
    uint32_t i = wf_ring_place_of(r, peer);
    wf_ring_member *m;

    if (i == r->n_members)
        return WF_OK;
    m = &r->members[i];
    m->peer = (wf_peer *)(uintptr_t)peer;
    if (m->was_up && r->is_divided)
        return wf_ring_cannot_go_on(err);
    if (m->was_up) /* messages may be lost */
        return enter(r, r->attempt + 1, err);
    m->was_up = true;
    WF_TRY(wf_ring_say_place(r, i, err));
    return wf_ring_advance(r, err);
}

void wf_ring_on_down(wf_exchange *x, const wf_peer *peer)
{
    wf_ring *r = (wf_ring *)x;

    for (uint32_t i = 0; i < r->n_members; i++)
        if (r->members[i].peer == peer)
            r->members[i].peer = NULL;
}
