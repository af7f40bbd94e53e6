/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/near.h - "did you mean" for names of a model. */
#ifndef WF_SESSION_NEAR_H
#define WF_SESSION_NEAR_H

#include "common/graph/graph.h"
#include <stdbool.h>

enum { WF_NEAR_TEXT = 160 };

/* Whether it is a variable or a constant. */
bool wf_is_weight(const wf_value *v);
/* `did you mean "w"?` into text, by the input, or the weight as well, that is named most like
 * `name`; "" when none is. Returns text. */
const char *wf_near_text(const wf_graph *g, bool inputs, bool weights, const char *name,
                         char text[WF_NEAR_TEXT]);

#endif
