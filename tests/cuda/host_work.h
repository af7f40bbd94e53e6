/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_work.h - what is queued on the host's streams, and recorded in its graphs; for
 * the files beside it alone. */
#ifndef TESTS_CUDA_HOST_WORK_H
#define TESTS_CUDA_HOST_WORK_H

#include "common/kernels/cuda/calls.h"
#include "tests/cuda/host.h"
#include "tests/cuda/host_blas.h"
#include "tests/cuda/host_dnn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct work work;
struct work {
    work *next;
    void (*act)(work *w);
    const char *name;
    /* a copy or a fill */
    void *to;
    const void *from;
    size_t bytes;
    wf_cuda_way way;
    int byte;
    /* a wait for an event as it was recorded then */
    struct CUstream_st *other;
    uint64_t target;
    host_multiplication *product;
    host_execution *execution;
    /* a part of a graph, which has it */
    struct work *recorded;
    struct CUgraphExec_st *replayed;
    /* a kernel, whose arguments lie behind */
    wf_cuda_function f;
    wf_cuda_dim grid, block;
    unsigned char args[];
};

struct CUstream_st {
    int device; /* that the thread used which made it */
    work *first, **last;
    uint64_t queued, finished;
    struct CUgraph_st *capture; /* NULL: none is going on */
};

struct CUgraph_st {
    int device;
    work *first, **last;
    bool failed;
    struct CUstream_st *stream; /* where the capture began */
};

struct CUgraphExec_st {
    int device;
    work *first;
    size_t queued; /* parts that are not done */
};

struct CUevent_st {
    struct CUstream_st *stream; /* NULL: never recorded */
    uint64_t target;
};

/* The graph that this thread records; NULL: none. */
extern _Thread_local struct CUgraph_st *host_capturing;
extern cuda_host_counts host_counts;

/* Every call begins and ends with these: the error that it is told to give, and the one that it
 * gives. */
int host_begin(const char *call);
int host_end(int error);
/* The error of a call that the capture of this thread forbids: the capture fails by it. */
int host_outside_captures(int error);

/* Queues a copy of `like`, with room for arguments behind it; or nothing, if there is an error. */
int host_enqueue(wf_cuda_stream *s, const work *like, size_t args, int error);
/* Queues it as a library does, whichever GPU the thread uses, with a copy of `args` behind it. */
int host_enqueue_behind(wf_cuda_stream *s, const work *like, const void *args, size_t bytes);
/* The work of some stream that may run; false: none may. */
bool host_run_some(void);
void host_free_work(work *w);

/* The calls of graphs. */
int host_capture_begin(wf_cuda_stream *s);
int host_capture_end(wf_cuda_stream *s, wf_cuda_graph **out);
int host_graph_free(wf_cuda_graph *g);
int host_replay_new(wf_cuda_replayed **out, wf_cuda_graph *g);
int host_replay_free(wf_cuda_replayed *r);
int host_replay(wf_cuda_replayed *r, wf_cuda_stream *s);

#endif
