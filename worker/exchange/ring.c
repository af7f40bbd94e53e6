/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring.c - each worker holds all variables, and gradients are added up between the
 * workers of a generation.
 *
 * All of them take part in each step. A worker gives its gradients, which count as often as it has
 * records; who has nothing to compute gives zeros of no records as soon as another has given all of
 * its own. When the sums are there, and it is known how many records they are of, each worker
 * makes the means and the same update of the same bits: its variables stay equal to those of the
 * others. Then it says so to all. A step of this worker is acknowledged when all have
 * said so: what any of them saves or evaluates from then on holds it.
 *
 * These common steps are counted by `clock`. A worker's own steps are those in which it has
 * records.
 *
 * Invariants
 *   R1  variables change only when a common step is complete here, or values come from another
 *       member (ring_values.c)
 *   R2  a step is complete here when all have given their part, and they give it after they have
 *       applied the step before: so messages are of the step under way or of the next one, and of
 *       two arrays of sums the one that is next is free (A2)
 *   R3  a step is acknowledged when all members have applied it
 */
#include "worker/exchange/ring_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether all members have applied a common step. */
static bool is_done_by_all(const wf_ring *r, uint32_t clock)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && r->members[i].done < clock)
            return false;
    return wf_ring_is_current(r) && r->clock >= clock;
}

static bool may_give(const wf_ring *r)
{
    return !r->under_way && wf_ring_is_current(r) && wf_ring_is_linked(r);
}

/* ---- giving ---- */

/* What this worker gives to the next common step begins: so many records; as the worker's own step,
 * or 0. */
static void begin(wf_ring *r, uint32_t own_step, uint32_t records)
{
    wf_assert(may_give(r)); /* R2 */
    wf_ring_take_array(r);
    r->under_way = true;
    r->own_step = own_step;
    r->own_records = records;
}

static wf_status end(wf_ring *r, wf_err *err)
{
    WF_TRY(wf_ring_give_rest(r, err));
    r->is_given = true;
    return wf_ring_is_current(r) ? wf_ring_say_given(r, err) : WF_OK;
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
    if (!r->is_given || !wf_ring_is_current(r))
        return false;
    for (uint32_t i = 0; i < r->n_members; i++) {
        const wf_ring_word *w = &r->members[i].words[wf_ring_slot(r->clock + 1)];

        if (!w->in)
            return false;
        *records += w->records;
    }
    return wf_ring_sums_are_in(r);
}

static wf_status apply(wf_ring *r, uint64_t records, wf_err *err)
{
    const uint8_t *given = r->given[wf_ring_slot(r->clock + 1)];

    WF_TRY(wf_ring_take_means(r, records, err));
    for (uint32_t i = 0; i < r->local.n_variables; i++)
        r->local.variables[i].pushed = records > 0 && given[i];
    if (r->is_divided)
        return wf_ring_update_share(r, err);
    WF_TRY(wf_local_update(&r->local, err));
    wf_ring_drop_means(r);
    return wf_ring_end_step(r, err);
}

wf_status wf_ring_end_step(wf_ring *r, wf_err *err)
{
    uint32_t slot = wf_ring_slot(r->clock + 1);

    wf_ring_end_sums(r);
    memset(r->given[slot], 0, r->local.n_variables);
    for (uint32_t i = 0; i < r->n_members; i++)
        r->members[i].words[slot] = (wf_ring_word){0};
    r->clock++;
    if (r->under_way && r->own_step) {
        r->applied_step = r->own_step;
        r->applied_clock = r->clock;
    }
    r->under_way = r->is_given = r->is_updated = false;
    r->weights_due = r->weights_in = 0;
    WF_TRY(wf_ring_say_done(r, err));
    return wf_ring_advance(r, err);
}

