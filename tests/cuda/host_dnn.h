/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_dnn.h - cuDNN's part of host.h's table, computed plainly in double; for the files
 * beside it alone.
 *
 * What the documentation asks for is checked: attributes' types and counts when they are set, those
 * that are missing and the tensors' extents against each other when a descriptor is finished; the
 * memory, alignment and workspace when a plan is executed. A mistake ends the program, and is
 * named.
 *
 * Heuristics name two engines, and a third one to fall back to. At random the first refuses, rounds
 * its factors to bfloat16 or is not deterministic, the second wants 512 MiB, and a bias is refused:
 * as the seed and the graph say, so that each process finds the same of a graph.
 * So it is for attention (host_fused.c) and normalisations (host_norm.c), whose engines say that
 * they are compiled.
 */
#ifndef TESTS_CUDA_HOST_DNN_H
#define TESTS_CUDA_HOST_DNN_H

#include "common/kernels/cuda/calls.h"
#include "tests/cuda/host.h"
#include <stddef.h>

/* A random number below `end`, by the seed of host.h (host.c). */
uint64_t host_random(uint64_t end);
/* The same each time for one seed and one `what` (host.c). */
uint64_t host_random_of(uint64_t what, uint64_t end);

void host_dnn_set_state(cuda_host_dnn_state state);
int host_dnn_new(wf_cuda_dnn **out);
int host_dnn_free(wf_cuda_dnn *dnn);
int host_dnn_stream(wf_cuda_dnn *dnn, wf_cuda_stream *s);
int host_dnn_make(int kind, wf_cuda_descriptor **out);
int host_dnn_unmake(wf_cuda_descriptor *d);
int host_dnn_set(wf_cuda_descriptor *d, int attribute, int type, int64_t n, const void *values);
int host_dnn_get(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
                 void *values);
int host_dnn_finish(wf_cuda_descriptor *d);

/* A plan with all that it was executed with. */
typedef struct host_execution host_execution;
/* In the lock: checked; the caller frees it. NULL without memory. *s: where it is queued. */
host_execution *host_execution_new(wf_cuda_dnn *dnn, const wf_cuda_descriptor *plan,
                                   const wf_cuda_descriptor *pack, wf_cuda_stream **s);
void host_execution_do(const host_execution *e);
/* What a plan takes, on a stream's clock. */
double host_execution_ms(const wf_cuda_descriptor *plan);
uint64_t host_dnn_version(void);

/* Objects that have not been freed; how often heuristics were asked, and plans executed. */
size_t host_dnn_objects(void);
size_t host_dnn_asked(void);
size_t host_dnn_executed(void);

#endif
