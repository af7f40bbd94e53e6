/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sessions_stage.h - a worker that serves sessions beside a ps, a client, and where it
 * is wanted a second worker, in memory. */
#ifndef WF_TESTS_SESSIONS_STAGE_H
#define WF_TESTS_SESSIONS_STAGE_H

#include "common/kernels/kernel.h"
#include "common/onnx/onnx.h"
#include "common/wire/requests.h"
#include "common/wire/tensors.h"
#include "common/wire/variables.h"
#include "tests/unit/graph_test.h"
#include "tests/unit/ps_players.h"
#include "worker/sessions/plans.h"
#include "worker/sessions/sessions.h"

enum { WAIT_MS = 2000 };

typedef struct host {
    wf_net *net, *to_ps;
    wf_sessions *sessions;
} host;

typedef struct stage {
    world *ps;
    wf_net *net, *to_ps; /* of worker 0 */
    wf_sessions *sessions;
    host other; /* worker 1 */
    wf_tasks tasks;
    wf_net *client_net;
    wf_peer *worker;
    wf_requests requests;
    wf_msg *answer;
    uint64_t sequence;
    bool ps_is_deaf;     /* nothing reaches it from the worker */
    bool client_is_deaf; /* as that one */
} stage;

static const char *const addresses[] = {"p"}, *const workers[] = {"w", "w1"};
static wf_err err;

static inline void carry(void *arg, const wf_packet *packet)
{
    stage *s = arg;
    wf_packet it = *packet;
    size_t n, m;
    wf_transport *const *to_ps = wf_net_transports(s->to_ps, &n);
    wf_transport *const *clients = wf_net_transports(s->net, &m);

    if ((s->ps_is_deaf && n > 0 && packet->from == wf_mem_endpoint(to_ps[0])) ||
        (s->client_is_deaf && packet->from == wf_mem_endpoint(clients[0])))
        wf_mem_drop(s->ps->nets.mem, &it);
    else
        wf_mem_deliver(s->ps->nets.mem, &it);
}

static inline wf_status dial_ps(void *arg, wf_task task, const char *address, wf_transport **out,
                                wf_err *why)
{
    (void)task;
    return wf_mem_dial(((stage *)arg)->ps->nets.mem, address, out, why);
}

static inline wf_status admit_client(void *arg, const wf_hello *hello, wf_err *why)
{
    return wf_sessions_admit(((stage *)arg)->sessions, hello, why);
}

static inline wf_status admit_to_other(void *arg, const wf_hello *hello, wf_err *why)
{
    return wf_sessions_admit(((stage *)arg)->other.sessions, hello, why);
}

static inline void run_host(const host *h, int64_t now_ns)
{
    wf_event ev;

    wf_net_poll(h->net, now_ns);
    while (wf_net_event(h->net, now_ns, &ev))
        assert_ok(wf_sessions_on_client(h->sessions, &ev, now_ns, &err), err);
    wf_net_poll(h->to_ps, now_ns);
    while (wf_net_event(h->to_ps, now_ns, &ev))
        assert_ok(wf_sessions_on_ps(h->sessions, &ev, now_ns, &err), err);
    assert_ok(wf_sessions_advance(h->sessions, now_ns, &err), err);
    wf_net_flush(h->net, now_ns);
    wf_net_flush(h->to_ps, now_ns);
}

static inline void run_worker(stage *s)
{
    run_host(&(host){s->net, s->to_ps, s->sessions}, s->ps->now_ns);
    if (s->other.sessions)
        run_host(&s->other, s->ps->now_ns);
}

/* The process of worker 1, with an incarnation that none had. */
static inline void begin_other(stage *s, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&s->ps->nets, (wf_task){WF_ROLE_WORKER, 1}, incarnation);

    c.admit = admit_to_other;
    c.admit_arg = s;
    s->other.net = wf_memnet_new(&c);
    wf_memnet_listen(&s->ps->nets, s->other.net, "w1");
    c = wf_memnet_conf(&s->ps->nets, (wf_task){WF_ROLE_CLIENT, 1}, incarnation + 1);
    s->other.to_ps = wf_memnet_new(&c);
    assert_ok(wf_sessions_new(&(wf_sessions_conf){.index = 1,
                                                  .tasks = &s->tasks,
                                                  .net = s->other.net,
                                                  .to_ps = s->other.to_ps,
                                                  .dial = dial_ps,
                                                  .dial_arg = s,
                                                  .threads = 1,
                                                  .sent = {1 << 20, 64}},
                              &s->other.sessions, &err),
              err);
}

static inline void end_other(stage *s)
{
    wf_sessions_free(&s->other.sessions);
    wf_net_free(&s->other.to_ps, 0);
    wf_net_free(&s->other.net, 0);
}

