/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_stage.c */
#include "master_stage.h"
#include "common/base/clock.h"
#include "common/wire/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define MS WF_NS_PER_MS
enum { ROUNDS = 40, TURNS = 500 };

static wf_net_conf net_conf(stage *s, wf_task self, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&s->nets, self, incarnation);

    c.pid = incarnation;
    c.ack_delay_ns = 0;
    c.ping_ns = 100 * MS;
    c.gone_ns = 1000 * MS;
    return c;
}

/* ---- the master ---- */

/* Text decides: "bad..." does not compile, "others" is a file of another job's name, "wide" has
 * more to say than a message carries. */
static wf_status prepare(void *arg, const char *job, const char *text, const char *path,
                         wf_prepared **out, wf_err *err)
{
    stage *s = arg;

    (void)path;
    s->compiles++;
    if (strncmp(text, "bad", 3) == 0 && s->compiled.status != WF_OK)
        return wf_fail(err, s->compiled.status, "mend it", "%s", s->compiled.what);
    WF_TRY(wf_model_prepare(&s->model, strcmp(text, "others") == 0 ? s->others : job, out, err));
    if (strcmp(text, "wide") == 0) {
        char *digest = wf_arena_alloc((*out)->arena, s->wide + 1);

        memset(digest, 'w', s->wide);
        digest[s->wide] = 0;
        (*out)->setup.digest = digest;
    }
    return WF_OK;
}

static void begin(void *arg, wf_work *w)
{
    stage *s = arg;

    if (wf_work_is_sync(w) ? s->holds_syncs : s->holds_slow) {
        *(wf_work_is_sync(w) ? &s->sync : &s->slow) = w;
        return;
    }
    wf_work_run(w);
    assert_int_equal(wf_master_on_work(s->master, &w, s->now_ns, &s->err), WF_OK);
}

void stage_finish(stage *s, wf_work **w)
{
    assert_non_null(*w);
    wf_work_run(*w);
    s->rc = wf_master_on_work(s->master, w, s->now_ns, &s->err);
    if (s->rc == WF_OK)
        stage_turn(s, 20);
    else
        stage_kill(s);
}

static void note(void *arg, const char *job, const char *json)
{
    stage *s = arg;

    (void)job;
    snprintf(s->note, sizeof s->note, "%s", json);
}

static wf_status make_master(stage *s, wf_memdisk *disk, size_t least, wf_master **out, wf_err *err)
{
    static const wf_master_task tasks[] = {{{WF_ROLE_PS, 0}, "ps-0"},
                                           {{WF_ROLE_WORKER, 0}, "worker-0"},
                                           {{WF_ROLE_WORKER, 1}, "worker-1"}};

    bool holds = s->holds_syncs || s->holds_slow;

    return wf_master_new(
        &(wf_master_conf){
            .incarnation = 1,
            .session = s->session,
            .tasks = tasks,
            .n_tasks = STAGE_PS + STAGE_WORKERS,
            .disk = wf_memdisk_disk(disk),
            .journal_dir = "/state",
            .checkpoint_dir = "/ckpt",
            .journal_least = least,
            .dead_ns = 5000 * MS,
            .stuck_ns = 20000 * MS,
            .cut_ns = 3000 * MS,
            .ops = {.arg = s, .begin = holds ? begin : NULL, .prepare = prepare, .note = note}},
        s->now_ns, out, err);
}

void stage_raise(stage *s)
{
    wf_net_conf conf;

    s->rc = make_master(s, s->disk, s->journal_least, &s->master, &s->err);
    if (s->rc != WF_OK)
        return;
    conf = net_conf(s, (wf_task){WF_ROLE_MASTER, 0}, wf_memnet_id(&s->nets));
    conf.admit = wf_master_admit;
    conf.admit_arg = s->master;
    s->net = wf_memnet_new(&conf);
    wf_memnet_listen(&s->nets, s->net, "master");
    wf_master_set_net(s->master, s->net);
}

void stage_kill(stage *s)
{
    wf_net_free(&s->net, 0);
    wf_work_free(&s->sync);
    wf_work_free(&s->slow);
    wf_master_free(&s->master);
}

