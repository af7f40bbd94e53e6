/* SPDX-License-Identifier: Apache-2.0 */
/* bench/ps_stage.c */
#include "bench/ps_stage.h"
#include "common/base/clock.h"
#include "common/base/disk.h"
#include "common/base/process.h"
#include "common/base/size.h"
#include "common/ckpt/shard.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/parts.h"
#include "common/wire/wait.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOB = 1, GENERATION = 1, VIEW = 1, PATH = 128 };

/* Between two looks at clients that wait for nothing: their links have pings to send. */
static const int64_t SWEEP_NS = 20 * WF_NS_PER_MS, DEADLINE_NS = 120 * WF_NS_PER_S;

static void fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void must(wf_status rc, const wf_err *err)
{
    if (rc != WF_OK)
        fail(err->what);
}

/* Turns until it is so. */
#define WAIT_FOR(s, condition, what)                                                               \
    do {                                                                                           \
        int64_t began_ns = wf_now_ns();                                                            \
        while (!(condition)) {                                                                     \
            stage_turn(s);                                                                         \
            if (wf_now_ns() - began_ns > DEADLINE_NS)                                              \
                fail("not within two minutes: " what);                                             \
        }                                                                                          \
    } while (0)

/* ---- the cluster's files and the ps's process ---- */

static void choose_address(char text[64])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) != 0)
        fail("no free port");
    close(fd);
    snprintf(text, 64, "tcp://127.0.0.1:%u", ntohs(a.sin_port));
}

static void write_cluster(const stage *s)
{
    char path[PATH];
    FILE *f;

    snprintf(path, sizeof path, "%s/cluster.yaml", s->folder);
    f = fopen(path, "w");
    if (!f)
        fail("cannot write cluster.yaml");
    fprintf(f, "cluster: bench\nmaster: {address: '%s'}\nps:\n  - {address: '%s', threads: %u}\n",
            s->master_address, s->ps_address, s->conf.threads);
    fprintf(f, "workers:\n");
    for (uint32_t i = 0; i < s->conf.clients; i++) /* nobody dials a worker */
        fprintf(f, "  - {address: 'tcp://127.0.0.1:%u'}\n", 1 + i);
    fprintf(f, "state_dir: state\ncheckpoint_dir: ckpt\n");
    fclose(f);
}

static void write_initial(const stage *s)
{
    wf_shard_tensor t = {.name = "w", .dtype = WF_F32, .rank = 1};
    size_t bytes = s->conf.elements * sizeof(float);
    wf_disk *disk = wf_disk_posix();
    float *zeroes = calloc(1, bytes);
    wf_shard_writer *w = NULL;
    char path[PATH], sum[WF_SUM_TEXT];
    uint64_t written;
    wf_err err;

    wf_assert(zeroes);
    t.dims[0] = (int64_t)(s->conf.slices * s->conf.elements);
    snprintf(path, sizeof path, "%s/ckpt/job", s->folder);
    must(wf_disk_make_dirs(disk, path, &err), &err);
    snprintf(path, sizeof path, "%s/ckpt/job/initial.safetensors", s->folder);
    must(wf_shard_create(disk, path, &t, 1, NULL, 0, &w, &err), &err);
    for (uint32_t i = 0; i < s->conf.slices; i++)
        must(wf_shard_write(w, zeroes, bytes, &err), &err);
    must(wf_shard_finish(&w, &written, sum, &err), &err);
    free(zeroes);
}

static void start_ps(stage *s)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s/cluster.yaml", s->folder);
    s->pid = fork();
    if (s->pid < 0)
        fail("cannot fork");
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* fail() leaves it behind otherwise */
        if (!freopen("/dev/null", "w", stderr))
            _exit(127);
        execl(s->conf.weft_ps, "weft-ps", "--cluster", path, "--task", "0", (char *)NULL);
        _exit(127);
    }
    if (clock_getcpuclockid(s->pid, &s->ps_clock) != 0)
        fail("the processor time of the ps cannot be read");
}

int64_t stage_ps_ns(const stage *s)
{
    struct timespec t;

    if (clock_gettime(s->ps_clock, &t) != 0)
        fail("the ps has ended");
    return t.tv_sec * WF_NS_PER_S + t.tv_nsec;
}

size_t stage_ps_bytes(const stage *s)
{
    unsigned long size, resident = 0;
    char path[PATH];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)s->pid);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
        fail("the ps has ended");
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- the master ---- */

static wf_net *make_net(wf_task self, uint64_t incarnation)
{
    wf_net_conf c = wf_net_defaults();
    wf_net *net = NULL;
    wf_err err;

    c.self = self;
    c.incarnation = incarnation;
    c.cluster = "bench";
    must(wf_net_new(&c, &net, &err), &err);
    return net;
}

