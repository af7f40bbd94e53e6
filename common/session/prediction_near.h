/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction_near.h - the part of a prediction's request about hosts; for
 * prediction.c and prediction_request.c. */
#ifndef WF_SESSION_PREDICTION_NEAR_H
#define WF_SESSION_PREDICTION_NEAR_H

#include "common/ckpt/json.h"
#include "common/session/prediction_state.h"

/* Whether each pattern that the command names with hosts is of a file. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_prediction_check_hosts(const wf_prediction *p, wf_err *err);
/* [{"records": N, "hosts": [...]}, ...] of the first input with a file that is near a host, the
 * caller's; NULL when there is none. */
json_t *wf_prediction_near(const wf_prediction *p);
/* Reads such a list, or NULL, from anywhere, into out->near. Errors: WF_INVALID, WF_NOMEM. */
WF_MUST_USE wf_status wf_prediction_take_near(const json_t *list, wf_arena *a,
                                              wf_prediction_ask *out, wf_err *err);

#endif