stage *stage_new(void)
{
    stage *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->now_ns = 1000 * MS;
    s->session = "first";
    s->others = "another";
    s->model = (wf_model_spec){
        .seed = 1, .ps = STAGE_PS, .records = STAGE_RECORDS, .batch = 4, .epochs = 2, .keep = 3};
    s->disk = wf_memdisk_new();
    assert_non_null(s->disk);
    wf_memnet_init(&s->nets, "stage");
    stage_raise(s);
    assert_int_equal(s->rc, WF_OK);
    return s;
}

void stage_free(stage **s)
{
    for (uint32_t i = 0; i < (*s)->n_players; i++)
        stage_leave(&(*s)->players[i]);
    stage_kill(*s);
    wf_memdisk_free(&(*s)->disk);
    wf_memnet_close(&(*s)->nets);
    free(*s);
    *s = NULL;
}

int stage_begin(void **state)
{
    *state = stage_new();
    return 0;
}

int stage_end(void **state)
{
    stage *s = *state;

    stage_free(&s);
    return 0;
}

/* ---- players ---- */

stage_player *stage_enter(stage *s, wf_role role, uint32_t index, uint64_t incarnation)
{
    stage_player *p = &s->players[s->n_players++];
    wf_net_conf conf;

    assert_true(s->n_players <= STAGE_PLAYERS);
    *p = (stage_player){.task = {role, index}, .incarnation = incarnation};
    p->split.id = UINT64_MAX;
    conf = net_conf(s, p->task, incarnation);
    p->net = wf_memnet_new(&conf);
    p->to_master = wf_memnet_dial(&s->nets, p->net, (wf_task){WF_ROLE_MASTER, 0}, "master");
    return p;
}

void stage_leave(stage_player *p)
{
    wf_net_free(&p->net, 0);
}

void stage_cast(stage *s)
{
    stage_enter(s, WF_ROLE_PS, 0, 10);
    stage_enter(s, WF_ROLE_WORKER, 0, 20);
    stage_enter(s, WF_ROLE_WORKER, 1, 21);
    stage_enter(s, WF_ROLE_CLIENT, 0, 30);
    stage_turn(s, 20);
}

wf_msg *stage_message(stage_player *p, uint16_t kind)
{
    wf_msg *m = NULL;

    assert_int_equal(wf_net_msg(p->net, kind, &m, NULL), WF_OK);
    m->head.job = p->job;
    m->head.generation = p->generation;
    return m;
}

void stage_send(stage_player *p, wf_msg **m)
{
    assert_int_equal(wf_net_send(p->net, p->to_master, WF_LANE_CONTROL, 0, m, NULL), WF_OK);
}

static void put(wf_msg *m, const ProtobufCMessage *body)
{
    if (body)
        assert_int_equal(wf_control_put(m, body, NULL), WF_OK);
}

void stage_say(stage_player *p, uint16_t kind, const ProtobufCMessage *body)
{
    wf_msg *m = stage_message(p, kind);

    put(m, body);
    stage_send(p, &m);
}

static void say_of_cut(stage_player *p, uint16_t kind, uint32_t cut, const ProtobufCMessage *body)
{
    wf_msg *m = stage_message(p, kind);

    m->head.cut = cut;
    put(m, body);
    stage_send(p, &m);
}

static void keep_name(stage_player *p, const wf_msg *m)
{
    if (p->task.role == WF_ROLE_PS) {
        Weft__Setup *body = NULL;

        assert_int_equal(wf_control_get(m, &weft__setup__descriptor, &body, NULL), WF_OK);
        snprintf(p->job_name, sizeof p->job_name, "%s", body->job);
        p->job_id = body->job_id;
        wf_control_free(&body);
    } else {
        Weft__Start *body = NULL;

        assert_int_equal(wf_control_get(m, &weft__start__descriptor, &body, NULL), WF_OK);
        snprintf(p->job_name, sizeof p->job_name, "%s", body->job);
        p->job_id = body->job_id;
        wf_control_free(&body);
    }
}

