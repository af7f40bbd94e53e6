/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/views.h - the map steps that choose and turn pixels: crop and flip. For this room
 * only.
 *
 * A record is [height, width], [height, width, channels] or [channels, height, width]: the channels
 * are the shorter of the first and last axis, and at most 4. For training the place of a crop, and
 * whether a record is flipped, are random, a function of (seed, step, epoch, record) alone:
 * whichever worker reads the record, and whenever, it gets the same, and fields that are cropped
 * alike stay together (an image and its mask). For evaluation a crop is taken from the middle, and
 * nothing is flipped.
 */
#ifndef WF_DATA_VIEWS_H
#define WF_DATA_VIEWS_H

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/data/data.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wf_view_kind { WF_VIEW_CROP, WF_VIEW_FLIP, WF_VIEW_FLIP_UPSIDE } wf_view_kind;

typedef struct wf_view {
    wf_view_kind kind;
    uint32_t at;              /* among the views of its kind in its field */
    int64_t planes, channels; /* in front of the pixels, and of each pixel; one of them is 1 */
    int64_t height, width;    /* that go in */
    int64_t out_height, out_width;
    int64_t padding; /* zeros on each side, before a crop */
} wf_view;

/* What chance goes by. */
typedef struct wf_view_draw {
    bool is_random;
    uint64_t seed, epoch, record;
} wf_view_draw;

/* Plans a step over a record of dims[rank], and sets what it leaves in dims. Errors: WF_SHAPE for a
 * record that is no image, or is smaller than the crop. */
WF_MUST_USE wf_status wf_view_plan(const wf_map_step *step, uint32_t at, uint32_t rank,
                                   int64_t dims[], wf_view *out, wf_err *err);
/* One record of elements of `size` bytes: in to out, which do not overlap. */
void wf_view_run(const wf_view *v, const wf_view_draw *draw, const void *in, void *out,
                 size_t size);

#endif
