/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/predict_hosts.h - --hosts of `weft predict`: which hosts have files of its inputs near.
 */
#ifndef WF_CMD_CLI_PREDICT_HOSTS_H
#define WF_CMD_CLI_PREDICT_HOSTS_H

#include "cmd/cli/cli.h"
#include "common/base/arena.h"
#include "common/session/prediction.h"

/* Reads words FILE=HOST,HOST, of which FILE may be a pattern, below the folder `here` unless it is
 * absolute, into the ask; in the arena. Errors: WF_USAGE, WF_NOMEM. */
WF_MUST_USE wf_status wf_predict_hosts(const wf_words *words, const char *here, wf_arena *a,
                                       wf_prediction_ask *ask, wf_err *err);

#endif
