/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/remote.h - of a session's graph what one run needs, for workers to compute.
 *
 * Variables become inputs, which the session's worker reads from their ps as the run begins; what
 * is assigned becomes outputs, which it brings to the ps as the run ends, in the order of the
 * graph. What lies between is cut into fragments, one or more for each worker that a node is placed
 * on, and compiled by the one door. The session's worker sends the others what their fragments
 * take, and receives what they give. So a run sees each variable as it was when the run began, and
 * never what it assigns itself.
 *
 * The result of an AssignAdd that a node computes with is the exception: the sum is made as soon as
 * what it adds is there, and what the variable then is comes in as an input. Inputs of that kind,
 * and what Recv brings, are arrivals: a fragment waits for those that each of its nodes depends on,
 * and for no other. A Send leaves behind the fragment that makes its value.
 *
 * A value is known by its name in the session's graph, wherever it is.
 */
#ifndef WF_SESSION_REMOTE_H
#define WF_SESSION_REMOTE_H

#include "common/base/status.h"
#include "common/compile/compile.h"
#include "common/graph/graph.h"
#include "common/session/feeds.h"
#include "common/wire/variables.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_REMOTE_FRAGMENTS = 64 };

typedef struct wf_remote_write {
    wf_variable_action action; /* WF_VARIABLE_ASSIGN or WF_VARIABLE_ADD */
    const char *variable;
    const char *value; /* what is assigned or added */
    const char *after; /* the variable afterwards, which fragments take; NULL: none does */
} wf_remote_write;

/* A Send: the value leaves under the key, for worker `to`. */
typedef struct wf_remote_send {
    const char *key, *value;
    uint32_t to, number; /* of the Sends and Recvs of the run */
} wf_remote_send;

/* A Recv: what worker `from` has sent under the key becomes the value. */
typedef struct wf_remote_receive {
    const char *key, *value;
    uint32_t from, number;
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
} wf_remote_receive;

typedef struct wf_remote_result {
    const char *label; /* the name that was fetched */
    const char *value; /* NULL: the variable after `write` */
    uint32_t write;
} wf_remote_result;

/* What one worker computes without an answer of another in between. */
typedef struct wf_remote_fragment {
    uint32_t worker;
    wf_compiled *compiled; /* NULL: it computes nothing */
    const char **inputs;   /* [n_inputs]: values that it needs before it receives */
    size_t n_inputs;
    wf_remote_receive *receives; /* [n_receives] */
    size_t n_receives;
    wf_remote_send *sends; /* [n_sends]: of values that it makes, receives or takes */
    size_t n_sends;
    const char **outputs,
        **values; /* [n_outputs]: of the compiled graph, and which values they are */
    size_t n_outputs;
} wf_remote_fragment;

typedef struct wf_remote {
    wf_remote_fragment *fragments; /* [n_fragments]: each takes outputs of those before it */
    size_t n_fragments;
    const char **reads; /* [n_reads]: variables that are needed */
    size_t n_reads;
    wf_remote_write *writes; /* [n_writes]: first those with an `after` */
    size_t n_writes;
    wf_remote_result *results; /* [n_results], in the order of the fetches */
    size_t n_results;
    const wf_value **feeds; /* [n_feeds]: inputs that are needed; in `graph` */
    size_t n_feeds;
    wf_graph *graph;
    bool is_for_once; /* it depends on the content of feeds, and not on their shapes alone */
    wf_arena *arena;  /* of all of it */
} wf_remote;

/* What is wanted; borrowed for the call. */
typedef struct wf_remote_run {
    size_t n_feeds;
    const wf_feed *feeds;
    size_t n_fetches;
    const char *const *fetches; /* values */
    size_t n_targets;
    const char *const *targets; /* values or nodes that are to be run, and do not come back */
    uint32_t worker, n_workers; /* the session's, of nodes that are placed nowhere; and all */
} wf_remote_run;

/* Compiles a run of a session's graph. The caller owns *out. `unfed` is the name of an input that
 * should have been fed, otherwise "". Errors: WF_USAGE when nothing is wanted, a feed is no input,
 * or an input is not fed; WF_NOTFOUND with the nearest name, or for a node that is placed on a
 * worker that there is none of; WF_SHAPE; WF_UNSUPPORTED for a shape between two workers that
 * follows from the content of feeds, or a Recv with an input; WF_INVALID for a Send or Recv without
 * key or task; WF_FULL for too many of them; those of wf_compile. */
WF_MUST_USE wf_status wf_remote_prepare(const wf_graph *g, const wf_remote_run *run,
                                        wf_remote **out, char unfed[WF_UNFED_NAME], wf_err *err);
/* Frees *r and sets it to NULL; NULL is fine. */
void wf_remote_free(wf_remote **r);

#endif
