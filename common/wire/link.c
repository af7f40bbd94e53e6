/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/link.c - a sliding window of WINDOW messages each way.
 *
 * Lost messages are rare (ZeroMQ runs over TCP), so a resend starts at the first message that the
 * receiver lacks and goes on to the newest; the receiver keeps what came early, and drops what it
 * has.
 */
#include "common/wire/link.h"
#include "common/base/size.h"
#include "common/wire/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 512, ACK_EVERY = WINDOW / 8, MAX_BACKOFF = 3 };

struct wf_link {
    wf_link_conf conf;
    wf_msg_pool *pool;
    uint64_t out_of_window;
    /* sending: messages wait in `queue` (a heap), then in `flight` until acknowledged */
    wf_msg **queue;
    size_t queued, queue_room, queued_bytes;
    uint64_t next_order;
    wf_msg *flight[WINDOW];        /* by sequence % WINDOW */
    uint64_t next_sequence, acked; /* in flight: acked < sequence < next_sequence */
    uint64_t send_from;            /* sequences from here on are to be sent (again) */
    uint64_t sent_most;            /* the highest sequence that was ever sent */
    bool last_again;               /* wf_link_next gave a message that had been sent before */
    uint32_t round;                /* counts how often send_from went back */
    uint64_t resent_bytes;
    size_t flight_bytes;
    int64_t probe_at_ns; /* INT64_MAX: nothing is in flight */
    int backoff;         /* of probes, while no acknowledgement comes */
    /* receiving */
    wf_msg *early[WINDOW]; /* by sequence % WINDOW; arrived, not yet taken */
    size_t early_bytes;
    uint64_t arrived; /* all up to this one are here; at least `taken` */
    uint64_t taken;   /* the last sequence that wf_link_take gave out */
    uint64_t ack_sent;
    size_t unacked_bytes; /* taken since ack_sent */
    int64_t ack_due_ns;   /* INT64_MAX: none is owed */
};

wf_status wf_link_new(const wf_link_conf *conf, wf_msg_pool *pool, wf_link **out, wf_err *err)
{
    wf_link *l = calloc(1, sizeof *l);

    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    l->pool = pool;
    wf_link_begin(l, conf);
    *out = l;
    return WF_OK;
}

void wf_link_begin(wf_link *l, const wf_link_conf *conf)
{
    l->conf = *conf;
    l->acked = l->sent_most = conf->first;
    l->next_sequence = l->send_from = conf->first + 1;
    l->taken = l->arrived = l->ack_sent = conf->peer_first;
    l->probe_at_ns = INT64_MAX;
    l->ack_due_ns = INT64_MAX;
}

void wf_link_free(wf_link **l)
{
    wf_link *it = *l;

    *l = NULL;
    if (!it)
        return;
    for (size_t i = 0; i < it->queued; i++)
        wf_msg_free(it->pool, &it->queue[i]);
    for (size_t i = 0; i < WINDOW; i++) {
        wf_msg_free(it->pool, &it->flight[i]);
        wf_msg_free(it->pool, &it->early[i]);
    }
    free(it->queue);
    free(it);
}

