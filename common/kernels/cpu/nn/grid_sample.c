/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/grid_sample.c - GridSample(x, grid), and GridSampleGrad(dy, x, grid);
 * shape/grid_sample.h has the taps. */
#include "common/kernels/shape/grid_sample.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

enum { AXES = WF_SAMPLE_AXES, ELEMENTS = WF_SAMPLE_TAPS * WF_SAMPLE_TAPS * WF_SAMPLE_TAPS };

/* The elements that a place in the grid takes from. */
typedef struct elements {
    uint32_t n;
    int64_t at[ELEMENTS];
    double weight[ELEMENTS], slope[AXES][ELEMENTS];
} elements;

/* The grid has the last axis first. */
static void find_elements(const wf_sampling *s, const double place[], elements *to)
{
    wf_sampling_taps axis[AXES];
    uint32_t count = 1;

    to->n = 0;
    for (uint32_t i = 0; i < s->rank; i++) {
        wf_sampling_find(s, place[s->rank - 1 - i], s->size[i], &axis[i]);
        count *= axis[i].n;
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t rest = k, pick[AXES];
        int64_t at = 0;

        for (uint32_t i = 0; i < s->rank && at >= 0; rest /= axis[i].n, i++) {
            pick[i] = rest % axis[i].n;
            at = axis[i].at[pick[i]] < 0 ? -1 : at + axis[i].at[pick[i]] * s->stride[i];
        }
        if (at < 0)
            continue;
        to->at[to->n] = at;
        to->weight[to->n] = 1;
        for (uint32_t i = 0; i < s->rank; i++) {
            to->weight[to->n] *= axis[i].weight[pick[i]];
            to->slope[i][to->n] = axis[i].slope[pick[i]];
            for (uint32_t j = 0; j < s->rank; j++)
                to->slope[i][to->n] *= j == i ? 1 : axis[j].weight[pick[j]];
        }
        to->n++;
    }
}

typedef struct job {
    wf_sampling s;
    const void *x, *grid, *dy;
    void *y, *dx, *dgrid; /* the last two may be NULL */
} job;

#define T float
#define SUFFIX float
#include "common/kernels/cpu/nn/grid_sample_template.h"

#define T double
#define SUFFIX double
#include "common/kernels/cpu/nn/grid_sample_template.h"

static wf_status grid_sample(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    job j = {.s = wf_sampling_of(run->node, in[0], in[1]),
             .x = in[0]->data,
             .grid = in[1]->data,
             .y = out[0]->data};

    (void)err;
    wf_pool_for(run->pool, out[0]->dims[0] * j.s.points, 64,
                in[0]->dtype == WF_F32 ? sample_float : sample_double, &j);
    return WF_OK;
}

static wf_status grid_sample_grad(const wf_run *run, const wf_tensor *const in[],
                                  wf_tensor *const out[], wf_err *err)
{
    job j = {.s = wf_sampling_of(run->node, in[1], in[2]),
             .x = in[1]->data,
             .grid = in[2]->data,
             .dy = in[0]->data,
             .dx = out[0] ? out[0]->data : NULL,
             .dgrid = out[1] ? out[1]->data : NULL};

    (void)err;
    if (j.dx && wf_tensor_bytes(out[0]))
        memset(j.dx, 0, wf_tensor_bytes(out[0]));
    wf_pool_for(run->pool, in[1]->dims[0], 1, in[0]->dtype == WF_F32 ? grads_float : grads_double,
                &j);
    return WF_OK;
}

const wf_kernel wf_kernels_grid_sample[] = {
    WF_ROW("GridSample", WF_TYPES_FLOAT, grid_sample),
    WF_ROW("GridSampleGrad", WF_TYPES_FLOAT, grid_sample_grad, .domain = WF_DOMAIN_WEFT),
    {0},
};
