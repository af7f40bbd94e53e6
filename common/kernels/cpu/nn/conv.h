/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv.h - a convolution of one shape (shape/convolution.h), and the ways to
 * compute it.
 *
 * A way computes some shapes; conv.c has their list and chooses. Work is split by images, for
 * weights by channels or maps, so that sums never depend on threads.
 */
#ifndef WF_KERNELS_CPU_CONV_H
#define WF_KERNELS_CPU_CONV_H

#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/tiles.h"
#include "common/kernels/shape/convolution.h"

typedef struct wf_conv_way wf_conv_way;

typedef struct wf_conv {
    wf_conv_pass pass;
    wf_spatial s;
    wf_dtype dtype; /* f32 or f64 */
    int64_t batch, groups;
    int64_t c, m;              /* channels and maps of one group */
    bool pointwise;            /* an output reads one element of each channel */
    bool bf16;                 /* factors may be rounded to bfloat16; sums and results stay f32 */
    bool x_is_bf16, y_is_bf16; /* what is read of them beside the weights is rounded already */
    int64_t threads;           /* of the pool */
    const wf_conv_way *way;
    void *state; /* of the way */
} wf_conv;

/* Of x, w and y the one is made that the pass makes, in v's dtype; none is empty. */
typedef struct wf_conv_tensors {
    char *x, *w, *y;
    bool x_is_bf16, y_is_bf16; /* of those that are read, to ways that take them so */
    const char *bias;          /* forward: [groups m]; data: [groups c]; or NULL */
} wf_conv_tensors;

/* The same in f32, for a pass that does not make weights: what it reads beside them, and makes. */
typedef struct wf_conv_f32 {
    const float *w, *bias;
    wf_factors from;
    float *to;
} wf_conv_f32;

static inline wf_factors wf_conv_x(const wf_conv_tensors *t)
{
    return (wf_factors){t->x, t->x_is_bf16};
}

static inline wf_factors wf_conv_y(const wf_conv_tensors *t)
{
    return (wf_factors){t->y, t->y_is_bf16};
}

static inline wf_conv_f32 wf_conv_f32_of(const wf_conv *v, const wf_conv_tensors *t)
{
    bool data = v->pass == WF_CONV_DATA;

    return (wf_conv_f32){.w = (const float *)(void *)t->w,
                         .from = data ? wf_conv_y(t) : wf_conv_x(t),
                         .bias = (const float *)(const void *)t->bias,
                         .to = (float *)(void *)(data ? t->x : t->y)};
}

struct wf_conv_way {
    const char *name;
    bool takes_bf16; /* what it reads beside the weights may be of bfloat16 */
    /* Sets *state, and prep->workspace_bytes, if this way computes the shape; *state stays NULL if
     * not. What it allocates outside prep->arena `release` gives back. Errors: WF_NOMEM. */
    wf_status (*prepare)(wf_prep *prep, const wf_conv *v, void **state, wf_err *err);
    void (*run)(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t);
    void (*release)(void *state); /* NULL: the arena holds all */
};

extern const wf_conv_way wf_conv_by_columns; /* matrix products over columns.h: every shape */
extern const wf_conv_way wf_conv_by_planes;  /* each map reads one channel */
extern const wf_conv_way wf_conv_by_onednn;  /* a few images at a time through oneDNN */
extern const wf_conv_way wf_conv_by_stacks;  /* bfloat16, small maps: forward and data */
extern const wf_conv_way wf_conv_weights_by_stacks; /* and weights */
extern const wf_conv_way wf_conv_by_tiles;          /* bfloat16: forward and data */
extern const wf_conv_way wf_conv_weights_by_tiles;  /* bfloat16: weights */

static inline size_t wf_conv_bytes(const wf_conv *v, int64_t elems)
{
    return (size_t)elems * wf_dtype_size(v->dtype);
}

/* Takes `bytes` of a workspace behind *end, in lines of a cache of their own; gives where. */
static inline size_t wf_conv_room(size_t *end, int64_t bytes)
{
    size_t at = *end;

    *end += wf_align_up((size_t)bytes, 64);
    return at;
}

/* Where part p of `parts` begins when n things are dealt out. */
static inline int64_t wf_conv_part(int64_t n, int64_t parts, int64_t p)
{
    return n / parts * p + WF_MIN(n % parts, p);
}

/* Adds the bias, if there is one, to what was made of group g of an image. */
void wf_conv_add_bias(const wf_conv *v, const wf_conv_tensors *t, int64_t image, int64_t g);

#endif
