/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring.c - each worker holds all variables, and gradients are added up between the
 * workers of a generation.
 *
 * All of them take part in each step. A worker gives its gradients times the number of their
 * records; who has nothing to compute gives zeros of no records as soon as another has given all of
 * its own. When the sums are there, and it is known how many records they are of, each worker
 * divides by that number and makes the same update of the same bits: its variables stay equal to
 * those of the others. Then it says so to all. A step of this worker is acknowledged when all have
 * said so: what any of them saves or evaluates from then on holds it.
 *
 * These common steps are counted by `clock`. A worker's own steps are those in which it has
 * records.
 *
 * Invariants
 *   R1  variables change only in wf_ring_advance, when a common step is complete here
 *   R2  nothing is given to a common step before all have applied the one before: so messages are
 *       of the step under way or of the next one, and the array of gradients is free (A2)
 */
#include "common/log/log.h"
#include "worker/exchange/ring_state.h"

#include <stdlib.h>

/* Whether all members have applied a common step. */
static bool is_done_by_all(const wf_ring *r, uint32_t clock)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && r->members[i].done < clock)
            return false;
    return r->clock >= clock;
}

static bool may_give(const wf_ring *r)
{
    return !r->under_way && is_done_by_all(r, r->clock) && wf_ring_is_linked(r);
}

/* ---- giving ---- */

/* What this worker gives to the next common step begins: so many records; as the worker's own step,
 * or 0. */
static void begin(wf_ring *r, uint32_t own_step, uint32_t records)
{
    wf_assert(may_give(r)); /* R2 */
    r->under_way = true;
    r->is_given = false;
    r->own_step = own_step;
    r->records = records;
}

static wf_status end(wf_ring *r, wf_err *err)
{
    uint32_t slot = wf_ring_slot(r->clock + 1);

    for (uint32_t i = 0; i < r->local.n_variables; i++)
        r->given[slot][i] |= r->variables[i].pushed;
    WF_TRY(wf_ring_give_rest(r, err));
    r->is_given = true;
    r->members[r->me].words[slot] = (wf_ring_word){true, r->records};
    return wf_ring_say_given(r, err);
}

static bool anybody_gives(const wf_ring *r)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (r->members[i].words[wf_ring_slot(r->clock + 1)].in)
            return true;
    return false;
}

static wf_status give_nothing(wf_ring *r, wf_err *err)
{
    begin(r, 0, 0);
    return end(r, err);
}

/* ---- a common step ends ---- */

static bool is_complete(const wf_ring *r, uint64_t *records)
{
    *records = 0;
    for (uint32_t i = 0; i < r->n_members; i++) {
        const wf_ring_word *w = &r->members[i].words[wf_ring_slot(r->clock + 1)];

        if (!w->in)
            return false;
        *records += w->records;
    }
    return r->under_way && r->is_given && wf_ring_sums_are_in(r);
}

static wf_status apply(wf_ring *r, uint64_t records, wf_err *err)
{
    uint32_t slot = wf_ring_slot(r->clock + 1);

    wf_ring_end_sums(r, records);
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        r->local.variables[i].pushed = records > 0 && r->given[slot][i];
        r->given[slot][i] = 0;
    }
    for (uint32_t i = 0; i < r->n_members; i++)
        r->members[i].words[slot] = (wf_ring_word){0};
    WF_TRY(wf_local_update(&r->local, err));
    r->clock++;
    r->under_way = false;
    if (r->own_step)
        r->own_clock = r->clock;
    return wf_ring_say_done(r, err);
}

wf_status wf_ring_advance(wf_ring *r, wf_err *err)
{
    wf_exchange *x = &r->local.base;
    uint64_t records;

    if (r->idle && anybody_gives(r) && may_give(r))
        WF_TRY(give_nothing(r, err));
    if (is_complete(r, &records))
        WF_TRY(apply(r, records, err));
    if (x->acked < x->begun && r->own_clock && !r->under_way && is_done_by_all(r, r->own_clock))
        x->acked = x->begun;
    return WF_OK;
}

