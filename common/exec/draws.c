/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/draws.c - the keys of a run's random draws in memory of the devices that draw. So a
 * step's arguments are the same in each run, and what a device has recorded of it stays right. */
#include "common/exec/plan.h"

static wf_rng_key key_of(const wf_step *s, const wf_step_key *key)
{
    uint64_t stream = wf_rng_fold(s->sequence, key->epoch);

    stream = wf_rng_fold(stream, key->split);
    return (wf_rng_key){key->seed, wf_rng_fold(stream, key->batch)};
}

static wf_status make_keys(wf_plan *p, uint32_t side, uint32_t n, wf_err *err)
{
    wf_plan_side *s = &p->sides[side];
    size_t bytes = n * sizeof(wf_rng_key);

    WF_TRY(wf_plan_reserve(p, s->device, bytes, NULL, &s->keys_there, err));
    p->usage.device_bytes += bytes;
    if (p->measure_only)
        return WF_OK;
    s->keys = wf_buf_new_pinned(s->device, bytes);
    if (!s->keys)
        return wf_fail_nomem(err, bytes);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].side == side && p->steps[i].draws)
            p->steps[i].run.key_there = (const wf_rng_key *)s->keys_there->data + s->n_keys++;
    return WF_OK;
}

wf_status wf_plan_draws(wf_plan *p, wf_err *err)
{
    for (uint32_t side = 1; side < p->n_sides; side++) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < p->n_steps; i++)
            n += p->steps[i].side == side && p->steps[i].draws;
        if (n)
            WF_TRY(make_keys(p, side, n, err));
    }
    return WF_OK;
}

wf_status wf_plan_draw(wf_plan *p, const wf_step_key *key, wf_err *err)
{
    uint32_t n[WF_SIDES] = {0};

    for (uint32_t i = 0; i < p->n_steps; i++) {
        wf_step *s = &p->steps[i];

        if (!s->draws)
            continue;
        s->run.key = key_of(s, key);
        if (s->side != WF_SIDE_HOST)
            ((wf_rng_key *)p->sides[s->side].keys->data)[n[s->side]++] = s->run.key;
    }
    for (uint32_t side = 1; side < p->n_sides; side++) {
        wf_plan_side *s = &p->sides[side];

        if (s->n_keys)
            WF_TRY(wf_plan_side_bring(s, s->keys_there->data, s->keys->data,
                                      s->n_keys * sizeof(wf_rng_key), err));
    }
    return WF_OK;
}
