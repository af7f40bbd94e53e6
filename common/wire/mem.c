/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/mem.c */
#include "common/wire/mem.h"
#include "common/wire/wires.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct endpoint {
    wf_transport base;
    wf_mem *mem;
    uint32_t number;
    bool listening;
    char address[WF_ADDRESSES_MAX]; /* served, or dialled */
    struct arrival {
        uint32_t from;
        wf_msg *msg;
    } * arrived; /* a ring */
    size_t head, count, room;
    bool armed; /* whoever waits is to be woken by base.fd, an eventfd that is made when first armed
                 */
} endpoint;

struct wf_mem {
    pthread_mutex_t lock;
    wf_msg_pool pool;
    endpoint **endpoints; /* by number; NULL: closed */
    uint32_t n_endpoints;
    void (*carry)(void *arg, const wf_packet *packet);
    void *carry_arg;
};

wf_status wf_mem_new(wf_mem **out, wf_err *err)
{
    wf_mem *m = calloc(1, sizeof *m);

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return WF_OK;
}

void wf_mem_free(wf_mem **m)
{
    if (!*m)
        return;
    wf_msg_pool_close(&(*m)->pool);
    pthread_mutex_destroy(&(*m)->lock);
    free((*m)->endpoints);
    free(*m);
    *m = NULL;
}

static endpoint *listener_at(const wf_mem *m, const char *address)
{
    for (uint32_t i = 0; i < m->n_endpoints; i++) {
        endpoint *e = m->endpoints[i];

        if (e && e->listening && strcmp(e->address, address) == 0)
            return e;
    }
    return NULL;
}

static wf_status find_target(const endpoint *e, const wf_route *to, uint32_t *number, wf_err *err)
{
    const endpoint *listener;

    if (e->listening) {
        memcpy(number, to->bytes, sizeof *number);
        if (*number < e->mem->n_endpoints && e->mem->endpoints[*number])
            return WF_OK;
        return wf_fail(err, WF_NOTFOUND, NULL, "endpoint %u is closed", *number);
    }
    listener = listener_at(e->mem, e->address);
    if (!listener)
        return wf_fail(err, WF_NOTFOUND, NULL, "nobody listens at %s", e->address);
    *number = listener->number;
    return WF_OK;
}

static wf_status push(endpoint *e, uint32_t from, wf_msg *msg)
{
    if (e->count == e->room) {
        size_t room = e->room ? 2 * e->room : 32;
        struct arrival *ring = calloc(room, sizeof *ring);

        if (!ring)
            return WF_NOMEM;
        for (size_t i = 0; i < e->count; i++)
            ring[i] = e->arrived[(e->head + i) % e->room];
        free(e->arrived);
        e->arrived = ring;
        e->head = 0;
        e->room = room;
    }
    e->arrived[(e->head + e->count++) % e->room] = (struct arrival){from, msg};
    if (e->armed)
        wf_assert(eventfd_write(e->base.fd, 1) == 0); /* it was 0 when it was armed */
    e->armed = false;
    return WF_OK;
}

static void deliver_locked(wf_mem *m, wf_packet *packet)
{
    endpoint *e = packet->to < m->n_endpoints ? m->endpoints[packet->to] : NULL;

    if (!e || push(e, packet->from, packet->msg) != WF_OK)
        wf_msg_free(&m->pool, &packet->msg);
    packet->msg = NULL;
}

static wf_status mem_send(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err)
{
    endpoint *e = (endpoint *)t;
    wf_mem *mem = e->mem;
    wf_packet packet = {.from = e->number};
    wf_status rc;

    pthread_mutex_lock(&mem->lock);
    rc = find_target(e, to, &packet.to, err);
    if (rc == WF_OK)
        rc = wf_msg_copy(&mem->pool, m, &packet.msg, err);
    if (rc == WF_OK && !mem->carry)
        deliver_locked(mem, &packet);
    pthread_mutex_unlock(&mem->lock);
    if (rc == WF_OK && mem->carry)
        mem->carry(mem->carry_arg, &packet);
    return rc;
}

static wf_msg *mem_receive(wf_transport *t, wf_msg_pool *pool, wf_route *from)
{
    endpoint *e = (endpoint *)t;
    wf_msg *m = NULL;

    (void)pool; /* messages may move from one pool to another */
    pthread_mutex_lock(&e->mem->lock);
    if (e->count > 0) {
        struct arrival *a = &e->arrived[e->head];

        m = a->msg;
        from->size = sizeof a->from;
        memcpy(from->bytes, &a->from, sizeof a->from);
        e->head = (e->head + 1) % e->room;
        e->count--;
    }
    pthread_mutex_unlock(&e->mem->lock);
    return m;
}

static bool mem_ready(wf_transport *t)
{
    endpoint *e = (endpoint *)t;
    bool ready;

    pthread_mutex_lock(&e->mem->lock);
    ready = e->count > 0;
    pthread_mutex_unlock(&e->mem->lock);
    return ready;
}

