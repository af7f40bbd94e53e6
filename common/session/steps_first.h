/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/steps_first.h - recurrent operations with the steps before the batch: layout 0,
 * the only one that onnxruntime has. weft's layers compute with layout 1, [batch, steps, features].
 */
#ifndef WF_SESSION_STEPS_FIRST_H
#define WF_SESSION_STEPS_FIRST_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include <stdbool.h>

/* Whether n is RNN, GRU or LSTM with layout 1. */
bool wf_is_batch_first(const wf_node *n);
/* Adds the same with layout 0 between Transposes, which n's readers then read; names of graph
 * outputs stay. The caller drops n. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_steps_first(wf_graph *g, const wf_node *n, wf_err *err);

#endif
