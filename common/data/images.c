/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/images.c - a folder of images: each folder in it is a class, and holds PNG and JPEG
 * files of one size, or of any where a step resizes them. "FOLDER" are the pixels u8 [n, height,
 * width, channels], f32 when they are resized, "FOLDER#class" the classes i32 [n], counted in the
 * order of the bytes of their names; both in the order of the files.
 *
 * What is not a folder beside the classes, not an image by its name within them, or begins with a
 * dot, does not count. If one image has colours, all are read as such.
 */
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/data/convert.h"
#include "common/data/format.h"
#include "common/data/formats.h"
#include "common/data/image.h"
#include "common/data/paths.h"
#include "common/data/resize.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_CLASSES = 65536, MOST_FILES = 1 << 24 };

typedef struct names {
    const char **text; /* [n], sorted; in the arena */
    size_t n, room;
} names;

typedef struct pictures {
    wf_arena *arena;
    names classes, files; /* files: whole paths, class by class */
    size_t *ends;         /* [classes]: of the files of each */
} pictures;

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add_name(wf_arena *a, names *l, const char *text)
{
    if (l->n == l->room) {
        size_t room = WF_MAX(2 * l->room, (size_t)64);
        const char **more = wf_arena_array(a, room, sizeof *more);

        if (!more)
            return false;
        if (l->n)
            memcpy(more, l->text, l->n * sizeof *more);
        l->text = more;
        l->room = room;
    }
    l->text[l->n] = wf_arena_strdup(a, text);
    return l->text[l->n++] != NULL;
}

static bool is_image(const char *name)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < WF_COUNT(ends); i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

/* Adds what a folder holds, sorted: folders by their names, or images by their paths. */
static wf_status list(wf_arena *a, const char *folder, bool folders, size_t most, names *out,
                      wf_err *err)
{
    DIR *dir = opendir(folder);
    size_t before = out->n;
    struct dirent *entry;
    wf_status rc = WF_OK;

    if (!dir && errno == ENOTDIR)
        return wf_fail(err, WF_INVALID, "name the folder that holds a folder for each class",
                       "%s is a file, not a folder", folder);
    if (!dir)
        return wf_fail_errno(err, errno, "check the path", "%s", folder);
    while (rc == WF_OK && (entry = readdir(dir))) {
        char path[PATH_MAX];
        struct stat st;

        if (entry->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= sizeof path ||
            stat(path, &st) != 0 || (folders ? !S_ISDIR(st.st_mode) : !is_image(path)))
            continue;
        if (out->n == most)
            rc = wf_fail(err, WF_INVALID, NULL, "%s holds more than %zu %s", folder, most,
                         folders ? "classes" : "files");
        else if (!add_name(a, out, folders ? entry->d_name : path))
            rc = wf_fail_nomem(err, sizeof path);
    }
    closedir(dir);
    if (rc == WF_OK && out->n > before)
        qsort(out->text + before, out->n - before, sizeof *out->text, by_bytes);
    return rc;
}

static wf_status find_pictures(const char *folder, pictures *p, wf_err *err)
{
    WF_TRY(list(p->arena, folder, true, MOST_CLASSES, &p->classes, err));
    if (p->classes.n == 0)
        return wf_fail(err, WF_INVALID, "put the images of each class into a folder of its name",
                       "%s holds no folders, one for each class", folder);
    p->ends = wf_arena_array(p->arena, p->classes.n, sizeof *p->ends);
    if (!p->ends)
        return wf_fail_nomem(err, p->classes.n * sizeof *p->ends);
    for (size_t i = 0; i < p->classes.n; i++) {
        char path[PATH_MAX];

        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, p->classes.text[i]) >= sizeof path)
            return wf_fail(err, WF_INVALID, NULL, "the path of %.64s is too long",
                           p->classes.text[i]);
        WF_TRY(list(p->arena, path, false, MOST_FILES, &p->files, err));
        p->ends[i] = p->files.n;
        if (p->ends[i] == (i ? p->ends[i - 1] : 0))
            return wf_fail(err, WF_INVALID, "remove the folder, or fill it",
                           "%s holds no PNG or JPEG files", path);
    }
    return WF_OK;
}

/* ---- classes ---- */

/* The number of a class among those of the training data. */
static wf_status class_of(const names *known, const char *name, const char *folder, int32_t *out,
                          wf_err *err)
{
    const char *near;
    const char *const *found = bsearch(&name, known->text, known->n, sizeof *known->text, by_bytes);

    if (found) {
        *out = (int32_t)(found - known->text);
        return WF_OK;
    }
    near = wf_nearest(name, known->text, known->n);
    return wf_fail(err, WF_INVALID, "the folders to evaluate on are among those to train on",
                   "%s holds the class \"%.64s\", which the training data do not%s%s", folder, name,
                   near ? "; they hold " : "", near ? near : "");
}

static wf_status read_classes(const pictures *p, const char *folder, const char *trained,
                              size_t limit_bytes, wf_array *out, wf_err *err)
{
    wf_array a = {.dtype = WF_I32, .rank = 1, .dims = {(int64_t)p->files.n}};
    names known = p->classes;
    wf_status rc = WF_OK;
    size_t at = 0;

    if (trained) {
        known = (names){0};
        WF_TRY(list(p->arena, trained, true, MOST_CLASSES, &known, err));
    }
    WF_TRY(wf_array_make(&a, folder, limit_bytes, err));
    for (size_t i = 0; rc == WF_OK && i < p->classes.n; i++) {
        int32_t number = 0;

        rc = class_of(&known, p->classes.text[i], folder, &number, err);
        for (; at < p->ends[i]; at++)
            ((int32_t *)a.data)[at] = number;
    }
    if (rc == WF_OK)
        *out = a;
    else
        wf_array_close(&a);
    return rc;
}

