/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/image.h - pixels out of PNG and JPEG files. For this room only.
 *
 * One row and one file for each kind of file: image_png.c, image_jpeg.c. What a header claims is
 * bounded before anything is allocated.
 */
#ifndef WF_DATA_IMAGE_H
#define WF_DATA_IMAGE_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_IMAGE_SIDE = 16384,          /* pixels, at most */
    WF_IMAGE_PIXELS = 64 << 20,     /* of an image, at most */
    WF_IMAGE_FILE_BYTES = 256 << 20 /* of a file, at most */
};

typedef struct wf_image {
    int64_t height, width;
    int64_t channels; /* 1 grey, 3 red, green and blue */
} wf_image;

typedef struct wf_image_kind {
    const char *name, *start; /* "png"; the bytes that such a file begins with */
    size_t n_start;
    /* The size of the image in bytes[n], and whether it has colours. Errors: WF_INVALID,
     * WF_UNSUPPORTED, WF_NOMEM. */
    wf_status (*look)(const char *path, const uint8_t *bytes, size_t n, wf_image *out, wf_err *err);
    /* Its pixels [height, width, channels], with as many channels as `as` says. Errors: the same.
     */
    wf_status (*decode)(const char *path, const uint8_t *bytes, size_t n, const wf_image *as,
                        uint8_t *out, wf_err *err);
} wf_image_kind;

extern const wf_image_kind wf_image_png, wf_image_jpeg;

/* That a size is within the bounds above. `path` is for the message. Errors: WF_INVALID. */
WF_MUST_USE wf_status wf_image_check(const char *path, uint64_t height, uint64_t width,
                                     wf_err *err);
/* Looks into a file. Errors: WF_NOTFOUND, WF_IO; WF_INVALID for what is no image, or is damaged. */
WF_MUST_USE wf_status wf_image_look(const char *path, wf_image *out, wf_err *err);
/* Reads a file's pixels into out, which has room for them; the size must be that of `as`. */
WF_MUST_USE wf_status wf_image_read(const char *path, const wf_image *as, uint8_t *out,
                                    wf_err *err);

#endif
