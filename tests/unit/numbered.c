/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/numbered.c */
#include "numbered.h"
#include "common/base/clock.h"
#include "common/wire/grammar.h"
#include "common/wire/parts.h"
#include "common/wire/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void fill(uint8_t *data, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

bool is_filled(const uint8_t *data, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 8)))
            return false;
    return true;
}

/* How large frame f of message i is; most are small, and some lie in blocks. */
static size_t frame_bytes(uint32_t i, uint32_t f)
{
    uint32_t r = (i * 2654435761u + f * 40503u) >> 4;

    return sizeof(float) * (r % 16 == 0 ? r % (BIG / 4) : r % 4 == 0 ? r % 8192 : r % 64);
}

wf_msg *make(wf_msg_pool *pool, wf_shm_pool *own, uint32_t i)
{
    wf_part parts[WF_MAX_FRAMES];
    uint32_t n = i % 5;
    wf_msg *m = NULL;

    assert_int_equal(wf_msg_new(pool, WF_PUSH, &m, NULL), WF_OK);
    m->head.step = i;
    m->head.incarnation = 9;
    for (uint32_t f = 0; f < n; f++) {
        size_t bytes = frame_bytes(i, f);
        bool failed;
        wf_buf *b = own && (i + f) % 3 == 0 ? wf_shm_pool_take(own, bytes, false, &failed) : NULL;

        if (!b)
            b = wf_buf_new(bytes);
        assert_non_null(b);
        fill(b->data, bytes, i + f);
        parts[f] = (wf_part){.slice = f, .frame = (uint8_t)f, .bytes = bytes};
        parts[f].codec = (i + f) % 7 == 0 ? WF_CODEC_BYTES : WF_CODEC_F32;
        assert_int_equal(wf_msg_add_frame(m, b, b->data, bytes, NULL), WF_OK);
        wf_buf_unref(&b);
    }
    assert_int_equal(wf_parts_put(m, parts, n, NULL), WF_OK);
    return m;
}

bool is_whole(const wf_msg *m, uint32_t i)
{
    bool whole = m->head.kind == WF_PUSH && m->head.step == i && m->n_frames == i % 5 &&
                 wf_parts_verify(m, NULL) == WF_OK;

    for (uint32_t f = 0; whole && f < m->n_frames; f++)
        whole = m->frames[f].bytes == frame_bytes(i, f) &&
                is_filled(m->frames[f].data, m->frames[f].bytes, i + f);
    return whole;
}

/* ---- ends ---- */

static char folder[] = "/tmp/weft-shm-XXXXXX";
char address[64];

int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof address, "ipc://%s/socket", folder);
    return 0;
}

int set_up_tcp(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    if (strncmp(address, "ipc://", strlen("ipc://")) != 0)
        return 0;
    unlink(address + strlen("ipc://"));
    return rmdir(folder);
}

void open_side(side *s, bool listens)
{
    *s = (side){0};
    assert_int_equal(wf_wires_new(4, &s->w, NULL), WF_OK);
    assert_int_equal(listens ? wf_wires_listen(s->w, address, &s->t, NULL)
                             : wf_wires_dial(s->w, address, &s->t, NULL),
                     WF_OK);
}

void close_side(side *s)
{
    s->t->ops->close(s->t, 0);
    wf_msg_pool_close(&s->pool);
    wf_wires_free(&s->w);
}

wf_msg *await(side *s, wf_route *from)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_msg *m;

    while (!(m = s->t->ops->receive(s->t, &s->pool, from)) && wf_now_ns() < end_ns) {
        s->t->ops->tend(s->t, wf_now_ns());
        wf_wait(&s->t, 1, -1, 100, NULL);
    }
    return m;
}

bool send_soon(side *s, const wf_route *to, uint32_t i)
{
    int64_t end_ns = wf_now_ns() + DEADLINE_S * WF_NS_PER_S;
    wf_msg *m = make(&s->pool, NULL, i);

    while (s->t->ops->send(s->t, to, m, NULL) != WF_OK && wf_now_ns() < end_ns) {
        s->t->ops->tend(s->t, wf_now_ns());
        wf_wait(&s->t, 1, -1, 20, NULL);
    }
    wf_msg_free(&s->pool, &m);
    return wf_now_ns() < end_ns;
}

bool exchange(side *s, uint32_t first, uint32_t count)
{
    wf_route from = {0};

    for (uint32_t i = first; i < first + count; i++) {
        wf_msg *m = send_soon(s, &from, i) ? await(s, &from) : NULL;
        bool whole = m && is_whole(m, i);

        wf_msg_free(&s->pool, &m);
        if (!whole)
            return false;
    }
    return true;
}

void answer(side *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        wf_route from = {0};
        wf_msg *m = await(s, &from);
        wf_status rc = WF_FULL;

        if (!m)
            return;
        for (int64_t end_ns = wf_now_ns() + WF_NS_PER_S; rc == WF_FULL && wf_now_ns() < end_ns;)
            rc = s->t->ops->send(s->t, &from, m, NULL);
        wf_msg_free(&s->pool, &m);
    }
}
