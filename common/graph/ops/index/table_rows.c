/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/table_rows.c - TableRows: common/graph/table_rows.h. */
#include "common/graph/table_rows.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/tensor/stochastic.h"

static wf_status check_table(const wf_node *n, wf_err *err)
{
    const wf_value *table = n->in[WF_TABLE_ROWS_TABLE], *row_ids = n->in[WF_TABLE_ROWS_ROW_IDS];
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    if ((table->rank >= 0 && table->rank != 2) || (row_ids->rank >= 0 && row_ids->rank != 1) ||
        (table->rank == 2 && row_ids->rank == 1 && table->axes[0].size >= 0 &&
         row_ids->axes[0].size >= 0 && table->axes[0].size - 1 != row_ids->axes[0].size))
        return wf_fail(err, WF_SHAPE, NULL,
                       "the table is %s and the ids of its rows %s, which must be [rows + 1, "
                       "width] and [rows]",
                       wf_value_str(table, a, sizeof a), wf_value_str(row_ids, b, sizeof b));
    return WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *table = n->in[WF_TABLE_ROWS_TABLE], *ids = n->in[WF_TABLE_ROWS_IDS];
    wf_axis axes[2] = {wf_axis_of(1)};
    wf_first_rows first;

    (void)g;
    WF_TRY(wf_need_dtype(n, WF_TABLE_ROWS_TABLE, WF_F32, "table", err));
    WF_TRY(wf_need_dtype(n, WF_TABLE_ROWS_ROW_IDS, WF_I64, "row_ids", err));
    WF_TRY(wf_need_dtype(n, WF_TABLE_ROWS_IDS, WF_I64, "ids", err));
    WF_TRY(wf_table_rows_first(n, &first, err));
    WF_TRY(check_table(n, err));
    wf_out_like(n, WF_TABLE_ROWS_PLACES, WF_I64, ids);
    wf_out_unknown(n, WF_TABLE_ROWS_ROWS, WF_F32);
    if (table->rank < 0 || ids->rank < 0)
        return WF_OK;
    if (first.dtype == WF_I8 && table->axes[1].size > WF_INT8_ROW_MOST)
        return wf_fail(err, WF_SHAPE, NULL, "an int8 row has %d elements at most",
                       WF_INT8_ROW_MOST);
    for (int32_t i = 0; i < ids->rank; i++)
        axes[0] = wf_axis_mul(&axes[0], &ids->axes[i]);
    axes[1] = table->axes[1];
    wf_out_axes(n, WF_TABLE_ROWS_ROWS, WF_F32, 2, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"bags", WF_ATTR_INT, false},
                                    {"distribution", WF_ATTR_INT, false},
                                    {"dtype", WF_ATTR_INT, false},
                                    {"numbers", WF_ATTR_TENSOR, true},
                                    {"seed", WF_ATTR_INT, false},
                                    {"stream", WF_ATTR_INT, false},
                                    {0}};

const wf_op wf_op_table_rows = WF_OPERATION(
    WF_DOMAIN_WEFT, "TableRows", 1, 3, 3, 2, 2, 0, infer,
    .means =
        "(table, row_ids, ids) -> rows, places; table [n + 1, width], row_ids [n] int64 that "
        "rise, ids int64 of any shape -> [elements of ids, width], as ids: for each id the row of "
        "the table that row_ids has it for, or else first values of its own, and which of `rows` "
        "that is; attr distribution (0 constant, 1 uniform, 2 truncated normal, 3 normal), "
        "numbers (centre and spread), seed = 0, stream = 0 and dtype = float32, which first "
        "values are rounded to, as an unbounded table of a job has them; with attr bags = 1 an id "
        "below 0 has the place -1",
    .no_grad_in = 6u, .attrs = attrs);
