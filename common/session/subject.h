/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/subject.h - with regard to what a loss is differentiated. */
#ifndef WF_SESSION_SUBJECT_H
#define WF_SESSION_SUBJECT_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/session/feeds.h"
#include <stddef.h>

/* Makes the variables and inputs of names[n] the trainable ones of the graph, and all others
 * frozen. An input becomes a variable that holds what it is fed, and leaves `fed`. Errors: WF_USAGE
 * for a name that is neither, or comes twice; WF_SHAPE for what is no float, or is not fed;
 * WF_NOMEM. The graph is undefined then. */
WF_MUST_USE wf_status wf_subjects_set(wf_graph *g, const char *model, wf_fed *fed, size_t n,
                                      const char *const names[], wf_err *err);

#endif
