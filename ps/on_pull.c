/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_pull.c - a worker's pull: the weights of a list of slices, each as soon as the worker's own
 * pushes that it counts on are applied.
 *
 * An answer holds a version of its slice until the worker has taken it. A worker that is slow, or
 * stands still, has room for so many bytes; what is beyond them is answered later, and then as the
 * slice is then.
 *
 * Where staleness is bounded, a pull waits for slower workers as well (clocks.h).
 */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "ps/answer.h"
#include "ps/state.h"

#include <stdlib.h>
#include <string.h>

/* For all workers together, if the slices are not larger; and for one of many at least. */
static const size_t ROOM_BYTES = (size_t)256 << 20, LEAST_ROOM_BYTES = (size_t)2 << 20;

void wf_ps_share_room(wf_ps *ps)
{
    size_t bytes = 0, all;

    for (uint32_t i = 0; i < ps->n_slices; i++)
        bytes += WF_MIN(ps->slices[i]->bytes, wf_slice_held(ps->slices[i])); /* not of files */
    all = ps->conf.answer_bytes ? ps->conf.answer_bytes : WF_MAX(ROOM_BYTES, 2 * bytes);
    ps->answer_room = WF_MAX(all / WF_MAX(ps->n_workers, 1u), LEAST_ROOM_BYTES);
}

static void end_pull(wf_ps_pull *pull)
{
    pull->open = pull->behind = false;
    wf_ps_drop_rows(pull);
    wf_answer_drop_room(pull);
}

/* A pull marks what it has answered by places in its list: it ends with the list. */
static void end_pulls(wf_ps_worker *w, uint32_t list)
{
    for (int i = 0; i < WF_PS_MAX_PULLS; i++)
        if (w->pulls[i].list == list)
            end_pull(&w->pulls[i]);
}

static void free_list(wf_ps_list *list)
{
    free(list->slices);
    free(list->where);
    *list = (wf_ps_list){0};
}

void wf_ps_close_pulls(wf_ps *ps, wf_ps_worker *w)
{
    wf_ps_worker **at = &ps->behind;

    for (int i = 0; i < WF_PS_MAX_LISTS; i++)
        free_list(&w->lists[i]);
    for (int i = 0; i < WF_PS_MAX_PULLS; i++) {
        end_pull(&w->pulls[i]);
        free(w->pulls[i].answered);
        w->pulls[i] = (wf_ps_pull){0};
    }
    while (w->is_behind && *at != w)
        at = &(*at)->next_behind;
    if (w->is_behind)
        *at = w->next_behind;
    w->is_behind = false;
}

static wf_status fill_list(const wf_ps *ps, const Weft__List *body, wf_ps_list *list, wf_err *err)
{
    list->slices = calloc(body->n_slices + 1, sizeof *list->slices);
    list->where = calloc(ps->n_slices + 1, sizeof *list->where);
    if (!list->slices || !list->where)
        return wf_fail_nomem(err, body->n_slices * sizeof *list->slices);
    for (size_t i = 0; i < body->n_slices; i++) {
        uint32_t id = body->slices[i];

        if (wf_ps_is_away(ps, id))
            return wf_fail(err, WF_AGAIN, NULL, "slice %u has moved", id);
        if (!wf_ps_slice(ps, id))
            return wf_fail(err, WF_PROTO, NULL, "a list names slice %u, which is not on ps %u", id,
                           ps->conf.index);
        if (list->where[ps->place[id]])
            return wf_fail(err, WF_PROTO, NULL, "a list names slice %u twice", id);
        list->slices[list->n++] = ps->place[id];
        list->where[ps->place[id]] = list->n;
    }
    return WF_OK;
}

static wf_status send_list_ok(wf_ps *ps, wf_ps_worker *w, uint32_t number, wf_err *err)
{
    wf_msg *ok = NULL;

    WF_TRY(wf_net_msg(ps->net, WF_LIST_OK, &ok, err));
    ok->head.request = number;
    return wf_ps_send(ps, w->peer, WF_LANE_CONTROL, 0, &ok, err);
}