/* A link is up: what this player holds. */
static void register_held(stage_player *p)
{
    Weft__Register body = WEFT__REGISTER__INIT;
    Weft__Split *list[1] = {&p->split};

    body.job = p->job_name;
    body.job_id = p->job_id;
    body.generation = p->generation;
    body.view = p->view;
    body.ready = p->job_name[0] && p->ready.status == WF_OK;
    body.train_records = STAGE_RECORDS;
    body.eval_records = 8;
    if (p->split.id != UINT64_MAX && p->split.next < p->split.end) {
        body.open = list;
        body.n_open = 1;
    } else if (p->split.id != UINT64_MAX) {
        body.finished = list;
        body.n_finished = 1;
    }
    stage_say(p, WF_REGISTER, &body.base);
    if (body.ready && p->task.role == WF_ROLE_WORKER && !body.n_open)
        stage_say(p, WF_SPLIT_WANT, NULL);
}

static void on_begin(stage_player *p, const wf_msg *m)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;

    p->job = m->head.job;
    p->generation = m->head.generation;
    p->view = m->head.view;
    p->split.id = UINT64_MAX;
    keep_name(p, m);
    body.status = p->ready.status;
    body.what = p->ready.status ? (char *)p->ready.what : body.what;
    body.train_records = STAGE_RECORDS;
    body.eval_records = 8;
    if (p->task.role == WF_ROLE_PS) {
        wf_msg *ok = stage_message(p, WF_SETUP_OK);

        ok->head.view = m->head.view;
        put(ok, &body.base);
        stage_send(p, &ok);
        return;
    }
    stage_say(p, WF_START_OK, &body.base);
    if (p->ready.status == WF_OK)
        stage_say(p, WF_SPLIT_WANT, NULL);
}

static void on_split(stage_player *p, const wf_msg *m)
{
    Weft__SplitDone body = WEFT__SPLIT_DONE__INIT;
    Weft__Split *split = NULL, *list[1] = {&p->split};

    assert_int_equal(wf_control_get(m, &weft__split__descriptor, &split, NULL), WF_OK);
    p->split = *split;
    wf_control_free(&split);
    if (p->lazy)
        return;
    p->split.next = p->split.end;
    body.splits = list;
    body.n_splits = 1;
    stage_say(p, WF_SPLIT_DONE, &body.base);
}

static void on_eval(stage_player *p, const wf_msg *m)
{
    Weft__EvalResult body = WEFT__EVAL_RESULT__INIT;
    Weft__Metric loss = WEFT__METRIC__INIT, *list[1] = {&loss};
    Weft__Split *unit = NULL;

    assert_int_equal(wf_control_get(m, &weft__split__descriptor, &unit, NULL), WF_OK);
    loss.name = "loss";
    loss.sum = 3;
    loss.count = 2;
    body.epoch = unit->epoch;
    body.id = unit->id;
    body.records = WF_MODEL_EVAL_RECORDS;
    wf_control_free(&unit);
    if (p->evaluated.status != WF_OK && p->heard[WF_EVAL] > p->evaluates_before) {
        body.what = (char *)p->evaluated.what;
    } else {
        body.metrics = list;
        body.n_metrics = 1;
    }
    stage_say(p, WF_EVAL_RESULT, &body.base);
}

static void on_cut(stage_player *p, const wf_msg *m)
{
    Weft__CutReport report = WEFT__CUT_REPORT__INIT;
    Weft__CutDone done = WEFT__CUT_DONE__INIT;
    Weft__Cut *cut = NULL;

    assert_int_equal(wf_control_get(m, &weft__cut__descriptor, &cut, NULL), WF_OK);
    report.index = p->task.index;
    report.incarnation = p->incarnation;
    say_of_cut(p, WF_CUT_REPORT, m->head.cut, &report.base);
    if (cut->chief == p->incarnation) {
        done.step = 16;
        if (p->saved.status != WF_OK)
            done.what = (char *)p->saved.what;
        say_of_cut(p, WF_CUT_FORKED, m->head.cut, NULL);
        if (p->saved.status == WF_OK)
            say_of_cut(p, WF_CUT_COMMIT, m->head.cut, NULL);
        say_of_cut(p, WF_CUT_DONE, m->head.cut, &done.base);
    }
    wf_control_free(&cut);
}

