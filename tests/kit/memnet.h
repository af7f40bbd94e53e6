/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/memnet.h - nets of tasks that reach each other over a transport in memory.
 *
 * A stranger speaks over a connection of its own, outside any link.
 *
 * What fails here is a mistake of the test or the end of memory, and ends the program.
 */
#ifndef WF_TESTS_KIT_MEMNET_H
#define WF_TESTS_KIT_MEMNET_H

#include "common/wire/control.h"
#include "common/wire/mem.h"
#include "common/wire/net.h"
#include <stdint.h>

typedef struct wf_memnet {
    wf_mem *mem;
    const char *cluster; /* the name that all nets give; borrowed */
    uint64_t ids;        /* given so far */
} wf_memnet;

void wf_memnet_init(wf_memnet *m, const char *cluster);
/* All its nets must be freed before. */
void wf_memnet_close(wf_memnet *m);
/* A number that was not given before, of the same sequence in each run; `memnet` is a wf_memnet. */
uint64_t wf_memnet_id(void *memnet);
/* The defaults, for this task; a net made of it borrows m. */
wf_net_conf wf_memnet_conf(wf_memnet *m, wf_task self, uint64_t incarnation);
wf_net *wf_memnet_new(const wf_net_conf *conf);
void wf_memnet_listen(wf_memnet *m, wf_net *net, const char *address);
/* Gives the peer, which is the net's. */
wf_peer *wf_memnet_dial(wf_memnet *m, wf_net *net, wf_task to, const char *address);

typedef struct wf_stranger {
    wf_transport *transport;
    wf_msg_pool pool;
} wf_stranger;

void wf_stranger_dial(wf_stranger *s, wf_memnet *m, const char *address);
void wf_stranger_close(wf_stranger *s);
void wf_stranger_send(wf_stranger *s, uint16_t kind, uint64_t incarnation, uint64_t sequence,
                      const ProtobufCMessage *body);
/* What it was sent, or NULL; the caller gives it back to s->pool. */
wf_msg *wf_stranger_receive(wf_stranger *s);

#endif