static bool before(const wf_msg *a, const wf_msg *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void swap(wf_msg **a, wf_msg **b)
{
    wf_msg *t = *a;

    *a = *b;
    *b = t;
}

wf_status wf_link_send(wf_link *l, wf_lane lane, uint64_t key, wf_msg **m, wf_err *err)
{
    size_t i;

    if (l->queued == l->queue_room) {
        size_t room = l->queue_room ? 2 * l->queue_room : 64;
        wf_msg **queue = realloc(l->queue, room * sizeof(*queue));

        if (!queue)
            return wf_fail_nomem(err, room * sizeof(*queue));
        l->queue = queue;
        l->queue_room = room;
    }
    (*m)->key = lane == WF_LANE_CONTROL ? 0 : key + 1;
    (*m)->order = l->next_order++;
    l->queued_bytes += wf_msg_bytes(*m);
    i = l->queued++;
    l->queue[i] = *m;
    *m = NULL;
    for (; i > 0 && before(l->queue[i], l->queue[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&l->queue[i], &l->queue[(i - 1) / 2]);
    return WF_OK;
}

static wf_msg *pop(wf_link *l)
{
    wf_msg *top = l->queue[0];
    size_t i = 0;

    l->queue[0] = l->queue[--l->queued];
    for (;;) {
        size_t least = i, left = 2 * i + 1, right = left + 1;

        if (left < l->queued && before(l->queue[left], l->queue[least]))
            least = left;
        if (right < l->queued && before(l->queue[right], l->queue[least]))
            least = right;
        if (least == i)
            break;
        swap(&l->queue[i], &l->queue[least]);
        i = least;
    }
    l->queued_bytes -= wf_msg_bytes(top);
    return top;
}

/* Whether window and credit allow the head of the queue to go (L2). */
static bool may_admit(const wf_link *l)
{
    return l->queued > 0 && l->next_sequence - l->acked <= WINDOW &&
           (l->flight_bytes == 0 ||
            l->flight_bytes + wf_msg_bytes(l->queue[0]) <= l->conf.credit_bytes);
}

/* Moves the head of the queue into flight. */
static void admit(wf_link *l)
{
    wf_msg *m;

    if (!may_admit(l))
        return;
    m = pop(l);
    m->head.sequence = l->next_sequence++;
    m->head.incarnation = l->conf.incarnation;
    l->flight[m->head.sequence % WINDOW] = m;
    l->flight_bytes += wf_msg_bytes(m);
}

static void no_ack_owed(wf_link *l)
{
    l->ack_sent = l->taken;
    l->unacked_bytes = 0;
    l->ack_due_ns = INT64_MAX;
}

static void plan_probe(wf_link *l, int64_t now_ns)
{
    l->probe_at_ns =
        l->acked + 1 == l->next_sequence ? INT64_MAX : now_ns + (l->conf.probe_ns << l->backoff);
}

const wf_msg *wf_link_next(wf_link *l, int64_t now_ns)
{
    wf_msg *m;

    if (l->send_from == l->next_sequence)
        admit(l);
    if (l->send_from == l->next_sequence)
        return NULL;
    m = l->flight[l->send_from % WINDOW];
    l->last_again = l->sent_most - l->acked >= l->send_from - l->acked;
    if (l->last_again)
        l->resent_bytes += wf_msg_bytes(m);
    else
        l->sent_most = l->send_from;
    l->send_from++;
    m->head.ack = l->taken;
    no_ack_owed(l);
    if (l->probe_at_ns == INT64_MAX)
        plan_probe(l, now_ns);
    return m;
}

void wf_link_unsent(wf_link *l)
{
    l->send_from--;
    if (l->last_again)
        l->resent_bytes -= wf_msg_bytes(l->flight[l->send_from % WINDOW]);
    else
        l->sent_most--;
}

bool wf_link_ping_due(const wf_link *l, int64_t now_ns)
{
    return now_ns >= l->ack_due_ns || now_ns >= l->probe_at_ns;
}

void wf_link_ping(wf_link *l, int64_t now_ns, wf_header *ping)
{
    if (now_ns >= l->probe_at_ns)
        l->backoff = WF_MIN(l->backoff + 1, MAX_BACKOFF);
    plan_probe(l, now_ns);
    no_ack_owed(l);
    ping->ack = l->taken;
    ping->request = (uint32_t)(l->send_from - 1);
    ping->step = l->round;
    ping->cut = l->acked + 1 != l->next_sequence;
}

bool wf_link_on_ping(wf_link *l, int64_t now_ns, const wf_header *ping, wf_header *resend)
{
    uint32_t behind = ping->request - (uint32_t)l->arrived;

    if (ping->cut)
        l->ack_due_ns = now_ns; /* the last one may have been lost */
    if (behind == 0 || behind > WINDOW)
        return false;
    *resend = (wf_header){.kind = WF_RESEND, .ack = l->arrived, .step = ping->step};
    return true;
}

void wf_link_on_resend(wf_link *l, int64_t now_ns, const wf_header *resend)
{
    uint64_t from = resend->ack + 1;

    if (resend->step != l->round || resend->ack - l->acked >= l->send_from - 1 - l->acked)
        return; /* answered by an earlier round, of another link, or nothing is lacking */
    l->send_from = from;
    l->round++;
    l->backoff = 0;
    plan_probe(l, now_ns);
}

static void on_ack(wf_link *l, int64_t now_ns, uint64_t ack)
{
    uint64_t fresh = ack - l->acked;

    if (fresh == 0 || fresh >= l->next_sequence - l->acked)
        return; /* nothing new, or of another link */
    for (uint64_t s = l->acked + 1; s != ack + 1; s++) {
        wf_msg **m = &l->flight[s % WINDOW];

        l->flight_bytes -= wf_msg_bytes(*m);
        wf_msg_free(l->pool, m);
    }
    l->acked = ack;
    if (l->send_from - (ack + 1) >= l->next_sequence - ack) /* it was behind */
        l->send_from = ack + 1;
    if (l->sent_most - ack > WINDOW)
        l->sent_most = ack;
    l->backoff = 0;
    plan_probe(l, now_ns);
}

bool wf_link_may_hold(const wf_link *l, uint64_t sequence)
{
    return sequence == 0 || sequence - l->taken <= WINDOW || l->taken - sequence <= WINDOW;
}

void wf_link_on_message(wf_link *l, int64_t now_ns, wf_msg **m)
{
    uint64_t sequence = (*m)->head.sequence, ahead = sequence - l->taken;

    on_ack(l, now_ns, (*m)->head.ack);
    if (sequence == 0) {
        wf_msg_free(l->pool, m);
        return;
    }
    if (ahead == 0 || ahead > WINDOW || l->early[sequence % WINDOW]) {
        /* The peer sends again what we have: our acknowledgement was lost. */
        if (ahead <= WINDOW || -ahead <= WINDOW)
            l->ack_due_ns = now_ns;
        else
            l->out_of_window++;
        wf_msg_free(l->pool, m);
        return;
    }
    /* Whoever keeps to its credit never comes so far; the next in order is always let in. */
    if (ahead > 1 && l->early_bytes + wf_msg_bytes(*m) > 2 * l->conf.credit_bytes) {
        l->out_of_window++;
        wf_msg_free(l->pool, m);
        return;
    }
    l->early_bytes += wf_msg_bytes(*m);
    l->early[sequence % WINDOW] = *m;
    *m = NULL;
    while (l->arrived - l->taken < WINDOW && l->early[(l->arrived + 1) % WINDOW])
        l->arrived++;
}

wf_msg *wf_link_take(wf_link *l, int64_t now_ns)
{
    wf_msg **slot = &l->early[(l->taken + 1) % WINDOW], *m = *slot;

    if (!m)
        return NULL;
    *slot = NULL;
    l->early_bytes -= wf_msg_bytes(m);
    l->taken++;
    l->unacked_bytes += wf_msg_bytes(m);
    if (l->taken - l->ack_sent >= ACK_EVERY || l->unacked_bytes > l->conf.credit_bytes / 4)
        l->ack_due_ns = now_ns; /* the sender has little credit left */
    else if (l->ack_due_ns == INT64_MAX)
        l->ack_due_ns = now_ns + l->conf.ack_delay_ns;
    return m;
}

bool wf_link_idle(const wf_link *l)
{
    return l->queued == 0 && l->acked + 1 == l->next_sequence;
}

bool wf_link_in_flight(const wf_link *l, uint64_t sequence)
{
    return sequence - l->acked != 0 && sequence - l->acked < l->next_sequence - l->acked;
}

int64_t wf_link_deadline(const wf_link *l)
{
    return WF_MIN(l->probe_at_ns, l->ack_due_ns);
}

size_t wf_link_queued_bytes(const wf_link *l)
{
    return l->queued_bytes;
}

size_t wf_link_flight_bytes(const wf_link *l)
{
    return l->flight_bytes;
}

uint64_t wf_link_resent_bytes(const wf_link *l)
{
    return l->resent_bytes;
}

uint64_t wf_link_out_of_window(const wf_link *l)
{
    return l->out_of_window;
}
