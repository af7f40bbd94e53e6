/* SPDX-License-Identifier: Apache-2.0 */
/* ps/records.h - records of one size, numbered from 0 without a gap, in chunks of about 64 KiB: an
 * array that grows and shrinks by a chunk, and never moves. A record begins with its key.
 *
 * Invariants
 *   S1  a record keeps its address as long as it keeps its number
 */
#ifndef WF_PS_RECORDS_H
#define WF_PS_RECORDS_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WF_RECORDS_MOST = (1 << 25) - 2, WF_NO_RECORD = -1 };

/* {0} is closed. */
typedef struct wf_records {
    uint8_t **chunks; /* [n_chunks] */
    uint32_t n, n_chunks, chunks_room;
    uint32_t each;       /* bytes of a record */
    uint32_t chunk_bits; /* a chunk has 1 << chunk_bits of them */
} wf_records;

/* No records, of `each` bytes; a multiple of 4, at least 8. */
void wf_records_init(wf_records *r, uint32_t each);
void wf_records_close(wf_records *r);
/* Room for so many more. Errors: WF_NOMEM, WF_FULL beyond WF_RECORDS_MOST. */
WF_MUST_USE wf_status wf_records_reserve(wf_records *r, uint64_t more, wf_err *err);
/* A new record of that key, for which there is room; its number, the highest. */
uint32_t wf_records_add(wf_records *r, uint64_t key);
/* Drops the record of the highest number; its memory stays reserved. */
void wf_records_drop_last(wf_records *r);
/* Gives back memory beyond what is in use, but for a chunk. */
void wf_records_trim(wf_records *r);
/* Bytes of memory held. */
size_t wf_records_bytes(const wf_records *r);

static inline uint32_t *wf_records_at(const wf_records *r, uint32_t i)
{
    uint32_t in_chunk = i & ((1U << r->chunk_bits) - 1);

    return (uint32_t *)(void *)(r->chunks[i >> r->chunk_bits] + (size_t)in_chunk * r->each);
}

static inline uint64_t wf_records_key(const wf_records *r, uint32_t i)
{
    uint64_t key;

    memcpy(&key, wf_records_at(r, i), sizeof key);
    return key;
}

#endif
