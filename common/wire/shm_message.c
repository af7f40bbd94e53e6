/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_message.c - messages to records of a ring and back.
 *
 *   record:  size u32, n u32, then n spans; then the parts that lie in the record itself, each at a
 *            multiple of 64 bytes
 *   part 0:  header and control bytes; parts 1 to n - 1: the payload frames
 *
 * The writer of a record can change it while it is read: whatever decides over an address or a
 * size is copied first, checked then, and used from the copy. The values of a dense part are read
 * in place: whoever changes them in time gets a wrong gradient, which it could have sent as well.
 */
#include "common/base/size.h"
#include "common/wire/grammar.h"
#include "common/wire/parts.h"
#include "common/wire/shm_conn.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_PARTS = 1 + WF_MAX_FRAMES,
    INLINE_PART = 16 << 10, /* above that a copy costs more than a loan */
    INLINE_ALL = 48 << 10,
    SCRATCH = INLINE_PART
};

typedef struct span {
    uint64_t bytes, offset; /* in the record or in the block */
    uint32_t block, loan;   /* block 0: the record; else the number of the block, and 1 */
} span;

typedef struct record {
    uint32_t size, n;
    span spans[MOST_PARTS];
} record;

/* ---- send ---- */

/* What is held for the reader: one buffer for each span that lies in a block. */
typedef struct plan {
    record r;
    wf_buf *held[MOST_PARTS];
    uint32_t n_held;
} plan;

static size_t part_bytes(const wf_msg *m, uint32_t i)
{
    return i ? m->frames[i - 1].bytes : WF_HEADER_BYTES + m->head.control_bytes;
}

static void copy_part(const wf_msg *m, uint32_t i, uint8_t *to)
{
    if (i == 0) {
        if (m->head.control_bytes)
            memcpy(to + WF_HEADER_BYTES, m->control, m->head.control_bytes);
        wf_header_encode(&m->head, m->control, to);
    } else if (m->frames[i - 1].bytes) {
        memcpy(to, m->frames[i - 1].data, m->frames[i - 1].bytes);
    }
}

/* Which parts lie in the record, and where. */
static void place(const wf_shm_conn *c, const wf_msg *m, record *r)
{
    const uint8_t *base;
    uint32_t number;
    size_t at;

    r->n = 1 + m->n_frames;
    at = wf_align_up(offsetof(record, spans) + r->n * sizeof(span), WF_RING_ALIGN);
    for (uint32_t i = 0; i < r->n; i++) {
        span *s = &r->spans[i];
        bool pooled = i > 0 && wf_shm_pool_has(c->pool, m->frames[i - 1].buf, &number, &base);

        *s = (span){.bytes = part_bytes(m, i)};
        if (pooled || s->bytes > INLINE_PART || at + s->bytes > INLINE_ALL) {
            s->block = 1;
            continue;
        }
        s->offset = at;
        at = wf_align_up(at + s->bytes, WF_RING_ALIGN);
    }
    r->size = (uint32_t)at;
}

/* A part's place in a block: where it is already, or a copy. */
static wf_status lend_part(wf_shm_conn *c, const wf_msg *m, uint32_t i, plan *p, wf_err *err)
{
    span *s = &p->r.spans[i];
    const wf_frame *f = i ? &m->frames[i - 1] : NULL;
    const uint8_t *base = NULL;
    bool failed = false;
    uint32_t number = 0;
    wf_buf *b;

    if (p->n_held == c->n_idle)
        return wf_fail(err, WF_FULL, NULL, "the other side still uses %u loans", c->n_busy);
    if (f && wf_shm_pool_lends(c->pool, f->buf, &number, &base)) {
        b = wf_buf_ref(f->buf);
        s->offset = (uint64_t)(f->data - base);
    } else {
        b = wf_shm_pool_take(c->pool, s->bytes, false, &failed);
        c->refused = failed;
        if (failed)
            wf_shm_conn_end(c, "the system gives no more shared memory");
        if (!b)
            return wf_fail(err, WF_FULL, NULL, "no shared memory for %llu bytes",
                           (unsigned long long)s->bytes);
        copy_part(m, i, b->data);
        (void)wf_shm_pool_has(c->pool, b, &number, &base);
    }
    s->block = number + 1;
    s->loan = c->idle[c->n_idle - 1 - p->n_held];
    p->held[p->n_held++] = b;
    return WF_OK;
}

