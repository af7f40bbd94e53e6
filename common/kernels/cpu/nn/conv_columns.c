/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_columns.c - convolutions of every shape as matrix products over
 * columns.h, in blocks of output rows whose columns stay in the second cache; without columns where
 * each output reads one element of each channel (1x1). */
#include "common/base/size.h"
#include "common/kernels/cpu/nn/columns.h"
#include "common/kernels/cpu/nn/conv.h"
#include "common/kernels/cpu/product/blas.h"

#include <string.h>

/* Bytes of columns that a block may have: half of a second cache. */
#define BLOCK_BYTES ((size_t)1 << 20)

typedef struct columns_way {
    int64_t rows; /* of outputs in a block */
    size_t bytes; /* of the columns of one part, a multiple of 64 */
    bool by_maps; /* weights: parts are ranges of maps, not of channels */
    int64_t n;    /* what is dealt out to the parts */
} columns_way;

typedef struct job {
    const wf_conv *v;
    const columns_way *own;
    const wf_conv_tensors *t;
    char *columns; /* of all parts */
} job;

static void product(const wf_conv *v, wf_strided_product p)
{
    p.dtype = v->dtype;
    wf_product_strided(&p);
}

/* Output rows [r, ...) of one block. */
static wf_columns block_at(const job *j, int64_t r, int64_t channels)
{
    const wf_spatial *s = &j->v->s;

    return (wf_columns){s, j->v->dtype, channels, r,
                        WF_MIN(r + j->own->rows, s->out[0] * s->out[1])};
}

static void forward_one(const job *j, int64_t image, int64_t g, char *columns)
{
    const wf_conv *v = j->v;
    int64_t taps = v->c * v->s.taps, all = v->s.out[0] * v->s.out[1];
    const char *x = j->t->x + wf_conv_bytes(v, (image * v->groups + g) * v->c * v->s.in_size);
    const char *w = j->t->w + wf_conv_bytes(v, g * v->m * taps);
    char *y = j->t->y + wf_conv_bytes(v, (image * v->groups + g) * v->m * v->s.out_size);

    for (int64_t r = 0; r < all; r += j->own->rows) {
        wf_columns c = block_at(j, r, v->c);
        int64_t n = (c.last - r) * v->s.out[2], at = r * v->s.out[2];

        if (!v->pointwise)
            wf_columns_of(&c, x, columns);
        product(v, (wf_strided_product){.m = v->m,
                                        .n = n,
                                        .k = taps,
                                        .a = w,
                                        .b = v->pointwise ? x + wf_conv_bytes(v, at) : columns,
                                        .c = y + wf_conv_bytes(v, at),
                                        .lda = taps,
                                        .ldb = v->pointwise ? v->s.in_size : n,
                                        .ldc = v->s.out_size});
    }
}

static void data_one(const job *j, int64_t image, int64_t g, char *columns)
{
    const wf_conv *v = j->v;
    int64_t taps = v->c * v->s.taps, all = v->s.out[0] * v->s.out[1];
    const char *y = j->t->y + wf_conv_bytes(v, (image * v->groups + g) * v->m * v->s.out_size);
    const char *w = j->t->w + wf_conv_bytes(v, g * v->m * taps);
    char *x = j->t->x + wf_conv_bytes(v, (image * v->groups + g) * v->c * v->s.in_size);

    if (!v->pointwise)
        memset(x, 0, wf_conv_bytes(v, v->c * v->s.in_size));
    for (int64_t r = 0; r < all; r += j->own->rows) {
        wf_columns c = block_at(j, r, v->c);
        int64_t n = (c.last - r) * v->s.out[2], at = r * v->s.out[2];

        product(v, (wf_strided_product){.trans_a = true,
                                        .m = taps,
                                        .n = n,
                                        .k = v->m,
                                        .a = w,
                                        .b = y + wf_conv_bytes(v, at),
                                        .c = v->pointwise ? x + wf_conv_bytes(v, at) : columns,
                                        .lda = taps,
                                        .ldb = v->s.out_size,
                                        .ldc = v->pointwise ? v->s.in_size : n});
        if (!v->pointwise)
            wf_columns_add(&c, columns, x);
    }
}

