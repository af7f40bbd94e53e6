/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/echo.h - a ps over a real socket that answers every push with its payload as weights,
 * and a worker that pushes.
 */
#ifndef WF_TESTS_UNIT_ECHO_H
#define WF_TESTS_UNIT_ECHO_H

#include "common/wire/net.h"
#include "common/wire/zeromq.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a push; how long anything is waited for. */
enum { ECHO_PAYLOAD = 8 << 10, ECHO_DEADLINE_S = 20 };

typedef struct echo_server {
    wf_zmq *zmq;
    wf_net *net; /* the thread's, unless it is paused */
    pthread_t thread;
    _Atomic bool stop;
} echo_server;

/* A worker that has dialled the server. */
typedef struct echo_client {
    wf_zmq *zmq;
    wf_net *net;
    wf_peer *ps;
} echo_client;

/* A port that was free a moment ago. */
int echo_free_port(void);

void echo_begin_server(echo_server *s, const char *address);
void echo_end_server(echo_server *s);
/* Its main thread stands still; ZeroMQ's goes on. */
void echo_pause_server(echo_server *s);
void echo_resume(echo_server *s);

void echo_begin_client(echo_client *c, const char *address);
void echo_end_client(echo_client *c, int linger_ms);
/* Pushes of steps [next, end), and no wait for what comes back. */
void echo_push_all(echo_client *c, uint32_t next, uint32_t end);
/* The pushes of these steps come back, whole and in order, within the deadline. */
void echo_take(wf_net *n, uint32_t next, uint32_t end);
/* One push at a time, each as soon as the one before has come back; gives the longest wait. */
int64_t echo_one_by_one(echo_client *c, uint32_t first, uint32_t count);
/* Polls, and takes no event. */
void echo_poll_for(echo_client *c, int64_t ns);
/* A client pushes steps 1 to count, and all come back. */
void echo_exchange(const char *address, uint32_t count);

#endif