wf_status wf_ps_on_list(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    uint32_t number = m->head.request;
    wf_ps_list list = {0};
    Weft__List *body = NULL;
    wf_status rc;

    if (number >= WF_PS_MAX_LISTS)
        return wf_fail(err, WF_PROTO, NULL, "list number %u", number);
    WF_TRY(wf_control_get(m, &weft__list__descriptor, &body, err));
    rc = fill_list(ps, body, &list, err);
    wf_control_free(&body);
    if (rc != WF_OK) {
        free_list(&list);
        return rc;
    }
    end_pulls(w, number);
    free_list(&w->lists[number]);
    w->lists[number] = list;
    w->denied = false;
    WF_TRY(wf_together_tell(ps, w, err));
    return send_list_ok(ps, w, number, err);
}

/* Where workers make steps together, a pull counts on all of them up to the clock of this worker's
 * own last step that it counts on. */
static int64_t clock_of_own(const wf_ps_pull *pull)
{
    uint32_t own = WF_MIN(pull->after, WF_MAX(pull->step, 1u) - 1);

    return (int64_t)pull->clock - (pull->step - own);
}

/* Who holds back a pull from a slice; NULL: nobody. */
static const wf_clock *late_for(const wf_ps *ps, const wf_ps_worker *w, const wf_ps_pull *pull,
                                const wf_slice *s)
{
    if (!pull->clock || wf_slice_is_frozen(s))
        return NULL;
    if (ps->together.on)
        return wf_together_late(ps, s, w->peer->incarnation, clock_of_own(pull));
    return wf_clocks_late(&ps->clocks, w->peer->incarnation, pull->clock, &s->seen);
}

static bool is_ready(const wf_ps *ps, const wf_ps_worker *w, const wf_ps_pull *pull,
                     const wf_slice *s)
{
    if (s->leaving) /* P7: the other ps may have changed it already */
        return false;
    if (wf_slice_is_frozen(s))
        return true;
    if (!wf_seen_all(&s->seen, w->peer->incarnation, pull->after))
        return false;
    if (ps->together.on && pull->clock)
        return !wf_together_holds_back(ps, s, w->peer->incarnation, clock_of_own(pull));
    return !late_for(ps, w, pull, s);
}

/* P6. What is in the message under construction counts as well. */
static bool has_room(const wf_answer *a)
{
    return wf_net_owed_bytes(a->w->peer) + (a->msg ? a->msg->payload_bytes : 0) <
           a->ps->answer_room;
}

static void fall_behind(wf_ps *ps, wf_ps_worker *w, wf_ps_pull *pull)
{
    pull->behind = true;
    if (w->is_behind)
        return;
    w->is_behind = true;
    w->next_behind = ps->behind;
    ps->behind = w;
}

/* Answers the slice at a place of the pull's list, if it is ready and was not answered before. */
static wf_status answer_place(wf_answer *a, wf_ps_pull *pull, uint32_t at, wf_err *err)
{
    wf_slice *s = a->ps->slices[a->w->lists[pull->list].slices[at]];

    if (pull->answered[at] || !is_ready(a->ps, a->w, pull, s))
        return WF_OK;
    if (!has_room(a)) {
        fall_behind(a->ps, a->w, pull);
        return WF_OK;
    }
    wf_assert(pull->left > 0 && !s->leaving); /* P3, P7 */
    WF_TRY(wf_answer_add(a, s, at, err));
    pull->answered[at] = 1;
    pull->left--;
    return WF_OK;
}

static wf_status end_answer(wf_answer *a, wf_ps_pull *pull, wf_status rc, wf_err *err)
{
    if (rc == WF_OK)
        rc = wf_answer_send(a, err);
    wf_net_free_msg(a->ps->net, &a->msg);
    if (pull->left == 0)
        end_pull(pull);
    return rc;
}

