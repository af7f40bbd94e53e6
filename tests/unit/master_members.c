/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_members.c - who comes in, comes twice, or says what is not of this job: the
 * master goes on, and what is not so changes nothing. */
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

/* A job with one worker at a split, and the other one as well: nothing moves by itself. */
static void begin_lazy(stage *s)
{
    stage_cast(s);
    s->players[1].lazy = s->players[2].lazy = true;
    stage_run(s, "one");
    stage_turn(s, 0);
    stage_turn(s, 0);
}

/* Workers who say that they hold nothing are started anew. */
static void let_all_train(stage *s)
{
    for (uint32_t i = 0; i < s->n_players; i++) {
        Weft__Register body = WEFT__REGISTER__INIT;

        s->players[i].lazy = false;
        if (s->players[i].task.role == WF_ROLE_WORKER && s->players[i].net)
            stage_say(&s->players[i], WF_REGISTER, &body.base);
    }
}

/* Long enough that the master's end of the link is forgotten, and not its life. */
static void let_it_be_away(stage *s, stage_player *p)
{
    p->absent = true;
    for (int ms = 0; ms < 1200; ms += 100)
        stage_turn(s, 100);
    p->absent = false;
    for (int ms = 0; ms < 500; ms += 100)
        stage_turn(s, 100);
}

/* The master took it, and neither its picture nor the journal has changed. */
static void changes_nothing(stage *s, stage_player *p, wf_msg **m)
{
    char *before = stage_picture(s), *after;
    size_t journal = stage_journal_bytes(s);

    stage_send(p, m);
    stage_turn(s, 0);
    if (s->rc != WF_OK)
        fail_msg("the master ended: %s", s->err.what);
    after = stage_picture(s);
    assert_string_equal(before, after);
    assert_int_equal(journal, stage_journal_bytes(s));
    free(before);
    free(after);
}

static void turns(stage *s, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 100)
        stage_turn(s, 100);
}

