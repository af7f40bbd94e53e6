/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/walk.c */
#include "common/kernels/shape/walk.h"
#include "common/base/size.h"

#include <stdbool.h>

void wf_strides(uint32_t rank, const int64_t dims[], int64_t strides[])
{
    int64_t step = 1;

    for (uint32_t i = rank; i-- > 0; step *= dims[i])
        strides[i] = step;
}

/* Whether axis `last` of w and the next one are passed as one by every operand. */
static bool merges(const wf_walk *w, uint32_t last, int64_t dim, const int64_t strides[])
{
    for (uint32_t k = 0; k < w->n; k++)
        if (w->strides[k][last] != strides[k] * dim)
            return false;
    return true;
}

void wf_walk_strided(wf_walk *w, uint32_t rank, const int64_t dims[], uint32_t n,
                     const int64_t strides[][WF_MAX_RANK])
{
    *w = (wf_walk){.n = n, .elems = 1};
    for (uint32_t i = 0; i < rank; i++) {
        int64_t step[WF_WALK_OPERANDS] = {0};

        w->elems *= dims[i];
        if (dims[i] == 1)
            continue;
        for (uint32_t k = 0; k < n; k++)
            step[k] = strides[k][i];
        if (w->rank && merges(w, w->rank - 1, dims[i], step))
            w->dims[w->rank - 1] *= dims[i];
        else
            w->dims[w->rank++] = dims[i];
        for (uint32_t k = 0; k < n; k++)
            w->strides[k][w->rank - 1] = step[k];
    }
    if (w->rank == 0) {
        w->rank = 1;
        w->dims[0] = 1;
    }
}

void wf_walk_broadcast(wf_walk *w, const wf_tensor *out, uint32_t n, const wf_tensor *const in[])
{
    int64_t strides[WF_WALK_OPERANDS][WF_MAX_RANK] = {{0}};

    for (uint32_t k = 0; k < n; k++) {
        int64_t own[WF_MAX_RANK];
        uint32_t lead = out->rank - in[k]->rank;

        wf_strides(in[k]->rank, in[k]->dims, own);
        for (uint32_t i = 0; i < in[k]->rank; i++)
            strides[k][lead + i] = in[k]->dims[i] == 1 ? 0 : own[i];
    }
    wf_walk_strided(w, out->rank, out->dims, n, (const int64_t(*)[WF_MAX_RANK])strides);
}

void wf_walk_range(const wf_walk *w, int64_t begin, int64_t end, wf_span_fn *fn, void *arg)
{
    uint32_t inner = w->rank - 1;
    int64_t index[WF_MAX_RANK], rest = begin;
    wf_span s = {.first = begin};

    if (begin >= end)
        return;
    for (uint32_t i = w->rank; i-- > 0; rest /= w->dims[i])
        index[i] = rest % w->dims[i];
    for (uint32_t k = 0; k < w->n; k++) {
        s.step[k] = w->strides[k][inner];
        for (uint32_t i = 0; i < w->rank; i++)
            s.at[k] += index[i] * w->strides[k][i];
    }
    for (;;) {
        s.count = WF_MIN(w->dims[inner] - index[inner], end - s.first);
        fn(arg, &s);
        s.first += s.count;
        if (s.first >= end)
            return;
        /* To the start of the next row: the odometer's inner digit is full. */
        for (uint32_t k = 0; k < w->n; k++)
            s.at[k] -= index[inner] * s.step[k];
        index[inner] = 0;
        for (uint32_t i = inner; i-- > 0;) {
            for (uint32_t k = 0; k < w->n; k++)
                s.at[k] += w->strides[k][i];
            if (++index[i] < w->dims[i])
                break;
            for (uint32_t k = 0; k < w->n; k++)
                s.at[k] -= w->strides[k][i] * w->dims[i];
            index[i] = 0;
        }
    }
}
