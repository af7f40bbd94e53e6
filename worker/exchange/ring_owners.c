/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_owners.c - each member has the optimizer's slots of a share of the
 * variables, updates these, and sends their weights to the others (Rajbhandari et al. 2020, "ZeRO:
 * Memory Optimizations Toward Training Trillion Parameter Models", section 5.1: P_os, by whole
 * variables). All have the weights of all variables, and the statistics, which have no slots.
 *
 * A share whose member is lost is nowhere else. So the members stay the same as long as steps are
 * made, and no link between them breaks; otherwise the job goes back to its newest checkpoint,
 * which each reads its share of.
 */
#include "common/base/size.h"
#include "worker/exchange/ring_state.h"

#include <string.h>

wf_status wf_ring_cannot_go_on(wf_err *err)
{
    return wf_fail(
        err, WF_AGAIN, "the job goes back to its newest checkpoint",
        "the workers or the links between them have changed, and each worker had a share "
        "of the optimizer's state");
}

wf_status wf_ring_divide(wf_ring *r, wf_err *err)
{
    if (r->clock > 0 || r->under_way)
        return wf_ring_cannot_go_on(err);
    if (!r->has_values) /* the others begin anew, and this worker with them */
        return WF_OK;
    WF_TRY(wf_local_share(&r->local, r->n_members, err));
    if (wf_local_own(&r->local, r->me, err) == WF_OK)
        return WF_OK;
    if (err) /* what cannot be read now may be read later */
        err->status = WF_AGAIN;
    return WF_AGAIN;
}

/* ---- a step ---- */

static bool is_others(const wf_local_variable *v)
{
    return wf_local_is_trainable(v) && !v->elsewhere && !v->has_slots;
}

static wf_status send_share(wf_ring *r, const bool *updated, wf_err *err)
{
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        const wf_local_variable *v = &r->local.variables[i];

        if (!updated[i] || !v->has_slots)
            continue;
        for (uint64_t at = 0; at < v->count; at += WF_RING_PIECE)
            for (uint32_t k = 0; k < r->n_members; k++)
                if (k != r->me)
                    WF_TRY(wf_ring_send_weights(
                        r, k, i, at, WF_MIN(v->count - at, (uint64_t)WF_RING_PIECE), err));
    }
    return WF_OK;
}

wf_status wf_ring_update_share(wf_ring *r, wf_err *err)
{
    r->weights_due = 0;
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        wf_local_variable *v = &r->local.variables[i];

        r->updated[i] = v->pushed;
        if (!v->pushed || !is_others(v))
            continue;
        v->pushed = false;
        v->updates++;
        r->weights_due += v->count;
    }
    WF_TRY(wf_local_update(&r->local, err));
    wf_ring_drop_means(r);
    r->is_updated = true;
    if (r->brought && r->n_members > 1)
        WF_TRY(wf_ring_fetch_share(r, err));
    return send_share(r, r->updated, err);
}

bool wf_ring_has_all_shares(const wf_ring *r)
{
    return r->is_updated && r->weights_in == r->weights_due;
}

/* Its owner has updated it, so all have given their part of the step: no kernel reads the weights
 * any more. */
wf_status wf_ring_on_weights(wf_ring *r, uint32_t from, uint32_t variable, uint64_t at,
                             const uint8_t *bytes, uint64_t n, wf_err *err)
{
    const wf_local_variable *v =
        variable < r->local.n_variables ? &r->local.variables[variable] : NULL;

    if (!r->is_divided || !r->is_given || !v || !is_others(v) || v->share != from ||
        at > v->count || n > v->count - at)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: %lu weights of variable %u",
                       r->members[from].index, (unsigned long)n, variable);
    if (v->device->is_host)
        memcpy((float *)v->weights->data + at, bytes, n * sizeof(float));
    else
        WF_TRY(wf_ring_bring_weights(r, variable, at, bytes, n, err));
    r->weights_in += n;
    return WF_OK;
}