static void post(wf_net *net, wf_peer *to, wf_msg **m, const ProtobufCMessage *body)
{
    wf_err err;

    if (body)
        must(wf_control_put(*m, body, &err), &err);
    (*m)->head.job = JOB;
    (*m)->head.generation = GENERATION;
    (*m)->head.map = GENERATION;
    must(wf_net_send(net, to, WF_LANE_CONTROL, 0, m, &err), &err);
}

static wf_msg *message(wf_net *net, uint16_t kind)
{
    wf_msg *m = NULL;
    wf_err err;

    must(wf_net_msg(net, kind, &m, &err), &err);
    return m;
}

static uint64_t incarnation_of(uint32_t client)
{
    return UINT64_C(0x9e3779b97f4a7c15) * (client + 2);
}

static void fill_view(Weft__View *view, uint32_t n)
{
    weft__view__init(view);
    view->members = calloc(n + 1, sizeof(*view->members));
    wf_assert(view->members);
    for (uint32_t i = 0; i < n; i++) {
        Weft__Member *one = calloc(1, sizeof *one);

        wf_assert(one);
        weft__member__init(one);
        one->role = WF_ROLE_WORKER;
        one->index = i;
        one->incarnation = incarnation_of(i);
        view->members[view->n_members++] = one;
    }
}

static void clear_view(Weft__View *view)
{
    for (size_t i = 0; i < view->n_members; i++)
        free(view->members[i]);
    free(view->members);
}

void stage_view(stage *s, uint32_t number, uint32_t n)
{
    wf_msg *m = message(s->master, WF_VIEW);
    Weft__View view;

    fill_view(&view, n);
    m->head.view = number;
    post(s->master, s->ps, &m, &view.base);
    clear_view(&view);
    WAIT_FOR(s, s->view_taken >= number, "the ps takes a view");
}

static void send_setup(stage *s)
{
    Weft__Slice *rows = calloc(s->conf.slices, sizeof *rows);
    Weft__Slice **slices = calloc(s->conf.slices, sizeof(*slices));
    int64_t dims[1] = {(int64_t)(s->conf.slices * s->conf.elements)};
    Weft__Variable variable = WEFT__VARIABLE__INIT, *variables[1] = {&variable};
    Weft__Setup setup = WEFT__SETUP__INIT;
    wf_msg *m = message(s->master, WF_SETUP);
    char folder[PATH];
    Weft__View view;

    wf_assert(rows && slices);
    snprintf(folder, sizeof folder, "%s/ckpt", s->folder);
    variable.name = "w";
    variable.dtype = WF_F32;
    variable.kind = 1;
    variable.dims = dims;
    variable.n_dims = 1;
    for (uint32_t i = 0; i < s->conf.slices; i++) {
        weft__slice__init(&rows[i]);
        rows[i].offset = i * s->conf.elements;
        rows[i].count = s->conf.elements;
        slices[i] = &rows[i];
    }
    fill_view(&view, s->conf.clients);
    setup.job = "job";
    setup.digest = "d";
    setup.rule = (char *)s->conf.rule;
    setup.checkpoint_dir = folder;
    setup.initial = true;
    setup.variables = variables;
    setup.n_variables = 1;
    setup.slices = slices;
    setup.n_slices = s->conf.slices;
    setup.view = &view;
    m->head.view = VIEW;
    post(s->master, s->ps, &m, &setup.base);
    clear_view(&view);
    free(rows);
    free(slices);
}

static void on_setup_ok(stage *s, const wf_msg *m)
{
    Weft__Outcome *outcome = NULL;
    wf_err err;

    must(wf_control_get(m, &weft__outcome__descriptor, &outcome, &err), &err);
    if (outcome->status != WF_OK)
        fail(outcome->what);
    wf_control_free(&outcome);
    s->is_set_up = true;
}

static void on_master_event(stage *s, stage_client *none, const wf_event *ev)
{
    (void)none;
    if (ev->kind == WF_EV_UP)
        s->ps = ev->peer;
    else if (ev->kind == WF_EV_DOWN)
        fail("the ps has left its master");
    if (ev->kind == WF_EV_MESSAGE && ev->msg->head.kind == WF_SETUP_OK)
        on_setup_ok(s, ev->msg);
    else if (ev->kind == WF_EV_MESSAGE && ev->msg->head.kind == WF_VIEW_OK)
        s->view_taken = ev->msg->head.view;
    else if (ev->kind == WF_EV_MESSAGE && ev->msg->head.kind == WF_FAULT)
        fail("the ps reports a fault");
}

/* ---- clients ---- */

