/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/table_rows.h - TableRows (ai.weft): the rows of an unbounded table that a batch
 * names, for a graph that has the whole table in itself. Rows that the table does not have are
 * computed (common/tensor/first_row.h), as a ps does.
 *
 * It makes of the ids the two things that a worker feeds its graph with: `rows` [elements of ids,
 * width], and `places`, of the ids' shape: for each id its row among them. So a Gather, or an
 * EmbeddingBag, is the same node here and there.
 */
#ifndef WF_GRAPH_TABLE_ROWS_H
#define WF_GRAPH_TABLE_ROWS_H

#include "common/graph/emit.h"
#include "common/tensor/first_row.h"
#include <stdbool.h>

/* Its inputs and outputs. TABLE [n + 1, width] float32 has a row for each of ROW_IDS [n], which
 * rise, and one behind them, which stands for all others where first values cannot be computed
 * (common/session/portable.h). */
enum { WF_TABLE_ROWS_TABLE, WF_TABLE_ROWS_ROW_IDS, WF_TABLE_ROWS_IDS };
enum { WF_TABLE_ROWS_ROWS, WF_TABLE_ROWS_PLACES };

/* Adds the node; out [2], as of wf_emit_node. `bags`: an id below 0 names no row, and has the place
 * -1. */
wf_node *wf_emit_table_rows(wf_emit *e, wf_value *const in[3], const wf_first_rows *first,
                            bool bags, wf_value *out[2]);
bool wf_is_table_rows(const wf_node *n);
/* What a node's attributes say of first values. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_table_rows_first(const wf_node *n, wf_first_rows *out, wf_err *err);

#endif
