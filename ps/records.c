/* SPDX-License-Identifier: Apache-2.0 */
/* ps/records.c */
#include "ps/records.h"
#include "common/base/size.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 16 << 10, LEAST_ROOM = 8 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a stem is the low bits of a word");

void wf_records_init(wf_records *r, uint32_t body, uint32_t head, wf_record_notes notes)
{
    uint32_t stride = head + body;

    wf_assert(body % sizeof(uint32_t) == 0 && head % sizeof(uint32_t) == 0 && head >= WF_STEM_HEAD);
    *r = (wf_records){.each = stride + (uint32_t)notes, .stride = stride, .head = head};
    while ((size_t)2 * r->each << r->chunk_bits <= CHUNK_BYTES)
        r->chunk_bits++;
}

void wf_records_close(wf_records *r)
{
    for (uint32_t i = 0; i < r->n_chunks; i++)
        free(r->chunks[i]);
    free(r->chunks);
    *r = (wf_records){0};
}

size_t wf_records_chunk_bytes(const wf_records *r)
{
    return (size_t)r->each << r->chunk_bits;
}

static wf_status add_chunk(wf_records *r, wf_err *err)
{
    if (r->n_chunks == r->chunks_room) {
        uint32_t room = WF_MAX(2 * r->chunks_room, (uint32_t)LEAST_ROOM);
        uint8_t **longer = realloc(r->chunks, room * sizeof(*longer));

        if (!longer)
            return wf_fail_nomem(err, room * sizeof(*longer));
        r->chunks = longer;
        r->chunks_room = room;
    }
    /* aligned_alloc would lose 48 bytes of each */
    r->chunks[r->n_chunks] = malloc(wf_records_chunk_bytes(r));
    if (!r->chunks[r->n_chunks])
        return wf_fail_nomem(err, wf_records_chunk_bytes(r));
    r->n_chunks++;
    return WF_OK;
}

wf_status wf_records_reserve(wf_records *r, uint64_t more, wf_err *err)
{
    if (more > (uint64_t)WF_RECORDS_MOST - r->n)
        return wf_fail(err, WF_FULL, "evict rows (evict_after, max_rows)",
                       "a slice would have more than %d rows", WF_RECORDS_MOST);
    while ((uint64_t)r->n_chunks << r->chunk_bits < r->n + more)
        WF_TRY(add_chunk(r, err));
    return WF_OK;
}

uint32_t wf_records_add(wf_records *r, uint64_t key)
{
    uint64_t word = wf_stem_of(key) | (uint64_t)wf_twig_of(key) << WF_STEM_BITS;

    wf_assert(r->n >> r->chunk_bits < r->n_chunks);
    memcpy(wf_records_head(r, r->n), &word, sizeof word);
    if (wf_records_noted(r))
        *wf_records_note(r, r->n) = (uint16_t)wf_twig_of(key);
    return r->n++;
}

void wf_records_copy(wf_records *r, uint32_t from, uint32_t to)
{
    memcpy(wf_records_head(r, to), wf_records_head(r, from), r->stride);
    if (wf_records_noted(r))
        *wf_records_note(r, to) = *wf_records_note(r, from);
    if (wf_records_owned(r))
        *wf_records_owners_note(r, to) = *wf_records_owners_note(r, from);
}

void wf_records_drop_last(wf_records *r)
{
    wf_assert(r->n > 0);
    r->n--;
}

/* One chunk is kept beyond the last that is used: records come and go at its edge. */
void wf_records_trim(wf_records *r)
{
    while (r->n_chunks > (r->n >> r->chunk_bits) + 2)
        free(r->chunks[--r->n_chunks]);
}

size_t wf_records_bytes(const wf_records *r)
{
    return r->n_chunks * wf_records_chunk_bytes(r) + r->chunks_room * sizeof(*r->chunks);
}
