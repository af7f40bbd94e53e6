/* SPDX-License-Identifier: Apache-2.0 */
/* ps/load.c - fills the slices of this ps: from the job's first values, or from a checkpoint, which
 * may have been cut into slices for another number of ps. Frozen variables are in no checkpoint:
 * they come from the first values in either case. */
#include "common/ckpt/ckpt.h"
#include "common/ckpt/initial.h"
#include "ps/state.h"

#include <inttypes.h>
#include <stdio.h>

/* From the job's first values: all slices, or the frozen ones only. */
static wf_status load_initial(wf_ps *ps, const Weft__Setup *setup, bool frozen_only, wf_err *err)
{
    char path[WF_CKPT_PATH];
    wf_shard *shard = NULL;
    wf_status rc;

    snprintf(path, sizeof path, "%s/%s/" WF_INITIAL_NAME, setup->checkpoint_dir, setup->job);
    WF_TRY(wf_shard_open(ps->conf.disk, path, &shard, err));
    rc = WF_OK;
    for (uint32_t i = 0; rc == WF_OK && i < ps->n_slices; i++) {
        wf_slice *s = &ps->slices[i];
        const char *name = ps->variables[s->variable].name;
        const wf_shard_tensor *t;

        if (frozen_only && !wf_slice_is_frozen(s))
            continue;
        t = wf_shard_find(shard, name);
        if (!t || t->dtype != WF_F32)
            rc = wf_fail(err, WF_CORRUPT, NULL, "%s has no float32 \"%s\"", path, name);
        else
            rc = wf_shard_read(shard, t, s->offset * sizeof(float), wf_slice_weights(s),
                               s->count * sizeof(float), err);
    }
    wf_shard_close(&shard);
    return rc;
}

static bool holds_frozen(const wf_ps *ps)
{
    for (uint32_t i = 0; i < ps->n_slices; i++)
        if (wf_slice_is_frozen(&ps->slices[i]))
            return true;
    return false;
}

static wf_status load_slice(wf_ps *ps, wf_ckpt *from, wf_slice *s, wf_err *err)
{
    const char *name = ps->variables[s->variable].name;
    const wf_ckpt_variable *v = wf_ckpt_variable_find(from, name);

    if (!v)
        return wf_fail(err, WF_MISMATCH, "give the changed model a new job name",
                       "%s has no variable \"%s\"", wf_ckpt_name(from), name);
    WF_TRY(wf_ckpt_read_range(from, name, NULL, s->offset, s->count, wf_slice_weights(s), err));
    for (uint32_t i = 0; i < s->n_slots; i++)
        WF_TRY(wf_ckpt_read_range(from, name, wf_opt_slot_name(&ps->opt, i), s->offset, s->count,
                                  s->slots[i], err));
    s->updates = wf_ckpt_updates_at(v, s->offset);
    return WF_OK;
}

wf_status wf_ps_load(wf_ps *ps, const Weft__Setup *setup, wf_err *err)
{
    wf_ckpt *from = NULL;
    wf_status rc;

    if (setup->initial)
        return load_initial(ps, setup, false, err);
    /* Checksums were verified by the master; here sizes and ranges are. */
    rc = wf_ckpt_open(ps->conf.disk, setup->checkpoint_dir, setup->job, setup->restore_step, false,
                      &from, err);
    for (uint32_t i = 0; rc == WF_OK && i < ps->n_slices; i++)
        if (!wf_slice_is_frozen(&ps->slices[i]))
            rc = load_slice(ps, from, &ps->slices[i], err);
    wf_ckpt_close(&from);
    return rc == WF_OK && holds_frozen(ps) ? load_initial(ps, setup, true, err) : rc;
}
