/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_onednn.c - convolutions of two spatial axes through oneDNN, a few
 * images at a time, so that changing layouts happens in cache. */
#include "common/base/size.h"
#include "common/kernels/cpu/device.h"
#include "common/kernels/cpu/nn/conv.h"
#include "common/kernels/cpu/nn/onednn_conv.h"

#include <string.h>

/* Bytes of images and maps that a chunk may have: half of a second cache. */
#define CHUNK_BYTES ((int64_t)1 << 20)
enum { MOST_SUMS = 16 }; /* chunks that have weights of their own */

typedef struct chunks {
    wf_onednn_conv **of_part; /* [threads] */
    int64_t images, n;        /* images of a chunk, chunks */
    size_t bytes;             /* workspace of one part */
    size_t packed;            /* the weights in oneDNN's order, before the parts' workspace; for
                               * gradients of weights once for each chunk */
    int64_t parts;
} chunks;

typedef struct job {
    const wf_conv *v;
    const chunks *own;
    const wf_conv_tensors *t;
    char *workspace;
} job;

/* Part p does its share of the chunks, each into its own place: what a chunk holds is a matter of
 * the shape, so sums do not depend on the parts. */
static void part_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv *v = j->v;
    const chunks *own = j->own;
    bool weights = v->pass == WF_CONV_WEIGHTS;
    size_t all = own->packed * (size_t)(weights ? own->n : 1);

    for (int64_t p = begin; p < end; p++)
        for (int64_t k = wf_conv_part(own->n, own->parts, p);
             k < wf_conv_part(own->n, own->parts, p + 1); k++) {
            char *x = j->t->x + wf_conv_bytes(v, k * own->images * v->c * v->s.in_size);
            char *y = j->t->y + wf_conv_bytes(v, k * own->images * v->m * v->s.out_size);

            wf_onednn_conv_run(own->of_part[p], (void *)x,
                               j->workspace + (weights ? (size_t)k * own->packed : 0), (void *)y,
                               j->workspace + all + (size_t)p * own->bytes);
            for (int64_t i = k * own->images; !weights && i < (k + 1) * own->images; i++)
                wf_conv_add_bias(v, j->t, i, 0);
        }
}

/* Adds the chunks' weights [begin, end) up, in order. */
static void sum_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t k = 1; k < j->own->n; k++)
        wf_add(WF_F32, (const float *)(void *)(j->workspace + (size_t)k * j->own->packed) + begin,
               (float *)(void *)j->workspace + begin, end - begin);
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    job j = {v, v->state, t, run->workspace};
    wf_onednn_conv *first = j.own->of_part[0];

    if (v->pass != WF_CONV_WEIGHTS)
        wf_onednn_conv_pack(first, (const float *)(void *)t->w, j.workspace);
    wf_pool_for(run->pool, j.own->parts, 1, part_range, &j);
    if (v->pass == WF_CONV_WEIGHTS) {
        int64_t n = (int64_t)(wf_onednn_conv_packed(first) / sizeof(float));

        wf_pool_for(run->pool, n, WF_GRAIN, sum_range, &j);
        wf_onednn_conv_unpack(first, j.workspace, (float *)(void *)t->w);
    }
}

static bool can(const wf_conv *v)
{
    return v->dtype == WF_F32 && v->groups == 1 && v->s.in[0] == 1 && v->s.out[0] == 1 &&
           v->s.w.kernel[0] == 1 && v->batch > 0 && v->s.in_size > 0 && v->s.out_size > 0 &&
           v->c > 0 && v->m > 0 && wf_cpu_has()->avx512;
}

/* The most images, of a number that divides the batch, whose data stay in the second cache; at most
 * a quarter of the batch, for there to be something to split. For gradients of weights, of which
 * each chunk has its own, an eighth or a quarter of the batch, by their size. */
static int64_t images_at_a_time(const wf_conv *v)
{
    int64_t each = (int64_t)wf_conv_bytes(v, v->c * v->s.in_size + v->m * v->s.out_size);
    int64_t most = WF_MAX(CHUNK_BYTES / WF_MAX(each, (int64_t)1), (int64_t)1), n;

    n = WF_MIN(most, WF_MAX(v->batch / 4, (int64_t)1));
    if (v->pass == WF_CONV_WEIGHTS)
        n = WF_MAX(v->batch /
                       ((int64_t)wf_conv_bytes(v, v->m * v->c * v->s.taps) < CHUNK_BYTES ? 8 : 4),
                   (int64_t)1);
    while (v->batch % n)
        n--;
    return n;
}

static void release(void *state)
{
    chunks *own = state;

    for (int64_t p = 0; p < own->parts; p++)
        wf_onednn_conv_free(own->of_part[p]);
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    wf_onednn_conv_shape shape;
    chunks *own;

    if (!can(v))
        return WF_OK;
    own = wf_arena_alloc(prep->arena, sizeof *own);
    if (!own)
        return wf_fail_nomem(err, sizeof *own);
    *own = (chunks){.images = images_at_a_time(v), .parts = v->threads};
    own->n = v->batch / own->images;
    if (v->pass == WF_CONV_WEIGHTS && own->n > MOST_SUMS)
        return WF_OK; /* a batch that divides badly */
    own->of_part = wf_arena_array(prep->arena, (size_t)own->parts, sizeof *own->of_part);
    if (!own->of_part)
        return wf_fail_nomem(err, (size_t)own->parts * sizeof *own->of_part);
    memset(own->of_part, 0, (size_t)own->parts * sizeof *own->of_part);
    shape = wf_onednn_conv_shape_of(v, own->images);
    for (int64_t p = 0; p < own->parts; p++) {
        own->of_part[p] = wf_onednn_conv_new(&shape);
        if (!own->of_part[p]) {
            release(own);
            return WF_OK;
        }
    }
    own->packed = wf_align_up(wf_onednn_conv_packed(own->of_part[0]), 64);
    own->bytes = wf_onednn_conv_workspace(own->of_part[0]);
    prep->workspace_bytes = own->packed * (size_t)(v->pass == WF_CONV_WEIGHTS ? own->n : 1) +
                            (size_t)own->parts * own->bytes;
    *state = own;
    return WF_OK;
}

const wf_conv_way wf_conv_by_onednn = {"oneDNN", .prepare = prepare, .run = run,
                                       .release = release};
