/* SPDX-License-Identifier: Apache-2.0 */
/* ps/load.c - fills the slices of this ps: from the job's first values, or from a checkpoint, which
 * may have been cut into slices for another number of ps. Frozen variables are in no checkpoint:
 * they come from the first values in either case. */
#include "common/ckpt/ckpt.h"
#include "common/ckpt/initial.h"
#include "ps/state.h"

#include <inttypes.h>
#include <stdio.h>

/* The job's first values, which have no slots. */
typedef struct first_values {
    const wf_ps *ps;
    wf_shard *shard;
    const char *path;
} first_values;

static wf_status read_first(void *arg, const wf_slice *s, const char *slot, float out[], uint64_t n,
                            wf_err *err)
{
    const first_values *from = arg;
    const char *name = from->ps->variables[s->variable].name;
    const wf_shard_tensor *t = wf_shard_find(from->shard, name);

    (void)slot;
    if (!t || t->dtype != WF_F32)
        return wf_fail(err, WF_CORRUPT, NULL, "%s has no float32 \"%s\"", from->path, name);
    return wf_shard_read(from->shard, t, s->offset * sizeof(float), out, n * sizeof(float), err);
}

/* All slices, or the frozen ones only. */
static wf_status load_initial(wf_ps *ps, const Weft__Setup *setup, bool frozen_only, wf_err *err)
{
    char path[WF_CKPT_PATH];
    first_values values = {.ps = ps, .path = path};
    wf_slice_source from = {.arg = &values, .read = read_first};
    wf_status rc = WF_OK;

    snprintf(path, sizeof path, "%s/%s/" WF_INITIAL_NAME, setup->checkpoint_dir, setup->job);
    WF_TRY(wf_shard_open(ps->conf.disk, path, &values.shard, err));
    for (uint32_t i = 0; rc == WF_OK && i < ps->n_slices; i++)
        if (!frozen_only || wf_slice_is_frozen(ps->slices[i]))
            rc = ps->slices[i]->ops->load(ps->slices[i], &from, true, err);
    wf_shard_close(&values.shard);
    return rc;
}

static bool holds_frozen(const wf_ps *ps)
{
    for (uint32_t i = 0; i < ps->n_slices; i++)
        if (wf_slice_is_frozen(ps->slices[i]))
            return true;
    return false;
}

typedef struct saved_values {
    const wf_ps *ps;
    wf_ckpt *ckpt;
} saved_values;

static wf_status read_saved(void *arg, const wf_slice *s, const char *slot, float out[], uint64_t n,
                            wf_err *err)
{
    const saved_values *from = arg;

    return wf_ckpt_read_range(from->ckpt, from->ps->variables[s->variable].name, slot, s->offset, n,
                              out, err);
}

static wf_status read_all_saved(void *arg, const wf_slice *s, const char *slot, void **out,
                                uint64_t *bytes, wf_err *err)
{
    const saved_values *from = arg;

    return wf_ckpt_read_array(from->ckpt, from->ps->variables[s->variable].name, slot, s->offset,
                              out, bytes, err);
}

static wf_status load_slice(const wf_ps *ps, wf_ckpt *ckpt, wf_slice *s, wf_err *err)
{
    const char *name = ps->variables[s->variable].name;
    const wf_ckpt_variable *v = wf_ckpt_variable_find(ckpt, name);
    saved_values values = {ps, ckpt};

    if (!v)
        return wf_fail(err, WF_MISMATCH, "give the changed model a new job name",
                       "%s has no variable \"%s\"", wf_ckpt_name(ckpt), name);
    s->updates = wf_ckpt_updates_at(v, s->offset);
    return s->ops->load(
        s, &(wf_slice_source){.arg = &values, .read = read_saved, .read_all = read_all_saved},
        false, err);
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
        if (!wf_slice_is_frozen(ps->slices[i]))
            rc = load_slice(ps, from, ps->slices[i], err);
    wf_ckpt_close(&from);
    return rc == WF_OK && holds_frozen(ps) ? load_initial(ps, setup, true, err) : rc;
}
