/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/predict.h - a model compiled once and run again and again on batches of records:
 * axis 0 of an input is the batch where the model leaves it open.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_SESSION_PREDICT_H
#define WF_SESSION_PREDICT_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/kernels/pool.h"
#include "common/session/feeds.h"
#include "common/tensor/device.h"
#include "common/tensor/named.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_predictor wf_predictor;

/* Compiles the graph, whose weights are final; the caller owns *out. The graph is read during the
 * call only. Errors: those of wf_compile. */
WF_MUST_USE wf_status wf_predictor_new(const wf_graph *g, const char *name,
                                       void (*warn)(void *arg, const char *sentence), void *arg,
                                       wf_predictor **out, wf_err *err);
/* Frees *p and sets it to NULL; NULL is fine. */
void wf_predictor_free(wf_predictor **p);

typedef struct wf_predict {
    size_t n_feeds;
    const wf_feed *feeds;
    uint64_t batch; /* records of a run; 0: all at once */
    uint64_t seed;
    wf_pool *pool;           /* borrowed for the predictor's life; the same in each call */
    const wf_device *device; /* NULL: the cpu; the same in each call */
    size_t limit_bytes;
    const char *limit_hint;
} wf_predict;

/* Adds the outputs for all records to *out, which is empty before and the caller's, also after a
 * failure; `unfed` as wf_once_run has it. Errors: WF_USAGE, WF_SHAPE: feeds do not go with the
 * model, records of two inputs differ, or an output is not of each record and there are several
 * batches; those of plans: WF_SHAPE where a shape depends on the content of a feed. */
WF_MUST_USE wf_status wf_predictor_run(wf_predictor *p, const wf_predict *how, wf_named_list *out,
                                       char unfed[WF_UNFED_NAME], wf_err *err);

#endif
