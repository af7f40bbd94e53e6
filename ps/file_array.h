/* SPDX-License-Identifier: Apache-2.0 */
/* ps/file_array.h - items of one size in files (common/base/file_pages.h), numbered from 0: an
 * array that grows and shrinks at its end, and never moves.
 *
 * It grows by an extent, a file of its own: of an eighth of what there is, so that even a large
 * array has few, up to EXTENT_BYTES. An extent is whole chunks of about 64 KiB; the chunks' places
 * say where an item lies.
 *
 * Invariants
 *   E1  an item keeps its address as long as the array has its number
 *   E2  what is reserved is reserved on disk: writing to it cannot fail for space
 */
#ifndef WF_PS_FILE_ARRAY_H
#define WF_PS_FILE_ARRAY_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

/* {0} is closed. */
typedef struct wf_file_array {
    const char *folder;
    uint8_t **chunks; /* [n_chunks] */
    uint32_t n_chunks, chunks_room;
    struct wf_file_extent {
        void *data;
        uint32_t chunks;
    } * extents; /* [n_extents] */
    uint32_t n_extents, extents_room;
    uint32_t each;       /* bytes of an item */
    uint32_t chunk_bits; /* a chunk has 1 << chunk_bits of them */
} wf_file_array;

/* No items, of `each` bytes; a multiple of 4. The folder is borrowed for the array's life. */
void wf_file_array_init(wf_file_array *a, const char *folder, uint32_t each);
void wf_file_array_close(wf_file_array *a);
/* Room for items 0 to n - 1. Errors: those of wf_file_pages_new. */
WF_MUST_USE wf_status wf_file_array_reserve(wf_file_array *a, uint32_t n, wf_err *err);
/* Gives back extents behind item n - 1, but for some room to grow again. */
void wf_file_array_trim(wf_file_array *a, uint32_t n);
/* Begins to read n items from number `first` on, which are there, and used soon. */
void wf_file_array_fetch(const wf_file_array *a, uint32_t first, uint32_t n);
/* Bytes reserved on disk; bytes of memory held. */
uint64_t wf_file_array_on_disk(const wf_file_array *a);
size_t wf_file_array_bytes(const wf_file_array *a);

static inline void *wf_file_array_at(const wf_file_array *a, uint32_t i)
{
    uint32_t in_chunk = i & ((1U << a->chunk_bits) - 1);

    return a->chunks[i >> a->chunk_bits] + (size_t)in_chunk * a->each;
}

#endif
