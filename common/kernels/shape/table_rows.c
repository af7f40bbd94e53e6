/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/table_rows.c */
#include "common/kernels/shape/table_rows.h"

#include <inttypes.h>

wf_status wf_table_rows_prepare(wf_prep *prep, const wf_tensor *row_ids, wf_err *err)
{
    const int64_t *ids = row_ids->data;
    wf_first_rows *first = wf_arena_alloc(prep->arena, sizeof *first);

    if (!first)
        return wf_fail_nomem(err, sizeof *first);
    for (int64_t i = 1; ids && i < wf_elems(row_ids); i++)
        if (ids[i] <= ids[i - 1])
            return wf_fail(err, WF_INVALID, NULL,
                           "the row of id %" PRId64 " comes after that of %" PRId64, ids[i],
                           ids[i - 1]);
    prep->state = first;
    return wf_table_rows_first(prep->node, first, err);
}
