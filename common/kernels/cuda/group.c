/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/group.c - GPUs add up arrays by NCCL. One thread drives all of them, so that
 * every call stands between a begin and an end: else the first would wait for those behind it. */
#include "common/kernels/group.h"
#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/rows.h"

#include <stdlib.h>

struct wf_device_group {
    uint32_t n;
    const wf_cuda_gpu **gpus; /* [n] */
    wf_cuda_comm **comms;     /* [n]; all NULL: none are made */
};

static void group_close(wf_device_group **g)
{
    wf_device_group *it = *g;

    *g = NULL;
    if (!it)
        return;
    for (uint32_t i = 0; it->comms && i < it->n; i++)
        if (it->comms[i])
            (void)it->gpus[i]->calls->nccl_free(it->comms[i]);
    free(it->gpus);
    free(it->comms);
    free(it);
}

static wf_status make_comms(wf_device_group *g, wf_err *err)
{
    const wf_cuda_gpu *first = g->gpus[0];
    int *numbers = calloc(g->n, sizeof *numbers), error;

    if (!numbers)
        return wf_fail_nomem(err, g->n * sizeof *numbers);
    for (uint32_t i = 0; i < g->n; i++)
        numbers[i] = g->gpus[i]->index;
    error = first->calls->nccl_new(g->comms, (int)g->n, numbers);
    free(numbers);
    if (error == 0)
        return WF_OK;
    for (uint32_t i = 0; i < g->n; i++)
        g->comms[i] = NULL;
    if (error == WF_CUDA_NO_NCCL)
        return wf_fail(
            err, WF_UNSUPPORTED,
            "install NCCL 2 for CUDA 13; where it is elsewhere, name its folder in "
            "LD_LIBRARY_PATH; or train on one GPU",
            "%s and %s: gradients of several GPUs are added up by NCCL, and libnccl.so.2 "
            "is missing",
            first->name, g->gpus[1 % g->n]->name);
    return wf_cuda_fail(first, error, err);
}

static wf_status group_open(const wf_device *const devices[], uint32_t n, wf_device_group **out,
                            wf_err *err)
{
    wf_device_group *g = calloc(1, sizeof *g);
    wf_status rc;

    *out = g;
    if (!g)
        return wf_fail_nomem(err, sizeof *g);
    g->n = n;
    g->gpus = calloc(n, sizeof(*g->gpus));
    g->comms = calloc(n, sizeof(*g->comms));
    rc = g->gpus && g->comms ? WF_OK : wf_fail_nomem(err, n * sizeof(*g->gpus));
    for (uint32_t i = 0; rc == WF_OK && i < n; i++)
        g->gpus[i] = wf_cuda_gpu_of(devices[i]);
    if (rc == WF_OK)
        rc = make_comms(g, err);
    if (rc != WF_OK)
        group_close(out);
    return rc;
}

static int queue_sums(const wf_device_group *g, uint32_t device, wf_stream *stream, size_t n,
                      const wf_group_segment segments[])
{
    const wf_cuda_calls *calls = g->gpus[device]->calls;

    for (size_t i = 0; i < n; i++) {
        int error = segments[i].n ? calls->nccl_sum(segments[i].x, segments[i].x, segments[i].n,
                                                    g->comms[device], wf_cuda_stream_of(stream))
                                  : 0;

        if (error != 0)
            return error;
    }
    return 0;
}

/* What was begun is ended, whatever else fails. */
static wf_status group_sum(wf_device_group *g, wf_stream *const streams[], size_t n,
                           const wf_group_segment *const segments[], wf_err *err)
{
    const wf_cuda_calls *calls = g->gpus[0]->calls;
    int error = calls->nccl_begin(), ended;

    if (error != 0)
        return wf_cuda_fail(g->gpus[0], error, err);
    for (uint32_t i = 0; error == 0 && i < g->n; i++)
        error = queue_sums(g, i, streams[i], n, segments[i]);
    ended = calls->nccl_end();
    error = error ? error : ended;
    return error ? wf_cuda_fail(g->gpus[0], error, err) : WF_OK;
}

const wf_device_groups wf_cuda_groups = {
    .open = group_open, .close = group_close, .sum = group_sum};