static inline void run_client(stage *s)
{
    wf_event ev;
    void *user;

    wf_net_poll(s->client_net, s->ps->now_ns);
    while (wf_net_event(s->client_net, s->ps->now_ns, &ev)) {
        if (ev.kind == WF_EV_UP)
            assert_ok(wf_requests_on_up(&s->requests, ev.peer, &err), err);
        if (ev.kind != WF_EV_MESSAGE)
            continue;
        if (wf_requests_answered(&s->requests, ev.peer, ev.msg->head.request, &user)) {
            wf_net_free_msg(s->client_net, &s->answer); /* the last one counts */
            s->answer = ev.msg;
        } else {
            wf_net_free_msg(s->client_net, &ev.msg);
        }
    }
    wf_net_flush(s->client_net, s->ps->now_ns);
}

static inline void wait_for(stage *s, int64_t ms)
{
    for (int64_t at = 0; at < ms && !s->answer; at += 10) {
        run_client(s);
        run_worker(s);
        turn(s->ps, 0);
        run_worker(s);
        run_client(s);
    }
}

static inline int begin_stage(void **state)
{
    stage *s = calloc(1, sizeof *s);
    void *w = NULL;
    wf_net_conf c;

    assert_int_equal(begin(&w), 0);
    s->ps = w;
    s->tasks = (wf_tasks){.ps = addresses, .n_ps = 1, .workers = workers, .n_workers = 2};
    c = wf_memnet_conf(&s->ps->nets, (wf_task){WF_ROLE_WORKER, 0}, 50);
    c.admit = admit_client;
    c.admit_arg = s;
    s->net = wf_memnet_new(&c);
    wf_memnet_listen(&s->ps->nets, s->net, "w");
    c = wf_memnet_conf(&s->ps->nets, (wf_task){WF_ROLE_CLIENT, 0}, 51);
    s->to_ps = wf_memnet_new(&c);
    wf_mem_set_carrier(s->ps->nets.mem, carry, s);
    assert_ok(wf_sessions_new(&(wf_sessions_conf){.tasks = &s->tasks,
                                                  .net = s->net,
                                                  .to_ps = s->to_ps,
                                                  .dial = dial_ps,
                                                  .dial_arg = s,
                                                  .threads = 1,
                                                  .sent = {1 << 20, 64}},
                              &s->sessions, &err),
              err);
    c = wf_memnet_conf(&s->ps->nets, (wf_task){WF_ROLE_CLIENT, 1}, 52);
    c.cluster = "";
    s->client_net = wf_memnet_new(&c);
    s->requests.net = s->client_net;
    s->worker = wf_memnet_dial(&s->ps->nets, s->client_net, (wf_task){WF_ROLE_NONE, 0}, "w");
    wait_for(s, 100);
    assert_int_equal(s->worker->task.role, WF_ROLE_WORKER);
    *state = s;
    return 0;
}

static inline int end_stage(void **state)
{
    stage *s = *state;
    void *w = s->ps;

    wf_net_free_msg(s->client_net, &s->answer);
    wf_requests_close(&s->requests);
    wf_sessions_free(&s->sessions);
    end_other(s);
    wf_net_free(&s->client_net, 0);
    wf_net_free(&s->to_ps, 0);
    wf_net_free(&s->net, 0);
    assert_int_equal(end(&w), 0);
    free(s);
    return 0;
}

/* ---- what the client sends ---- */

static inline void request(stage *s, wf_msg **m)
{
    uint32_t number;

    wf_net_free_msg(s->client_net, &s->answer);
    assert_ok(wf_requests_send(&s->requests, s->worker, m, s, &number, &err), err);
}

/* v, of the ps itself. */
static inline void change(stage *s, wf_variable_action action, const char *name, float x)
{
    static uint64_t sequence;
    wf_event ev;
    wf_net_conf c = wf_memnet_conf(&s->ps->nets, (wf_task){WF_ROLE_CLIENT, 2}, 1000 + ++sequence);
    wf_net *net = wf_memnet_new(&c);
    wf_peer *ps = wf_memnet_dial(&s->ps->nets, net, (wf_task){WF_ROLE_PS, 0}, "p");
    Weft__VariableAsk ask = WEFT__VARIABLE_ASK__INIT;
    wf_tensor t = {.dtype = WF_F32, .data = &x};
    const wf_tensor *tensors[1] = {&t};
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    wf_msg *m = NULL;
    bool done = false;

    ask.action = action;
    ask.session = 77;
    ask.sequence = sequence;
    ask.name = (char *)name;
    wf_tensor_head(&t, &head, dims);
    ask.tensor = &head;
    assert_ok(wf_net_msg(net, WF_VARIABLE, &m, &err), err);
    assert_ok(wf_tensors_put(m, &ask.base, 1, tensors, false, &err), err);
    assert_ok(wf_net_send(net, ps, WF_LANE_CONTROL, 0, &m, &err), err);
    for (int i = 0; i < 50 && !done; i++) {
        wf_net_poll(net, s->ps->now_ns);
        while (wf_net_event(net, s->ps->now_ns, &ev)) {
            done |= ev.kind == WF_EV_MESSAGE;
            if (ev.kind == WF_EV_MESSAGE)
                wf_net_free_msg(net, &ev.msg);
        }
        turn(s->ps, 0);
    }
    assert_true(done);
    wf_net_free(&net, 0);
}

