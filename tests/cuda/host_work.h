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
    uint64_t number; /* in the order in which all work was queued */
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
    double ms; /* what it takes on the stream's clock */
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
    double clock_ms;            /* what its work took so far */
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
    bool timed;
    double at_ms; /* of the stream's clock, when its work came to it */
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

/* host_time.c: clocks of streams, which work of libraries moves on. */
void host_time_seed(uint64_t seed);
/* What an algorithm takes, by what it is of and the seed: 1/8 to 9/8, in steps of 2^-12, so that
 * sums are exact. */
double host_time_of(uint64_t algorithm);
void host_time_pass(struct CUstream_st *s, const work *w);
/* Has a timer's time taken when the stream comes to it. */
int host_time_stamp(wf_cuda_event *e, wf_cuda_stream *s);
int host_timer_new(wf_cuda_event **out);
int host_timer_ms(float *ms, wf_cuda_event *from, wf_cuda_event *to);

/* The calls of cuBLASLt that may be told to fail. */
int host_multiply(wf_cuda_lt *lt, wf_cuda_product *p, const void *alpha, const void *a,
                  wf_cuda_layout *of_a, const void *b, wf_cuda_layout *of_b, const void *beta,
                  void *c, wf_cuda_layout *of_c, const wf_cuda_algorithm *algorithm,
                  void *workspace, wf_cuda_stream *s);
int host_call_product_new(wf_cuda_product **out, int compute, int scale);
int host_call_product_set(wf_cuda_product *p, int attribute, const void *value, size_t bytes);
int host_call_layout_new(wf_cuda_layout **out, int type, uint64_t rows, uint64_t columns,
                         int64_t ld);
int host_call_layout_set(wf_cuda_layout *l, int attribute, const void *value, size_t bytes);
int host_call_choose(wf_cuda_lt *lt, wf_cuda_product *p, wf_cuda_layout *a, wf_cuda_layout *b,
                     wf_cuda_layout *c, size_t workspace, uint32_t aligned, int most,
                     wf_cuda_algorithm out[], int *n);

/* The calls of graphs. */
int host_capture_begin(wf_cuda_stream *s);
int host_capture_end(wf_cuda_stream *s, wf_cuda_graph **out);
int host_graph_free(wf_cuda_graph *g);
int host_replay_new(wf_cuda_replayed **out, wf_cuda_graph *g);
int host_replay_free(wf_cuda_replayed *r);
int host_replay(wf_cuda_replayed *r, wf_cuda_stream *s);

#endif
