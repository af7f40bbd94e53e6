/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/portable.h - a model in the operations that other programs have.
 *
 * Recurrent operations have layout 0 (steps_first.h). Of unbounded tables LabelEncoder gives an id
 * the number of its row, for a Gather.
 *
 * First values by id cannot be said in them. Ids without a row get the row behind the others, which
 * holds the mean of first values.
 */
#ifndef WF_SESSION_PORTABLE_H
#define WF_SESSION_PORTABLE_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include <stddef.h>

/* A copy of a model's graph, which shares its weights, without what others lack; *out stays NULL
 * where g has none of that, and is itself what to write. The caller owns *out. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_portable(const wf_graph *g, wf_graph **out, wf_err *err);
/* What a written model does otherwise than the graph, as a sentence; "" for nothing. */
void wf_portable_note(const wf_graph *g, char *note, size_t size);

#endif