static void send_list(stage *s, stage_client *c)
{
    uint32_t *ids = calloc(s->conf.slices, sizeof *ids);
    wf_msg *m = message(c->net, WF_LIST);
    Weft__List body = WEFT__LIST__INIT;

    wf_assert(ids);
    for (uint32_t i = 0; i < s->conf.slices; i++)
        ids[i] = i;
    body.slices = ids;
    body.n_slices = s->conf.slices;
    m->head.view = VIEW;
    post(c->net, c->ps, &m, &body.base);
    free(ids);
    c->state = STAGE_LISTING;
}

/* Slices from `first` on, as many as a message takes. */
static uint32_t send_slices(stage *s, stage_client *c, uint32_t first)
{
    uint32_t n = WF_MIN(s->conf.slices - first, (uint32_t)WF_MAX_FRAMES);
    size_t bytes = s->conf.elements * sizeof(float);
    wf_msg *m = message(c->net, WF_PUSH);
    wf_part parts[WF_MAX_FRAMES];
    wf_err err;

    n = WF_MIN(n, (uint32_t)WF_MAX((4 << 20) / bytes, (size_t)1)); /* 4 MiB, as workers do */
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = (wf_part){.slice = first + i, .frame = (uint8_t)i, .bytes = bytes};
        must(wf_msg_add_frame(m, s->gradient, s->gradient->data, bytes, &err), &err);
    }
    must(wf_parts_put(m, parts, n, &err), &err);
    m->head.view = VIEW;
    m->head.step = c->step;
    post(c->net, c->ps, &m, NULL);
    return n;
}

void stage_step(stage *s, stage_client *c)
{
    wf_assert(c->state == STAGE_IDLE);
    c->step++;
    for (uint32_t at = 0; at < s->conf.slices;)
        at += send_slices(s, c, at);
    c->left = s->conf.slices;
    c->state = STAGE_PUSHING;
    wf_net_flush(c->net, wf_now_ns());
}

static void send_pull(stage_client *c, uint32_t slices)
{
    wf_msg *m = message(c->net, WF_PULL);
    wf_err err;

    must(wf_pull_put(m, (wf_pull_body){0, c->step}, NULL, 0, &err), &err);
    m->head.view = VIEW;
    m->head.request = m->head.step = c->step;
    post(c->net, c->ps, &m, NULL);
    c->left = slices;
    c->asked_ns = wf_now_ns();
    c->state = STAGE_PULLING;
}

static void note_pull(stage *s, const stage_client *c)
{
    if (s->n_pulls == s->pulls_room) {
        s->pulls_room = s->pulls_room ? 2 * s->pulls_room : 1024;
        s->pull_ns = realloc(s->pull_ns, s->pulls_room * sizeof *s->pull_ns);
        wf_assert(s->pull_ns);
    }
    s->pull_ns[s->n_pulls++] = wf_now_ns() - c->asked_ns;
}

static void on_push_ok(stage *s, stage_client *c, const wf_msg *m)
{
    uint32_t slices[WF_MAX_PARTS], n;
    wf_err err;

    must(wf_slices_get(m, slices, &n, &err), &err);
    c->left -= n;
    if (c->left > 0)
        return;
    s->pushes++;
    c->state = STAGE_IDLE;
    if (s->conf.pulls)
        send_pull(c, s->conf.slices);
}

static void on_weights(stage *s, stage_client *c, const wf_msg *m)
{
    static wf_part parts[WF_MAX_PARTS];
    uint32_t n;
    wf_err err;

    must(wf_parts_get(m, parts, &n, &err), &err);
    c->left -= n;
    if (c->left > 0)
        return;
    note_pull(s, c);
    c->state = STAGE_IDLE;
}

static void on_message(stage *s, stage_client *c, const wf_msg *m)
{
    if (m->head.kind == WF_LIST_OK)
        c->state = STAGE_IDLE;
    else if (m->head.kind == WF_PUSH_OK)
        on_push_ok(s, c, m);
    else if (m->head.kind == WF_WEIGHTS)
        on_weights(s, c, m);
    else if (m->head.kind == WF_DENIED)
        fail("the ps denies a client");
}

static void on_client_event(stage *s, stage_client *c, const wf_event *ev)
{
    if (ev->kind == WF_EV_REFUSED)
        fail(ev->err.what);
    if (ev->kind == WF_EV_DOWN)
        fail("a client has lost its ps");
    if (ev->kind == WF_EV_UP) {
        c->ps = ev->peer;
        send_list(s, c);
    }
    if (ev->kind == WF_EV_MESSAGE)
        on_message(s, c, ev->msg);
}

/* ---- everybody's turns ---- */

