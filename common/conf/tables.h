/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/tables.h - the job key `tables`. For this room only. */
#ifndef WF_CONF_TABLES_H
#define WF_CONF_TABLES_H

#include "common/conf/read.h"

/* Of one table. */
extern const wf_key wf_table_keys[];

/* A pattern, a table or a list of both; `into` is a wf_job_conf. */
WF_MUST_USE wf_status wf_read_tables(wf_conf_reader *r, const wf_tree *node, void *into,
                                     wf_err *err);

#endif