/* ---- pixels ---- */

/* The size of all, with colours if one has them; `resized`: they may differ, and it is the largest
 * of them. */
static wf_status look_at_all(const pictures *p, bool resized, wf_image *size, wf_err *err)
{
    WF_TRY(wf_image_look(p->files.text[0], size, err));
    for (size_t i = 1; i < p->files.n; i++) {
        wf_image other;

        WF_TRY(wf_image_look(p->files.text[i], &other, err));
        if (resized && other.height * other.width > size->height * size->width) {
            size->height = other.height;
            size->width = other.width;
        }
        if (!resized && (other.height != size->height || other.width != size->width))
            return wf_fail(err, WF_INVALID, "begin their data.map with resize: [224, 224]",
                           "%s has %" PRId64 " x %" PRId64 " pixels, %s has %" PRId64 " x %" PRId64,
                           p->files.text[i], other.height, other.width, p->files.text[0],
                           size->height, size->width);
        size->channels = WF_MAX(size->channels, other.channels);
    }
    return WF_OK;
}

/* Images of any sizes, each to the same. `largest` has room for what one holds. */
static wf_status read_resized(const pictures *p, const wf_image *largest, const int64_t size[2],
                              wf_array *a, wf_err *err)
{
    size_t room = (size_t)(largest->height * largest->width * largest->channels);
    size_t each = a->bytes / sizeof(float) / p->files.n;
    uint8_t *bytes = malloc(room);
    float *pixels = malloc(room * sizeof *pixels);
    wf_status rc = bytes && pixels ? WF_OK : wf_fail_nomem(err, room * sizeof *pixels);

    for (size_t i = 0; rc == WF_OK && i < p->files.n; i++) {
        const char *path = p->files.text[i];
        wf_image one = {0};

        rc = wf_image_look(path, &one, err);
        one.channels = largest->channels;
        if (rc == WF_OK && one.height * one.width > largest->height * largest->width)
            rc = wf_fail(err, WF_INVALID, "leave the files alone until they are read",
                         "%s has grown while it was read", path);
        if (rc == WF_OK)
            rc = wf_image_read(path, &one, bytes, err);
        if (rc != WF_OK)
            break;
        wf_convert(WF_U8, bytes, WF_F32, pixels, (size_t)(one.height * one.width * one.channels));
        wf_resize_image(pixels, one.height, one.width, one.channels, size,
                        (float *)a->data + i * each);
    }
    free(bytes);
    free(pixels);
    return rc;
}

static wf_status read_pixels(const pictures *p, const char *folder, const wf_map_step *resize,
                             size_t limit_bytes, wf_array *out, wf_err *err)
{
    wf_image largest = {0};
    wf_array a = {.dtype = resize ? WF_F32 : WF_U8, .rank = 4};
    wf_status rc = WF_OK;
    int64_t size[2];
    size_t each;

    WF_TRY(look_at_all(p, resize, &largest, err));
    size[0] = largest.height;
    size[1] = largest.width;
    if (resize)
        WF_TRY(wf_resize_size(resize, size, err));
    a.dims[0] = (int64_t)p->files.n;
    a.dims[1] = size[0];
    a.dims[2] = size[1];
    a.dims[3] = largest.channels;
    WF_TRY(wf_array_make(&a, folder, limit_bytes, err));
    each = a.bytes / p->files.n;
    if (resize)
        rc = read_resized(p, &largest, size, &a, err);
    for (size_t i = 0; !resize && rc == WF_OK && i < p->files.n; i++)
        rc = wf_image_read(p->files.text[i], &largest, (uint8_t *)a.data + i * each, err);
    if (rc == WF_OK)
        *out = a;
    else
        wf_array_close(&a);
    return rc;
}

static wf_status images_load(const char *path, const char *trained, const wf_map_step *resize,
                             size_t limit_bytes, wf_array *out, wf_err *err)
{
    const char *mark = wf_paths_member(path), *end = trained ? wf_paths_member(trained) : NULL;
    pictures p = {.arena = wf_arena_new(0)};
    char folder[PATH_MAX], classes[PATH_MAX];
    wf_status rc = p.arena ? WF_OK : wf_fail_nomem(err, sizeof p);

    snprintf(folder, sizeof folder, "%.*s", (int)(mark - path), path);
    snprintf(classes, sizeof classes, "%.*s", trained ? (int)(end - trained) : 0,
             trained ? trained : "");
    if (rc == WF_OK && *mark && strcmp(mark, "#class") != 0)
        rc = wf_fail(err, WF_USAGE, "write FOLDER for the pixels, or FOLDER#class",
                     "images have no \"%.64s\"", mark);
    if (rc == WF_OK)
        rc = find_pictures(folder, &p, err);
    if (rc == WF_OK && *mark)
        rc = read_classes(&p, folder, trained ? classes : NULL, limit_bytes, out, err);
    else if (rc == WF_OK)
        rc = read_pixels(&p, folder, resize, limit_bytes, out, err);
    wf_arena_free(&p.arena);
    return rc;
}

wf_status wf_images_classes(const char *folder, wf_arena *a, const char *const **out, size_t *n,
                            wf_err *err)
{
    names classes = {0};

    WF_TRY(list(a, folder, true, MOST_CLASSES, &classes, err));
    *out = classes.text;
    *n = classes.n;
    return WF_OK;
}

const wf_format wf_format_images = {.name = "images", .load = images_load};
