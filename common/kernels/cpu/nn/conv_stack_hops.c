/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_stack_hops.c */
#include "common/base/size.h"
#include "common/kernels/cpu/nn/conv_stacks.h"

/* Pixels times taps: lists are not longer. */
enum { MOST_HOPS = 1 << 14, CHANNELS = 16, STACK = 32 };

/* Where tap k of map pixel o reads along axis i; -1 in the padding. */
static int64_t axis_at(const wf_spatial *s, uint32_t i, int64_t o, int64_t k)
{
    int64_t at = wf_spatial_at(s, i, o, k);

    return at < 0 || at >= s->in[i] ? -1 : at;
}

/* The pixel of an image that tap k of map pixel o reads; -1 in the padding. */
static int64_t image_pixel(const wf_spatial *s, int64_t o, int64_t k)
{
    int64_t h = axis_at(s, 1, o / s->out[2], k / s->w.kernel[2]);
    int64_t w = axis_at(s, 2, o % s->out[2], k % s->w.kernel[2]);

    return h < 0 || w < 0 ? -1 : h * s->in[2] + w;
}

/* The map pixel whose tap k reads image pixel i; -1: none. */
static int64_t map_pixel(const wf_spatial *s, int64_t i, int64_t k)
{
    int64_t at[2] = {i / s->in[2], i % s->in[2]};
    int64_t tap[2] = {k / s->w.kernel[2], k % s->w.kernel[2]};

    for (int a = 0; a < 2; a++) {
        int64_t far = at[a] + s->w.before[a + 1] - tap[a] * s->w.dilation[a + 1];

        if (far < 0 || far % s->w.stride[a + 1] || far / s->w.stride[a + 1] >= s->out[a + 1])
            return -1;
        at[a] = far / s->w.stride[a + 1];
    }
    return at[0] * s->out[2] + at[1];
}

/* Pairs of a tap and a map pixel that lie inside. */
static int64_t count(const wf_spatial *s)
{
    int64_t n = 0;

    for (int64_t o = 0; o < s->out_size; o++)
        for (int64_t k = 0; k < s->taps; k++)
            n += image_pixel(s, o, k) >= 0;
    return n;
}

bool wf_stack_wants(const wf_conv *v)
{
    const wf_spatial *s = &v->s;
    int64_t whole = (v->batch + STACK - 1) / STACK * STACK;
    bool pads = false;

    for (uint32_t i = 1; i < WF_WINDOW_AXES; i++)
        pads = pads || s->w.before[i] > 0;
    if (!v->bf16 || v->groups != 1 || s->in[0] != 1 || s->out[0] != 1 || s->w.kernel[0] != 1 ||
        v->c < CHANNELS || v->m < CHANNELS || s->taps > MOST_HOPS || s->out_size > MOST_HOPS ||
        s->in_size > MOST_HOPS || s->taps * WF_MAX(s->out_size, s->in_size) > MOST_HOPS || !pads)
        return false;
    return (double)count(s) * (double)whole * 7 <=
           (double)((s->out[1] + 1) * (s->out[2] + 1) * s->taps) * (double)v->batch * 6;
}

static wf_status make(wf_arena *arena, int64_t lists, int64_t n, wf_stack_hops *out, wf_err *err)
{
    out->begin = wf_arena_array(arena, (size_t)lists + 1, sizeof *out->begin);
    out->a_at = wf_arena_array(arena, (size_t)n, sizeof *out->a_at);
    out->b_at = wf_arena_array(arena, (size_t)n, sizeof *out->b_at);
    return out->begin && out->a_at && out->b_at
               ? WF_OK
               : wf_fail_nomem(err, (size_t)(lists + 2 * n) * sizeof *out->begin);
}

wf_status wf_stack_hops_by_result(wf_arena *arena, const wf_conv *v, int64_t a_size, int64_t b_size,
                                  wf_stack_hops *out, wf_err *err)
{
    bool data = v->pass == WF_CONV_DATA;
    int64_t n = 0;

    out->n_from = data ? v->s.out_size : v->s.in_size;
    out->n_to = data ? v->s.in_size : v->s.out_size;
    WF_TRY(make(arena, out->n_to, count(&v->s), out, err));
    for (int64_t p = 0; p < out->n_to; p++) {
        out->begin[p] = n;
        for (int64_t k = 0; k < v->s.taps; k++) {
            int64_t from = data ? map_pixel(&v->s, p, k) : image_pixel(&v->s, p, k);

            if (from < 0)
                continue;
            out->a_at[n] = k * a_size;
            out->b_at[n++] = from * b_size;
        }
    }
    out->begin[out->n_to] = n;
    return WF_OK;
}

wf_status wf_stack_hops_by_tap(wf_arena *arena, const wf_conv *v, int64_t some, int64_t a_size,
                               int64_t b_size, wf_stack_hops *out, wf_err *err)
{
    int64_t n = 0, list = 0, all = v->s.out_size;

    out->n_from = v->s.in_size;
    out->n_to = all;
    WF_TRY(make(arena, (all + some - 1) / some * v->s.taps, count(&v->s), out, err));
    for (int64_t o = 0; o < all; o += some)
        for (int64_t k = 0; k < v->s.taps; k++) {
            out->begin[list++] = n;
            for (int64_t p = o; p < WF_MIN(o + some, all); p++) {
                int64_t from = image_pixel(&v->s, p, k);

                if (from < 0)
                    continue;
                out->a_at[n] = from * a_size;
                out->b_at[n++] = p * b_size;
            }
        }
    out->begin[list] = n;
    return WF_OK;
}
