/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/image_jpeg.c - JPEG through libjpeg (turbo). Its errors jump back into read_with;
 * what it only warns of, as data that end too early, is an error here: a picture half grey teaches
 * the wrong thing. */
#include "common/data/image.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct reading {
    struct jpeg_decompress_struct file; /* the first member, so that a handler finds the rest */
    struct jpeg_error_mgr handlers;
    jmp_buf out;
    char text[JMSG_LENGTH_MAX];
    const uint8_t *bytes;
    size_t n;
    const wf_image *as; /* NULL: the header only */
    uint8_t *pixels;
} reading;

static void keep_text(j_common_ptr file)
{
    reading *r = (reading *)file;

    file->err->format_message(file, r->text);
}

static void jump(j_common_ptr file)
{
    keep_text(file);
    longjmp(((reading *)file)->out, 1);
}

static void warn(j_common_ptr file, int level)
{
    if (level < 0) {
        file->err->num_warnings++;
        keep_text(file);
    }
}

/* Everything that may jump. All that it changes lies in *r. False after an error. */
static bool read_with(reading *r)
{
    if (setjmp(r->out))
        return false;
    jpeg_create_decompress(&r->file);
    jpeg_mem_src(&r->file, r->bytes, (unsigned long)r->n);
    jpeg_read_header(&r->file, TRUE);
    if (!r->as)
        return true;
    r->file.out_color_space = r->as->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&r->file);
    if (r->file.output_height != r->as->height || r->file.output_width != r->as->width ||
        r->file.output_components != r->as->channels)
        return false;
    while (r->file.output_scanline < r->file.output_height) {
        JSAMPROW row = r->pixels + (size_t)r->file.output_scanline * r->file.output_width *
                                       (size_t)r->file.output_components;

        jpeg_read_scanlines(&r->file, &row, 1);
    }
    jpeg_finish_decompress(&r->file);
    return r->file.err->num_warnings == 0;
}

static wf_status read_jpeg(const char *path, reading *r, wf_err *err)
{
    bool good;

    r->file.err = jpeg_std_error(&r->handlers);
    r->handlers.error_exit = jump;
    r->handlers.emit_message = warn;
    r->handlers.output_message = keep_text;
    good = read_with(r);
    jpeg_destroy_decompress(&r->file);
    if (good)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "fetch the file again, or remove it", "%s: %s", path,
                   r->text[0] ? r->text : "damaged JPEG data");
}

static wf_status jpeg_look(const char *path, const uint8_t *bytes, size_t n, wf_image *out,
                           wf_err *err)
{
    reading r = {.bytes = bytes, .n = n};

    WF_TRY(read_jpeg(path, &r, err));
    if (r.file.num_components != 1 && r.file.num_components != 3)
        return wf_fail(err, WF_UNSUPPORTED, "convert it to RGB", "%s has %d channels", path,
                       r.file.num_components);
    *out = (wf_image){r.file.image_height, r.file.image_width, r.file.num_components};
    return wf_image_check(path, r.file.image_height, r.file.image_width, err);
}

static wf_status jpeg_decode(const char *path, const uint8_t *bytes, size_t n, const wf_image *as,
                             uint8_t *out, wf_err *err)
{
    reading r = {.bytes = bytes, .n = n, .as = as, .pixels = out};

    return read_jpeg(path, &r, err);
}

const wf_image_kind wf_image_jpeg = {.name = "jpeg",
                                     .start = "\xff\xd8\xff",
                                     .n_start = 3,
                                     .look = jpeg_look,
                                     .decode = jpeg_decode};