static void images_part(const job *j, int64_t begin, int64_t end, char *columns)
{
    int64_t groups = j->v->groups;

    for (int64_t i = begin; i < end; i++) {
        if (j->v->pass == WF_CONV_FORWARD)
            forward_one(j, i / groups, i % groups, columns);
        else
            data_one(j, i / groups, i % groups, columns);
        wf_conv_add_bias(j->v, j->t, i / groups, i % groups);
    }
}

/* Maps [m0, m1) and channels [c0, c1) of group g. */
typedef struct patch {
    int64_t g, m0, m1, c0, c1;
} patch;

static void weights_block(const job *j, const patch *p, int64_t image, int64_t r, char *columns)
{
    const wf_conv *v = j->v;
    int64_t taps = v->c * v->s.taps, at = r * v->s.out[2];
    wf_columns c = block_at(j, r, p->c1 - p->c0);
    int64_t n = (c.last - r) * v->s.out[2], group = image * v->groups + p->g;
    const char *x = j->t->x + wf_conv_bytes(v, (group * v->c + p->c0) * v->s.in_size);
    const char *y = j->t->y + wf_conv_bytes(v, (group * v->m + p->m0) * v->s.out_size + at);
    int64_t to = (p->g * v->m + p->m0) * taps + p->c0 * v->s.taps;

    if (!v->pointwise)
        wf_columns_of(&c, x, columns);
    product(v, (wf_strided_product){.trans_b = true,
                                    .m = p->m1 - p->m0,
                                    .n = c.channels * v->s.taps,
                                    .k = n,
                                    .a = y,
                                    .b = v->pointwise ? x + wf_conv_bytes(v, at) : columns,
                                    .c = j->t->w + wf_conv_bytes(v, to),
                                    .lda = v->s.out_size,
                                    .ldb = v->pointwise ? v->s.in_size : n,
                                    .ldc = taps,
                                    .beta = image == 0 && r == 0 ? 0.0 : 1.0});
}

static void weights_patch(const job *j, const patch *p, char *columns)
{
    const wf_conv *v = j->v;

    for (int64_t image = 0; image < v->batch; image++)
        for (int64_t r = 0; r < v->s.out[0] * v->s.out[1]; r += j->own->rows)
            weights_block(j, p, image, r, columns);
}

static void weights_part(const job *j, int64_t begin, int64_t end, char *columns)
{
    const wf_conv *v = j->v;
    int64_t each = j->own->by_maps ? v->m : v->c;

    for (int64_t g = begin / each; g < v->groups && g * each < end; g++) {
        int64_t from = WF_MAX(begin - g * each, (int64_t)0), to = WF_MIN(end - g * each, each);
        patch p = j->own->by_maps ? (patch){g, from, to, 0, v->c} : (patch){g, 0, v->m, from, to};

        weights_patch(j, &p, columns);
    }
}

static void parts_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t p = begin; p < end; p++) {
        int64_t from = wf_conv_part(j->own->n, j->v->threads, p);
        int64_t to = wf_conv_part(j->own->n, j->v->threads, p + 1);
        char *columns = j->columns + (size_t)p * j->own->bytes;

        if (j->v->pass == WF_CONV_WEIGHTS)
            weights_part(j, from, to, columns);
        else
            images_part(j, from, to, columns);
    }
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    columns_way *own = wf_arena_alloc(prep->arena, sizeof *own);
    int64_t row = v->c * v->s.taps * v->s.out[2];

    if (!own)
        return wf_fail_nomem(err, sizeof *own);
    *own = (columns_way){.n = v->batch * v->groups};
    own->rows =
        WF_MAX((int64_t)(BLOCK_BYTES / WF_MAX(wf_conv_bytes(v, row), (size_t)1)), (int64_t)1);
    own->rows = WF_MIN(own->rows, WF_MAX(v->s.out[0] * v->s.out[1], (int64_t)1));
    if (v->pass == WF_CONV_WEIGHTS) {
        own->by_maps = v->groups * v->c < v->threads && v->c < v->m;
        own->n = v->groups * (own->by_maps ? v->m : v->c);
    }
    if (!v->pointwise)
        own->bytes = wf_align_up(wf_conv_bytes(v, row * own->rows), 64);
    WF_TRY(wf_prep_workspace(prep, own->bytes, (size_t)v->threads, err));
    *state = own;
    return WF_OK;
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    job j = {v, v->state, t, run->workspace};

    wf_pool_for(run->pool, v->threads, 1, parts_range, &j);
}

const wf_conv_way wf_conv_by_columns = {"columns", .prepare = prepare, .run = run};