/* Answers all slices of a pull that are ready, as far as there is room. */
static wf_status answer_ready(wf_ps *ps, wf_ps_worker *w, wf_ps_pull *pull, wf_err *err)
{
    wf_answer a = {.ps = ps, .w = w, .pull = pull};
    wf_status rc = WF_OK;

    pull->behind = false;
    for (uint32_t i = 0; rc == WF_OK && !pull->behind && i < w->lists[pull->list].n; i++)
        rc = answer_place(&a, pull, i, err);
    return end_answer(&a, pull, rc, err);
}

static wf_status answer_slices(wf_ps *ps, wf_ps_worker *w, wf_ps_pull *pull,
                               const uint32_t slices[], uint32_t n, wf_err *err)
{
    const wf_ps_list *list = &w->lists[pull->list];
    wf_answer a = {.ps = ps, .w = w, .pull = pull};
    wf_status rc = WF_OK;

    for (uint32_t i = 0; rc == WF_OK && i < n; i++) {
        uint32_t at = list->where ? list->where[ps->place[slices[i]]] : 0;

        if (at)
            rc = answer_place(&a, pull, at - 1, err);
    }
    return end_answer(&a, pull, rc, err);
}

wf_status wf_ps_answer_waiting(wf_ps *ps, wf_ps_worker *w, const uint32_t slices[], uint32_t n,
                               wf_err *err)
{
    for (int i = 0; i < WF_PS_MAX_PULLS; i++)
        if (w->pulls[i].open && !w->pulls[i].behind)
            WF_TRY(answer_slices(ps, w, &w->pulls[i], slices, n, err));
    return WF_OK;
}

wf_status wf_ps_answer_others(wf_ps *ps, const wf_ps_worker *w, const uint32_t slices[], uint32_t n,
                              wf_err *err)
{
    for (uint32_t i = 0; ps->bounded && i < ps->n_workers; i++)
        if (ps->workers[i] != w)
            WF_TRY(wf_ps_answer_waiting(ps, ps->workers[i], slices, n, err));
    return WF_OK;
}

wf_status wf_ps_answer_held(wf_ps *ps, wf_err *err)
{
    for (uint32_t i = 0; ps->bounded && i < ps->n_workers; i++)
        for (int k = 0; k < WF_PS_MAX_PULLS; k++) {
            wf_ps_pull *pull = &ps->workers[i]->pulls[k];

            if (pull->open && pull->clock && !pull->behind)
                WF_TRY(answer_ready(ps, ps->workers[i], pull, err));
        }
    return WF_OK;
}

static const wf_clock *late_for_any(const wf_ps *ps, const wf_ps_worker *w, const wf_ps_pull *pull)
{
    const wf_ps_list *list = &w->lists[pull->list];
    const wf_clock *late = NULL;

    for (uint32_t i = 0; !late && i < list->n; i++)
        if (!pull->answered[i])
            late = late_for(ps, w, pull, ps->slices[list->slices[i]]);
    return late;
}

const wf_ps_pull *wf_ps_find_held(const wf_ps *ps, wf_task *waits, wf_task *late, uint32_t *step)
{
    const wf_ps_pull *longest = NULL;

    for (uint32_t i = 0; ps->bounded && i < ps->n_workers; i++)
        for (int k = 0; k < WF_PS_MAX_PULLS; k++) {
            const wf_ps_worker *w = ps->workers[i];
            const wf_ps_pull *pull = &w->pulls[k];
            const wf_clock *row = pull->open && pull->clock ? late_for_any(ps, w, pull) : NULL;
            const wf_ps_member *who = row ? wf_index_get(&ps->in_view, row->incarnation) : NULL;

            if (!who || (longest && longest->since_ns <= pull->since_ns))
                continue;
            longest = pull;
            *waits = w->peer->task;
            *late = (wf_task){(wf_role)who->role, who->index};
            *step = wf_clock_step(row, ps->together.on
                                           ? clock_of_own(pull)
                                           : (int64_t)pull->clock - 1 - ps->clocks.staleness);
        }
    return longest;
}

