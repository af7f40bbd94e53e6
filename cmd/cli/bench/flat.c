/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/flat.c */
#include "cmd/cli/bench/flat.h"
#include "common/base/cc.h"
#include "common/base/pages.h"
#include "common/base/size.h"
#include "common/kernels/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 16, LINE = 64 / sizeof(float), LEAST_ROWS = 64 };
static const float rate = 0.001F, epsilon = 1e-7F, first = 0.1F; /* Keras's Adagrad */

struct wf_flat {
    float *w, *a;     /* [rows, dim] */
    float *grad, *to; /* [most, dim] */
    size_t dim;
    wf_pool *pool;
    const uint64_t *ids; /* of the call in hand */
};

void wf_flat_close(wf_flat **f)
{
    if (!*f)
        return;
    free((*f)->w);
    free((*f)->a);
    free((*f)->grad);
    free((*f)->to);
    wf_pool_free(&(*f)->pool);
    free(*f);
    *f = NULL;
}

static wf_status make_array(uint64_t rows, uint32_t dim, float value, float **out, wf_err *err)
{
    size_t n = (size_t)rows * dim;

    *out = wf_pages_alloc(n * sizeof **out);
    if (!*out)
        return wf_fail_nomem(err, n * sizeof **out);
    for (size_t i = 0; i < n; i++)
        (*out)[i] = value;
    return WF_OK;
}

wf_status wf_flat_open(uint64_t rows, uint32_t dim, size_t most, uint32_t threads, wf_flat **out,
                       wf_err *err)
{
    wf_flat *f = calloc(1, sizeof *f);

    *out = f;
    if (!f)
        return wf_fail_nomem(err, sizeof *f);
    f->dim = dim;
    WF_TRY(make_array(rows, dim, 0, &f->w, err));
    WF_TRY(make_array(rows, dim, first, &f->a, err));
    WF_TRY(make_array(most, dim, 1e-3F, &f->grad, err));
    WF_TRY(make_array(most, dim, 0, &f->to, err));
    return threads > 1 ? wf_pool_new(threads, &f->pool, err) : WF_OK;
}

static WF_INLINE void fetch(const float *row, size_t dim)
{
    for (size_t k = 0; k < dim; k += LINE)
        WF_PREFETCH(row + k);
}

WF_MULTIVERSION
static void update_rows(const wf_flat *f, size_t begin, size_t end)
{
    size_t dim = f->dim;

    for (size_t i = begin; i < end; i++) {
        float *restrict w = f->w + f->ids[i] * dim, *restrict a = f->a + f->ids[i] * dim;
        const float *restrict g = f->grad + i * dim;

        if (i + AHEAD < end) {
            fetch(f->w + f->ids[i + AHEAD] * dim, dim);
            fetch(f->a + f->ids[i + AHEAD] * dim, dim);
        }
        for (size_t k = 0; k < dim; k++) {
            a[k] += g[k] * g[k];
            w[k] -= rate * g[k] / sqrtf(a[k] + epsilon);
        }
    }
}

WF_MULTIVERSION
static void copy_rows(const wf_flat *f, size_t begin, size_t end)
{
    size_t dim = f->dim;

    for (size_t i = begin; i < end; i++) {
        const float *restrict w = f->w + f->ids[i] * dim;
        float *restrict to = f->to + i * dim;

        if (i + AHEAD < end)
            fetch(f->w + f->ids[i + AHEAD] * dim, dim);
        for (size_t k = 0; k < dim; k++)
            to[k] = w[k];
    }
}

static void update_range(void *arg, int64_t begin, int64_t end)
{
    update_rows(arg, (size_t)begin, (size_t)end);
}

static void copy_range(void *arg, int64_t begin, int64_t end)
{
    copy_rows(arg, (size_t)begin, (size_t)end);
}

const float *wf_flat_do(wf_flat *f, const wf_bench_work *work, const uint64_t ids[], size_t n)
{
    f->ids = ids;
    if (work->pushes)
        wf_pool_for(f->pool, (int64_t)n, LEAST_ROWS, update_range, f);
    if (work->pulls)
        wf_pool_for(f->pool, (int64_t)n, LEAST_ROWS, copy_range, f);
    return f->to;
}
