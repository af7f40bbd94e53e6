/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/once.h - a model evaluated once, or differentiated, for just what it is fed: the
 * compiler knows the content of small integers among the feeds, and what shapes follow from it. */
#ifndef WF_SESSION_ONCE_H
#define WF_SESSION_ONCE_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/kernels/pool.h"
#include "common/session/feeds.h"
#include "common/tensor/device.h"
#include "common/tensor/named.h"
#include <stddef.h>
#include <stdint.h>

/* All borrowed for the call. */
typedef struct wf_once {
    const char *name;      /* of the model, for messages: the path of its file */
    const wf_graph *graph; /* NULL: the ONNX file `name` is read, and its loops are unrolled by what
                            * it is fed */
    size_t n_feeds;
    const wf_feed *feeds;

    const char *loss;           /* differentiate this scalar output; NULL: evaluate */
    const char *const *fetches; /* [n_fetches] values, none: all outputs; or with a loss variables
                                 * and inputs, none: all trainable variables */
    size_t n_fetches;

    uint64_t seed;
    const wf_device *device; /* NULL: the cpu */
    wf_pool *pool;
    size_t limit_bytes;     /* of memory; 0: what the model and its feeds account for */
    const char *limit_hint; /* what to do about that limit */
    void (*warn)(void *arg, const char *sentence);
    void *arg;
} wf_once;

/* Adds the results to *out, which is empty before and the caller's, also after a failure. With a
 * loss these are the loss and its derivatives, by the names of variables and inputs; zero where it
 * does not depend on them. When an input that the results need is not fed, `unfed` is its name,
 * otherwise "". Errors: WF_USAGE, WF_SHAPE, WF_NOTFOUND: feeds, fetches or loss do not go with the
 * model; those of wf_onnx_read, wf_compile and plans. */
WF_MUST_USE wf_status wf_once_run(const wf_once *o, wf_named_list *out, char unfed[WF_UNFED_NAME],
                                  wf_err *err);

#endif
