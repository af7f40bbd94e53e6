/* SPDX-License-Identifier: Apache-2.0 */
/* ps/together.c */
#include "ps/together.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "ps/state.h"

#include <stdlib.h>

void wf_together_close(wf_together *t)
{
    wf_decisions_close(&t->decisions);
    wf_held_close(&t->taken);
    free(t->mean);
    *t = (wf_together){0};
}

/* Whether a slice still waits for what a worker that is in makes at a clock. */
static bool owes(const wf_slice *s, const wf_clock *row, int64_t clock)
{
    uint32_t step = wf_clock_step(row, clock);

    return clock <= row->last && !wf_seen_all(&s->seen, row->incarnation, step) &&
           !wf_held_find(&s->held, row->incarnation, step);
}

/* Who owes a slice its step of a clock, but for one; NULL: nobody. And how many they are. */
static const wf_clock *find_owing(const wf_ps *ps, const wf_slice *s, uint64_t but, int64_t clock,
                                  uint32_t *n)
{
    const wf_clock *first = NULL;

    *n = 0;
    for (uint32_t i = 0; i < ps->clocks.n; i++) {
        const wf_clock *row = &ps->clocks.rows[i];

        if (row->incarnation == but || !owes(s, row, clock))
            continue;
        first = first ? first : row;
        ++*n;
    }
    return first;
}

static bool has_part(const wf_slice *s, uint64_t incarnation, uint32_t clock)
{
    for (uint32_t i = 0; i < s->held.n; i++)
        if (s->held.rows[i].part.incarnation == incarnation && s->held.rows[i].clock == clock)
            return true;
    return false;
}

/* The first worker, but for one, that was decided for, is in view, and whose part of the step is
 * not here; 0: all parts are. */
static uint64_t find_missing(const wf_ps *ps, const wf_slice *s, uint64_t but, const wf_decision *d)
{
    for (uint32_t i = 0; i < d->n; i++)
        if (d->workers[i] != but && wf_ps_in_view(ps, d->workers[i]) &&
            !has_part(s, d->workers[i], d->clock))
            return d->workers[i];
    return 0;
}

/* Backups are waited for as well once they were decided for: the clock slice had their parts, and
 * what is to come here may take long. A worker does not wait for itself: where its own part does
 * not come, it is the one to be given up. */
const wf_clock *wf_together_late(const wf_ps *ps, const wf_slice *s, uint64_t incarnation,
                                 int64_t clock)
{
    const wf_decision *next = wf_decisions_after(&ps->together.decisions, s->clock);
    uint64_t missing = next && next->clock <= clock ? find_missing(ps, s, incarnation, next) : 0;
    uint32_t n;

    if (missing)
        return wf_clocks_find(&ps->clocks, missing);
    if (clock <= wf_decisions_last(&ps->together.decisions))
        return NULL;
    return find_owing(ps, s, incarnation, clock, &n);
}

bool wf_together_holds_back(const wf_ps *ps, const wf_slice *s, uint64_t incarnation, int64_t clock)
{
    uint32_t least = wf_held_least(&s->held);
    const wf_decision *next = wf_decisions_after(&ps->together.decisions, s->clock);

    return (least && least <= clock) || (next && next->clock <= clock) ||
           wf_together_late(ps, s, incarnation, clock);
}

/* ---- deciding ---- */

static wf_status tell(wf_ps *ps, const wf_ps_worker *w, const wf_decision *d, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(ps->net, WF_DECIDED, &m, err));
    rc = wf_decided_put(m, d, err);
    if (rc == WF_OK)
        rc = wf_ps_send(ps, w->peer, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(ps->net, &m);
    return rc;
}

static bool decides(const wf_ps *ps)
{
    const wf_slice *s = wf_ps_slice(ps, ps->together.clock_slice);

    return ps->together.on && ps->together.backups > 0 && s && !s->leaving;
}

wf_status wf_together_tell(wf_ps *ps, const wf_ps_worker *w, wf_err *err)
{
    const wf_decisions *d = &ps->together.decisions;

    for (uint32_t i = 0; decides(ps) && i < d->n; i++)
        WF_TRY(tell(ps, w, &d->rows[i], err));
    return WF_OK;
}

