/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/bags.h - the keys of `data` that say which fields are bags, and how they are written.
 * For this room only. */
#ifndef WF_CONF_BAGS_H
#define WF_CONF_BAGS_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

/* Each reads its key's value into the wf_job_conf `into`. Errors: WF_USAGE with file and line. */
WF_MUST_USE wf_status wf_read_bags(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err);
WF_MUST_USE wf_status wf_read_separator(wf_conf_reader *r, const wf_tree *node, void *into,
                                        wf_err *err);
WF_MUST_USE wf_status wf_read_on_long_bag(wf_conf_reader *r, const wf_tree *node, void *into,
                                          wf_err *err);
/* That `bags` names fields of one column, and that a separator has bags. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_check_bags(const wf_conf_reader *r, const wf_tree *node,
                                    const wf_job_conf *j, wf_err *err);

#endif
