/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/image.c */
#include "common/data/image.h"
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <string.h>

static const wf_image_kind *const kinds[] = {&wf_image_png, &wf_image_jpeg};

wf_status wf_image_check(const char *path, uint64_t height, uint64_t width, wf_err *err)
{
    if (height && width && height <= WF_IMAGE_SIDE && width <= WF_IMAGE_SIDE &&
        height * width <= WF_IMAGE_PIXELS)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "make it smaller",
                   "%s claims %" PRIu64 " x %" PRIu64 " pixels; at most %d x %d, and %d in all",
                   path, height, width, WF_IMAGE_SIDE, WF_IMAGE_SIDE, WF_IMAGE_PIXELS);
}

static wf_status open_file(const char *path, wf_bytes *file, const wf_image_kind **kind,
                           wf_err *err)
{
    WF_TRY(wf_file_read(path, WF_IMAGE_FILE_BYTES, file, err));
    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        if (file->size >= kinds[i]->n_start &&
            memcmp(file->data, kinds[i]->start, kinds[i]->n_start) == 0) {
            *kind = kinds[i];
            return WF_OK;
        }
    return wf_fail(err, WF_INVALID, "remove it, or convert it", "%s is no PNG or JPEG file", path);
}

wf_status wf_image_look(const char *path, wf_image *out, wf_err *err)
{
    const wf_image_kind *kind = NULL;
    wf_bytes file = {0};
    wf_status rc = open_file(path, &file, &kind, err);

    if (rc == WF_OK)
        rc = kind->look(path, file.data, file.size, out, err);
    wf_bytes_close(&file);
    return rc;
}

wf_status wf_image_read(const char *path, const wf_image *as, uint8_t *out, wf_err *err)
{
    const wf_image_kind *kind = NULL;
    wf_bytes file = {0};
    wf_image has = {0};
    wf_status rc = open_file(path, &file, &kind, err);

    if (rc == WF_OK)
        rc = kind->look(path, file.data, file.size, &has, err);
    if (rc == WF_OK && (has.height != as->height || has.width != as->width))
        rc = wf_fail(err, WF_INVALID, "leave data files as they are while they are read",
                     "%s has changed since it was opened", path);
    if (rc == WF_OK)
        rc = kind->decode(path, file.data, file.size, as, out, err);
    wf_bytes_close(&file);
    return rc;
}
