/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/played_master.c */
#include "tests/kit/played_master.h"
#include "common/wire/control.h"

#define TURN_NS (10 * WF_NS_PER_MS)
static const wf_task master_task = {WF_ROLE_MASTER, 0};

void wf_played_init(wf_played_master *p, wf_task self, uint64_t incarnation,
                    const wf_played_acts *acts)
{
    wf_net_conf c;

    *p = (wf_played_master){.now_ns = WF_NS_PER_S, .acts = *acts};
    wf_memnet_init(&p->nets, "c");
    c = wf_memnet_conf(&p->nets, self, incarnation);
    p->net = wf_memnet_new(&c);
    p->peer = wf_memnet_dial(&p->nets, p->net, master_task, "m");
}

void wf_played_close(wf_played_master *p)
{
    wf_net_free(&p->net, 0);
    wf_net_free(&p->master, 0);
    wf_memnet_close(&p->nets);
}

void wf_played_begin_master(wf_played_master *p, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&p->nets, master_task, incarnation);

    p->master = wf_memnet_new(&c);
    wf_memnet_listen(&p->nets, p->master, "m");
    wf_played_pass(p, 3000);
}

void wf_played_end_master(wf_played_master *p)
{
    wf_net_free(&p->master, 0);
    p->task = NULL;
    p->deaf = false;
}

void wf_played_say(wf_played_master *p, uint16_t kind, const ProtobufCMessage *body)
{
    wf_msg *m = NULL;

    wf_assert(p->task);
    wf_assert(wf_net_msg(p->master, kind, &m, NULL) == WF_OK);
    wf_assert(wf_control_put(m, body, NULL) == WF_OK);
    wf_assert(wf_net_send(p->master, p->task, WF_LANE_CONTROL, p->now_ns, &m, NULL) == WF_OK);
}

static void run_task(wf_played_master *p)
{
    wf_event ev;

    wf_net_poll(p->net, p->now_ns);
    while (wf_net_event(p->net, p->now_ns, &ev))
        p->acts.on_event(p->acts.arg, &ev);
    p->acts.advance(p->acts.arg);
    wf_net_flush(p->net, p->now_ns);
}

static void run_master(wf_played_master *p)
{
    wf_event ev;

    wf_net_poll(p->master, p->now_ns);
    while (wf_net_event(p->master, p->now_ns, &ev)) {
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        p->task = ev.peer;
        p->acts.hear(p->acts.arg, ev.msg);
        wf_net_free_msg(p->master, &ev.msg);
    }
    wf_net_flush(p->master, p->now_ns);
}

void wf_played_pass(wf_played_master *p, int64_t ms)
{
    for (int64_t end_ns = p->now_ns + ms * WF_NS_PER_MS; p->now_ns < end_ns; p->now_ns += TURN_NS) {
        run_task(p);
        if (p->master && !p->deaf)
            run_master(p);
    }
}
