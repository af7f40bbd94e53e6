/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_nccl.c - see host_nccl.h. */
#include "tests/cuda/host_nccl.h"
#include "tests/cuda/host_memory.h"
#include "tests/cuda/host_work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, MOST_CALLS = 1024, BAD_ARGUMENT = WF_CUDA_OF_NCCL + 4 };

struct wf_cuda_comm {
    int rank, n, device;
};

typedef struct call {
    const float *from;
    float *to;
    size_t n;
    wf_cuda_stream *s;
} call;

/* A sum, as the work of the first GPU's stream carries it. */
typedef struct reduction {
    int ranks;
    size_t n;
    const float *from[MOST_RANKS];
    float *to[MOST_RANKS];
} reduction;

static call calls[MOST_RANKS][MOST_CALLS];
static size_t n_calls[MOST_RANKS], n_objects, n_sums;
static int ranks; /* of the calls since the begin */
static bool begun, dropped;

__attribute__((format(printf, 1, 2), noreturn)) static void wrong(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "NCCL: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

int host_nccl_new(wf_cuda_comm *out[], int n, const int devices[])
{
    if (n < 1 || n > MOST_RANKS)
        return BAD_ARGUMENT;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (devices[i] == devices[k])
                wrong("GPU %d is there twice", devices[i]);
    for (int i = 0; i < n; i++) {
        out[i] = malloc(sizeof **out);
        if (!out[i])
            wrong("no memory");
        *out[i] = (wf_cuda_comm){i, n, devices[i]};
        n_objects++;
    }
    return 0;
}

int host_nccl_free(wf_cuda_comm *comm)
{
    free(comm);
    n_objects--;
    return 0;
}

int host_nccl_begin(void)
{
    if (begun)
        wrong("a begin in a begin");
    begun = true;
    dropped = false;
    ranks = 0;
    memset(n_calls, 0, sizeof n_calls);
    return 0;
}

int host_nccl_sum(const float *from, float *to, size_t n, wf_cuda_comm *comm, wf_cuda_stream *s)
{
    call *c = &calls[comm->rank][n_calls[comm->rank]++];

    if (!begun)
        wrong("a sum outside of begin and end, which waits for the other GPUs for ever");
    if (n_calls[comm->rank] == MOST_CALLS)
        wrong("more than %d sums", (int)MOST_CALLS);
    if (n == 0 || !host_memory_has(from, n * sizeof *from) || !host_memory_has(to, n * sizeof *to))
        wrong("%zu elements at %p and %p are no memory of a GPU", n, (const void *)from,
              (void *)to);
    if (s->device != comm->device)
        wrong("the stream of GPU %d for the communicator of GPU %d", s->device, comm->device);
    if (s->capture)
        wrong("a sum is recorded, which the host cannot do");
    ranks = comm->n;
    *c = (call){from, to, n, s};
    return 0;
}

void host_nccl_drop(void)
{
    dropped = true;
}

static void do_reduction(work *w)
{
    reduction r;

    memcpy(&r, w->args, sizeof r);
    for (size_t i = 0; i < r.n; i++) {
        float sum = r.from[0][i];

        for (int k = 1; k < r.ranks; k++)
            sum += r.from[k][i];
        for (int k = 0; k < r.ranks; k++)
            r.to[k][i] = sum;
    }
    n_sums++;
}

static int wait_for(wf_cuda_stream *s, struct CUstream_st *other)
{
    return host_enqueue_behind(
        s, &(work){.name = "a sum's wait", .other = other, .target = other->queued}, NULL, 0);
}

/* Call i of all GPUs, which agree in it. */
static int queue(size_t i)
{
    wf_cuda_stream *first = calls[0][i].s;
    reduction r = {.ranks = ranks, .n = calls[0][i].n};
    int error = 0;

    for (int k = 0; k < ranks; k++) {
        const call *c = &calls[k][i];

        if (c->n != r.n)
            wrong("a sum of %zu elements on one GPU and of %zu on another", r.n, c->n);
        r.from[k] = c->from;
        r.to[k] = c->to;
        if (error == 0 && k > 0)
            error = wait_for(first, c->s);
    }
    if (error == 0)
        error = host_enqueue_behind(first, &(work){.act = do_reduction, .name = "a sum of GPUs"},
                                    &r, sizeof r);
    for (int k = 1; error == 0 && k < ranks; k++)
        error = wait_for(calls[k][i].s, first);
    return error;
}

int host_nccl_end(void)
{
    int error = 0;

    if (!begun)
        wrong("an end without a begin");
    begun = false;
    if (dropped)
        return 0;
    for (int k = 1; k < ranks; k++)
        if (n_calls[k] != n_calls[0])
            wrong("%zu sums on one GPU and %zu on another, which wait for ever", n_calls[0],
                  n_calls[k]);
    for (size_t i = 0; error == 0 && ranks > 0 && i < n_calls[0]; i++)
        error = queue(i);
    return error;
}

size_t host_nccl_objects(void)
{
    return n_objects;
}

size_t host_nccl_sums(void)
{
    return n_sums;
}