/* sum = v + x, and AssignAdd of sum to v, whose result is fetched with the sum. */
static inline void fill_plan(Weft__SessionPlan *body, wf_bytes *graph, const char *variable_read)
{
    static Weft__SessionWrite write, *writes[1] = {&write};
    static Weft__SessionResult results[2], *list[2] = {&results[0], &results[1]};
    static Weft__SessionFragment fragment, *fragments[1] = {&fragment};
    static Weft__SessionOutput output, *outputs[1] = {&output};
    static char *reads[1], *inputs[2] = {"v", "x"};
    wf_graph *g = new_graph();
    wf_emit e = wf_emit_begin(g, "sum", &err);
    wf_value *sum = wf_emit_add(&e, input(g, "v", 0, NULL), input(g, "x", 0, NULL));

    assert_ok(wf_graph_rename_value(g, sum, "sum", &err), err);
    assert_ok(wf_graph_add_output(g, sum, &err), err);
    assert_ok(wf_onnx_encode(g, graph, &err), err);
    wf_graph_free(&g);
    weft__session_plan__init(body);
    weft__session_write__init(&write);
    write.action = WF_VARIABLE_ADD;
    write.variable = "v";
    write.value = "sum";
    weft__session_output__init(&output);
    output.output = output.value = "sum";
    weft__session_fragment__init(&fragment);
    fragment.graph = (ProtobufCBinaryData){.len = graph->size, .data = graph->data};
    fragment.inputs = inputs;
    fragment.n_inputs = 2;
    fragment.outputs = outputs;
    fragment.n_outputs = 1;
    weft__session_result__init(&results[0]);
    weft__session_result__init(&results[1]);
    results[0].value = "sum";
    results[1].write = 1;
    reads[0] = (char *)variable_read;
    body->session = 9;
    body->handle = 1;
    body->fragments = fragments;
    body->n_fragments = 1;
    body->reads = reads;
    body->n_reads = 1;
    body->writes = writes;
    body->n_writes = 1;
    body->results = list;
    body->n_results = 2;
}

static inline wf_status send_plan(stage *s, const Weft__SessionPlan *body)
{
    Weft__Outcome *outcome = NULL;
    wf_msg *m = NULL;
    wf_status rc;

    assert_ok(wf_net_msg(s->client_net, WF_PLAN, &m, &err), err);
    assert_ok(wf_control_put(m, &body->base, &err), err);
    request(s, &m);
    wait_for(s, WAIT_MS);
    assert_non_null(s->answer);
    assert_ok(wf_control_get(s->answer, &weft__outcome__descriptor, &outcome, &err), err);
    rc = (wf_status)outcome->status;
    wf_fail(&err, rc, outcome->hint, "%s", outcome->what);
    wf_control_free(&outcome);
    return rc;
}

static inline wf_status give_plan(stage *s)
{
    Weft__SessionPlan body;
    wf_bytes graph = {0};
    wf_status rc;

    fill_plan(&body, &graph, "v");
    rc = send_plan(s, &body);
    wf_bytes_close(&graph);
    return rc;
}

/* NULL: nothing is fed. */
static inline void begin_run(stage *s, const wf_tensor *x)
{
    Weft__RunAsk ask = WEFT__RUN_ASK__INIT;
    Weft__SessionFeed feed = WEFT__SESSION_FEED__INIT, *feeds[1] = {&feed};
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];
    wf_msg *m = NULL;

    if (x)
        wf_tensor_head(x, &head, dims);
    feed.name = "x";
    feed.tensor = &head;
    ask.session = 9;
    ask.handle = 1;
    ask.sequence = ++s->sequence;
    ask.timeout_ms = 1000;
    ask.feeds = feeds;
    ask.n_feeds = x ? 1 : 0;
    assert_ok(wf_net_msg(s->client_net, WF_RUN, &m, &err), err);
    assert_ok(wf_tensors_put(m, &ask.base, x ? 1 : 0, &x, true, &err), err);
    request(s, &m);
}

static inline void begin_run_with(stage *s, float x)
{
    wf_tensor t = {.dtype = WF_F32, .data = &x};

    begin_run(s, &t);
}

/* Its error in err, and the results. */
static inline wf_status read_run(const stage *s, float out[2], bool *unknown)
{
    Weft__RunAnswer *body = NULL;
    wf_status rc;

    assert_non_null(s->answer);
    assert_ok(wf_tensors_body(s->answer, &weft__run_answer__descriptor, &body, &err), err);
    rc = (wf_status)body->status;
    if (unknown)
        *unknown = body->unknown_plan;
    wf_fail(&err, rc, body->hint, "%s", body->what);
    for (size_t i = 0; i < body->n_results; i++) {
        wf_tensor *t = NULL;

        assert_ok(wf_tensors_take(s->answer, (uint32_t)i, body->results[i], &t, &err), err);
        out[i] = wf_f32(t)[0];
        wf_tensor_free(&t);
    }
    wf_control_free(&body);
    return rc;
}

static inline void expect(stage *s, float sum, float after)
{
    float got[2] = {0};

    assert_ok(read_run(s, got, NULL), err);
    assert_true(got[0] == sum);
    assert_true(got[1] == after);
}

#endif
