/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/zeromq_message.c - one part for header and control bytes, one for each payload frame.
 */
#include "common/wire/grammar.h"
#include "common/wire/zeromq_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* A flood of bad messages does not hold the thread: what remains makes the socket ready again. */
enum { MOST_BAD_A_CALL = 256 };

static void release_frame(void *data, void *hint)
{
    wf_buf *buf = hint;

    (void)data;
    wf_buf_unref(&buf);
}

/* The parts of one message: a route for a ROUTER, header and control bytes, payload frames. */
typedef struct parts {
    zmq_msg_t part[2 + WF_MAX_FRAMES];
    uint32_t n;
} parts;

static void close_parts(parts *p, uint32_t from)
{
    for (uint32_t i = from; i < p->n; i++)
        zmq_msg_close(&p->part[i]);
}

static bool add_bytes(parts *p, const void *data, size_t n)
{
    if (zmq_msg_init_size(&p->part[p->n], n) != 0)
        return false;
    memcpy(zmq_msg_data(&p->part[p->n++]), data, n);
    return true;
}

static bool add_head(parts *p, const wf_msg *m)
{
    uint8_t *to;

    if (zmq_msg_init_size(&p->part[p->n], WF_HEADER_BYTES + m->head.control_bytes) != 0)
        return false;
    to = zmq_msg_data(&p->part[p->n++]);
    if (m->head.control_bytes)
        memcpy(to + WF_HEADER_BYTES, m->control, m->head.control_bytes);
    wf_header_encode(&m->head, to + WF_HEADER_BYTES, to);
    return true;
}

static bool add_frame(parts *p, const wf_frame *f)
{
    wf_buf *held = wf_buf_ref(f->buf);

    if (zmq_msg_init_data(&p->part[p->n], (void *)f->data, f->bytes, release_frame, held) != 0) {
        wf_buf_unref(&held);
        return false;
    }
    p->n++;
    return true;
}

static int send_part(void *socket, zmq_msg_t *part, bool more)
{
    int rc;

    do
        rc = zmq_msg_send(part, socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0));
    while (rc < 0 && errno == EINTR);
    return rc;
}

/* A message whose first part went and whose next did not: an empty last part ends it, so that the
 * next message does not become its tail. Whoever gets it finds the payload missing. */
static void end_torn(void *socket)
{
    zmq_msg_t empty;

    zmq_msg_init(&empty);
    if (send_part(socket, &empty, false) < 0)
        zmq_msg_close(&empty);
}

/* All parts are made before the first is sent: memory that is short leaves no half message. */
wf_status wf_zmq_send(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err)
{
    zmq_transport *z = (zmq_transport *)t;
    parts p = {.n = 0};
    bool made = (!z->router || add_bytes(&p, to->bytes, to->size)) && add_head(&p, m);

    for (uint32_t i = 0; made && i < m->n_frames; i++)
        made = add_frame(&p, &m->frames[i]);
    if (!made) {
        close_parts(&p, 0);
        return wf_fail_nomem(err, wf_msg_bytes(m));
    }
    for (uint32_t i = 0; i < p.n; i++) {
        int error;

        if (send_part(z->socket, &p.part[i], i + 1 < p.n) >= 0)
            continue;
        error = errno;
        close_parts(&p, i);
        if (i > 0)
            end_torn(z->socket);
        return wf_fail_errno(err, error, NULL, "cannot send");
    }
    return WF_OK;
}

static void release_part(void *data, void *hint)
{
    zmq_msg_t *part = hint;

    (void)data;
    zmq_msg_close(part);
    free(part);
}

/* A buffer that holds a received part, with its bytes where they are. */
static wf_buf *hold_part(zmq_msg_t *part)
{
    zmq_msg_t *held = malloc(sizeof *held);
    wf_buf *buf;

    if (!held)
        return NULL;
    zmq_msg_init(held);
    zmq_msg_move(held, part);
    buf = wf_buf_wrap(zmq_msg_data(held), zmq_msg_size(held), release_part, held);
    if (!buf)
        release_part(NULL, held);
    return buf;
}

static wf_buf *copy_part(zmq_msg_t *part)
{
    wf_buf *buf = wf_buf_new_raw(zmq_msg_size(part));

    if (buf)
        memcpy(buf->data, zmq_msg_data(part), zmq_msg_size(part));
    return buf;
}

/* Makes a frame of the message out of a received part. ZeroMQ leaves what fits into its receive
 * buffer (8 KiB) at any address there; numbers are read in place, so such a part is copied. */
static bool keep_part(wf_msg *m, zmq_msg_t *part)
{
    bool aligned = (uintptr_t)zmq_msg_data(part) % sizeof(double) == 0;
    wf_buf *buf = aligned ? hold_part(part) : copy_part(part);
    bool kept;

    if (!buf)
        return false;
    kept = wf_msg_add_frame(m, buf, buf->data, buf->bytes, NULL) == WF_OK;
    wf_buf_unref(&buf);
    return kept;
}

/* Takes part `index` of an arriving message; *m becomes NULL for good when something is wrong. */
static void take_part(wf_msg_pool *pool, uint32_t index, zmq_msg_t *part, wf_msg **m)
{
    if (index == 0)
        *m = wf_msg_decode(pool, zmq_msg_data(part), zmq_msg_size(part));
    else if (*m && (index > wf_kind_find((*m)->head.kind)->frames_limit || !keep_part(*m, part)))
        wf_msg_free(pool, m);
}

/* One whole message off the socket. False when there is none; *m is NULL for a bad one. */
static bool receive_one(zmq_transport *z, wf_msg_pool *pool, wf_route *from, wf_msg **m)
{
    int routed = z->router ? 1 : 0, index = -routed;
    bool more = true, fits = true;

    for (*m = NULL; more; index++) {
        zmq_msg_t part;

        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, z->socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            return index > -routed;
        }
        more = zmq_msg_more(&part);
        if (index < 0) {
            fits = zmq_msg_size(&part) <= sizeof from->bytes;
            from->size = fits ? (uint8_t)zmq_msg_size(&part) : 0;
            memcpy(from->bytes, zmq_msg_data(&part), from->size);
        } else if (fits) {
            take_part(pool, (uint32_t)index, &part, m);
        }
        zmq_msg_close(&part);
    }
    return true;
}

wf_msg *wf_zmq_receive(wf_transport *t, wf_msg_pool *pool, wf_route *from)
{
    zmq_transport *z = (zmq_transport *)t;
    wf_msg *m;

    *from = (wf_route){0};
    for (int i = 0; i < MOST_BAD_A_CALL && receive_one(z, pool, from, &m); i++) {
        if (m)
            return m;
        t->bad_messages++;
    }
    return NULL;
}