/* Those whose part of a clock the clock slice has. */
static uint32_t contributors(const wf_slice *s, uint32_t clock, uint64_t out[])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->held.n && n < WF_MAX_CONTRIBUTORS; i++)
        if (s->held.rows[i].clock == clock)
            out[n++] = s->held.rows[i].part.incarnation;
    return n;
}

/* Decides the clock that the clock slice is to apply next, if enough workers have made it. */
static wf_status decide(wf_ps *ps, wf_err *err)
{
    wf_together *t = &ps->together;
    const wf_slice *s = decides(ps) ? wf_ps_slice(ps, t->clock_slice) : NULL;
    uint32_t clock = s ? wf_held_least(&s->held) : 0, missing;
    uint64_t workers[WF_MAX_CONTRIBUTORS];
    wf_decision d = {.clock = clock, .workers = workers};
    bool added = false;

    /* The slice may have come from a ps that decided more than has been heard here. */
    d.before = WF_MAX(wf_decisions_last(&t->decisions), s ? s->clock : 0);
    if (clock <= d.before)
        return WF_OK;
    find_owing(ps, s, 0, clock, &missing);
    if (missing > t->backups)
        return WF_OK;
    d.n = contributors(s, clock, workers);
    WF_TRY(wf_decisions_add(&t->decisions, &d, &added, err));
    for (uint32_t i = 0; i < ps->n_workers; i++)
        WF_TRY(tell(ps, ps->workers[i], &d, err));
    return WF_OK;
}

wf_status wf_ps_on_decided(wf_ps *ps, const wf_msg *m, wf_err *err)
{
    uint64_t workers[WF_MAX_CONTRIBUTORS];
    wf_decision d = {.workers = workers};
    bool added;

    WF_TRY(wf_decided_get(m, &d, err));
    if (!ps->together.on || ps->together.backups == 0)
        return wf_fail(err, WF_PROTO, NULL, "a decision, of a job that has none");
    WF_TRY(wf_decisions_add(&ps->together.decisions, &d, &added, err));
    return added ? wf_together_advance(ps, err) : WF_OK;
}

/* ---- completing ---- */

/* The clock whose parts a slice can take now; 0: none. */
static uint32_t next_of(const wf_ps *ps, const wf_slice *s)
{
    uint32_t least = wf_held_least(&s->held), missing;
    const wf_decision *next = wf_decisions_next(&ps->together.decisions, s->clock);

    if (s->leaving || wf_slice_is_frozen(s))
        return 0;
    if (ps->together.backups > 0) {
        if (least && least <= s->clock) /* too late */
            return least;
        return next && !find_missing(ps, s, 0, next) ? next->clock : 0;
    }
    if (least)
        find_owing(ps, s, 0, least, &missing);
    return least && missing == 0 ? least : 0;
}

static bool is_decided_for(const wf_decision *d, uint64_t incarnation)
{
    for (uint32_t i = 0; d && i < d->n; i++)
        if (d->workers[i] == incarnation)
            return true;
    return false;
}

/* Takes the parts of a clock out of a slice; those that came too late count as nothing. */
static wf_status take(wf_ps *ps, wf_slice *s, uint32_t clock, wf_ps_group *out, wf_err *err)
{
    wf_held *taken = &ps->together.taken;
    const wf_decision *d = wf_decisions_after(&ps->together.decisions, clock - 1);

    *out = (wf_ps_group){.slice = s, .first = taken->n};
    WF_TRY(wf_held_take(&s->held, clock, taken, err));
    out->n = taken->n - out->first;
    for (uint32_t i = out->first; ps->together.backups > 0 && i < taken->n; i++) {
        wf_held_part *row = &taken->rows[i];

        if (clock > s->clock && is_decided_for(d, row->part.incarnation))
            continue;
        row->records = 0;
        ps->left_out++;
    }
    s->clock = WF_MAX(s->clock, clock); /* T1 */
    ps->clocks.done = WF_MAX(ps->clocks.done, s->clock);
    return WF_OK;
}

/* ---- acknowledging ---- */

/* The parts of one worker and step among those that were taken, from place *i on. */
static uint32_t slices_of(const wf_held *taken, uint64_t incarnation, uint32_t *i, uint32_t *step,
                          uint32_t out[])
{
    uint32_t n = 0;

    for (; *i < taken->n && n < WF_MAX_PARTS; ++*i) {
        const wf_held_part *row = &taken->rows[*i];

        if (row->part.incarnation != incarnation)
            continue;
        if (n > 0 && row->part.step != *step)
            break;
        *step = row->part.step;
        out[n++] = row->slice;
    }
    return n;
}

