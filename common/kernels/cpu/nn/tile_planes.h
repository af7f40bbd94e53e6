/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/tile_planes.h - images as padded planes, for convolutions on tiles.
 *
 * The images of a chunk lie below each other in one plane, `pitch` elements from row to row and
 * `rows` rows from image to image, with zeros between. Results lie at the same pitch, so all pixels
 * of a chunk are one line: result f reads element f + a constant for each tap, past the end of a
 * row too, where what comes out is thrown away. One column of zeros serves the end of a row and the
 * beginning of the next.
 *
 * With a stride the images are taken apart into phases, one for each remainder of a row's and a
 * column's number, and for gradients of data the results are. Where there are few channels
 * (`folded`) each tap of each is a channel of its own that lies as the results do.
 */
#ifndef WF_KERNELS_CPU_TILE_PLANES_H
#define WF_KERNELS_CPU_TILE_PLANES_H

#include "common/base/arena.h"
#include "common/kernels/cpu/nn/conv.h"
#include "common/kernels/cpu/product/tiles.h"

/* Axes are rows, then columns. */
typedef struct wf_phase {
    int64_t first[2], n[2]; /* element i lies at first + i * step */
} wf_phase;

typedef struct wf_plane_tap {
    int64_t tap;   /* of the weights */
    int64_t phase; /* of the images */
    int64_t at;    /* elements from a result's place */
} wf_plane_tap;

/* A phase of the results, with the taps that add to it. */
typedef struct wf_plane_grid {
    wf_phase results;
    int64_t n_taps, first_tap;
} wf_plane_grid;

typedef struct wf_tile_planes {
    bool folded;
    int64_t channels; /* with taps, where folded */
    int64_t size[2], in_step[2], out_size[2], out_step[2];
    int64_t n_phases, n_grids, n_taps;
    wf_phase *phases;                 /* [n_phases] */
    wf_plane_grid *grids;             /* [n_grids] */
    wf_plane_tap *taps;               /* [n_taps], grid by grid */
    int64_t pitch, rows, lead, trail; /* elements; lead, trail: before and behind the results */
    const wf_spatial *s;
} wf_tile_planes;

/* Whether strides and windows are such as networks have: there is a plane for each phase of a
 * stride, and each is as much larger than the image as a window reaches. */
bool wf_tile_planes_fit(const wf_conv *v);
/* Of the pass of v; that of WEIGHTS is FORWARD's. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_tile_planes_make(wf_arena *arena, const wf_conv *v, bool folded,
                                          wf_tile_planes *out, wf_err *err);
/* Elements of the results of `images` images, and of the plane below them, a multiple of 32. */
int64_t wf_tile_planes_results(const wf_tile_planes *p, int64_t images);
int64_t wf_tile_planes_length(const wf_tile_planes *p, int64_t images);

/* Floats of a padded image, of which folded channels are made; 0 where they are not folded. */
int64_t wf_tile_planes_padded(const wf_tile_planes *p);
/* An image with its padding, in float32. */
void wf_tile_planes_pad(const wf_tile_planes *p, wf_factors image, float *to);

/* Rounds `channel`, or the pair that begins with it, of one image [channels, size] into a plane of
 * zeros, as image `at` of it. A folded one is made of a padded image. */
void wf_tile_planes_fill(const wf_tile_planes *p, wf_factors image, int64_t channel, bool pair,
                         int64_t phase, int64_t at, uint16_t *plane);

#endif
