/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host.h - CUDA on the host, for tests: the table of calls.h, whose "GPUs" are this
 * process.
 *
 * Memory has addresses that may be read and written by kernels, copies and fills while these run,
 * and at no other time: another access ends the program. A block ends at the end of a page, up to
 * 255 bytes that hold a pattern: a kernel that goes beyond it is found and named, with the thread.
 * Fresh memory holds a pattern of NaNs.
 *
 * Work waits until somebody waits for it. Then streams take turns at random, by a seed, in any
 * order that events allow, and no more is done than is waited for; a query of an event lets one
 * piece of work happen.
 *
 * A capture is as CUDA's: a call that it forbids gives CUDA's error, and ends it without a graph.
 * Its thread neither waits, asks, allocates nor frees, and its stream waits for no event. Events
 * are not recorded in one here.
 *
 * Programs are compiled by g++; without it none is.
 */
#ifndef TESTS_CUDA_HOST_H
#define TESTS_CUDA_HOST_H

#include "common/kernels/cuda/calls.h"
#include "common/tensor/device.h"
#include <stdbool.h>
#include <stdint.h>

extern const wf_cuda_calls wf_cuda_host;

/* The seed of all that is random from now on. */
void cuda_host_seed(uint64_t seed);
/* Whether copies from and to the host are done last: when nothing else may run. */
void cuda_host_copies_last(bool last);
/* What the host has: so many GPUs, of that compute capability. At first two, of 9.0. */
void cuda_host_has(int n, int major);
/* The memory of each, in all; at first 8 GiB. */
void cuda_host_has_memory(size_t bytes);
/* From now on the call of that name (a member of wf_cuda_calls) gives this error instead, after it
 * was made `after` times; NULL: none does. Errors of work come with the next wait, and stay until
 * this is called again. */
void cuda_host_fail(const char *call, int after, int error);

/* How many algorithms of a product cuBLASLt's heuristic names from now on: 1 to 3, at first 3. */
void cuda_host_algorithms(int n);
/* Whether it names none from now on for a product that sums rows; at first it does. */
void cuda_host_refuse_sums(bool refuse);

/* What the host's GPUs find of cuDNN from their first convolution on. At first it is there, and
 * computes each convolution without a bias; WEFT_TEST_CUDNN=missing in the environment: none is. */
typedef enum cuda_host_dnn_state {
    CUDA_HOST_DNN_PRESENT,
    CUDA_HOST_DNN_REFUSES, /* every graph */
    CUDA_HOST_DNN_MISSING
} cuda_host_dnn_state;
void cuda_host_dnn(cuda_host_dnn_state state);

/* Has compiled code kept in the folder of the build, for all tests together, unless WEFT_CACHE says
 * where: a user's folder is not for it. Before other threads start. */
void cuda_host_keep_code(void);

/* The device "cuda-host:0", which wf_device_find knows after the first call; and that of number 0
 * or 1. */
const wf_device *cuda_host_device(void);
const wf_device *cuda_host_gpu(int index);

typedef struct cuda_host_counts {
    size_t held; /* bytes of memory */
    size_t streams, events;
    size_t objects;                 /* of cuBLASLt, cuDNN, NVRTC and NCCL */
    size_t sums;                    /* so far: of NCCL */
    size_t dnn_asked, dnn_executed; /* so far: heuristics, and plans */
    size_t compilations;            /* so far: programs that were given to the compiler */
    size_t queued;                  /* so far: allocations of the host for work that was queued */
    size_t made;  /* so far: memory, streams, events and objects of cuBLASLt that were asked for */
    size_t waits; /* so far: for a stream or an event */
    size_t ahead; /* of those for an event: behind which more work was queued */
    size_t bytes_in, bytes_out;   /* so far: of copies from the host and to it */
    size_t bytes_by_hand;         /* so far: of both, from and to memory that is not pinned */
    size_t bytes_within;          /* so far: of copies from memory of a GPU to memory of it */
    size_t launches, replays;     /* so far: kernels that were launched or recorded; graphs */
    size_t converted;             /* so far: of those, copies of a tensor in another type */
    size_t beside_in, beside_out; /* so far: work that was done while a copy from the host, or to
                                   * it, that had been queued earlier was not */
    double ms; /* so far: what products and convolutions took on the clocks of streams */
} cuda_host_counts;
cuda_host_counts cuda_host_count(void);

/* Whether all of a test is given back: what stays is one library's handle. */
static inline bool cuda_host_is_left_as_it_was(void)
{
    const cuda_host_counts c = cuda_host_count();

    return c.held == 0 && c.streams == 0 && c.events == 0 && c.objects == 1;
}

#endif