static void on_view(stage_player *p, const wf_msg *m)
{
    wf_msg *ok = stage_message(p, WF_VIEW_OK);
    Weft__View *body = NULL;

    assert_int_equal(wf_control_get(m, &weft__view__descriptor, &body, NULL), WF_OK);
    p->view_since = body->since;
    p->view_members = (uint32_t)body->n_members;
    p->view_left = (uint32_t)body->n_left;
    wf_control_free(&body);
    p->view = m->head.view;
    ok->head.view = m->head.view;
    stage_send(p, &ok);
}

static void on_answer(stage_player *p, const wf_msg *m)
{
    Weft__Answer *body = NULL;

    assert_int_equal(wf_control_get(m, &weft__answer__descriptor, &body, NULL), WF_OK);
    wf_fail(&p->answer, (wf_status)body->status, body->mend, "%s", body->what);
    p->answered = true;
    wf_control_free(&body);
}

static void on_message(stage_player *p, const wf_msg *m)
{
    p->heard[m->head.kind % STAGE_KINDS]++;
    if (m->head.kind == WF_ANSWER)
        on_answer(p, m);
    if (m->head.kind == WF_DISMISS)
        p->dismissed_how = m->head.request;
    if (p->silent)
        return;
    switch (m->head.kind) {
    case WF_VIEW:
        on_view(p, m);
        break;
    case WF_SETUP:
    case WF_START:
        on_begin(p, m);
        break;
    case WF_SPLIT:
        on_split(p, m);
        break;
    case WF_EVAL:
        on_eval(p, m);
        break;
    case WF_CUT_OPEN:
        if (!p->lazy)
            on_cut(p, m);
        break;
    case WF_SPLIT_DONE_OK:
        p->split.id = UINT64_MAX;
        stage_say(p, WF_SPLIT_WANT, NULL);
        break;
    case WF_HALT:
        p->job_name[0] = 0;
        break;
    default:
        break;
    }
}

static bool play(stage *s, stage_player *p)
{
    bool busy = false;
    wf_event ev;

    if (!p->net || p->absent)
        return false;
    wf_net_poll(p->net, s->now_ns);
    while (wf_net_event(p->net, s->now_ns, &ev)) {
        busy = true;
        if (ev.kind == WF_EV_MESSAGE)
            on_message(p, ev.msg);
        if (ev.kind == WF_EV_MESSAGE)
            wf_net_free_msg(p->net, &ev.msg);
        if (ev.kind == WF_EV_REFUSED)
            p->refused = ev.err;
        if (ev.kind == WF_EV_UP && p->task.role != WF_ROLE_CLIENT && !p->silent)
            register_held(p);
    }
    wf_net_poll(p->net, s->now_ns);
    return busy;
}

static bool lead(stage *s)
{
    bool busy = false;
    wf_event ev;

    if (!s->master)
        return false;
    wf_net_poll(s->net, s->now_ns);
    while (s->rc == WF_OK && wf_net_event(s->net, s->now_ns, &ev)) {
        busy = true;
        s->rc = wf_master_on_event(s->master, &ev, s->now_ns, &s->err);
    }
    if (s->rc == WF_OK)
        s->rc = wf_master_advance(s->master, s->now_ns, &s->err);
    if (s->rc != WF_OK) { /* as its process would end, with what it had not sent yet */
        stage_kill(s);
        return false;
    }
    wf_net_poll(s->net, s->now_ns);
    return busy;
}

void stage_turn(stage *s, int64_t ms)
{
    for (int i = 0, quiet = 0; i < ROUNDS && quiet < 2; i++) {
        bool busy = false;

        for (uint32_t k = 0; k < s->n_players; k++)
            busy |= play(s, &s->players[k]);
        busy |= lead(s);
        quiet = busy ? 0 : quiet + 1;
    }
    s->now_ns += ms * MS;
}

