/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/choose.h - the engines that compute a graph: those that cuDNN's
 * heuristics name, best first, and that keep what weft promises of its numbers. */
#ifndef WF_KERNELS_CUDA_DNN_CHOOSE_H
#define WF_KERNELS_CUDA_DNN_CHOOSE_H

#include "common/kernels/cuda/dnn/graph.h"
#include "common/kernels/cuda/tune/tune.h"

enum { WF_DNN_MOST_WORKSPACE = 256 << 20 };

typedef struct wf_dnn_plan {
    const wf_cuda_calls *calls;
    wf_cuda_descriptor *config, *plan; /* NULL: no engine computes the graph */
    size_t workspace;                  /* bytes, at most WF_DNN_MOST_WORKSPACE */
    wf_tune_name name;                 /* of the engine with its settings, if it was asked for */
} wf_dnn_plan;

/* What is looked for. */
typedef struct wf_dnn_wish {
    unsigned most;            /* plans, at least 1 */
    unsigned most_compiled;   /* of them compiled at run time; 0: any number */
    bool named;               /* with their names */
    const wf_tune_name *only; /* the engine of that name, and no other; NULL: any. With named */
} wf_dnn_wish;

/* Prepares plans, *n of them. Gives the error of a call that failed, or 0; call wf_dnn_plan_free
 * for each of the *n in either case. Engines whose results differ from run to run are passed over:
 * equal seeds promise equal bits. So are those that round f32 factors, unless `may` allows it. An
 * engine that cannot be prepared is one more that is passed over, whatever the reason is. */
int wf_dnn_choose(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const wf_dnn_graph *g,
                  wf_dnn_rounding may, const wf_dnn_wish *wish, wf_dnn_plan out[], unsigned *n);
void wf_dnn_plan_free(wf_dnn_plan *p);

#endif
