/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/image_png.c - PNG through libpng's simplified interface, which never jumps out of our
 * frames. 16 bits become 8, palettes become colours, and what is transparent lies on black. */
#include "common/data/image.h"

#include <png.h>

#include <inttypes.h>

enum { DEFLATE_BEST = 1032, PIXELS_PER_BYTE = 8 /* of one bit each */ };

static wf_status damaged(const char *path, png_image *image, wf_err *err)
{
    wf_fail(err, WF_INVALID, "fetch the file again, or remove it", "%s: %s", path,
            image->message[0] ? image->message : "damaged PNG data");
    png_image_free(image);
    return WF_INVALID;
}

/* Reads the header; the image must be freed after success. */
static wf_status begin(const char *path, const uint8_t *bytes, size_t n, png_image *image,
                       wf_err *err)
{
    wf_status rc;

    *image = (png_image){.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(image, bytes, n))
        return damaged(path, image, err);
    rc = wf_image_check(path, image->height, image->width, err);
    if (rc == WF_OK &&
        (uint64_t)image->height * image->width > (uint64_t)n * DEFLATE_BEST * PIXELS_PER_BYTE)
        rc = wf_fail(err, WF_INVALID, "fetch the file again, or remove it",
                     "%s claims %" PRIu32 " x %" PRIu32 " pixels, which %zu bytes cannot hold",
                     path, image->height, image->width, n);
    if (rc != WF_OK)
        png_image_free(image);
    return rc;
}

static wf_status png_look(const char *path, const uint8_t *bytes, size_t n, wf_image *out,
                          wf_err *err)
{
    png_image image;

    WF_TRY(begin(path, bytes, n, &image, err));
    *out = (wf_image){image.height, image.width, image.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1};
    png_image_free(&image);
    return WF_OK;
}

static wf_status png_decode(const char *path, const uint8_t *bytes, size_t n, const wf_image *as,
                            uint8_t *out, wf_err *err)
{
    static const png_color black = {0, 0, 0};
    png_image image;

    WF_TRY(begin(path, bytes, n, &image, err));
    image.format = as->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    if (!png_image_finish_read(&image, &black, out, 0, NULL) ||
        (image.warning_or_error & PNG_IMAGE_ERROR))
        return damaged(path, &image, err);
    png_image_free(&image);
    return WF_OK;
}

const wf_image_kind wf_image_png = {.name = "png",
                                    .start = "\x89PNG\r\n\x1a\n",
                                    .n_start = 8,
                                    .look = png_look,
                                    .decode = png_decode};
