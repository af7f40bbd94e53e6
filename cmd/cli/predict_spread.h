/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/predict_spread.h - a prediction whose splits the workers of a cluster compute. */
#ifndef WF_CMD_CLI_PREDICT_SPREAD_H
#define WF_CMD_CLI_PREDICT_SPREAD_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/session/prediction.h"

/* Has the workers compute the parts of a prediction that was begun: hands it to the master as a
 * job, which deals its splits, and follows that; a job of the same request that is under way is
 * followed instead. A cluster that is not up is started, as `weft train` does. Errors: the job's
 * failure; WF_STOPPED after Ctrl-C; those of starting a cluster and of asking its master. */
WF_MUST_USE wf_status wf_predict_spread(const wf_cluster_conf *conf, const wf_prediction *p,
                                        wf_err *err);

#endif
