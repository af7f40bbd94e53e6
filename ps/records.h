/* SPDX-License-Identifier: Apache-2.0 */
/* ps/records.h - records of one size, numbered from 0 without a gap, in chunks of about 16 KiB: an
 * array that grows and shrinks by a chunk, and never moves.
 *
 * A record is a head and a body, and may have two notes, which lie behind all records of its
 * chunk, first notes before second ones: 16 bits if it has a place in the order of use
 * (ps/row_order.h), and 8 bits of the owner's. So a body begins at a multiple of 4, and lies beside
 * the head that is read with it.
 *
 * Of a key's 64 bits the highest are those of the bucket, which all records of a set share. The
 * next ones are the stem, which the head begins with, then come those of the twig, in the note or
 * else behind the stem, and the lowest are the tag, which the index has (ps/key_index.h).
 *
 * Invariants
 *   S1  a record keeps its address as long as it keeps its number
 */
#ifndef WF_PS_RECORDS_H
#define WF_PS_RECORDS_H

#include "common/base/row_key.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    WF_RECORDS_MOST = (1 << 25) - 2,
    WF_NO_RECORD = -1,
    WF_TAG_BITS = 7,
    WF_TWIG_BITS = 5,
    WF_STEM_BITS = 64 - WF_ROW_BUCKET_BITS - WF_TAG_BITS - WF_TWIG_BITS,
    WF_TWIG = (1 << WF_TWIG_BITS) - 1, /* bits of a note, the lowest */
    WF_STEM_HEAD = 8                   /* bytes of a head without a note */
};

/* The bytes of a record's notes. */
typedef enum wf_record_notes {
    WF_NO_NOTES = 0,
    WF_ORDER_NOTE = 2,
    WF_ORDER_AND_OWNERS_NOTE = 3
} wf_record_notes;

/* {0} is closed. */
typedef struct wf_records {
    uint8_t **chunks; /* [n_chunks] */
    uint32_t n, n_chunks, chunks_room;
    uint32_t each;         /* bytes of a record, */
    uint32_t stride, head; /* of them those beside its notes, and those of its head */
    uint32_t chunk_bits;   /* a chunk has 1 << chunk_bits records */
} wf_records;

/* No records, with bodies of so many bytes and heads of so many, WF_STEM_HEAD at least: multiples
 * of 4 both. */
void wf_records_init(wf_records *r, uint32_t body, uint32_t head, wf_record_notes notes);
void wf_records_close(wf_records *r);
/* Room for so many more. Errors: WF_NOMEM, WF_FULL beyond WF_RECORDS_MOST. */
WF_MUST_USE wf_status wf_records_reserve(wf_records *r, uint64_t more, wf_err *err);
/* A new record of that key, for which there is room; its number, the highest. All else of it is
 * undefined. */
uint32_t wf_records_add(wf_records *r, uint64_t key);
/* Record `to` becomes a copy of another. */
void wf_records_copy(wf_records *r, uint32_t from, uint32_t to);
/* Drops the record of the highest number; its memory stays reserved. */
void wf_records_drop_last(wf_records *r);
/* Gives back memory beyond what is in use, but for a chunk. */
void wf_records_trim(wf_records *r);
/* Bytes of a chunk; of all memory held. */
size_t wf_records_chunk_bytes(const wf_records *r);
size_t wf_records_bytes(const wf_records *r);

static inline uint8_t *wf_records_head(const wf_records *r, uint32_t i)
{
    uint32_t in_chunk = i & ((1U << r->chunk_bits) - 1);

    return r->chunks[i >> r->chunk_bits] + (size_t)in_chunk * r->stride;
}

static inline void *wf_records_body(const wf_records *r, uint32_t i)
{
    return wf_records_head(r, i) + r->head;
}

static inline bool wf_records_noted(const wf_records *r)
{
    return r->each > r->stride;
}

/* The note of the order of use, */
static inline uint16_t *wf_records_note(const wf_records *r, uint32_t i)
{
    uint8_t *notes = r->chunks[i >> r->chunk_bits] + ((size_t)r->stride << r->chunk_bits);

    return (uint16_t *)(void *)notes + (i & ((1U << r->chunk_bits) - 1));
}

static inline bool wf_records_owned(const wf_records *r)
{
    return r->each == r->stride + WF_ORDER_AND_OWNERS_NOTE;
}

/* and the owner's. */
static inline uint8_t *wf_records_owners_note(const wf_records *r, uint32_t i)
{
    size_t before = ((size_t)r->stride + WF_ORDER_NOTE) << r->chunk_bits;

    return r->chunks[i >> r->chunk_bits] + before + (i & ((1U << r->chunk_bits) - 1));
}

static inline uint64_t wf_stem_of(uint64_t key)
{
    return key << WF_ROW_BUCKET_BITS >> (64 - WF_STEM_BITS);
}

static inline uint32_t wf_twig_of(uint64_t key)
{
    return (uint32_t)(key >> WF_TAG_BITS) & WF_TWIG;
}

static inline uint64_t wf_records_word(const wf_records *r, uint32_t i)
{
    uint64_t word;

    memcpy(&word, wf_records_head(r, i), sizeof word);
    return word;
}

static inline uint64_t wf_records_stem(const wf_records *r, uint32_t i)
{
    return wf_records_word(r, i) & ((UINT64_C(1) << WF_STEM_BITS) - 1);
}

static inline uint32_t wf_records_twig(const wf_records *r, uint32_t i)
{
    uint64_t from =
        wf_records_noted(r) ? *wf_records_note(r, i) : wf_records_word(r, i) >> WF_STEM_BITS;

    return (uint32_t)from & WF_TWIG;
}

#endif
