/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/losses.h - the keys of a job file about its losses, metrics and weights of examples.
 * For this room only: functions for the rows of job.c; `into` is a wf_job_conf. */
#ifndef WF_CONF_LOSSES_H
#define WF_CONF_LOSSES_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

WF_MUST_USE wf_status wf_read_losses(wf_conf_reader *r, const wf_tree *node, void *into,
                                     wf_err *err);
WF_MUST_USE wf_status wf_read_metrics(wf_conf_reader *r, const wf_tree *node, void *into,
                                      wf_err *err);
WF_MUST_USE wf_status wf_read_loss_weights(wf_conf_reader *r, const wf_tree *node, void *into,
                                           wf_err *err);
WF_MUST_USE wf_status wf_read_labels(wf_conf_reader *r, const wf_tree *node, void *into,
                                     wf_err *err);
WF_MUST_USE wf_status wf_read_sample_weight(wf_conf_reader *r, const wf_tree *node, void *into,
                                            wf_err *err);
WF_MUST_USE wf_status wf_read_class_weight(wf_conf_reader *r, const wf_tree *node, void *into,
                                           wf_err *err);

/* What must hold between them: outputs that are named have a loss, and so on. */
WF_MUST_USE wf_status wf_check_losses(const wf_conf_reader *r, const wf_job_conf *j, wf_err *err);

#endif
