/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/memnet.c */
#include "tests/kit/memnet.h"

#include <stdio.h>
#include <stdlib.h>

static void must(wf_status rc, const wf_err *err)
{
    if (rc == WF_OK)
        return;
    fprintf(stderr, "memnet: %s\n", err->what);
    abort();
}

void wf_memnet_init(wf_memnet *m, const char *cluster)
{
    wf_err err;

    *m = (wf_memnet){.cluster = cluster};
    must(wf_mem_new(&m->mem, &err), &err);
}

void wf_memnet_close(wf_memnet *m)
{
    wf_mem_free(&m->mem);
}

uint64_t wf_memnet_id(void *memnet)
{
    return ++((wf_memnet *)memnet)->ids * UINT64_C(0x9e3779b97f4a7c15);
}

wf_net_conf wf_memnet_conf(wf_memnet *m, wf_task self, uint64_t incarnation)
{
    wf_net_conf c = wf_net_defaults();

    c.self = self;
    c.incarnation = incarnation;
    c.cluster = m->cluster;
    c.random_id = wf_memnet_id;
    c.random_arg = m;
    return c;
}

wf_net *wf_memnet_new(const wf_net_conf *conf)
{
    wf_net *net = NULL;
    wf_err err;

    must(wf_net_new(conf, &net, &err), &err);
    return net;
}

void wf_memnet_listen(wf_memnet *m, wf_net *net, const char *address)
{
    wf_transport *t = NULL;
    wf_err err;

    must(wf_mem_listen(m->mem, address, &t, &err), &err);
    wf_net_listen(net, &t);
}

wf_peer *wf_memnet_dial(wf_memnet *m, wf_net *net, wf_task to, const char *address)
{
    wf_transport *t = NULL;
    wf_peer *peer = NULL;
    wf_err err;

    must(wf_mem_dial(m->mem, address, &t, &err), &err);
    must(wf_net_dial(net, to, address, &t, &peer, &err), &err);
    return peer;
}

void wf_stranger_dial(wf_stranger *s, wf_memnet *m, const char *address)
{
    wf_err err;

    *s = (wf_stranger){0};
    must(wf_mem_dial(m->mem, address, &s->transport, &err), &err);
}

void wf_stranger_close(wf_stranger *s)
{
    s->transport->ops->close(s->transport, 0);
    wf_msg_pool_close(&s->pool);
}

void wf_stranger_send(wf_stranger *s, uint16_t kind, uint64_t incarnation, uint64_t sequence,
                      const ProtobufCMessage *body)
{
    wf_msg *m = NULL;
    wf_err err;

    must(wf_msg_new(&s->pool, kind, &m, &err), &err);
    must(wf_control_put(m, body, &err), &err);
    m->head.incarnation = incarnation;
    m->head.sequence = sequence;
    must(s->transport->ops->send(s->transport, &(wf_route){0}, m, &err), &err);
    wf_msg_free(&s->pool, &m);
}

wf_msg *wf_stranger_receive(wf_stranger *s)
{
    wf_route from;

    return s->transport->ops->receive(s->transport, &s->pool, &from);
}
