/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/extend.h - the graph of a session grows by models that are put into it. */
#ifndef WF_SESSION_EXTEND_H
#define WF_SESSION_EXTEND_H

#include "common/base/status.h"
#include "common/graph/graph.h"

/* A graph of a session, without anything in it; the caller's. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_extend_begin(wf_graph **out, wf_err *err);

/* Puts the parts of `model` into a copy of `g`, *out, which the caller owns. Values meet by their
 * names: an input of the model is what the session has of that name, and a variable the one that is
 * there. Variables are those of the model, and what Read, Assign or AssignAdd take as one. Their
 * first values are in the model; *out has their dtypes and shapes alone. Errors: WF_EXISTS for
 * another value that the session has a name of; WF_SHAPE for a variable that is there with another
 * dtype or shape, and those of wf_infer; WF_INVALID for an operation on variables that is given
 * something else; WF_NOMEM. */
WF_MUST_USE wf_status wf_extend(const wf_graph *g, wf_graph *model, wf_graph **out, wf_err *err);

#endif
