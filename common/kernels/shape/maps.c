/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/maps.c */
#include "common/kernels/shape/maps.h"
#include "common/base/size.h"
#include "common/kernels/shape/walk.h"

/* The longest stretch of the last axis that is one copy. */
static void find_run(wf_maps *m)
{
    const int64_t *at = m->at[m->rank - 1];
    int64_t n = m->dims[m->rank - 1];

    for (int64_t i = 0; i < n;) {
        int64_t end = i + 1;

        while (at[i] >= 0 && end < n && at[end] == at[end - 1] + 1)
            end++;
        if (at[i] >= 0 && end - i > m->run_length) {
            m->run_first = i;
            m->run_length = end - i;
        }
        i = end;
    }
}

wf_status wf_maps_make(const wf_tensor *walked, const wf_tensor *other, wf_map_fn *fn,
                       const void *arg, wf_arena *arena, wf_maps **out, wf_err *err)
{
    wf_maps *m = wf_arena_alloc(arena, sizeof *m);
    int64_t strides[WF_MAX_RANK];

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    *m = (wf_maps){.rank = WF_MAX(walked->rank, 1u), .rows = wf_elems(walked) ? 1 : 0};
    *out = m;
    if (!m->rows)
        return WF_OK; /* no row is walked, however long the other axes are */
    wf_strides(other->rank, other->dims, strides);
    for (uint32_t i = 0; i < m->rank; i++) {
        m->dims[i] = walked->rank ? walked->dims[i] : 1;
        m->at[i] = wf_arena_array(arena, (size_t)m->dims[i], sizeof *m->at[i]);
        if (!m->at[i])
            return wf_fail_nomem(err, (size_t)m->dims[i] * sizeof *m->at[i]);
        for (int64_t k = 0; walked->rank && k < m->dims[i]; k++) {
            int64_t to = fn(arg, i, k, other->dims[i]);

            m->at[i][k] = to < 0 ? -1 : to * strides[i];
        }
        if (i + 1 < m->rank)
            m->rows *= m->dims[i];
    }
    find_run(m);
    return WF_OK;
}