/* From here on what is lent is the reader's, until it sets the loan to 0. */
static void begin_loans(wf_shm_conn *c, const plan *p)
{
    for (uint32_t i = 0; i < p->n_held; i++) {
        uint16_t loan = c->idle[--c->n_idle];

        c->lent[loan] = p->held[i];
        c->busy[c->n_busy++] = loan;
        atomic_store_explicit(&c->out.ring->loans[loan], 1, memory_order_relaxed);
    }
}

wf_status wf_shm_conn_send(wf_shm_conn *c, const wf_msg *m, wf_err *err)
{
    plan p = {.n_held = 0};
    wf_status rc = WF_OK;
    uint8_t *to;

    if (c->state != WF_SHM_UP)
        return wf_fail(err, WF_NOTFOUND, NULL, "the connection is over");
    wf_shm_conn_reap(c);
    place(c, m, &p.r);
    to = wf_ring_reserve(&c->out, p.r.size);
    if (c->out.broken)
        wf_shm_conn_end(c, "a ring whose numbers cannot be right");
    if (!to)
        return wf_fail(err, WF_FULL, NULL, "the ring is full");
    for (uint32_t i = 0; rc == WF_OK && i < p.r.n; i++) {
        if (p.r.spans[i].block)
            rc = lend_part(c, m, i, &p, err);
        else
            copy_part(m, i, to + p.r.spans[i].offset);
    }
    if (rc != WF_OK) {
        for (uint32_t i = 0; i < p.n_held; i++)
            wf_buf_unref(&p.held[i]);
        return rc;
    }
    begin_loans(c, &p);
    memcpy(to, &p.r, offsetof(record, spans) + p.r.n * sizeof(span));
    if (wf_ring_commit(&c->out, p.r.size))
        wf_shm_conn_ring(c);
    return WF_OK;
}

/* ---- receive ---- */

/* A frame that is read where the sender has it. */
typedef struct loan {
    wf_shm_memory *block, *rings;
    _Atomic uint32_t *flag;
} loan;

static void end_loan(void *data, void *hint)
{
    loan *l = hint;

    (void)data;
    atomic_store_explicit(l->flag, 0, memory_order_release);
    wf_shm_memory_unref(&l->block);
    wf_shm_memory_unref(&l->rings);
    free(l);
}

static wf_buf *borrow(const wf_shm_conn *c, const span *s)
{
    wf_shm_memory *block = c->blocks[s->block - 1];
    loan *l = malloc(sizeof *l);
    wf_buf *b;

    if (!l)
        return NULL;
    *l =
        (loan){wf_shm_memory_ref(block), wf_shm_memory_ref(c->memory), &c->in.ring->loans[s->loan]};
    b = wf_buf_wrap(block->at + s->offset, s->bytes, end_loan, l);
    if (!b) { /* the caller gives the loan back */
        wf_shm_memory_unref(&l->block);
        wf_shm_memory_unref(&l->rings);
        free(l);
    }
    return b;
}

/* Whether a span lies inside the record of `size` bytes, or a block that is known here. */
static bool is_inside(wf_shm_conn *c, const span *s, uint32_t size)
{
    size_t room = size;

    if (s->block) {
        if (s->block > WF_SHM_BLOCKS || s->loan >= WF_RING_LOANS)
            return false;
        if (!c->blocks[s->block - 1])
            wf_shm_conn_look(c); /* its note was sent before the record */
        if (!c->blocks[s->block - 1])
            return false;
        room = c->blocks[s->block - 1]->bytes;
    }
    return s->offset <= room && s->bytes <= room - s->offset;
}

/* Copies the record's head into *r and checks it; `from` may change meanwhile. */
static bool read_record(wf_shm_conn *c, const uint8_t *from, uint32_t size, record *r)
{
    size_t head = offsetof(record, spans);

    memcpy(r, from, head);
    atomic_signal_fence(memory_order_seq_cst); /* the copy is used, not read again */
    if (r->n == 0 || r->n > MOST_PARTS || head + r->n * sizeof(span) > size)
        return false;
    memcpy(r->spans, from + head, r->n * sizeof(span));
    atomic_signal_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < r->n; i++)
        if (!is_inside(c, &r->spans[i], size))
            return false;
    return true;
}