/* One hello dismissed a task: now the process in place is looked at first. */
static void a_place_that_is_held_and_answered_for_is_not_given_away(void **state)
{
    stage *s = *state;
    uint32_t view;

    begin_lazy(s);
    view = wf_master_view(s->master);
    stage_enter(s, WF_ROLE_WORKER, 0, 25);
    stage_enter(s, WF_ROLE_PS, 0, 26);
    turns(s, 8000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(s->players[i].heard[WF_DISMISS], 0);
    for (int i = 4; i < 6; i++) {
        assert_int_equal(s->players[i].heard[WF_VIEW] + s->players[i].heard[WF_START], 0);
        assert_int_equal(s->players[i].refused.status, WF_OK); /* it may ask again */
    }
    assert_int_equal(wf_master_view(s->master), view);
    let_all_train(s);
    stage_until(s, "one", "done");
}

static void a_newer_process_takes_the_place_and_the_older_one_never_comes_back(void **state)
{
    stage *s = *state;
    uint32_t view;

    begin_lazy(s);
    s->players[1].absent = true;
    stage_enter(s, WF_ROLE_WORKER, 0, 25);
    turns(s, 3000); /* less than silence takes */
    assert_int_equal(s->players[4].heard[WF_START], 1);
    view = wf_master_view(s->master);
    let_it_be_away(s, &s->players[1]);
    assert_int_equal(s->players[1].heard[WF_DISMISS], 1);
    assert_int_equal(s->players[1].dismissed_how, WF_DISMISS_SUPERSEDED);
    assert_int_equal(s->players[1].heard[WF_START], 1);
    assert_int_equal(wf_master_view(s->master), view);
    let_all_train(s);
    stage_until(s, "one", "done");
}

/* So many incarnations later that no list of them remembers. What it knows of its job is void. */
static void who_was_given_up_long_ago_never_comes_back(void **state)
{
    enum { LATER = 300 };
    stage *s = *state;
    stage_player *old, *p = NULL;
    uint32_t view;

    begin_lazy(s);
    old = &s->players[1];
    old->absent = true;
    for (uint64_t i = 0; i < LATER; i++) {
        if (p) {
            stage_leave(p);
            s->n_players--;
        }
        p = stage_enter(s, WF_ROLE_WORKER, 0, 1000 + i);
        for (int k = 0; k < 100 && !p->heard[WF_START]; k++)
            stage_turn(s, 100);
        assert_int_equal(p->heard[WF_START], 1);
    }
    stage_leave(p);
    view = wf_master_view(s->master);
    old->absent = false;
    for (int k = 0; k < 100 && old->heard[WF_DISMISS] < 1; k++)
        stage_turn(s, 100);
    assert_int_equal(old->heard[WF_DISMISS], 1);
    assert_int_equal(old->dismissed_how, WF_DISMISS_RESTART);
    assert_int_equal(old->heard[WF_START], 1);
    assert_in_range(wf_master_view(s->master), view, view + 1); /* without the one that left */
}

static void who_says_hello_again_is_still_one_member(void **state)
{
    stage *s = *state;
    uint32_t view;

    begin_lazy(s);
    view = wf_master_view(s->master);
    let_it_be_away(s, &s->players[1]);
    assert_int_equal(s->players[1].heard[WF_DISMISS], 0);
    assert_int_equal(s->players[1].heard[WF_START], 1); /* it said that it holds the job */
    assert_int_equal(wf_master_view(s->master), view);
    let_all_train(s);
    stage_until(s, "one", "done");
}

static void what_it_registers_twice_counts_once(void **state)
{
    stage *s = *state;
    Weft__Register body = WEFT__REGISTER__INIT;
    wf_msg *m;

    begin_lazy(s);
    body.job = "one";
    body.job_id = s->players[0].job_id;
    body.generation = s->players[0].generation;
    body.ready = true;
    stage_say(&s->players[0], WF_REGISTER, &body.base);
    stage_turn(s, 0); /* a ps is told the view again: that is one more */
    m = stage_message(&s->players[1], WF_REGISTER);
    body.train_records = STAGE_RECORDS;
    body.eval_records = 8;
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    changes_nothing(s, &s->players[1], &m);
    assert_string_equal(wf_master_job_state(s->master, "one"), "running");
}

static void a_task_that_is_not_in_the_file_is_told_so(void **state)
{
    stage *s = *state;
    char *before, *after;
    stage_player *p;

    begin_lazy(s);
    before = stage_picture(s);
    p = stage_enter(s, WF_ROLE_WORKER, 7, 70);
    stage_turn(s, 0);
    after = stage_picture(s);
    assert_string_equal(p->refused.what, "worker/7 is not in the master's cluster.yaml");
    assert_string_equal(p->refused.mend, "use the same cluster.yaml for all tasks");
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void another_protocol_changes_nothing(void **state)
{
    stage *s = *state;
    Weft__Hello body = WEFT__HELLO__INIT;
    wf_msg_pool pool = {0};
    wf_transport *t = NULL;
    wf_route route = {0};
    wf_msg *m = NULL;
    char *before, *after;

    begin_lazy(s);
    before = stage_picture(s);
    body.version_least = body.version_most = 99;
    body.cluster = "stage";
    body.role = WF_ROLE_WORKER;
    body.peer_role = WF_ROLE_MASTER;
    body.release = "99.0";
    assert_int_equal(wf_mem_dial(s->nets.mem, "master", &t, NULL), WF_OK);
    assert_int_equal(wf_msg_new(&pool, WF_HELLO, &m, NULL), WF_OK);
    m->head.incarnation = 99;
    m->head.sequence = 1;
    assert_int_equal(wf_control_put(m, &body.base, NULL), WF_OK);
    assert_int_equal(t->ops->send(t, &route, m, NULL), WF_OK);
    wf_msg_free(&pool, &m);
    stage_turn(s, 0);
    m = t->ops->receive(t, &pool, &route);
    assert_non_null(m);
    assert_int_equal(m->head.kind, WF_REFUSE);
    wf_msg_free(&pool, &m);
    after = stage_picture(s);
    assert_string_equal(before, after);
    free(before);
    free(after);
    t->ops->close(t, 0);
    wf_msg_pool_close(&pool);
}

static const uint16_t worker_kinds[] = {WF_START_OK,   WF_FAULT,       WF_SPLIT_WANT, WF_SPLIT_DONE,
                                        WF_PROGRESS,   WF_EVAL_RESULT, WF_CUT_DUE,    WF_CUT_REPORT,
                                        WF_CUT_FORKED, WF_CUT_COMMIT,  WF_CUT_DONE};
static const uint16_t ps_kinds[] = {WF_SETUP_OK, WF_FAULT, WF_TUNE_OK};

static void what_is_of_another_job_or_generation_changes_nothing(void **state)
{
    stage *s = *state;

    begin_lazy(s);
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
            changes_nothing(s, p, &m);
        }
    }
}

