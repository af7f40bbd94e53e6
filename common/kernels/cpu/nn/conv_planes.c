/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_planes.c - convolutions where each map reads one channel (depthwise).
 *
 * A plane x is laid into a padded one, row behind row, in which tap k of every output lies at[k]
 * elements behind the output's own place: so a pass is a sum over taps of one long vector, whose
 * elements between rows and between strided outputs nobody reads, or are zero.
 */
#include "common/base/size.h"
#include "common/kernels/cpu/lanes.h"
#include "common/kernels/cpu/nn/conv.h"

#include <string.h>

/* Elements of a padded plane beyond which columns are the better way. */
enum { MOST_ELEMS = 1 << 24, BLOCK = 2 * WF_LANES };

typedef struct planes {
    int64_t size[WF_WINDOW_AXES]; /* of the padded plane: what windows cover */
    int64_t *at, *back;           /* [taps]; back[k] = reach - at[k] */
    int64_t *in_at, *out_at;      /* where rows begin in the padded plane; in_at -1: not covered */
    int64_t in_from, in_n;        /* what windows cover of a row of inputs */
    int64_t elems, reach, outs;   /* of the padded plane; the greatest at; elems - reach */
    bool dense;                   /* all strides are 1 */
    size_t bytes;                 /* workspace of one part */
} planes;

typedef struct job {
    const wf_conv *v;
    const planes *p;
    const wf_conv_tensors *t;
    char *workspace;
} job;

/* Elements between the first and the last output of a row. */
static int64_t row_size(const wf_conv *v)
{
    return (v->s.out[2] - 1) * v->s.w.stride[2] + 1;
}

#define T float
#define SUFFIX f32
#include "common/kernels/cpu/nn/conv_planes_template.h"

#define T double
#define SUFFIX f64
#include "common/kernels/cpu/nn/conv_planes_template.h"

/* Group g of an image. */
static void plane(const job *j, int64_t image, int64_t g, void *work)
{
    const wf_conv *v = j->v;
    void *x = j->t->x + wf_conv_bytes(v, (image * v->groups + g) * v->s.in_size);
    void *w = j->t->w + wf_conv_bytes(v, g * v->s.taps);
    void *y = j->t->y + wf_conv_bytes(v, (image * v->groups + g) * v->s.out_size);

    if (v->dtype == WF_F32)
        plane_f32(j, x, w, y, work);
    else
        plane_f64(j, x, w, y, work);
}

static void parts_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv *v = j->v;
    bool weights = v->pass == WF_CONV_WEIGHTS;
    int64_t n = weights ? v->groups : v->batch * v->groups;

    for (int64_t part = begin; part < end; part++) {
        void *work = j->workspace + (size_t)part * j->p->bytes;
        int64_t to = wf_conv_part(n, v->threads, part + 1);

        for (int64_t i = wf_conv_part(n, v->threads, part); i < to; i++) {
            if (weights) {
                memset(j->t->w + wf_conv_bytes(v, i * v->s.taps), 0, wf_conv_bytes(v, v->s.taps));
                for (int64_t image = 0; image < v->batch; image++)
                    plane(j, image, i, work);
            } else {
                plane(j, i / v->groups, i % v->groups, work);
                wf_conv_add_bias(v, j->t, i / v->groups, i % v->groups);
            }
        }
    }
}

/* False: the padded plane is too large. */
static bool lay_out(const wf_conv *v, planes *p)
{
    const wf_window *w = &v->s.w;

    p->dense = true;
    p->elems = 1;
    for (int i = 0; i < WF_WINDOW_AXES; i++) {
        int64_t strides, taps;

        if (!wf_mul_i64(v->s.out[i] - 1, w->stride[i], &strides) ||
            !wf_mul_i64(w->kernel[i] - 1, w->dilation[i], &taps) || strides > MOST_ELEMS ||
            taps > MOST_ELEMS)
            return false;
        p->size[i] = strides + taps + 1;
        if (!wf_mul_i64(p->elems, p->size[i], &p->elems) || p->elems > MOST_ELEMS)
            return false;
        p->dense = p->dense && w->stride[i] == 1;
        p->reach = p->reach * p->size[i] + taps;
    }
    p->outs = p->elems - p->reach;
    return true;
}

static void find_taps(const wf_conv *v, planes *p)
{
    const wf_window *w = &v->s.w;

    for (int64_t k = 0; k < v->s.taps; k++) {
        int64_t kw = k % w->kernel[2], kh = k / w->kernel[2] % w->kernel[1];
        int64_t kd = k / w->kernel[2] / w->kernel[1];

        p->at[k] = (kd * w->dilation[0] * p->size[1] + kh * w->dilation[1]) * p->size[2] +
                   kw * w->dilation[2];
        p->back[k] = p->reach - p->at[k];
    }
}

static void find_rows(const wf_conv *v, planes *p)
{
    const wf_spatial *s = &v->s;

    for (int64_t r = 0; r < s->out[0] * s->out[1]; r++) {
        int64_t d = r / s->out[1] * s->w.stride[0], h = r % s->out[1] * s->w.stride[1];

        p->out_at[r] = (d * p->size[1] + h) * p->size[2];
    }
    p->in_from = WF_MAX(-s->w.before[2], (int64_t)0);
    p->in_n = WF_MIN(s->in[2], p->size[2] - s->w.before[2]) - p->in_from;
    for (int64_t r = 0; r < s->in[0] * s->in[1]; r++) {
        int64_t d = r / s->in[1] + s->w.before[0], h = r % s->in[1] + s->w.before[1];
        bool covered = d >= 0 && d < p->size[0] && h >= 0 && h < p->size[1] && p->in_n > 0;

        p->in_at[r] =
            covered ? (d * p->size[1] + h) * p->size[2] + s->w.before[2] + p->in_from : -1;
    }
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    planes layout = {0}, *p;

    if (v->c != 1 || v->m != 1 || v->groups == 1 || v->s.out_size < 1 || !lay_out(v, &layout))
        return WF_OK;
    p = wf_arena_memdup(prep->arena, &layout, sizeof layout);
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->at = wf_arena_array(prep->arena, (size_t)v->s.taps, sizeof *p->at);
    p->back = wf_arena_array(prep->arena, (size_t)v->s.taps, sizeof *p->back);
    p->in_at = wf_arena_array(prep->arena, (size_t)(v->s.in[0] * v->s.in[1]), sizeof *p->in_at);
    p->out_at = wf_arena_array(prep->arena, (size_t)(v->s.out[0] * v->s.out[1]), sizeof *p->out_at);
    if (!p->at || !p->back || !p->in_at || !p->out_at)
        return wf_fail_nomem(err, (size_t)v->s.taps * sizeof *p->at);
    find_taps(v, p);
    find_rows(v, p);
    p->bytes = wf_align_up(wf_conv_bytes(v, 2 * (p->elems + BLOCK) + p->reach), 64);
    WF_TRY(wf_prep_workspace(prep, p->bytes, (size_t)v->threads, err));
    *state = p;
    return WF_OK;
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    job j = {v, v->state, t, run->workspace};

    wf_pool_for(run->pool, v->threads, 1, parts_range, &j);
}

const wf_conv_way wf_conv_by_planes = {"planes", .prepare = prepare, .run = run};