static const uint8_t *span_at(const wf_shm_conn *c, const uint8_t *from, const span *s)
{
    return (s->block ? c->blocks[s->block - 1]->at : from) + s->offset;
}

/* Frames whose numbers decide over addresses: row ids, indices of top-k, and the state of a slice.
 * A bit for each. */
static uint32_t frames_to_copy(const wf_msg *m)
{
    wf_part p;
    uint32_t copied = 0;

    for (uint32_t i = 0; wf_parts_at(m, i, &p); i++)
        if ((p.codec == WF_CODEC_IDS || p.codec == WF_CODEC_BYTES || p.coding == WF_CODING_TOPK) &&
            p.frame < WF_MAX_FRAMES)
            copied |= 1u << p.frame;
    return copied;
}

/* Makes frame i of the message; a loan that it does not keep is ended here. */
static bool add_frame(wf_shm_conn *c, const uint8_t *from, const span *s, bool copied, wf_msg *m)
{
    bool lent = s->block && !copied && s->offset % sizeof(double) == 0;
    wf_buf *b = lent ? borrow(c, s) : wf_buf_new_raw(s->bytes);
    bool added = false;

    if (b && !lent && s->bytes)
        memcpy(b->data, span_at(c, from, s), s->bytes);
    if (s->block && (!lent || !b))
        atomic_store_explicit(&c->in.ring->loans[s->loan], 0, memory_order_release);
    if (b)
        added = wf_msg_add_frame(m, b, b->data, s->bytes, NULL) == WF_OK;
    wf_buf_unref(&b);
    return added;
}

static wf_msg *decode_head(wf_shm_conn *c, wf_msg_pool *pool, const uint8_t *from, const span *s)
{
    uint8_t small[SCRATCH], *copy = s->bytes <= sizeof small ? small : malloc(s->bytes);
    wf_msg *m = NULL;

    if (copy) {
        memcpy(copy, span_at(c, from, s), s->bytes);
        atomic_signal_fence(memory_order_seq_cst);
        m = wf_msg_decode(pool, copy, s->bytes);
    }
    if (copy != small)
        free(copy);
    if (s->block)
        atomic_store_explicit(&c->in.ring->loans[s->loan], 0, memory_order_release);
    return m;
}

/* The message of a record that was checked; NULL when it is none of weft's, or without memory. */
static wf_msg *decode(wf_shm_conn *c, wf_msg_pool *pool, const uint8_t *from, const record *r)
{
    wf_msg *m = decode_head(c, pool, from, &r->spans[0]);
    bool sound = m && r->n - 1 <= wf_kind_find(m->head.kind)->frames_limit;
    uint32_t copied = sound && r->n > 1 ? frames_to_copy(m) : UINT32_MAX, i;

    for (i = 1; sound && i < r->n; i++)
        sound = add_frame(c, from, &r->spans[i], copied & 1u << (i - 1), m);
    for (; i < r->n; i++)
        if (r->spans[i].block)
            atomic_store_explicit(&c->in.ring->loans[r->spans[i].loan], 0, memory_order_release);
    if (!sound)
        wf_msg_free(pool, &m);
    return m;
}

wf_msg *wf_shm_conn_receive(wf_shm_conn *c, wf_msg_pool *pool, uint64_t *bad)
{
    enum { MOST_BAD_A_CALL = 256 };
    wf_msg *m = NULL;

    for (int i = 0; !m && c->memory && !c->why && i < MOST_BAD_A_CALL; i++) {
        uint32_t size = 0;
        const uint8_t *from = wf_ring_peek(&c->in, &size);
        record r = {0};

        if (!from && !c->in.broken)
            break;
        if (!from || !read_record(c, from, size, &r)) {
            wf_shm_conn_end(c, "a record that cannot be right");
            c->why = "a record that cannot be right";
            ++*bad;
            break;
        }
        m = decode(c, pool, from, &r);
        *bad += !m;
        if (wf_ring_next(&c->in))
            wf_shm_conn_ring(c);
    }
    return m;
}
