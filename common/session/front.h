/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/front.h - the steps of data.map as operations in front of a model: it then takes
 * records as the files have them. */
#ifndef WF_SESSION_FRONT_H
#define WF_SESSION_FRONT_H

#include "common/conf/conf.h"
#include "common/data/learnt.h"
#include "common/graph/graph.h"
#include <stdbool.h>

enum { WF_FRONT_NAMES = 256 };

/* Puts the steps of each input that the job standardises in front of it: cast, fill, log1p,
 * reshape, scale and standardise, in their order, in f64 where the data are. Where another step
 * comes before standardise, the input is what that step gives. What is not among `learnt` is learnt
 * from the training data. `names` gets the inputs, "x, age", cut to fit; "" when there is none.
 * Errors: WF_UNSUPPORTED for another step behind standardise; WF_MISMATCH; those of the training
 * data. */
WF_MUST_USE wf_status wf_front_add(wf_graph *g, const wf_job_conf *job,
                                   const wf_learnt_list *learnt, char names[WF_FRONT_NAMES],
                                   wf_err *err);
/* Whether a model already standardises that input, as an exported one does. */
bool wf_front_is_there(const wf_graph *g, const char *input);

#endif
