/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_messages.c - messages of another protocol or job, noise, and claims that are
 * too large: the master goes on, and what is not of its job changes nothing. */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* More than an answer has room for, in a message that does come through. */
enum { MANY = 9000 };

static void another_protocol_changes_nothing(void **state)
{
    stage *s = *state;
    Weft__Hello body = WEFT__HELLO__INIT;
    wf_stranger stranger;
    char *before;
    wf_msg *m;

    stage_begin_lazy(s);
    before = stage_picture(s);
    body.version_least = body.version_most = 99;
    body.cluster = "stage";
    body.role = WF_ROLE_WORKER;
    body.peer_role = WF_ROLE_MASTER;
    body.release = "99.0";
    wf_stranger_dial(&stranger, &s->nets, "master");
    wf_stranger_send(&stranger, WF_HELLO, 99, 1, &body.base);
    stage_turn(s, 0);
    m = wf_stranger_receive(&stranger);
    assert_non_null(m);
    assert_int_equal(m->head.kind, WF_REFUSE);
    wf_msg_free(&stranger.pool, &m);
    stage_still_shows(s, before);
    wf_stranger_close(&stranger);
}

static const uint16_t worker_kinds[] = {WF_START_OK,   WF_FAULT,       WF_SPLIT_WANT, WF_SPLIT_DONE,
                                        WF_PROGRESS,   WF_EVAL_RESULT, WF_CUT_DUE,    WF_CUT_REPORT,
                                        WF_CUT_FORKED, WF_CUT_COMMIT,  WF_CUT_DONE};
static const uint16_t ps_kinds[] = {WF_SETUP_OK, WF_FAULT, WF_TUNE_OK};

static void what_is_of_another_job_or_generation_changes_nothing(void **state)
{
    stage *s = *state;

    stage_begin_lazy(s);
    for (int of = 0; of < 3; of++) {
        for (size_t i = 0; i < WF_COUNT(worker_kinds) + WF_COUNT(ps_kinds); i++) {
            bool by_ps = i >= WF_COUNT(worker_kinds);
            stage_player *p = &s->players[by_ps ? 0 : 1];
            wf_msg *m =
                stage_message(p, by_ps ? ps_kinds[i - WF_COUNT(worker_kinds)] : worker_kinds[i]);

            if (of == 0)
                m->head.job = 99;
            else
                m->head.generation = (uint16_t)(m->head.generation + (of == 1 ? 1 : -1));
            stage_changes_nothing(s, p, &m);
        }
    }
}

/* No body of ours: 0xff is a tag of a wire type that protobuf does not have. */
static void noise_changes_nothing(void **state)
{
    static const uint16_t with_body[] = {WF_REGISTER,   WF_START_OK, WF_FAULT,
                                         WF_SPLIT_DONE, WF_PROGRESS, WF_EVAL_RESULT};
    stage *s = *state;

    stage_begin_lazy(s);
    for (size_t i = 0; i < WF_COUNT(with_body); i++) {
        wf_msg *m = stage_message(&s->players[1], with_body[i]);

        memset(wf_msg_control(m, 32), 0xff, 32);
        stage_changes_nothing(s, &s->players[1], &m);
    }
    stage_let_all_train(s);
    stage_until(s, "one", "done");
}

static void a_metric_that_is_none_does_not_end_the_master(void **state)
{
    static uint8_t sums[] = {1, 200};
    stage *s = *state;
    Weft__Progress body = WEFT__PROGRESS__INIT;
    Weft__Metric metric = WEFT__METRIC__INIT, *list[1] = {&metric};

    stage_begin_lazy(s);
    metric.name = "auc";
    metric.metric = "no_such_metric";
    metric.sums.data = sums;
    metric.sums.len = sizeof sums;
    body.metrics = list;
    body.n_metrics = 1;
    stage_say(&s->players[1], WF_PROGRESS, &body.base);
    metric.sums.len = 0;
    stage_say(&s->players[1], WF_PROGRESS, &body.base);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
}

