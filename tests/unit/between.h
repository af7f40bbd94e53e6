/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/between.h - a thread that carries bytes between a dialler and a server. */
#ifndef WF_TESTS_UNIT_BETWEEN_H
#define WF_TESTS_UNIT_BETWEEN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Stands between a dialler and a server: what one sends, the other gets, until the server's side of
 * the first connection is reset. The dialler's side then stays open without a word. When slow, it
 * takes 400 KB a second from a dialler. */
typedef struct between {
    int listener, to_port;
    pthread_t thread;
    _Atomic bool half_open, slow, stop;
    _Atomic int connections; /* that were ever made */
} between;

/* Gives the port to dial instead of to_port. */
int between_begin(between *b, int to_port);
void between_end(between *b);

/* A connection to a port of this host. */
int between_connect(int port);

#endif
