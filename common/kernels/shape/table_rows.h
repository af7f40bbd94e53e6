/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/table_rows.h - what TableRows makes of its operands before it runs. */
#ifndef WF_KERNELS_SHAPE_TABLE_ROWS_H
#define WF_KERNELS_SHAPE_TABLE_ROWS_H

#include "common/graph/table_rows.h"
#include "common/kernels/kernel.h"

/* Looks at the row ids, if they are known, and makes the node's wf_first_rows the state.
 * Errors: WF_INVALID when row ids do not rise, or what wf_table_rows_first says; WF_NOMEM. */
WF_MUST_USE wf_status wf_table_rows_prepare(wf_prep *prep, const wf_tensor *row_ids, wf_err *err);

#endif
