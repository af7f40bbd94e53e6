/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_stray.c - messages that come to a master at an unlikely moment: of a generation
 * that there is not yet, of a cut whose job goes back, of a worker in the middle of an evaluation.
 */
#include "common/wire/control.h"
#include "tests/unit/master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000000 };

/* A job that is recovered before its first generation has the number of none. */
static void an_answer_to_no_set_up_is_passed_over(void **state)
{
    stage *s = *state;
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    wf_msg *m;

    stage_cast(s);
    stage_leave(&s->players[0]);
    stage_wait(s, 8000);
    stage_submit(s, "one", "ledger");
    stage_wait(s, 300);
    stage_do(s, "stop", "one");
    stage_wait(s, 300);
    stage_do(s, "recover", "one");
    stage_wait(s, 300);
    body.train_records = STAGE_RECORDS;
    m = stage_message(&s->players[1], WF_START_OK);
    m->head.job = 1;
    m->head.generation = 0;
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    stage_send(&s->players[1], &m);
    stage_wait(s, 300);
    assert_int_equal(s->rc, WF_OK);
}

static void send_of_cut(stage_player *p, uint16_t kind, uint32_t cut, const ProtobufCMessage *body)
{
    wf_msg *m = stage_message(p, kind);

    m->head.cut = cut;
    if (body)
        assert_int_equal(wf_control_put(m, body, NULL), WF_OK);
    stage_send(p, &m);
}

/* Waits for one more cut than there were, and gives its number. */
static uint32_t wait_for_cut(stage *s, uint32_t before)
{
    for (int i = 0; i < 400 && s->players[1].heard[WF_CUT_OPEN] == before; i++)
        stage_turn(s, 20);
    assert_true(s->players[1].heard[WF_CUT_OPEN] > before);
    return s->players[1].heard[WF_CUT_OPEN];
}

/* The last cut of a job, whose chief has the right to commit. The first fails, so that the players
 * may be lazy in the next. */
static uint32_t commit_final_cut(stage *s)
{
    Weft__CutReport report = WEFT__CUT_REPORT__INIT;
    uint32_t cut;

    stage_cast(s);
    s->players[1].saved = s->players[2].saved = (stage_answer){WF_IO, "no room"};
    stage_submit(s, "one", "ledger");
    cut = wait_for_cut(s, 0);
    s->players[1].lazy = s->players[2].lazy = true;
    cut = wait_for_cut(s, cut);
    for (int i = 1; i <= 2; i++) {
        report.index = s->players[i].task.index;
        report.incarnation = s->players[i].incarnation;
        send_of_cut(&s->players[i], WF_CUT_REPORT, cut, &report.base);
    }
    send_of_cut(&s->players[1], WF_CUT_FORKED, cut, NULL);
    send_of_cut(&s->players[1], WF_CUT_COMMIT, cut, NULL);
    stage_turn(s, 20);
    assert_int_equal(s->players[1].heard[WF_CUT_COMMIT], 1);
    return cut;
}

static void a_commit_and_a_disk_that_fails_come_together(void **state)
{
    stage *s = *state;
    uint32_t cut = commit_final_cut(s);
    Weft__Outcome out = WEFT__OUTCOME__INIT;
    Weft__CutDone done = WEFT__CUT_DONE__INIT;

    out.status = WF_IO;
    out.what = "disk";
    stage_say(&s->players[0], WF_SETUP_OK, &out.base);
    done.step = 16;
    send_of_cut(&s->players[1], WF_CUT_DONE, cut, &done.base);
    stage_wait(s, 300);
    assert_int_equal(s->rc, WF_OK);
}

static void turn_of_master(stage *s)
{
    wf_event ev;

    wf_net_poll(s->net, s->now_ns);
    while (s->rc == WF_OK && wf_net_event(s->net, s->now_ns, &ev))
        s->rc = wf_master_on_event(s->master, &ev, s->now_ns, &s->err);
    if (s->rc == WF_OK)
        s->rc = wf_master_advance(s->master, s->now_ns, &s->err);
}

static void a_commit_comes_when_a_ps_has_let_go(void **state)
{
    stage *s = *state;
    uint32_t cut = commit_final_cut(s);
    Weft__Register empty = WEFT__REGISTER__INIT;
    Weft__CutDone done = WEFT__CUT_DONE__INIT;

    empty.job = "";
    empty.view = s->players[0].view;
    stage_say(&s->players[0], WF_REGISTER, &empty.base);
    stage_play(s, &s->players[0]);
    s->players[0].silent = true;
    turn_of_master(s);
    done.step = 16;
    send_of_cut(&s->players[1], WF_CUT_DONE, cut, &done.base);
    stage_play(s, &s->players[1]);
    turn_of_master(s);
    assert_int_equal(s->rc, WF_OK);
}

/* Workers say how many records there are to evaluate with a result, and not when they register. */
static void an_evaluation_ends_though_a_link_is_fresh(void **state)
{
    stage *s = *state;
    stage_player *a = &s->players[1], *b = &s->players[2];
    Weft__Register body = WEFT__REGISTER__INIT;

    s->model.evaluates = true;
    s->model.eval_unit = 2;
    stage_cast(s);
    a->eval_records = b->eval_records = 0;
    stage_submit(s, "one", "ledger");
    for (int i = 0; i < 400 && a->heard[WF_EVAL] + b->heard[WF_EVAL] < 3; i++) {
        for (int k = 0; k < 3; k++)
            stage_play(s, &s->players[k]);
        turn_of_master(s);
        if (i % 10 == 9)
            s->now_ns += 20 * MS;
    }
    assert_true(a->heard[WF_EVAL] + b->heard[WF_EVAL] >= 3);
    body.job = b->job_name;
    body.job_id = b->job_id;
    body.generation = b->generation;
    body.view = b->view;
    body.ready = true;
    body.train_records = b->records;
    stage_say(b, WF_REGISTER, &body.base);
    stage_until(s, "one", "done");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(an_answer_to_no_set_up_is_passed_over),
        STAGED(a_commit_and_a_disk_that_fails_come_together),
        STAGED(a_commit_comes_when_a_ps_has_let_go),
        STAGED(an_evaluation_ends_though_a_link_is_fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
