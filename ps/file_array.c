/* SPDX-License-Identifier: Apache-2.0 */
/* ps/file_array.c */
#include "ps/file_array.h"
#include "common/base/file_pages.h"
#include "common/base/size.h"

#include <stdlib.h>

enum {
    CHUNK_BYTES = 64 << 10,
    EXTENT_BYTES = 256 << 20,
    SHARE = 8, /* an extent is this part of what there is */
    LEAST_ROOM = 8
};

void wf_file_array_init(wf_file_array *a, const char *folder, uint32_t each)
{
    wf_assert(each > 0 && each % sizeof(uint32_t) == 0);
    *a = (wf_file_array){.folder = folder, .each = each};
    while ((size_t)2 * each << a->chunk_bits <= CHUNK_BYTES)
        a->chunk_bits++;
}

static size_t chunk_bytes(const wf_file_array *a)
{
    return (size_t)a->each << a->chunk_bits;
}

static void drop_extent(wf_file_array *a)
{
    struct wf_file_extent *last = &a->extents[--a->n_extents];

    wf_file_pages_free(last->data, last->chunks * chunk_bytes(a));
    a->n_chunks -= last->chunks;
}

void wf_file_array_close(wf_file_array *a)
{
    while (a->n_extents > 0)
        drop_extent(a);
    free(a->chunks);
    free(a->extents);
    *a = (wf_file_array){0};
}

/* Room in the lists for an extent of so many chunks. */
static wf_status lengthen_lists(wf_file_array *a, uint32_t chunks, wf_err *err)
{
    if (a->n_chunks + chunks > a->chunks_room) {
        uint32_t room = WF_MAX(a->n_chunks + chunks, 2 * a->chunks_room);
        uint8_t **longer = realloc(a->chunks, room * sizeof(*longer));

        if (!longer)
            return wf_fail_nomem(err, room * sizeof(*longer));
        a->chunks = longer;
        a->chunks_room = room;
    }
    if (a->n_extents == a->extents_room) {
        uint32_t room = WF_MAX(2 * a->extents_room, (uint32_t)LEAST_ROOM);
        struct wf_file_extent *longer = realloc(a->extents, room * sizeof *longer);

        if (!longer)
            return wf_fail_nomem(err, room * sizeof *longer);
        a->extents = longer;
        a->extents_room = room;
    }
    return WF_OK;
}

static wf_status add_extent(wf_file_array *a, uint32_t chunks, wf_err *err)
{
    size_t bytes = chunks * chunk_bytes(a);
    void *data = NULL;

    WF_TRY(lengthen_lists(a, chunks, err));
    WF_TRY(wf_file_pages_new(a->folder, bytes, &data, err));
    wf_file_pages_expect_no_order(data, bytes);
    a->extents[a->n_extents++] = (struct wf_file_extent){data, chunks};
    for (uint32_t i = 0; i < chunks; i++)
        a->chunks[a->n_chunks++] = (uint8_t *)data + i * chunk_bytes(a);
    return WF_OK;
}

static uint32_t chunks_for(const wf_file_array *a, uint32_t n)
{
    return (uint32_t)(((uint64_t)n + (1U << a->chunk_bits) - 1) >> a->chunk_bits);
}

wf_status wf_file_array_reserve(wf_file_array *a, uint32_t n, wf_err *err)
{
    uint32_t needed = chunks_for(a, n), most = (uint32_t)(EXTENT_BYTES / chunk_bytes(a));
    uint32_t missing = needed - WF_MIN(a->n_chunks, needed);
    uint32_t usual = WF_MAX(missing, WF_MIN(a->n_chunks / SHARE, most));
    wf_status rc = missing ? add_extent(a, usual, err) : WF_OK;

    /* The last room on the disk is used as well. */
    return rc == WF_FULL && usual > missing ? add_extent(a, missing, err) : rc;
}

/* Half an extent is kept, so that an array which grows and shrinks a little makes no files. */
void wf_file_array_trim(wf_file_array *a, uint32_t n)
{
    uint32_t used = chunks_for(a, n);

    while (a->n_extents > 0) {
        uint32_t last = a->extents[a->n_extents - 1].chunks;

        if (used + last / 2 + 1 > a->n_chunks - last)
            return;
        drop_extent(a);
    }
}

void wf_file_array_fetch(const wf_file_array *a, uint32_t first, uint32_t n)
{
    uint32_t each_chunk = 1U << a->chunk_bits;

    for (uint32_t end = first + n, many; first < end; first += many) {
        many = WF_MIN(end - first, each_chunk - (first & (each_chunk - 1)));
        wf_file_pages_fetch(wf_file_array_at(a, first), (size_t)many * a->each);
    }
}

uint64_t wf_file_array_on_disk(const wf_file_array *a)
{
    return (uint64_t)a->n_chunks * chunk_bytes(a);
}

size_t wf_file_array_bytes(const wf_file_array *a)
{
    return a->chunks_room * sizeof(*a->chunks) + a->extents_room * sizeof *a->extents;
}
