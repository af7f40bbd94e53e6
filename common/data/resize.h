/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/resize.h - images brought to one size while they are read: the step `resize`, which
 * is the first of its field. For this room only.
 *
 * Bilinear, with the middles of pixels half a pixel from the edges and without smoothing, as
 * Keras's Resizing and ONNX's Resize (linear, half_pixel) have it. Pixels become f32.
 */
#ifndef WF_DATA_RESIZE_H
#define WF_DATA_RESIZE_H

#include "common/base/status.h"
#include "common/data/format.h"

/* The step `resize` that a field begins with, or NULL. */
const wf_map_step *wf_resize_of(const wf_field_spec *field);
/* Its height and width. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_resize_size(const wf_map_step *step, int64_t size[2], wf_err *err);
/* One image [height, width, channels] to out [size[0], size[1], channels]. */
void wf_resize_image(const float *in, int64_t height, int64_t width, int64_t channels,
                     const int64_t size[2], float *out);
/* All images [n, height, width] or [n, height, width, channels] of an array, in its place. Arrays
 * of another rank stay: planning the step refuses them. Errors: WF_USAGE, WF_NOMEM. */
WF_MUST_USE wf_status wf_resize_array(wf_array *a, const wf_map_step *step, const char *path,
                                      size_t limit_bytes, wf_err *err);

#endif