/* No body of ours: 0xff is a tag of a wire type that protobuf does not have. */
static void noise_changes_nothing(void **state)
{
    static const uint16_t with_body[] = {WF_REGISTER,   WF_START_OK, WF_FAULT,
                                         WF_SPLIT_DONE, WF_PROGRESS, WF_EVAL_RESULT};
    stage *s = *state;

    begin_lazy(s);
    for (size_t i = 0; i < WF_COUNT(with_body); i++) {
        wf_msg *m = stage_message(&s->players[1], with_body[i]);

        memset(wf_msg_control(m, 32), 0xff, 32);
        changes_nothing(s, &s->players[1], &m);
    }
    let_all_train(s);
    stage_until(s, "one", "done");
}

static void a_metric_that_is_none_does_not_end_the_master(void **state)
{
    static uint8_t sums[] = {1, 200};
    stage *s = *state;
    Weft__Progress body = WEFT__PROGRESS__INIT;
    Weft__Metric metric = WEFT__METRIC__INIT, *list[1] = {&metric};

    begin_lazy(s);
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
    begin_lazy(s);
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

static void who_holds_a_job_that_is_over_lets_go_of_it(void **state)
{
    stage *s = *state;
    Weft__Register body = WEFT__REGISTER__INIT;
    uint32_t halts;

    begin_lazy(s);
    halts = s->players[2].heard[WF_HALT];
    body.job = "another";
    body.generation = 3;
    body.ready = true;
    stage_say(&s->players[2], WF_REGISTER, &body.base);
    stage_turn(s, 0);
    assert_int_equal(s->players[2].heard[WF_HALT], halts + 1);
}

/* A ps that outlived a state folder which was wiped: its job has the name, the number and the
 * generation of the one that was submitted since. */
static void a_job_of_the_same_name_in_a_wiped_folder_is_another(void **state)
{
    stage *s = *state;
    Weft__Register body = WEFT__REGISTER__INIT;
    uint32_t setups;

    begin_lazy(s);
    setups = s->players[0].heard[WF_SETUP];
    body.job = "one";
    body.job_id = s->players[0].job_id + 1;
    body.generation = s->players[0].generation;
    body.ready = true;
    stage_say(&s->players[0], WF_REGISTER, &body.base);
    turns(s, 500);
    assert_int_equal(s->players[0].heard[WF_HALT], 1);
    assert_int_equal(s->players[0].heard[WF_SETUP], setups + 1);
}

/* The worker holds on, and is told again: nobody trains on while a checkpoint is being made. */
static void a_link_that_breaks_during_a_hold_neither_ends_nor_repeats_the_checkpoint(void **state)
{
    stage *s = *state;
    Weft__Ask ask = WEFT__ASK__INIT;

    begin_lazy(s);
    ask.command = "stop";
    ask.job = "one";
    assert_int_equal(stage_ask(s, &ask)->status, WF_OK);
    turns(s, 200);
    assert_int_equal(s->players[2].heard[WF_CUT_OPEN], 1);
    let_it_be_away(s, &s->players[2]); /* not the chief */
    assert_int_equal(s->players[2].heard[WF_CUT_OPEN], 2);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 1);
    for (int i = 1; i <= 2; i++)
        assert_int_equal(s->players[i].heard[WF_CUT_RESUME] + s->players[i].heard[WF_CUT_ABORT], 0);
}