void stage_until(stage *s, const char *job, const char *state)
{
    for (int i = 0; i < TURNS && s->master; i++) {
        if (strcmp(wf_master_job_state(s->master, job), state) == 0)
            return;
        stage_turn(s, 20);
    }
    if (!s->master)
        fail_msg("the master ended: %s", s->err.what);
    fail_msg("job %s is %s, not %s", job, wf_master_job_state(s->master, job), state);
}

void stage_run(stage *s, const char *job)
{
    assert_int_equal(wf_master_submit(s->master, job, "ledger", "", false, NULL), WF_OK);
    stage_until(s, job, "running");
}

/* ---- questions ---- */

const wf_err *stage_ask(stage *s, const Weft__Ask *ask)
{
    stage_player *client = &s->players[3];

    client->answered = false;
    stage_say(client, WF_ASK, &ask->base);
    stage_turn(s, 0);
    return client->answered ? &client->answer : NULL;
}

static void without_times(json_t *o)
{
    json_object_del(o, "age_s");
    json_object_del(json_object_get(o, "last_end"), "age_s");
    json_object_del(o, "elapsed_s");
    json_object_del(o, "eta_s");
}

static json_t *picture(stage *s)
{
    char *text = wf_master_status(s->master, s->now_ns);
    json_t *o = json_loads(text, 0, NULL), *row;
    size_t i;

    assert_non_null(o);
    free(text);
    json_array_foreach(json_object_get(o, "tasks"), i, row) without_times(row);
    json_array_foreach(json_object_get(o, "jobs"), i, row) without_times(row);
    return o;
}

char *stage_picture(stage *s)
{
    json_t *o = picture(s);
    char *text = json_dumps(o, JSON_INDENT(1) | JSON_SORT_KEYS);

    json_decref(o);
    return text;
}

char *stage_job_field(stage *s, const char *job, const char *field)
{
    json_t *o = picture(s), *row;
    char *text = NULL;
    size_t i;

    json_array_foreach(json_object_get(o, "jobs"), i,
                       row) if (strcmp(json_string_value(json_object_get(row, "job")), job) == 0)
        text = json_dumps(json_object_get(row, field), JSON_ENCODE_ANY);
    json_decref(o);
    assert_non_null(text);
    return text;
}

size_t stage_journal_bytes(stage *s)
{
    size_t size = 0;

    wf_memdisk_bytes(s->disk, "/state/journal", &size);
    return size;
}

char *stage_replayed(stage *s, size_t *bytes)
{
    wf_memdisk *copy = wf_memdisk_copy(s->disk);
    wf_master *m = NULL;
    uint8_t *data;
    char *out;

    assert_int_equal(make_master(s, copy, 1, &m, NULL), WF_OK);
    wf_master_set_net(m, s->net);
    assert_int_equal(wf_master_advance(m, s->now_ns, NULL), WF_OK);
    wf_master_free(&m);
    data = wf_memdisk_bytes(copy, "/state/journal", bytes);
    assert_non_null(data);
    out = malloc(*bytes);
    assert_non_null(out);
    memcpy(out, data, *bytes);
    wf_memdisk_free(&copy);
    return out;
}

static void is_one_sentence(const wf_err *e)
{
    size_t n = strlen(e->what);

    assert_true(n > 0);
    assert_null(strchr(e->what, '\n'));
    assert_int_not_equal(e->what[n - 1], '.');
}

void stage_refused(stage *s, const Weft__Ask *ask, wf_status status, const char *words)
{
    char *before = stage_picture(s), *after;
    size_t journal = stage_journal_bytes(s);
    const wf_err *said = stage_ask(s, ask);

    if (s->rc != WF_OK)
        fail_msg("the master ended: %s", s->err.what);
    if (!said)
        fail_msg("no answer where \"%s\" was expected", words);
    after = stage_picture(s);
    is_one_sentence(said);
    if (!strstr(said->what, words))
        fail_msg("\"%s\" does not say \"%s\"", said->what, words);
    assert_int_equal(said->status, status);
    assert_string_equal(before, after);
    assert_int_equal(journal, stage_journal_bytes(s));
    free(before);
    free(after);
}
