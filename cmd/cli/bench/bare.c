/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/bare.c */
#include "cmd/cli/bench/bare.h"
#include "common/base/clock.h"
#include "common/base/size.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zmq.h>

enum { SOCKET_BUFFER = 4 << 20, LOOK_MS = 50, LONGEST_S = 30 };

/* The first part of a message, in front of its payload: how many answers are wanted, and how large
 * each; a size of ECHO is the payload itself. */
typedef struct order {
    uint32_t answers, bytes;
} order;
#define ECHO UINT32_MAX

static void set_options(void *socket)
{
    static const struct {
        int option, value;
    } options[] = {{ZMQ_LINGER, 0},
                   {ZMQ_SNDHWM, 0},
                   {ZMQ_RCVHWM, 0},
                   {ZMQ_SNDBUF, SOCKET_BUFFER},
                   {ZMQ_RCVBUF, SOCKET_BUFFER}};

    for (size_t i = 0; i < WF_COUNT(options); i++)
        zmq_setsockopt(socket, options[i].option, &options[i].value, sizeof options[i].value);
}

/* ---- the echo ---- */

/* The part becomes the socket's. */
static void send_part(void *socket, zmq_msg_t *part, bool more)
{
    if (zmq_msg_send(part, socket, more ? ZMQ_SNDMORE : 0) < 0)
        _exit(1);
}

static void send_lent(void *socket, void *data, size_t n, bool more)
{
    zmq_msg_t part;

    zmq_msg_init_data(&part, data, n, NULL, NULL);
    send_part(socket, &part, more);
}

static void answer(void *socket, zmq_msg_t *route, const order *o, zmq_msg_t *payload,
                   uint8_t *bytes)
{
    for (uint32_t i = 0; i < o->answers; i++) {
        zmq_msg_t to, head;

        zmq_msg_init(&to);
        zmq_msg_copy(&to, route);
        send_part(socket, &to, true);
        zmq_msg_init_size(&head, sizeof *o);
        memcpy(zmq_msg_data(&head), o, sizeof *o);
        send_part(socket, &head, o->bytes > 0);
        if (o->bytes == ECHO)
            send_part(socket, payload, false);
        else if (o->bytes > 0)
            send_lent(socket, bytes, o->bytes, false);
    }
}

static void serve(void *socket, uint8_t *bytes)
{
    for (;;) {
        zmq_msg_t part[3]; /* route, order, payload */
        size_t n = 0;
        order o = {0};
        bool more = true;

        for (; more && n < WF_COUNT(part); n++) {
            zmq_msg_init(&part[n]);
            if (zmq_msg_recv(&part[n], socket, 0) < 0)
                _exit(1);
            more = zmq_msg_more(&part[n]);
        }
        if (n > 1 && zmq_msg_size(&part[1]) == sizeof o)
            memcpy(&o, zmq_msg_data(&part[1]), sizeof o);
        if (o.bytes != ECHO || n == WF_COUNT(part))
            answer(socket, &part[0], &o, &part[2], bytes);
        for (size_t i = 0; i < n; i++)
            zmq_msg_close(&part[i]);
    }
}

static void echo(const char *address, size_t most_bytes, pid_t parent)
{
    void *socket = zmq_socket(zmq_ctx_new(), ZMQ_ROUTER);
    uint8_t *bytes = malloc(most_bytes + 1);

    signal(SIGINT, SIG_IGN); /* the terminal's: whoever started it ends it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !socket || !bytes)
        _exit(1);
    memset(bytes, 1, most_bytes + 1); /* memory of its own, not the page of zeroes */
    set_options(socket);
    if (zmq_bind(socket, address) != 0)
        _exit(1);
    serve(socket, bytes);
}

wf_status wf_bare_start(const char *address, size_t most_bytes, pid_t *pid, wf_err *err)
{
    pid_t parent = getpid();

    *pid = fork();
    if (*pid == 0)
        echo(address, most_bytes, parent);
    if (*pid > 0)
        return WF_OK;
    *pid = 0;
    return wf_fail_errno(err, errno, NULL, "cannot start an echo");
}

/* ---- who dials it ---- */

struct wf_bare {
    void *context, **sockets; /* [n] */
    uint8_t *bytes;
    uint32_t n;
    size_t each, chunk; /* each: bytes of a socket's part */
    const atomic_bool *stop;
};