static bool mem_arm(wf_transport *t)
{
    endpoint *e = (endpoint *)t;
    eventfd_t count;
    bool ready;

    pthread_mutex_lock(&e->mem->lock);
    if (t->fd < 0)
        t->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    else if (!e->armed)
        (void)eventfd_read(t->fd, &count); /* of the last time */
    ready = e->count > 0;
    e->armed = t->fd >= 0 && !ready;
    pthread_mutex_unlock(&e->mem->lock);
    return ready;
}

static void mem_close(wf_transport *t, int linger_ms)
{
    endpoint *e = (endpoint *)t;
    wf_mem *m = e->mem;

    (void)linger_ms;
    pthread_mutex_lock(&m->lock);
    m->endpoints[e->number] = NULL;
    for (size_t i = 0; i < e->count; i++)
        wf_msg_free(&m->pool, &e->arrived[(e->head + i) % e->room].msg);
    pthread_mutex_unlock(&m->lock);
    if (t->fd >= 0)
        close(t->fd);
    free(e->arrived);
    free(e);
}

static const wf_transport_ops mem_ops = {.send = mem_send,
                                         .receive = mem_receive,
                                         .ready = mem_ready,
                                         .arm = mem_arm,
                                         .close = mem_close};

static wf_status add_endpoint(wf_mem *m, const char *address, bool listening, wf_transport **out,
                              wf_err *err)
{
    endpoint **list = realloc(m->endpoints, (m->n_endpoints + 1) * sizeof(*list));
    endpoint *e;

    if (!list)
        return wf_fail_nomem(err, (m->n_endpoints + 1) * sizeof(*list));
    m->endpoints = list;
    e = calloc(1, sizeof *e);
    if (!e)
        return wf_fail_nomem(err, sizeof *e);
    e->base.ops = &mem_ops;
    e->base.fd = -1;
    e->mem = m;
    e->listening = listening;
    snprintf(e->address, sizeof e->address, "%s", address);
    e->number = m->n_endpoints;
    list[m->n_endpoints++] = e;
    *out = &e->base;
    return WF_OK;
}

wf_status wf_mem_listen(wf_mem *m, const char *address, wf_transport **out, wf_err *err)
{
    wf_status rc;

    pthread_mutex_lock(&m->lock);
    if (listener_at(m, address))
        rc = wf_fail(err, WF_EXISTS, NULL, "somebody listens at %s already", address);
    else
        rc = add_endpoint(m, address, true, out, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

wf_status wf_mem_dial(wf_mem *m, const char *address, wf_transport **out, wf_err *err)
{
    wf_status rc;

    pthread_mutex_lock(&m->lock);
    rc = add_endpoint(m, address, false, out, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

void wf_mem_set_carrier(wf_mem *m, void (*carry)(void *arg, const wf_packet *packet), void *arg)
{
    m->carry = carry;
    m->carry_arg = arg;
}

void wf_mem_deliver(wf_mem *m, wf_packet *packet)
{
    pthread_mutex_lock(&m->lock);
    deliver_locked(m, packet);
    pthread_mutex_unlock(&m->lock);
}

wf_status wf_mem_repeat(wf_mem *m, const wf_packet *packet, wf_packet *out, wf_err *err)
{
    wf_status rc;

    *out = *packet;
    pthread_mutex_lock(&m->lock);
    rc = wf_msg_copy(&m->pool, packet->msg, &out->msg, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

void wf_mem_drop(wf_mem *m, wf_packet *packet)
{
    pthread_mutex_lock(&m->lock);
    wf_msg_free(&m->pool, &packet->msg);
    pthread_mutex_unlock(&m->lock);
}

uint32_t wf_mem_endpoint(const wf_transport *t)
{
    return ((const endpoint *)t)->number;
}

/* ---- the kind ---- */

static wf_status open_library(uint32_t connections, void **library, wf_err *err)
{
    wf_mem *m = NULL;

    (void)connections;
    WF_TRY(wf_mem_new(&m, err));
    *library = m;
    return WF_OK;
}

static void close_library(void *library)
{
    wf_mem *m = library;

    wf_mem_free(&m);
}

static wf_status listen_at(void *library, const char *address, wf_transport **out, wf_err *err)
{
    return wf_mem_listen(library, address, out, err);
}

static wf_status dial_to(void *library, const char *address, wf_transport **out, wf_err *err)
{
    return wf_mem_dial(library, address, out, err);
}

static bool is_served(void *library, const char *address)
{
    wf_mem *m = library;
    bool yes;

    pthread_mutex_lock(&m->lock);
    yes = listener_at(m, address) != NULL;
    pthread_mutex_unlock(&m->lock);
    return yes;
}

const wf_wire_kind wf_wire_kind_mem = {.scheme = "mem://",
                                       .form = "mem://NAME",
                                       .open = open_library,
                                       .close = close_library,
                                       .listen = listen_at,
                                       .dial = dial_to,
                                       .can_reach = is_served};
