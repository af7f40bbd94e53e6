/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/resize.c */
#include "common/data/resize.h"
#include "common/base/size.h"
#include "common/data/convert.h"
#include "common/data/image.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const wf_map_step *wf_resize_of(const wf_field_spec *field)
{
    return field->n_steps && strcmp(field->steps[0].type, "resize") == 0 ? &field->steps[0] : NULL;
}

wf_status wf_resize_size(const wf_map_step *step, int64_t size[2], wf_err *err)
{
    if (step->n_ints != 2 || step->ints[0] < 1 || step->ints[1] < 1 ||
        step->ints[0] > WF_IMAGE_SIDE || step->ints[1] > WF_IMAGE_SIDE)
        return wf_fail(err, WF_USAGE, "write resize: [224, 224]",
                       "resize: a height and a width are wanted, each from 1 to %d", WF_IMAGE_SIDE);
    memcpy(size, step->ints, 2 * sizeof size[0]);
    return WF_OK;
}

/* Where pixel `at` of `to` lies among `from`: between two of them, and how far behind the first. */
typedef struct between {
    int64_t low, high;
    float part;
} between;

static between place(int64_t at, int64_t from, int64_t to)
{
    double x = ((double)at + 0.5) * (double)from / (double)to - 0.5, low = floor(x);

    return (between){.low = WF_MAX((int64_t)low, 0),
                     .high = WF_MIN((int64_t)low + 1, from - 1),
                     .part = (float)(x - low)};
}

void wf_resize_image(const float *in, int64_t height, int64_t width, int64_t channels,
                     const int64_t size[2], float *out)
{
    for (int64_t i = 0; i < size[0]; i++) {
        between y = place(i, height, size[0]);
        const float *upper = in + y.low * width * channels, *lower = in + y.high * width * channels;

        for (int64_t j = 0; j < size[1]; j++) {
            between x = place(j, width, size[1]);
            int64_t a = x.low * channels, b = x.high * channels;

            for (int64_t c = 0; c < channels; c++) {
                float above = upper[a + c] + (upper[b + c] - upper[a + c]) * x.part;
                float below = lower[a + c] + (lower[b + c] - lower[a + c]) * x.part;

                *out++ = above + (below - above) * y.part;
            }
        }
    }
}

wf_status wf_resize_array(wf_array *a, const wf_map_step *step, const char *path,
                          size_t limit_bytes, wf_err *err)
{
    wf_array to = *a;
    int64_t size[2], channels = a->rank == 4 ? a->dims[3] : 1;
    size_t elems, out_elems, image;
    float *pixels;

    WF_TRY(wf_resize_size(step, size, err));
    if (a->rank < 3 || a->rank > 4 || a->dims[0] == 0)
        return WF_OK;
    to.dtype = WF_F32;
    to.dims[1] = size[0];
    to.dims[2] = size[1];
    WF_TRY(wf_array_make(&to, path, limit_bytes, err));
    image = a->bytes / (size_t)a->dims[0];
    elems = image / wf_dtype_size(a->dtype);
    out_elems = to.bytes / sizeof(float) / (size_t)a->dims[0];
    pixels = malloc(elems * sizeof *pixels + 1);
    if (!pixels) {
        wf_array_close(&to);
        return wf_fail_nomem(err, elems * sizeof *pixels);
    }
    for (int64_t i = 0; i < a->dims[0] && elems; i++) {
        wf_convert(a->dtype, (const uint8_t *)a->data + (size_t)i * image, WF_F32, pixels, elems);
        wf_resize_image(pixels, a->dims[1], a->dims[2], channels, size,
                        (float *)to.data + (size_t)i * out_elems);
    }
    free(pixels);
    wf_array_close(a);
    *a = to;
    return WF_OK;
}