/* What the chief has said meanwhile is read before its time is up. */
static void a_checkpoint_is_not_given_up_for_the_masters_absence(void **state)
{
    stage *s = *state;
    Weft__Ask ask = WEFT__ASK__INIT;

    begin_lazy(s);
    ask.command = "stop";
    ask.job = "one";
    assert_int_equal(stage_ask(s, &ask)->status, WF_OK);
    turns(s, 200);
    assert_int_equal(s->players[1].heard[WF_CUT_OPEN], 1);
    s->now_ns += INT64_C(8000000000);
    assert_int_equal(wf_master_advance(s->master, s->now_ns, NULL), WF_OK);
    turns(s, 1000);
    for (int i = 1; i <= 2; i++)
        assert_int_equal(s->players[i].heard[WF_CUT_ABORT] + s->players[i].heard[WF_DISMISS], 0);
    let_all_train(s);
    stage_until(s, "one", "stopped");
}

static void a_ps_is_told_what_has_changed_and_a_new_one_all(void **state)
{
    stage *s = *state;

    begin_lazy(s);
    assert_int_equal(wf_master_view(s->master), s->players[0].view);
    s->players[2].absent = true; /* and another process takes its place */
    stage_enter(s, WF_ROLE_WORKER, 1, 35);
    turns(s, 3000);
    assert_int_equal(s->players[4].heard[WF_START], 1);
    assert_int_equal(s->players[0].view, wf_master_view(s->master));
    assert_int_equal(s->players[0].view_since, s->players[0].view - 1);
    assert_int_equal(s->players[0].view_members, 1);
    assert_int_equal(s->players[0].view_left, 0); /* in the view before */
    let_it_be_away(s, &s->players[0]); /* its link is forgotten: what it has is not known */
    assert_int_equal(s->players[0].view_since, 0);
    assert_int_equal(s->players[0].view_members, 3);
}

static void died(stage *s, uint32_t role, uint32_t index, uint64_t pid)
{
    Weft__Died body = WEFT__DIED__INIT;

    body.role = role;
    body.index = index;
    body.pid = pid;
    body.reason = "killed by signal 9";
    body.session = (char *)s->session;
    stage_say(&s->players[3], WF_DIED, &body.base);
    stage_turn(s, 0);
    assert_int_equal(s->rc, WF_OK);
}

static void a_death_is_believed_of_this_very_process_only(void **state)
{
    stage *s = *state;
    char *before, *after;

    begin_lazy(s);
    before = stage_picture(s);
    died(s, WF_ROLE_WORKER, 0, 999);
    died(s, WF_ROLE_WORKER, 77, 20);
    died(s, 4711, 0, 20);
    after = stage_picture(s);
    assert_string_equal(before, after);
    free(before);
    free(after);
    stage_leave(&s->players[1]);
    died(s, WF_ROLE_WORKER, 0, 20);
    after = stage_picture(s);
    assert_non_null(strstr(after, "killed by signal 9"));
    free(after);
    let_all_train(s);
    stage_until(s, "one", "done");
}

/* It is in an older view of the journal, and in none that follows: nobody waits for its claims. */
static void who_was_lost_before_the_master_ended_is_not_waited_for(void **state)
{
    static const char *const sessions[] = {"first", "second"};
    stage *s = *state;

    begin_lazy(s);
    stage_leave(&s->players[2]);
    died(s, WF_ROLE_WORKER, 1, 21);
    for (int i = 0; i < 2; i++) {
        Weft__Ask recover = WEFT__ASK__INIT;

        stage_kill(s);
        s->session = sessions[i];
        stage_raise(s);
        assert_int_equal(s->rc, WF_OK);
        if (i == 1) { /* everything had ended: what the players hold is of the other session */
            stage_leave(&s->players[0]);
            stage_leave(&s->players[1]);
            stage_enter(s, WF_ROLE_PS, 0, 40);
            stage_enter(s, WF_ROLE_WORKER, 0, 41);
            recover.command = "recover";
            recover.job = "one";
            recover.from_step = -1;
            for (int ms = 0; ms < 1000; ms += 100)
                stage_turn(s, 100);
            assert_int_equal(stage_ask(s, &recover)->status, WF_OK);
            break;
        }
        for (int ms = 0; ms < 1000; ms += 100)
            stage_turn(s, 100);
        s->players[1].heard[WF_SPLIT] = 0;
        s->players[1].split.next = s->players[1].split.end; /* it is done, and a next is wanted */
        stage_say(&s->players[1], WF_SPLIT_WANT, NULL);
        stage_turn(s, 20);
        assert_int_equal(s->players[1].heard[WF_SPLIT], 1);
    }
    stage_until(s, "one", "done");
}

