/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/pages.c */
#include "common/base/pages.h"
#include "common/base/size.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGN = 64,
    PAGE = 4 << 10,
    HUGE_PAGE = 2 << 20,
    MAPPED = 1 << 20 /* arrays from here on have a mapping of their own */
};

void *wf_pages_alloc(size_t bytes)
{
    size_t align = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : ALIGN, room;
    void *data;

    if (bytes > SIZE_MAX - align)
        return NULL;
    room = wf_align_up(WF_MAX(bytes, (size_t)1), align);
    data = aligned_alloc(align, room);
    if (data && align == HUGE_PAGE)
        (void)madvise(data, room, MADV_HUGEPAGE); /* a wish, not a need */
    return data;
}

static void *new_array(size_t bytes)
{
    void *data;

    if (bytes < MAPPED)
        return calloc(1, bytes);
    data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void free_array(void *data, size_t bytes)
{
    if (bytes < MAPPED)
        free(data);
    else
        munmap(data, bytes);
}

static void *resize_mapping(void *data, size_t old, size_t bytes)
{
    void *moved;

    if (bytes < old) /* the rest of its last page stays */
        memset((uint8_t *)data + bytes, 0, WF_MIN(old, wf_align_up(bytes, PAGE)) - bytes);
    moved = mremap(data, old, bytes, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
}

static void *resize_block(void *data, size_t old, size_t bytes)
{
    uint8_t *moved = realloc(data, bytes);

    if (moved && bytes > old)
        memset(moved + old, 0, bytes - old);
    return moved;
}

void *wf_pages_resize(void *data, size_t old, size_t bytes)
{
    void *to = NULL;

    if (bytes && old >= MAPPED && bytes >= MAPPED)
        return resize_mapping(data, old, bytes);
    if (bytes && old < MAPPED && bytes < MAPPED)
        return resize_block(data, old, bytes);
    if (bytes) {
        to = new_array(bytes);
        if (!to)
            return NULL;
        if (old)
            memcpy(to, data, WF_MIN(old, bytes));
    }
    free_array(data, old);
    return to;
}
