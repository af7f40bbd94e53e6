/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/feeds.h - what a model is fed, held against its inputs. */
#ifndef WF_SESSION_FEEDS_H
#define WF_SESSION_FEEDS_H

#include "common/base/status.h"
#include "common/compile/compile.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"
#include <stddef.h>

/* All borrowed. */
typedef struct wf_feed {
    const char *name;         /* of the input */
    const char *origin;       /* for messages: "x.npy" */
    const wf_tensor *content; /* dense */
} wf_feed;

/* The inputs of a graph in their order, and what they are fed. {0} is empty. */
typedef struct wf_fed {
    size_t n;
    struct wf_fed_input {
        const char *name;         /* borrowed from the graph */
        const wf_tensor *content; /* borrowed; NULL: not fed */
        wf_tensor *own;           /* the content after a change of dtype, or NULL */
    } * inputs;
} wf_fed;

/* Finds the input of each feed. Float32 is rounded to nearest even for an input of bfloat16, which
 * files of numpy do not have. `model` names it in messages. Close *out after an error as well.
 * Errors: WF_USAGE for a name that is no input (with the nearest one) or comes twice; WF_SHAPE;
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_fed_place(const wf_graph *g, const char *model, size_t n,
                                   const wf_feed feeds[], wf_fed *out, wf_err *err);
void wf_fed_close(wf_fed *f);

enum { WF_UNFED_NAME = 256 };
/* Whether all that the results of a compiled model need is fed; other inputs may be left out. Gives
 * the name of one that is not, or "". Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_fed_check(const wf_fed *f, const char *model, const wf_compiled *c,
                                   char unfed[WF_UNFED_NAME], wf_err *err);
/* What the input of that name is fed; NULL: nothing. */
const wf_tensor *wf_fed_find(const wf_fed *f, const char *name);
/* The bytes of all of it. */
size_t wf_fed_bytes(const wf_fed *f);
/* Input i is no input any more. */
void wf_fed_drop(wf_fed *f, size_t i);

#endif