/* ---- what a worker asks for ---- */

static wf_status want(wf_exchange *x, int set, uint32_t step, wf_err *err)
{
    (void)step, (void)err;
    ((wf_ring *)x)->idle &= set == WF_EVAL_SET;
    return WF_OK;
}

static bool ready(const wf_exchange *x, int set)
{
    (void)set;
    return may_give((const wf_ring *)x);
}

static wf_status leave(wf_exchange *x, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;

    if (r->idle)
        return WF_OK;
    r->idle = true;
    for (int set = 0; set < WF_EVAL_SET; set++)
        wf_exchange_drop(x, set);
    return wf_ring_advance(r, err);
}

static void begin_step(wf_exchange *x, uint32_t step, uint32_t records)
{
    wf_ring *r = (wf_ring *)x;

    x->begun = step;
    r->own_clock = 0;
    begin(r, step, records);
}

static float *gradient(wf_exchange *x, uint32_t step, uint32_t number)
{
    (void)step;
    return wf_ring_gradient((const wf_ring *)x, number);
}

static wf_status push(wf_exchange *x, uint32_t step, uint32_t number, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;

    wf_assert(r->under_way && r->own_step == step);
    x->pushed_bytes += r->local.variables[number].count * sizeof(float);
    x->plain_bytes += r->local.variables[number].count * sizeof(float);
    return r->variables[number].is_in ? wf_ring_give(r, number, err) : WF_OK;
}

static wf_status drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;

    (void)err;
    wf_assert(r->under_way && r->own_step == step);
    r->records = 0;
    return WF_OK;
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;

    wf_assert(r->under_way && r->own_step == step);
    WF_TRY(end(r, err));
    return wf_ring_advance(r, err);
}

/* ---- beginning and end ---- */

static void ring_free(wf_exchange *x)
{
    wf_ring *r = (wf_ring *)x;

    wf_local_close(&r->local);
    wf_ring_buckets_close(r);
    for (int i = 0; i < WF_RING_AT_ONCE; i++)
        free(r->given[i]);
    free(r->members);
    free(r);
}

static wf_status open_all(wf_ring *r, const wf_exchange_conf *conf, wf_err *err)
{
    size_t n = conf->start->n_variables + 1;

    r->ops = wf_local_ops;
    r->ops.free = ring_free;
    r->ops.on_up = wf_ring_on_up;
    r->ops.on_down = wf_ring_on_down;
    r->ops.on_message = wf_ring_on_message;
    r->ops.want = want;
    r->ops.ready = ready;
    r->ops.leave = leave;
    r->ops.begin_step = begin_step;
    r->ops.gradient = gradient;
    r->ops.push = push;
    r->ops.drop_step = drop_step;
    r->ops.end_step = end_step;
    r->ops.name_late = wf_ring_name_late;
    WF_TRY(wf_local_init(&r->local, &r->ops, conf, err));
    for (int i = 0; i < WF_RING_AT_ONCE; i++) {
        r->given[i] = calloc(n, 1);
        if (!r->given[i])
            return wf_fail_nomem(err, n);
    }
    WF_TRY(wf_ring_members_open(r, err));
    return wf_ring_buckets_open(r, err);
}

static wf_status ring_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    wf_ring *r = calloc(1, sizeof *r);
    wf_status rc;

    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    r->idle = true;
    *out = &r->local.base;
    rc = open_all(r, conf, err);
    if (rc == WF_OK)
        WF_LOG_INFO("worker.adds_up", "workers=%u buckets=%u bytes=%zu%s", r->n_members,
                    r->n_buckets, r->gradients->bytes,
                    r->n_members == 1 ? " why=\"the cluster has one worker: nothing is sent\""
                                      : "");
    else
        wf_exchange_free(out);
    return rc;
}

const wf_exchange_kind wf_exchange_ring = {.name = "multi_worker_mirrored", .open = ring_open};