/* A worker that dies of the first split it is dealt; `life` is its incarnation. */
static void dies_of_a_split(stage *s, uint64_t life)
{
    stage_player *p = stage_enter(s, WF_ROLE_WORKER, 0, life);

    p->lazy = true;
    for (int i = 0; i < 20 && p->heard[WF_SPLIT] == 0; i++)
        stage_turn(s, 20);
    assert_int_equal(p->heard[WF_SPLIT], 1);
    stage_leave(p);
    died(s, WF_ROLE_WORKER, 0, life);
}

static void field_says(stage *s, const char *field, const char *words)
{
    char *text = stage_job_field(s, "one", field);

    if (!strstr(text, words))
        fail_msg("%s is %s, which does not say %s", field, text, words);
    free(text);
}

static void only_a_ps_and_a_client(stage *s)
{
    stage_cast(s);
    for (uint64_t i = 1; i <= 2; i++) {
        stage_leave(&s->players[i]);
        died(s, WF_ROLE_WORKER, (uint32_t)i - 1, 19 + i);
    }
    assert_int_equal(wf_master_submit(s->master, "one", "ledger", "", false, NULL), WF_OK);
}

static void a_split_that_kills_three_times_is_set_aside_and_reported(void **state)
{
    stage *s = *state;

    only_a_ps_and_a_client(s);
    dies_of_a_split(s, 50);
    dies_of_a_split(s, 51);
    field_says(s, "left_out_records", "0");
    dies_of_a_split(s, 52);
    field_says(s, "left_out_records", "4");
    field_says(
        s, "events",
        "split 0 of epoch 1 (positions 0 to 3 of its order) is left out: 3 workers have died "
        "of it, the last one: killed by signal 9");
    stage_kill(s); /* it is on disk */
    stage_raise(s);
    assert_int_equal(s->rc, WF_OK);
    field_says(s, "left_out_records", "4");
    field_says(s, "epoch_trained", "4");
    stage_enter(s, WF_ROLE_WORKER, 0, 60);
    stage_until(s, "one", "done");
    field_says(s, "left_out_records", "4");
}

static void workers_that_die_of_everything_end_the_job(void **state)
{
    stage *s = *state;

    only_a_ps_and_a_client(s);
    for (uint64_t life = 50; life < 61; life++)
        dies_of_a_split(s, life);
    assert_string_equal(wf_master_job_state(s->master, "one"), "running");
    dies_of_a_split(s, 61);
    assert_string_equal(wf_master_job_state(s->master, "one"), "failed");
    field_says(s, "reason", "workers die whatever they train, the last one: killed by signal 9");
    field_says(s, "mend", "see the workers' logs");
    field_says(s, "left_out_records", "12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(a_place_that_is_held_and_answered_for_is_not_given_away),
        STAGED(a_job_of_the_same_name_in_a_wiped_folder_is_another),
        STAGED(a_link_that_breaks_during_a_hold_neither_ends_nor_repeats_the_checkpoint),
        STAGED(a_checkpoint_is_not_given_up_for_the_masters_absence),
        STAGED(a_ps_is_told_what_has_changed_and_a_new_one_all),
        STAGED(a_newer_process_takes_the_place_and_the_older_one_never_comes_back),
        STAGED(who_was_given_up_long_ago_never_comes_back),
        STAGED(who_says_hello_again_is_still_one_member),
        STAGED(what_it_registers_twice_counts_once),
        STAGED(a_task_that_is_not_in_the_file_is_told_so),
        STAGED(another_protocol_changes_nothing),
        STAGED(what_is_of_another_job_or_generation_changes_nothing),
        STAGED(noise_changes_nothing),
        STAGED(a_metric_that_is_none_does_not_end_the_master),
        STAGED(a_claim_larger_than_its_answer_does_not_end_the_master),
        STAGED(who_holds_a_job_that_is_over_lets_go_of_it),
        STAGED(a_death_is_believed_of_this_very_process_only),
        STAGED(who_was_lost_before_the_master_ended_is_not_waited_for),
        STAGED(a_split_that_kills_three_times_is_set_aside_and_reported),
        STAGED(workers_that_die_of_everything_end_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
