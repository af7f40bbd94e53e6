/* SPDX-License-Identifier: Apache-2.0 */
/* ps/load.c - fills the slices of this ps: from the job's first values, or from a checkpoint, which
 * may have been cut into slices for another number of ps. */
#include "common/ckpt/ckpt.h"
#include "common/ckpt/values.h"
#include "ps/state.h"

#include <string.h>

typedef struct source {
    const wf_ps *ps;
    wf_values *values;
} source;

static const char *name_of(const source *from, const wf_slice *s)
{
    return from->ps->variables[s->variable].name;
}

static wf_dtype dtype_of(void *arg, const wf_slice *s)
{
    const source *from = arg;

    return wf_values_dtype(from->values, name_of(from, s));
}

static wf_status read_range(void *arg, const wf_slice *s, const char *slot, wf_dtype as,
                            uint64_t first, void *out, uint64_t n, wf_err *err)
{
    const source *from = arg;
    const char *name = name_of(from, s);

    if (slot && strcmp(slot, WF_CKPT_SCALE) == 0)
        return wf_values_read_scales(from->values, name, s->offset / s->row + first, n, out, err);
    if (slot)
        return wf_values_read_slot(from->values, name, slot, s->offset + first, n, out, err);
    if (wf_slice_is_frozen(s))
        return wf_values_read(from->values, name, true, s->offset + first, n, out, err);
    return wf_values_read_as(from->values, name, as, s->offset + first, n, out, err);
}

static wf_status read_array(void *arg, const wf_slice *s, const char *slot, void **out,
                            uint64_t *bytes, wf_err *err)
{
    const source *from = arg;

    return wf_values_read_array(from->values, name_of(from, s), slot, s->offset, out, bytes, err);
}

wf_status wf_ps_load(wf_ps *ps, const Weft__Setup *setup, wf_err *err)
{
    source from = {.ps = ps};
    wf_slice_source of_slice = {
        .arg = &from, .dtype = dtype_of, .read = read_range, .read_all = read_array};
    wf_status rc = wf_values_open(ps->conf.disk, setup->checkpoint_dir, setup->job, setup->initial,
                                  setup->restore_step, &from.values, err);

    for (uint32_t i = 0; rc == WF_OK && i < ps->n_slices; i++) {
        wf_slice *s = ps->slices[i];
        bool first = setup->initial || wf_slice_is_frozen(s);

        if (!first)
            s->updates = wf_values_updates(from.values, name_of(&from, s), s->offset);
        rc = s->ops->load(s, &of_slice, first, err);
    }
    wf_values_close(&from.values);
    return rc;
}