/* Gives the events of a net to `take`; false if there are none. */
static bool run_net(stage *s, wf_net *net, stage_client *c, int64_t now_ns,
                    void take(stage *s, stage_client *c, const wf_event *ev))
{
    bool heard = false;
    wf_event ev;

    wf_net_poll(net, now_ns);
    while (wf_net_event(net, now_ns, &ev)) {
        heard = true;
        take(s, c, &ev);
        if (ev.msg)
            wf_net_free_msg(net, &ev.msg);
    }
    wf_net_flush(net, now_ns);
    return heard;
}

/* For the master or a client that waits for an answer. */
static void wait_for_some(const stage *s)
{
    wf_transport **some = s->awaited;
    size_t n, used = 0;

    some[used++] = *wf_net_transports(s->master, &n);
    for (uint32_t i = 0; i < s->n; i++)
        if (s->clients[i].state != STAGE_IDLE)
            some[used++] = *wf_net_transports(s->clients[i].net, &n);
    wf_wait(some, used, -1, 1, NULL);
}

void stage_turn(stage *s)
{
    int64_t now_ns = wf_now_ns();
    bool sweep = now_ns - s->swept_ns >= SWEEP_NS, heard;

    heard = run_net(s, s->master, NULL, now_ns, on_master_event);
    for (uint32_t i = 0; i < s->n; i++)
        if (sweep || s->clients[i].state != STAGE_IDLE)
            heard |= run_net(s, s->clients[i].net, &s->clients[i], now_ns, on_client_event);
    if (sweep)
        s->swept_ns = now_ns;
    if (heard)
        return;
    if (waitpid(s->pid, NULL, WNOHANG) == s->pid)
        fail("the ps has ended; run it by hand with the cluster.yaml in /tmp/weft-bench-*");
    wait_for_some(s);
}

void stage_measure(stage *s)
{
    s->pushes = 0;
    s->n_pulls = 0;
}

/* ---- beginning and end ---- */

void stage_begin(stage *s, const stage_conf *conf)
{
    size_t bytes = conf->elements * sizeof(float);
    wf_transport *t = NULL;
    wf_err err;

    *s = (stage){.conf = *conf};
    snprintf(s->folder, sizeof s->folder, "/tmp/weft-bench-XXXXXX");
    if (!mkdtemp(s->folder))
        fail("cannot make a folder in /tmp");
    choose_address(s->master_address);
    choose_address(s->ps_address);
    write_cluster(s);
    write_initial(s);
    s->gradient = wf_buf_new(bytes);
    s->clients = calloc(conf->clients, sizeof *s->clients);
    s->awaited = calloc(conf->clients + 1, sizeof(*s->awaited));
    wf_assert(s->gradient && s->clients && s->awaited);
    for (uint64_t i = 0; i < conf->elements; i++)
        ((float *)s->gradient->data)[i] = (float)(i % 13) * 1e-3f;
    must(wf_process_raise_files(&err), &err);
    wf_process_keep_blocks();
    must(wf_zmq_new(2 * conf->clients + 64, &s->zmq, &err), &err);
    s->master = make_net((wf_task){WF_ROLE_MASTER, 0}, 1);
    must(wf_zmq_listen(s->zmq, s->master_address, &t, &err), &err);
    wf_net_listen(s->master, &t);
    start_ps(s);
    WAIT_FOR(s, s->ps, "the ps dials its master");
    send_setup(s);
    WAIT_FOR(s, s->is_set_up, "the ps is set up");
}

static bool all_idle(const stage *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->clients[i].state != STAGE_IDLE)
            return false;
    return true;
}

void stage_enter(stage *s)
{
    for (; s->n < s->conf.clients; s->n++) {
        stage_client *c = &s->clients[s->n];
        wf_transport *t = NULL;
        wf_err err;

        c->net = make_net((wf_task){WF_ROLE_WORKER, s->n}, incarnation_of(s->n));
        must(wf_zmq_dial(s->zmq, s->ps_address, &t, &err), &err);
        must(wf_net_dial(c->net, (wf_task){WF_ROLE_PS, 0}, s->ps_address, &t, &c->to_ps, &err),
             &err);
    }
    WAIT_FOR(s, all_idle(s), "all clients have their lists");
}

static void remove_file(const stage *s, const char *name)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s%s", s->folder, name);
    remove(path);
}

void stage_end(stage *s)
{
    static const char *const names[] = {"/ckpt/job/initial.safetensors", "/ckpt/job", "/ckpt",
                                        "/cluster.yaml", ""};

    for (uint32_t i = 0; i < s->n; i++)
        wf_net_free(&s->clients[i].net, 0);
    wf_net_free(&s->master, 0);
    wf_zmq_free(&s->zmq);
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    wf_buf_unref(&s->gradient);
    free(s->clients);
    free(s->awaited);
    free(s->pull_ns);
    for (size_t i = 0; i < WF_COUNT(names); i++)
        remove_file(s, names[i]);
}
