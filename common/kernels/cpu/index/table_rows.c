/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/table_rows.c - TableRows: each id is searched among those that have a
 * row; first values are computed for the others. */
#include "common/kernels/shape/table_rows.h"
#include "common/base/rising.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

typedef struct lookup {
    wf_first_rows first;
    const float *table;           /* [n + 1, width] */
    const int64_t *row_ids, *ids; /* [n]; one for each of rows */
    float *rows;                  /* [ids, width] */
    int64_t *places;              /* one for each of ids */
    int64_t n, width;
    bool bags;
} lookup;

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    (void)out;
    return wf_table_rows_prepare(prep, in[WF_TABLE_ROWS_ROW_IDS], err);
}

static void look_up(void *arg, int64_t begin, int64_t end)
{
    const lookup *l = arg;
    size_t bytes = (size_t)l->width * sizeof(float);

    for (int64_t i = begin; i < end; i++) {
        bool named = !l->bags || l->ids[i] >= 0;
        int64_t at = named ? wf_find_rising(l->row_ids, l->n, l->ids[i]) : -1;
        float *to = l->rows + i * l->width;

        l->places[i] = named ? i : -1;
        if (at >= 0)
            wf_copy(to, l->table + at * l->width, bytes);
        else if (named)
            wf_first_row(&l->first, l->ids[i], (uint64_t)l->width, to);
        else if (bytes)
            memset(to, 0, bytes); /* nobody reads it, and results have no undefined bytes */
    }
}

static wf_status table_rows(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    enum { SEARCH = 32 }; /* elements of cheap arithmetic that a search is worth */
    const wf_first_rows *first = run->state;
    lookup l = {.first = *first,
                .table = wf_f32(in[WF_TABLE_ROWS_TABLE]),
                .row_ids = in[WF_TABLE_ROWS_ROW_IDS]->data,
                .ids = in[WF_TABLE_ROWS_IDS]->data,
                .rows = wf_f32_mut(out[WF_TABLE_ROWS_ROWS]),
                .places = out[WF_TABLE_ROWS_PLACES]->data,
                .n = wf_elems(in[WF_TABLE_ROWS_ROW_IDS]),
                .width = wf_dim(in[WF_TABLE_ROWS_TABLE], 1),
                .bags = wf_node_int(run->node, "bags", 0) != 0};

    (void)err;
    wf_pool_for(run->pool, wf_elems(in[WF_TABLE_ROWS_IDS]),
                WF_MAX(WF_GRAIN / (l.width + SEARCH), (int64_t)1), look_up, &l);
    return WF_OK;
}

const wf_kernel wf_kernels_table_rows[] = {
    WF_ROW("TableRows", WF_TYPE(WF_F32), table_rows, .domain = WF_DOMAIN_WEFT, .prepare = prepare),
    {0},
};
