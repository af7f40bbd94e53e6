/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/socket.c - sockets and their connections; network.c decides what becomes of packets. */
#include "tests/sim/socket.h"
#include "common/base/size.h"
#include "tests/sim/world.h"

#include <stdlib.h>
#include <string.h>

struct wf_socket {
    wf_transport base; /* first */
    wf_sim *sim;
    uint32_t number, process;
    bool listening;
    struct arrival {
        wf_route from;
        wf_msg *msg;
    } * arrived; /* [head, count) are to be taken */
    size_t head, count, room;
    /* of one that dials */
    uint32_t to;         /* process */
    wf_connection *over; /* NULL: not connected */
    bool fresh;          /* connected since the last look */
    int64_t received_ns; /* a sign of the other side */
};

static void *grow(void *list, size_t n, size_t size)
{
    void *more = n & (n - 1) ? list : realloc(list, (n ? 2 * n : 1) * size);

    wf_assert(more);
    return more;
}

/* ---- connections ---- */

static void connect_later(wf_socket *k, int64_t least_ms, int64_t most_ms)
{
    wf_sim_plan(k->sim, wf_sim_between(k->sim, least_ms, most_ms) * MS,
                (wf_happening){.kind = CONNECT, .number = k->number});
}

static void connect_now(wf_socket *k)
{
    wf_sim *s = k->sim;
    wf_connection *c = calloc(1, sizeof *c);

    wf_assert(c);
    s->connections = grow(s->connections, s->n_connections, sizeof(*s->connections));
    *c = (wf_connection){.id = s->n_connections,
                         .dialler = k,
                         .listener = s->procs[k->to].listener,
                         .from = k->process,
                         .to = k->to,
                         .life = s->procs[k->to].life,
                         .passes = true};
    s->connections[s->n_connections++] = c;
    k->over = c;
    k->fresh = true;
    k->received_ns = wf_sim_clock(&s->procs[k->process]);
}

/* Not while the other process is stopped: nobody answers the handshake. */
static bool may_connect(const wf_socket *k)
{
    const process *to = &k->sim->procs[k->to];

    return to->listener && !to->frozen && !k->sim->severed[k->process][k->to];
}

void wf_socket_connect(wf_sim *s, uint32_t number)
{
    wf_socket *k = s->sockets[number];

    if (!k || k->over)
        return;
    if (may_connect(k))
        connect_now(k);
    else
        connect_later(k, 50, 100);
}

/* The dialler gives its connection up. What it sent still arrives, if the connection leads
 * anywhere, and so does its end. */
static void leave(wf_socket *k)
{
    k->over->dialler = NULL;
    if (k->over->passes)
        k->over->listener = NULL;
    k->over = NULL;
}

void wf_socket_lost(wf_sim *s, uint32_t connection)
{
    wf_connection *c = s->connections[connection];
    wf_socket *k = c->dialler;

    if (!k || k->over != c)
        return;
    leave(k);
    connect_later(k, 20, 100);
}

/* A process has ended, and its system says so, once all that it sent has arrived. */
static void end_of_listener(wf_sim *s, wf_connection *c)
{
    c->listener = NULL;
    if (!s->spec.packets && c->dialler && c->passes && !s->severed[c->from][c->to])
        wf_sim_plan(s, WF_MAX(c->last_ns[TO_DIALLER] - s->now_ns, 0),
                    (wf_happening){.kind = LOST, .number = c->id});
}

void wf_socket_break(wf_sim *s, uint32_t a, uint32_t b, bool half, int side)
{
    for (uint32_t i = 0; i < s->n_connections; i++) {
        wf_connection *c = s->connections[i];

        if (!c->passes || !((c->from == a && c->to == b) || (c->from == b && c->to == a)))
            continue;
        c->passes = false;
        if (!half || side == TO_LISTENER)
            c->listener = NULL;
        if (!half || side == TO_DIALLER)
            wf_socket_lost(s, c->id);
    }
}

/* ---- the transport ---- */

static wf_connection *connection_of(wf_socket *k, const wf_route *to)
{
    wf_sim *s = k->sim;
    uint32_t id;

    if (k->listening) {
        memcpy(&id, to->bytes, sizeof id);
        wf_assert(id < s->n_connections);
        return s->connections[id]->listener == k ? s->connections[id] : NULL;
    }
    if (s->spec.packets && k->over && !k->over->listener)
        leave(k);
    if (s->spec.packets && !k->over && s->procs[k->to].listener)
        connect_now(k);
    return k->over;
}

static wf_status socket_send(wf_transport *t, const wf_route *to, const wf_msg *m, wf_err *err)
{
    wf_socket *k = (wf_socket *)t;
    wf_connection *c = connection_of(k, to);
    wf_packet p = {.way = k->listening ? TO_DIALLER : TO_LISTENER};

    if (!c)
        return wf_fail(err, WF_NOTFOUND, NULL, "not connected");
    p.connection = c->id;
    WF_TRY(wf_msg_copy(&k->sim->pool, m, &p.msg, err));
    wf_sim_carry(k->sim, c, &p);
    return WF_OK;
}