void wf_bare_close(wf_bare **b)
{
    wf_bare *it = *b;

    *b = NULL;
    if (!it)
        return;
    for (uint32_t i = 0; it->sockets && i < it->n; i++)
        if (it->sockets[i])
            zmq_close(it->sockets[i]);
    if (it->context)
        zmq_ctx_term(it->context);
    free(it->sockets);
    free(it->bytes);
    free(it);
}

wf_status wf_bare_open(const char *const addresses[], uint32_t n, size_t bytes, size_t chunk,
                       const atomic_bool *stop, wf_bare **out, wf_err *err)
{
    wf_bare *b = calloc(1, sizeof *b);
    int look_ms = LOOK_MS;

    *out = b;
    if (!b)
        return wf_fail_nomem(err, sizeof *b);
    b->n = n;
    b->each = WF_MAX(bytes / n, (size_t)1);
    b->chunk = WF_MIN(chunk, b->each);
    b->stop = stop;
    b->context = zmq_ctx_new();
    b->sockets = calloc(n, sizeof(*b->sockets));
    b->bytes = malloc(b->each);
    if (!b->context || !b->sockets || !b->bytes)
        return wf_fail_nomem(err, b->each);
    memset(b->bytes, 1, b->each);
    for (uint32_t i = 0; i < n; i++) {
        b->sockets[i] = zmq_socket(b->context, ZMQ_DEALER);
        if (!b->sockets[i])
            return wf_fail_errno(err, errno, "raise the limit on open files: ulimit -n 65536",
                                 "cannot make a socket");
        set_options(b->sockets[i]);
        zmq_setsockopt(b->sockets[i], ZMQ_RCVTIMEO, &look_ms, sizeof look_ms);
        if (zmq_connect(b->sockets[i], addresses[i]) != 0)
            return wf_fail(err, WF_IO, NULL, "cannot dial %s: %s", addresses[i],
                           zmq_strerror(errno));
    }
    return WF_OK;
}

/* Messages of a part that is cut into chunks. */
static uint32_t count(const wf_bare *b)
{
    return (uint32_t)((b->each + b->chunk - 1) / b->chunk);
}

static void ask(const wf_bare *b, void *socket, const wf_bench_work *work)
{
    order o = {1, work->pulls ? ECHO : 0};

    if (!work->pushes)
        o = (order){count(b), (uint32_t)b->chunk};
    for (uint32_t i = 0; i < (work->pushes ? count(b) : 1); i++) {
        size_t at = (size_t)i * b->chunk;
        zmq_msg_t head;

        zmq_msg_init_size(&head, sizeof o);
        memcpy(zmq_msg_data(&head), &o, sizeof o);
        send_part(socket, &head, work->pushes);
        if (work->pushes)
            send_lent(socket, b->bytes + at, WF_MIN(b->chunk, b->each - at), false);
    }
}

/* One part of an answer. */
static wf_status receive(const wf_bare *b, void *socket, bool *more, wf_err *err)
{
    int64_t end_ns = wf_now_ns() + LONGEST_S * WF_NS_PER_S;
    zmq_msg_t part;

    zmq_msg_init(&part);
    while (zmq_msg_recv(&part, socket, 0) < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return wf_fail(err, WF_IO, NULL, "cannot receive an echo: %s", zmq_strerror(errno));
        if (atomic_load(b->stop))
            return wf_fail(err, WF_STOPPED, NULL, "the measurement was stopped");
        if (wf_now_ns() > end_ns)
            return wf_fail(err, WF_TIMEOUT, "look whether the machine is overloaded",
                           "an echo over bare ZeroMQ has not come within %d s", LONGEST_S);
    }
    *more = zmq_msg_more(&part);
    zmq_msg_close(&part);
    return WF_OK;
}

wf_status wf_bare_do(wf_bare *b, const wf_bench_work *work, int64_t *took_ns, wf_err *err)
{
    int64_t began_ns = wf_now_ns();

    for (uint32_t i = 0; i < b->n; i++)
        ask(b, b->sockets[i], work);
    for (uint32_t i = 0; i < b->n; i++) {
        for (uint32_t k = 0; k < count(b); k++) {
            bool more = true;

            while (more)
                WF_TRY(receive(b, b->sockets[i], &more, err));
        }
    }
    *took_ns = wf_now_ns() - began_ns;
    return WF_OK;
}
