/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/set.h - the key `set` of a job file: numbers that were changed on the way. For this
 * room only. */
#ifndef WF_CONF_SET_H
#define WF_CONF_SET_H

#include "common/conf/read.h"

/* Puts each entry of the root's `set` in the place that its key names ("optimizer.learning_rate",
 * "callbacks.early_stopping.patience") and takes `set` out of the root. Errors: WF_USAGE for a key
 * that may not change, or has no place. */
WF_MUST_USE wf_status wf_set_apply(wf_conf_reader *r, wf_tree *root, wf_err *err);

#endif
