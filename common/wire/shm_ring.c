/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_ring.c */
#include "common/wire/shm_ring.h"

#define SKIP 0x80000000u /* in the first word: nothing but room to the end of the ring */

/* The first word, read or written once, whatever the other side does meanwhile. */
static _Atomic uint32_t *first_word(wf_ring *ring, uint64_t at)
{
    return (_Atomic uint32_t *)(void *)&ring->bytes[at % WF_RING_BYTES];
}

static uint32_t to_end(uint64_t at)
{
    return (uint32_t)(WF_RING_BYTES - at % WF_RING_BYTES);
}

/* ---- the writer ---- */

static void look_at_tail(wf_ring_writer *w)
{
    uint64_t tail = atomic_load(&w->ring->tail);

    if (tail - w->tail > w->head - w->tail)
        w->broken = true;
    else
        w->tail = tail;
}

static bool fits(const wf_ring_writer *w, uint64_t need)
{
    return !w->broken && need <= WF_RING_BYTES - (w->head - w->tail);
}

uint8_t *wf_ring_reserve(wf_ring_writer *w, uint32_t size)
{
    uint32_t end = to_end(w->head), skipped = end < size ? end : 0;
    uint64_t need = (uint64_t)skipped + size;

    if (!fits(w, need))
        look_at_tail(w);
    if (!fits(w, need)) {
        atomic_store(&w->ring->writer_waits, 1);
        look_at_tail(w);
        w->waits = !fits(w, need);
        if (w->waits)
            return NULL;
    }
    w->waits = false;
    if (skipped)
        atomic_store_explicit(first_word(w->ring, w->head), skipped | SKIP, memory_order_relaxed);
    w->next = w->head + skipped;
    return &w->ring->bytes[w->next % WF_RING_BYTES];
}

bool wf_ring_commit(wf_ring_writer *w, uint32_t size)
{
    atomic_store_explicit(first_word(w->ring, w->next), size, memory_order_relaxed);
    w->head = w->next + size;
    atomic_store(&w->ring->head, w->head);
    return atomic_load(&w->ring->reader_sleeps) && atomic_exchange(&w->ring->reader_sleeps, 0);
}

bool wf_ring_has_room(const wf_ring_writer *w)
{
    return w->waits && !atomic_load_explicit(&w->ring->writer_waits, memory_order_acquire);
}

/* ---- the reader ---- */

bool wf_ring_ready(const wf_ring_reader *r)
{
    return atomic_load_explicit(&r->ring->head, memory_order_acquire) != r->tail;
}

const uint8_t *wf_ring_peek(wf_ring_reader *r, uint32_t *size)
{
    while (!r->broken) {
        uint64_t there = atomic_load_explicit(&r->ring->head, memory_order_acquire) - r->tail;
        uint32_t word, bytes;

        if (there == 0)
            return NULL;
        r->broken = there > WF_RING_BYTES || there % WF_RING_ALIGN;
        if (r->broken)
            break;
        word = atomic_load_explicit(first_word(r->ring, r->tail), memory_order_relaxed);
        bytes = word & ~SKIP;
        r->broken = bytes == 0 || bytes % WF_RING_ALIGN || bytes > there ||
                    bytes > to_end(r->tail) || (!(word & SKIP) && bytes > WF_RING_MOST);
        if (r->broken)
            break;
        r->size = bytes;
        if (!(word & SKIP)) {
            *size = bytes;
            return &r->ring->bytes[r->tail % WF_RING_BYTES];
        }
        r->tail += bytes; /* told to the writer with the record that lies behind it */
    }
    return NULL;
}

bool wf_ring_next(wf_ring_reader *r)
{
    r->tail += r->size;
    atomic_store(&r->ring->tail, r->tail);
    return atomic_load(&r->ring->writer_waits) && atomic_exchange(&r->ring->writer_waits, 0);
}

bool wf_ring_arm(const wf_ring_reader *r)
{
    atomic_store(&r->ring->reader_sleeps, 1);
    return atomic_load(&r->ring->head) != r->tail;
}

void wf_ring_disarm(const wf_ring_reader *r)
{
    atomic_store_explicit(&r->ring->reader_sleeps, 0, memory_order_relaxed);
}
