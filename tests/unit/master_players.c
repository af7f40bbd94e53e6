/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_players.c - what the players of master_stage.h say, and what they answer. */
#include "common/wire/control.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

stage_player *stage_enter(stage *s, wf_role role, uint32_t index, uint64_t incarnation)
{
    stage_player *p = &s->players[s->n_players++];
    wf_net_conf conf;

    assert_true(s->n_players <= STAGE_PLAYERS);
    *p = (stage_player){.task = {role, index},
                        .incarnation = incarnation,
                        .records = s->model.records,
                        .eval_records = WF_MODEL_EVAL_RECORDS,
                        .eval_found = WF_MODEL_EVAL_RECORDS};
    p->split.id = UINT64_MAX;
    conf = stage_net_conf(s, p->task, incarnation);
    p->net = wf_memnet_new(&conf);
    p->to_master = wf_memnet_dial(&s->nets, p->net, (wf_task){WF_ROLE_MASTER, 0}, "master");
    return p;
}

void stage_leave(stage_player *p)
{
    wf_net_free(&p->net, 0);
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

void stage_let_train(stage_player *p)
{
    Weft__Register body = WEFT__REGISTER__INIT;

    p->lazy = false;
    stage_say(p, WF_REGISTER, &body.base);
}

void stage_let_all_train(stage *s)
{
    for (uint32_t i = 0; i < s->n_players; i++)
        if (s->players[i].task.role == WF_ROLE_WORKER && s->players[i].net)
            stage_let_train(&s->players[i]);
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
        p->round = body->round ? body->round->round : 0;
        p->round_files = body->round ? (uint32_t)body->round->n_files : 0;
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
    body.train_records = p->records;
    body.train_digest = p->digest;
    body.eval_records = p->eval_records;
    body.round = p->round;
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
    p->dealt = 0;
    keep_name(p, m);
    body.status = p->ready.status;
    body.what = p->ready.status ? (char *)p->ready.what : body.what;
    body.train_records = p->records;
    body.train_digest = p->digest;
    body.eval_records = p->eval_records;
    body.round = p->round;
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

static void on_round(stage_player *p, const wf_msg *m)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    Weft__Round *round = NULL;

    assert_int_equal(wf_control_get(m, &weft__round__descriptor, &round, NULL), WF_OK);
    p->round = round->round;
    p->round_files = (uint32_t)round->n_files;
    wf_control_free(&round);
    body.round = p->round;
    body.train_records = p->records;
    body.train_digest = p->digest;
    stage_say(p, WF_ROUND_OK, &body.base);
}

static void on_split(stage_player *p, const wf_msg *m)
{
    Weft__SplitDone body = WEFT__SPLIT_DONE__INIT;
    Weft__Split *split = NULL, *list[1] = {&p->split};

    assert_int_equal(wf_control_get(m, &weft__split__descriptor, &split, NULL), WF_OK);
    p->split = *split;
    p->dealt++;
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
    loss.sums = p->eval_sums;
    body.epoch = unit->epoch;
    body.id = unit->id;
    body.records = p->eval_found;
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
        done.again = p->saved.status == WF_AGAIN;
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

static void on_tune(stage_player *p, const wf_msg *m)
{
    Weft__Tune *body = NULL;

    assert_int_equal(wf_control_get(m, &weft__tune__descriptor, &body, NULL), WF_OK);
    stage_say(p, WF_TUNE_OK, &body->base);
    wf_control_free(&body);
}

static void on_move(stage_player *p, const wf_msg *m)
{
    Weft__Move *body = NULL;

    assert_int_equal(wf_control_get(m, &weft__move__descriptor, &body, NULL), WF_OK);
    p->move_slice = body->slice;
    p->move_to = body->to->index;
    p->move_version = body->version;
    wf_control_free(&body);
}

static void on_answer(stage_player *p, const wf_msg *m)
{
    Weft__Answer *body = NULL;

    assert_int_equal(wf_control_get(m, &weft__answer__descriptor, &body, NULL), WF_OK);
    wf_fail(&p->answer, (wf_status)body->status, body->hint, "%s", body->what);
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
    case WF_ROUND:
        on_round(p, m);
        break;
    case WF_SPLIT:
        on_split(p, m);
        break;
    case WF_EVAL:
        on_eval(p, m);
        break;
    case WF_TUNE:
        if (!p->untuned)
            on_tune(p, m);
        break;
    case WF_MOVE:
        on_move(p, m);
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

bool stage_play(stage *s, stage_player *p)
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