/* When a step ends, messages of the next one may be here already. */
wf_status wf_ring_advance(wf_ring *r, wf_err *err)
{
    wf_exchange *x = &r->local.base;
    uint64_t records;

    if (r->idle && anybody_gives(r) && may_give(r))
        WF_TRY(give_nothing(r, err));
    if (!r->is_updated && is_complete(r, &records)) {
        WF_TRY(apply(r, records, err)); /* which comes back here, unless others send their shares */
        if (!r->is_updated)
            return WF_OK;
    }
    if (wf_ring_has_all_shares(r))
        return wf_ring_end_step(r, err);
    if (x->acked < r->applied_step && is_done_by_all(r, r->applied_clock))
        x->acked = r->applied_step;
    return wf_ring_save_when_due(r, err);
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
    const wf_ring *r = (const wf_ring *)x;

    return set == WF_EVAL_SET ? wf_ring_is_current(r) : may_give(r);
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
    x->pushed_bytes += wf_ring_bytes_of(r, number);
    x->plain_bytes += r->local.variables[number].count * sizeof(float);
    return r->variables[number].is_in ? wf_ring_give(r, number, err) : WF_OK;
}

static wf_status drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;

    (void)err;
    wf_assert(r->under_way && r->own_step == step);
    r->own_records = 0;
    return WF_OK;
}

static wf_status end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    wf_ring *r = (wf_ring *)x;

    wf_assert(r->under_way && r->own_step == step);
    WF_TRY(end(r, err));
    return wf_ring_advance(r, err);
}

/* ---- who is late ---- */

/* Of the members: one without a link; one that has not said where it is, or given values; one that
 * has not given its part of the step under way; one that has not applied the last. n_members:
 * nobody. */
static uint32_t find_late(const wf_ring *r)
{
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && !r->members[i].peer)
            return i;
    for (uint32_t i = 0; !r->is_agreed && i < r->n_members; i++)
        if (!r->members[i].heard)
            return i;
    if (r->is_agreed && !wf_ring_is_current(r))
        return r->giver;
    for (uint32_t i = 0; r->under_way && i < r->n_members; i++)
        if (!r->members[i].words[wf_ring_slot(r->clock + 1)].in)
            return i;
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && r->members[i].done < r->clock)
            return i;
    return r->n_members;
}

/* Before a view the master is waited for. */
static void name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of, wf_waiting *out)
{
    const wf_ring *r = (const wf_ring *)x;
    uint32_t i = find_late(r);
    size_t n = strlen(out->what);

    (void)wait, (void)of;
    if (i == r->n_members)
        return;
    out->whom = (wf_task){WF_ROLE_WORKER, r->members[i].index};
    if (!r->members[i].peer)
        snprintf(out->what + n, sizeof out->what - n, " (no link)");
}

/* ---- beginning and end ---- */

static void ring_free(wf_exchange *x)
{
    wf_ring *r = (wf_ring *)x;

    wf_ring_drop_values(r);
    wf_local_close(&r->local);
    wf_ring_buckets_close(r);
    for (int i = 0; i < WF_RING_AT_ONCE; i++)
        free(r->given[i]);
    free(r->members);
    free(r->updated);
    free(r);
}

static wf_status open_all(wf_ring *r, const wf_exchange_conf *conf, wf_err *err)
{
    size_t n = conf->start->n_variables + 1;

    r->ops = wf_local_ops;
    r->ops.free = ring_free;
    r->ops.on_view = wf_ring_on_view;
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
    r->ops.count_shards = wf_ring_count_files;
    r->ops.save = wf_ring_save;
    r->ops.name_late = name_late;
    r->is_divided = conf->start->shard_optimizer;
    r->updated = calloc(n, sizeof(*r->updated));
    if (!r->updated)
        return wf_fail_nomem(err, n * sizeof(*r->updated));
    WF_TRY(wf_local_init(&r->local, &r->ops, conf, err));
    for (int i = 0; i < WF_RING_AT_ONCE; i++) {
        r->given[i] = calloc(n, 1);
        if (!r->given[i])
            return wf_fail_nomem(err, n);
    }
    WF_TRY(wf_ring_buckets_open(r, err));
    r->n_arrays = wf_ring_count_arrays(r);
    return WF_OK;
}

static wf_status ring_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    wf_ring *r = calloc(1, sizeof *r);
    wf_status rc;

    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    r->idle = true;
    r->has_values = !conf->start->joins;
    *out = &r->local.base;
    rc = open_all(r, conf, err);
    if (rc != WF_OK)
        wf_exchange_free(out);
    return rc;
}

const wf_exchange_kind wf_exchange_ring = {
    .name = "multi_worker_mirrored",
    .sends = true,
    .open = ring_open,
    .home = wf_local_home,
    .device_bytes = wf_local_device_bytes,
};
