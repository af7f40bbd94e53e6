/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/remote.h - of a session's graph what one run needs, for a worker to compute.
 *
 * Variables become inputs, which the worker reads from their ps as the run begins; what is assigned
 * becomes outputs, which it brings to the ps as the run ends, in the order of the graph. What lies
 * between is compiled by the one door. So a run sees each variable as it was at one moment, and
 * never what it assigns itself.
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

typedef struct wf_remote_write {
    wf_variable_action action; /* WF_VARIABLE_ASSIGN or WF_VARIABLE_ADD */
    const char *variable;
    const char *output; /* of the compiled graph: what is assigned or added */
} wf_remote_write;

typedef struct wf_remote_result {
    const char *label;  /* the name that was fetched */
    const char *output; /* of the compiled graph; NULL: the variable after `write` */
    uint32_t write;
} wf_remote_result;

typedef struct wf_remote {
    wf_compiled *compiled;
    const char **reads; /* [n_reads]: inputs of the compiled graph that are variables */
    size_t n_reads;
    wf_remote_write *writes; /* [n_writes] */
    size_t n_writes;
    wf_remote_result *results; /* [n_results], in the order of the fetches */
    size_t n_results;
    const char **feeds; /* [n_feeds]: inputs of the compiled graph that are fed */
    size_t n_feeds;
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
} wf_remote_run;

/* Compiles a run of a session's graph. The caller owns *out. `unfed` is the name of an input that
 * should have been fed, otherwise "". Errors: WF_USAGE when nothing is wanted, a feed is no input,
 * or an input is not fed; WF_NOTFOUND with the nearest name; WF_SHAPE; WF_UNSUPPORTED for what is
 * computed from an AssignAdd; those of wf_compile. */
WF_MUST_USE wf_status wf_remote_prepare(const wf_graph *g, const wf_remote_run *run,
                                        wf_remote **out, char unfed[WF_UNFED_NAME], wf_err *err);
/* Frees *r and sets it to NULL; NULL is fine. */
void wf_remote_free(wf_remote **r);

#endif