static wf_msg *socket_receive(wf_transport *t, wf_msg_pool *pool, wf_route *from)
{
    wf_socket *k = (wf_socket *)t;
    wf_msg *m;

    (void)pool; /* messages may move from one pool to another */
    if (k->head == k->count)
        return NULL;
    *from = k->arrived[k->head].from;
    m = k->arrived[k->head++].msg;
    if (k->head == k->count)
        k->head = k->count = 0;
    return m;
}

/* ZeroMQ's threads ping each other, whatever else the processes do, unless they are stopped. */
static bool is_answered(const wf_socket *k)
{
    const wf_sim *s = k->sim;
    const wf_connection *c = k->over;
    const process *to = &s->procs[c->to];

    return c->passes && c->listener && !to->frozen && s->clogged_ns[c->to][c->from] <= s->now_ns;
}

static bool socket_tend(wf_transport *t, int64_t now_ns)
{
    wf_socket *k = (wf_socket *)t;
    bool fresh = k->fresh;

    k->fresh = false;
    if (!k->over)
        return fresh;
    if (is_answered(k)) {
        k->received_ns = now_ns;
    } else if (now_ns - k->received_ns >= SILENT_MS * MS) {
        leave(k);
        connect_later(k, 0, 10);
    }
    return fresh;
}

static void socket_close(wf_transport *t, int linger_ms)
{
    wf_socket *k = (wf_socket *)t;
    wf_sim *s = k->sim;

    (void)linger_ms;
    if (k->over)
        leave(k);
    for (uint32_t i = 0; k->listening && i < s->n_connections; i++)
        if (s->connections[i]->listener == k)
            end_of_listener(s, s->connections[i]);
    if (k->listening)
        s->procs[k->process].listener = NULL;
    for (size_t i = k->head; i < k->count; i++)
        wf_msg_free(&s->pool, &k->arrived[i].msg);
    s->sockets[k->number] = NULL;
    free(k->arrived);
    free(k);
}

static const wf_transport_ops connected_ops = {
    .send = socket_send, .receive = socket_receive, .tend = socket_tend, .close = socket_close};
static const wf_transport_ops packet_ops = {
    .send = socket_send, .receive = socket_receive, .close = socket_close};

static wf_socket *add_socket(process *p)
{
    wf_sim *s = p->sim;
    wf_socket *k = calloc(1, sizeof *k);

    wf_assert(k);
    k->base.ops = &packet_ops;
    k->sim = s;
    k->number = s->n_sockets;
    k->process = p->number;
    s->sockets = grow(s->sockets, s->n_sockets, sizeof(*s->sockets));
    s->sockets[s->n_sockets++] = k;
    return k;
}

wf_transport *wf_socket_listen(process *p)
{
    wf_socket *k = add_socket(p);

    wf_assert(!p->listener);
    k->listening = true;
    p->listener = k;
    return &k->base;
}

wf_transport *wf_socket_dial(process *p, uint32_t to)
{
    wf_socket *k = add_socket(p);

    k->to = to;
    if (!p->sim->spec.packets) {
        k->base.ops = &connected_ops;
        connect_later(k, 0, 2);
    }
    return &k->base;
}

static void keep(wf_socket *k, const wf_packet *packet)
{
    struct arrival *a;

    if (k->count == k->room) {
        k->room = k->room ? 2 * k->room : 32;
        k->arrived = realloc(k->arrived, k->room * sizeof *k->arrived);
        wf_assert(k->arrived);
    }
    a = &k->arrived[k->count++];
    *a = (struct arrival){.from = {.size = sizeof packet->connection}, .msg = packet->msg};
    memcpy(a->from.bytes, &packet->connection, sizeof packet->connection);
}

/* What was sent to a listener arrives though the dialler has left meanwhile; a process that has
 * ended takes nothing. */
void wf_socket_arrive(wf_sim *s, wf_packet *packet)
{
    const wf_connection *c = s->connections[packet->connection];
    const process *to = &s->procs[c->to];
    wf_socket *k = c->dialler;

    if (packet->way == TO_LISTENER)
        k = to->life == c->life ? to->listener : NULL;
    if (k && c->passes)
        keep(k, packet);
    else
        wf_msg_free(&s->pool, &packet->msg);
    packet->msg = NULL;
}

void wf_socket_end(wf_sim *s)
{
    for (uint32_t i = 0; i < s->n_connections; i++)
        free(s->connections[i]);
    free(s->connections);
    free(s->sockets);
    wf_msg_pool_close(&s->pool);
}
