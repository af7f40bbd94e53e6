/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/views.c */
#include "common/data/views.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <string.h>

enum { CHANNELS = 4 /* at most: what has more is no axis of channels */ };

/* Which axes are height and width: *first is the height's. */
static wf_status find_pixels(const char *step, uint32_t rank, const int64_t dims[], uint32_t *first,
                             wf_err *err)
{
    char text[128];

    *first = rank == 3 && dims[0] < dims[2];
    if (rank == 2 || (rank == 3 && dims[0] != dims[2] && WF_MIN(dims[0], dims[2]) <= CHANNELS))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "reshape it to [height, width, channels], of at most 4 channels",
                   "%s: a record is %s, which is no image", step,
                   wf_dims_str(rank, dims, text, sizeof text));
}

static wf_status plan_crop(const wf_map_step *step, wf_view *v, wf_err *err)
{
    double most = (double)WF_MIN(v->height, v->width);

    if (step->n_ints < 1 || step->n_ints > 2 || step->ints[0] < 1 ||
        step->ints[step->n_ints - 1] < 1)
        return wf_fail(err, WF_USAGE, "write crop: [28, 28]", "crop: height and width are wanted");
    if (!(step->number >= 0 && step->number <= most))
        return wf_fail(err, WF_USAGE, NULL, "crop: a padding of %g; a whole number from 0 to %g",
                       step->number, most);
    v->padding = (int64_t)step->number;
    v->out_height = step->ints[0];
    v->out_width = step->ints[step->n_ints - 1];
    if (v->out_height <= v->height + 2 * v->padding && v->out_width <= v->width + 2 * v->padding)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "make it smaller, or add padding",
                   "crop: %" PRId64 " x %" PRId64 " out of %" PRId64 " x %" PRId64, v->out_height,
                   v->out_width, v->height + 2 * v->padding, v->width + 2 * v->padding);
}

wf_status wf_view_plan(const wf_map_step *step, uint32_t at, uint32_t rank, int64_t dims[],
                       wf_view *out, wf_err *err)
{
    bool is_crop = strcmp(step->type, "crop") == 0;
    uint32_t first = 0;
    wf_view v = {.kind = WF_VIEW_CROP, .at = at};

    WF_TRY(find_pixels(step->type, rank, dims, &first, err));
    v.planes = first ? dims[0] : 1;
    v.channels = rank == 3 && !first ? dims[2] : 1;
    v.height = v.out_height = dims[first];
    v.width = v.out_width = dims[first + 1];
    if (is_crop)
        WF_TRY(plan_crop(step, &v, err));
    else
        v.kind =
            step->text && strcmp(step->text, "vertical") == 0 ? WF_VIEW_FLIP_UPSIDE : WF_VIEW_FLIP;
    dims[first] = v.out_height;
    dims[first + 1] = v.out_width;
    *out = v;
    return WF_OK;
}

/* A number below n for this record and step; `which` of those that the step wants. */
static uint64_t draw_below(const wf_view *v, const wf_view_draw *draw, uint64_t which, uint64_t n)
{
    static const char *const names[] = {"crop", "flip", "flip_upside"};
    uint64_t stream = wf_rng_fold(wf_rng_fold_str(0, names[v->kind]), v->at);
    wf_rng_key key = {draw->seed, wf_rng_fold(wf_rng_fold(stream, draw->epoch), which)};

    return wf_rng_below(key, draw->record, n);
}

/* Pixels of a row, in order or from the last to the first. */
static void copy_row(const uint8_t *in, uint8_t *out, int64_t n, size_t pixel, bool backwards)
{
    if (!backwards) {
        memcpy(out, in, (size_t)n * pixel);
        return;
    }
    for (int64_t x = 0; x < n; x++)
        memcpy(out + (size_t)x * pixel, in + (size_t)(n - 1 - x) * pixel, pixel);
}

static void flip(const wf_view *v, bool turned, const uint8_t *in, uint8_t *out, size_t pixel)
{
    size_t row = (size_t)v->width * pixel;

    for (int64_t p = 0; p < v->planes; p++)
        for (int64_t y = 0; y < v->height; y++) {
            int64_t from = turned && v->kind == WF_VIEW_FLIP_UPSIDE ? v->height - 1 - y : y;

            copy_row(in + (size_t)(p * v->height + from) * row,
                     out + (size_t)(p * v->height + y) * row, v->width, pixel,
                     turned && v->kind == WF_VIEW_FLIP);
        }
}

/* top and left: of the crop within the padded image. */
static void crop(const wf_view *v, int64_t top, int64_t left, const uint8_t *in, uint8_t *out,
                 size_t pixel)
{
    int64_t from = left - v->padding; /* of the row, without padding */
    int64_t skip = WF_MAX(-from, INT64_C(0));
    int64_t end = WF_MIN(from + v->out_width, v->width);
    size_t row = (size_t)v->width * pixel, out_row = (size_t)v->out_width * pixel;

    memset(out, 0, (size_t)(v->planes * v->out_height) * out_row);
    for (int64_t p = 0; p < v->planes; p++)
        for (int64_t y = 0; y < v->out_height; y++) {
            int64_t at = top + y - v->padding;

            if (at >= 0 && at < v->height && end > from + skip)
                memcpy(out + (size_t)(p * v->out_height + y) * out_row + (size_t)skip * pixel,
                       in + (size_t)(p * v->height + at) * row + (size_t)(from + skip) * pixel,
                       (size_t)(end - from - skip) * pixel);
        }
}

void wf_view_run(const wf_view *v, const wf_view_draw *draw, const void *in, void *out, size_t size)
{
    size_t pixel = (size_t)v->channels * size;
    int64_t down = v->height + 2 * v->padding - v->out_height;
    int64_t across = v->width + 2 * v->padding - v->out_width;

    if (v->kind != WF_VIEW_CROP)
        flip(v, draw->is_random && draw_below(v, draw, 0, 2), in, out, pixel);
    else if (draw->is_random)
        crop(v, (int64_t)draw_below(v, draw, 0, (uint64_t)down + 1),
             (int64_t)draw_below(v, draw, 1, (uint64_t)across + 1), in, out, pixel);
    else
        crop(v, down / 2, across / 2, in, out, pixel);
}
