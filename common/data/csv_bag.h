/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/csv_bag.h - several values in one cell: "a|b|c" is a bag of three, an empty cell one
 * of none. For this room only. */
#ifndef WF_DATA_CSV_BAG_H
#define WF_DATA_CSV_BAG_H

#include "common/data/bag.h"
#include "common/data/csv_value.h"

/* How many values a cell has. */
uint64_t wf_csv_bag_count(const wf_csv_cell *cell, char separator);
/* Writes the values of a cell as out [b->most]. Errors: those of wf_csv_value and of the bag, with
 * the column. */
WF_MUST_USE wf_status wf_csv_bag_put(const wf_csv_values *v, const wf_csv_column *c,
                                     const wf_bag *b, const wf_csv_cell *cell, char separator,
                                     void *out, wf_err *err);

#endif