/* Splits that it never held, and more of them than the confirmation has room for. */
static void a_claim_larger_than_its_answer_does_not_end_the_master(void **state)
{
    stage *s = *state;
    Weft__Register body = WEFT__REGISTER__INIT;
    Weft__CutReport report = WEFT__CUT_REPORT__INIT;
    Weft__Split *rows = calloc(MANY, sizeof *rows), **list = calloc(MANY, sizeof(*list));

    assert_true(rows && list);
    stage_begin_lazy(s);
    for (uint32_t i = 0; i < MANY; i++) {
        weft__split__init(&rows[i]);
        rows[i].id = rows[i].begin = rows[i].next = rows[i].end = UINT64_MAX;
        rows[i].cut_at = UINT64_MAX;
        rows[i].epoch = UINT32_MAX;
        list[i] = &rows[i];
    }
    body.job = "one";
    body.job_id = s->players[1].job_id;
    body.generation = s->players[1].generation;
    body.ready = true;
    body.train_records = STAGE_RECORDS;
    body.finished = list;
    body.n_finished = MANY;
    stage_say(&s->players[1], WF_REGISTER, &body.base);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
    stage_say(&s->players[1], WF_CUT_DUE, NULL);
    stage_turn(s, 0);
    report.open = list;
    report.n_open = MANY;
    report.finished = list;
    report.n_finished = MANY / 2;
    for (uint32_t cut = 0; cut < 3; cut++) {
        wf_msg *m = stage_message(&s->players[2], WF_CUT_REPORT);

        m->head.cut = cut;
        assert_int_equal(wf_control_put(m, &report.base, NULL), WF_OK);
        stage_send(&s->players[2], &m);
        stage_turn(s, 0);
        assert_int_equal(s->rc, WF_OK);
    }
    free(rows);
    free(list);
}

/* The last cut of a job that is asked to stop, which its workers never come to. */
static void a_chief_without_the_right_commits_nothing(void **state)
{
    static const uint16_t kinds[] = {WF_CUT_COMMIT, WF_CUT_DONE};
    Weft__CutDone done = WEFT__CUT_DONE__INIT;
    stage *s = *state;

    stage_begin_lazy(s);
    stage_do(s, "stop", "one");
    stage_turn(s, 20);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 1);
    done.step = 7;
    for (size_t i = 0; i < WF_COUNT(kinds); i++) {
        wf_msg *m = stage_message(&s->players[1], kinds[i]);

        m->head.cut = 1;
        if (kinds[i] == WF_CUT_DONE)
            assert_int_equal(wf_control_put(m, &done.base, NULL), WF_OK);
        stage_changes_nothing(s, &s->players[1], &m);
    }
    stage_job_says(s, "one", "checkpoint", "null");
}

/* No generation of a job that waits is set up, so nobody can have one. */
static void what_is_said_of_a_job_that_waits_changes_nothing(void **state)
{
    Weft__Outcome outcome = WEFT__OUTCOME__INIT;
    stage *s = *state;
    uint32_t views;
    size_t journal;
    wf_msg *m;

    stage_cast(s);
    s->players[1].absent = s->players[2].absent = true;
    stage_wait(s, 30000);
    stage_submit(s, "one", "ledger");
    stage_until(s, "one", "waiting");
    outcome.status = WF_IO;
    outcome.what = "no disk";
    m = stage_message(&s->players[0], WF_SETUP_OK);
    m->head.job = 1;
    m->head.generation = 0;
    assert_int_equal(wf_control_put(m, &outcome.base, NULL), WF_OK);
    journal = stage_journal_bytes(s);
    stage_send(&s->players[0], &m);
    stage_turn(s, 0);
    stage_job_says(s, "one", "state", "waiting");
    assert_int_equal(stage_journal_bytes(s), journal);
    assert_int_equal(stage_count(s, "\"starting\""), 0);
    views = s->players[0].heard[WF_VIEW]; /* nor is it asked again, over a fresh link */
    stage_wait(s, 60000);
    assert_int_equal(s->players[0].heard[WF_VIEW], views);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(another_protocol_changes_nothing),
        STAGED(what_is_of_another_job_or_generation_changes_nothing),
        STAGED(noise_changes_nothing),
        STAGED(a_metric_that_is_none_does_not_end_the_master),
        STAGED(a_claim_larger_than_its_answer_does_not_end_the_master),
        STAGED(a_chief_without_the_right_commits_nothing),
        STAGED(what_is_said_of_a_job_that_waits_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