/* A pull is taken up once half of its room is free, so that each look at its list answers much. */
wf_status wf_ps_answer_behind(wf_ps *ps, wf_err *err)
{
    wf_ps_worker *list = ps->behind;

    ps->behind = NULL;
    while (list) {
        wf_ps_worker *w = list;
        bool free_again = wf_net_owed_bytes(w->peer) <= ps->answer_room / 2;

        list = w->next_behind;
        w->is_behind = false;
        for (int i = 0; i < WF_PS_MAX_PULLS; i++) {
            wf_ps_pull *pull = &w->pulls[i];

            if (pull->open && pull->behind && free_again)
                WF_TRY(answer_ready(ps, w, pull, err));
            else if (pull->open && pull->behind)
                fall_behind(ps, w, pull);
        }
    }
    return WF_OK;
}

static wf_status open_pull(const wf_ps *ps, wf_ps_worker *w, const wf_msg *m,
                           const wf_pull_body *body, wf_ps_pull **out, wf_err *err)
{
    const wf_ps_list *list = &w->lists[body->list];
    wf_ps_pull *pull = NULL;

    for (int i = 0; i < WF_PS_MAX_PULLS && !pull; i++) /* a pull that is asked again goes on */
        if (w->pulls[i].open && w->pulls[i].request == m->head.request)
            pull = &w->pulls[i];
    for (int i = 0; i < WF_PS_MAX_PULLS && !pull; i++)
        if (!w->pulls[i].open)
            pull = &w->pulls[i];
    if (!pull)
        return wf_fail(err, WF_PROTO, NULL, "worker %u has %d pulls open, and sends one more",
                       w->peer->task.index, WF_PS_MAX_PULLS);
    if (pull->room < list->n) {
        uint8_t *answered = realloc(pull->answered, list->n);

        if (!answered)
            return wf_fail_nomem(err, list->n);
        pull->answered = answered;
        pull->room = list->n;
    }
    if (list->n)
        memset(pull->answered, 0, list->n);
    wf_answer_drop_room(pull);
    pull->open = true;
    pull->behind = false;
    pull->list = body->list;
    pull->request = m->head.request;
    pull->step = m->head.step;
    pull->after = body->after;
    pull->clock = body->clock;
    pull->since_ns = ps->now_ns;
    pull->left = list->n;
    *out = pull;
    return WF_OK;
}

wf_status wf_ps_on_pull(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    wf_ps_pull *pull = NULL;
    wf_pull_body body;
    bool moved = false;
    uint32_t n;

    WF_TRY(wf_pull_get(m, &body, ps->parts, &n, err));
    if (body.list >= WF_PS_MAX_LISTS)
        return wf_fail(err, WF_PROTO, NULL, "a pull of list %u", body.list);
    if (body.clock && !ps->bounded)
        return wf_fail(err, WF_PROTO, NULL, "a pull with a clock, of a job that has none");
    WF_TRY(wf_ps_check_rows(ps, &w->lists[body.list], m, ps->parts, n, err));
    WF_TRY(open_pull(ps, w, m, &body, &pull, err));
    if (wf_ps_take_rows(ps, &w->lists[body.list], m, ps->parts, n, pull, err) != WF_OK) {
        end_pull(pull);
        return WF_NOMEM;
    }
    if (body.clock)
        WF_TRY(wf_clocks_note(&ps->clocks, w->peer->incarnation, m->head.step, body.clock, &moved,
                              err));
    WF_TRY(answer_ready(ps, w, pull, err));
    if (!moved)
        return WF_OK;
    WF_TRY(wf_together_advance(ps, err));
    return wf_ps_answer_held(ps, err);
}
