/* SPDX-License-Identifier: Apache-2.0 */
/* ps/map.c */
#include "ps/map.h"
#include "common/base/size.h"

#include <stdlib.h>

wf_status wf_map_init(wf_map *m, uint32_t n, uint32_t version, wf_err *err)
{
    *m = (wf_map){.slices = calloc((size_t)n + 1, sizeof *m->slices),
                  .n = n,
                  .version = version,
                  .first = version};
    if (!m->slices)
        return wf_fail_nomem(err, n * sizeof *m->slices);
    for (uint32_t i = 0; i < n; i++)
        m->slices[i].version = version;
    return WF_OK;
}

void wf_map_close(wf_map *m)
{
    free(m->slices);
    *m = (wf_map){0};
}

void wf_map_move(wf_map *m, uint32_t slice, uint32_t ps, uint32_t version)
{
    wf_assert(slice < m->n && version > m->slices[slice].version); /* M1 */
    m->slices[slice].primary = ps;
    m->slices[slice].version = version;
    m->version = WF_MAX(m->version, version);
}

bool wf_map_has_moved(const wf_map *m, uint32_t slice)
{
    return slice < m->n && m->slices[slice].version > m->first;
}