static wf_status acknowledge(wf_ps *ps, wf_ps_worker *w, wf_err *err)
{
    uint32_t slices[WF_MAX_PARTS], step = 0;

    for (uint32_t i = 0; i < ps->together.taken.n;) {
        uint32_t n = slices_of(&ps->together.taken, w->peer->incarnation, &i, &step, slices);

        if (n > 0)
            WF_TRY(wf_acks_add(ps, w, step, slices, n, err));
    }
    return WF_OK;
}

/* What was complete is applied; pulls that waited for it are answered before more is applied, for
 * they count on so much and no more. */
static wf_status apply(wf_ps *ps, const wf_ps_group groups[], uint32_t n, wf_err *err)
{
    uint32_t slices[WF_MAX_PARTS];

    WF_TRY(wf_ps_apply_together(ps, groups, n, err));
    for (uint32_t i = 0; i < n; i++)
        slices[i] = groups[i].slice->id;
    for (uint32_t i = 0; i < ps->n_workers; i++) {
        WF_TRY(acknowledge(ps, ps->workers[i], err));
        WF_TRY(wf_ps_answer_waiting(ps, ps->workers[i], slices, n, err));
    }
    return WF_OK;
}

wf_status wf_together_advance(wf_ps *ps, wf_err *err)
{
    wf_ps_group groups[WF_MAX_PARTS];
    wf_status rc = WF_OK;
    uint32_t n;

    if (!ps->together.on || wf_ps_is_full(ps))
        return WF_OK;
    do {
        rc = decide(ps, err);
        n = 0;
        for (uint32_t i = 0; rc == WF_OK && i < ps->n_slices && n < WF_MAX_PARTS; i++) {
            uint32_t clock = next_of(ps, ps->slices[i]);

            if (clock)
                rc = take(ps, ps->slices[i], clock, &groups[n++], err);
        }
        if (rc == WF_OK && n > 0)
            rc = apply(ps, groups, n, err);
        wf_held_clear(&ps->together.taken);
    } while (rc == WF_OK && n > 0);
    return rc == WF_FULL && wf_ps_is_full(ps) ? WF_OK : rc;
}

/* ---- what a worker pushes ---- */

wf_status wf_together_hold(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, const wf_push_body *body,
                           uint32_t n, wf_err *err)
{
    uint32_t again[WF_MAX_PARTS], n_again = 0;

    if (body->clock == 0)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: a push without a clock",
                       w->peer->task.index);
    for (uint32_t i = 0; i < n; i++) {
        const wf_part *p = &ps->parts[i];
        wf_slice *s = wf_ps_slice(ps, p->slice);
        wf_held_part row = {.part = wf_ps_part(m, w->peer->incarnation, p),
                            .slice = p->slice,
                            .clock = body->clock,
                            .records = body->records,
                            .worker = w->peer->task.index,
                            .since_ns = ps->now_ns};

        if (wf_seen_before(&s->seen, row.part.incarnation, row.part.step))
            again[n_again++] = p->slice;
        else if (!wf_held_find(&s->held, row.part.incarnation, row.part.step))
            WF_TRY(wf_held_add(&s->held, &row, m, p, err));
    }
    if (n_again > 0)
        WF_TRY(wf_acks_add(ps, w, m->head.step, again, n_again, err));
    return wf_together_advance(ps, err);
}

const wf_held_part *wf_together_find_held(const wf_ps *ps, const wf_clock **late)
{
    const wf_held_part *longest = NULL;

    for (uint32_t i = 0; ps->together.on && i < ps->n_slices; i++) {
        const wf_slice *s = ps->slices[i];

        for (uint32_t k = 0; k < s->held.n; k++) {
            const wf_held_part *row = &s->held.rows[k];
            uint32_t missing;
            const wf_clock *who = find_owing(ps, s, 0, row->clock, &missing);

            if (!who || (longest && longest->since_ns <= row->since_ns))
                continue;
            longest = row;
            *late = who;
        }
    }
    return longest;
}
