/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_hostile.c - members that say anything at any time. An edge that a life cycle
 * does not have ends the master, so no sequence of messages may lead to one: from a seed, tasks
 * send each kind of message with jobs, generations, cuts and splits that are right, old or made up,
 * while people stop the job and recover it. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MESSAGES = 250, FIRST = 40 /* incarnations of tasks that come again */ };

static uint64_t seeds = 60; /* or the test's argument */

typedef struct liar {
    stage *s;
    uint64_t state;
    stage_player *tasks[STAGE_PS + STAGE_WORKERS];
    uint64_t next_incarnation;
} liar;

static uint64_t below(liar *l, uint64_t n)
{
    l->state = wf_rng_fold(l->state, 1);
    return l->state % n;
}

/* A number that is right more often than not. */
static uint64_t about(liar *l, uint64_t right)
{
    uint64_t how = below(l, 24);

    return how == 0 ? 0 : how == 1 ? right + 1 : how == 2 ? below(l, 1000) : right;
}

static void fill_splits(liar *l, Weft__Split rows[], Weft__Split *list[], size_t *n)
{
    *n = below(l, 3);
    for (size_t i = 0; i < *n; i++) {
        weft__split__init(&rows[i]);
        rows[i].id = below(l, 8);
        rows[i].epoch = (uint32_t)below(l, 3);
        rows[i].begin = below(l, STAGE_RECORDS);
        rows[i].next = below(l, STAGE_RECORDS + 2);
        rows[i].end = below(l, STAGE_RECORDS + 2);
        list[i] = &rows[i];
    }
}

/* The body of a message of that kind; of what a member sends to the master. */
static void put_body(liar *l, const stage_player *p, wf_msg *m)
{
    static const uint32_t statuses[] = {WF_OK, WF_IO, WF_NUMERIC, WF_INVALID, WF_USAGE, WF_NOMEM};
    Weft__Split open[3], done[3], *open_list[3], *done_list[3];
    Weft__Register reg = WEFT__REGISTER__INIT;
    Weft__Outcome outcome = WEFT__OUTCOME__INIT;
    Weft__Fault fault = WEFT__FAULT__INIT;
    Weft__SplitDone split_done = WEFT__SPLIT_DONE__INIT;
    Weft__Progress progress = WEFT__PROGRESS__INIT;
    Weft__EvalResult result = WEFT__EVAL_RESULT__INIT;
    Weft__CutReport report = WEFT__CUT_REPORT__INIT;
    Weft__CutDone cut_done = WEFT__CUT_DONE__INIT;
    Weft__Tune tune = WEFT__TUNE__INIT;
    char *what = below(l, 6) ? "" : "no";
    const ProtobufCMessage *body = NULL;

    reg.open = report.open = progress.open = open_list;
    reg.finished = report.finished = split_done.splits = done_list;
    fill_splits(l, open, open_list, &reg.n_open);
    fill_splits(l, done, done_list, &reg.n_finished);
    report.n_open = progress.n_open = reg.n_open;
    report.n_finished = split_done.n_splits = reg.n_finished;
    switch (m->head.kind) {
    case WF_REGISTER:
        reg.job = "one";
        reg.job_id = about(l, p->job_id);
        reg.generation = (uint32_t)about(l, p->generation);
        reg.ready = below(l, 12) > 0;
        reg.view = below(l, 24) ? p->view : 0;
        reg.train_records = below(l, 60) ? STAGE_RECORDS : below(l, 3);
        reg.cut = (uint32_t)below(l, 3);
        reg.steps = below(l, 100);
        body = &reg.base;
        break;
    case WF_SETUP_OK:
    case WF_START_OK:
        outcome.status = below(l, 10) ? WF_OK : statuses[below(l, WF_COUNT(statuses))];
        outcome.what = what;
        outcome.train_records = below(l, 60) ? STAGE_RECORDS : below(l, 3);
        body = &outcome.base;
        break;
    case WF_FAULT:
        fault.status = statuses[below(l, WF_COUNT(statuses))];
        fault.what = what;
        fault.split = reg.n_open ? open_list[0] : NULL;
        body = &fault.base;
        break;
    case WF_SPLIT_DONE:
        body = &split_done.base;
        break;
    case WF_PROGRESS:
        progress.steps = below(l, 1000);
        body = &progress.base;
        break;
    case WF_EVAL_RESULT:
        result.epoch = (uint32_t)below(l, 3);
        result.id = below(l, 4);
        result.records = below(l, 40);
        result.what = what;
        body = &result.base;
        break;
    case WF_CUT_REPORT:
        body = &report.base;
        break;
    case WF_CUT_DONE:
        cut_done.step = below(l, 100);
        cut_done.what = what;
        body = &cut_done.base;
        break;
    case WF_TUNE_OK:
        tune.learning_rate = (double)below(l, 3);
        body = &tune.base;
        break;
    default:
        break;
    }
    if (body)
        assert_int_equal(wf_control_put(m, body, NULL), WF_OK);
}

static const uint16_t worker_kinds[] = {WF_REGISTER,   WF_START_OK,   WF_FAULT,      WF_SPLIT_WANT,
                                        WF_SPLIT_DONE, WF_PROGRESS,   WF_CUT_DUE,    WF_EVAL_RESULT,
                                        WF_CUT_DUE,    WF_CUT_REPORT, WF_CUT_FORKED, WF_CUT_COMMIT,
                                        WF_CUT_DONE};
static const uint16_t ps_kinds[] = {WF_REGISTER, WF_SETUP_OK, WF_FAULT, WF_TUNE_OK, WF_VIEW_OK};

static void send_anything(liar *l, stage_player *p)
{
    bool ps = p->task.role == WF_ROLE_PS;
    uint16_t kind = ps ? ps_kinds[below(l, WF_COUNT(ps_kinds))]
                       : worker_kinds[below(l, WF_COUNT(worker_kinds))];
    wf_msg *m;

    if (kind == WF_FAULT && below(l, 6)) /* else nothing gets far */
        return;
    m = stage_message(p, kind);
    m->head.job = (uint16_t)about(l, 1);
    m->head.generation = (uint16_t)about(l, m->head.generation);
    m->head.cut = (uint32_t)(1 + below(l, 3));
    put_body(l, p, m);
    stage_send(p, &m);
}

/* A task whose process would have ended by now comes again. */
static bool replace(liar *l, stage_player **p)
{
    wf_task task = (*p)->task;

    if (l->s->n_players == STAGE_PLAYERS)
        return false;
    stage_leave(*p);
    *p = stage_enter(l->s, task.role, task.index, l->next_incarnation++);
    (*p)->lazy = below(l, 2);
    return true;
}

static void ask_anything(liar *l)
{
    static const char *const commands[] = {"stop", "recover", "recover"};
    Weft__Ask ask = stage_ask_of(commands[below(l, WF_COUNT(commands))], "one");

    stage_ask(l->s, &ask);
}

static void members_may_say_anything(void **state)
{
    uint64_t heard[STAGE_KINDS] = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        liar l = {.s = stage_new(), .state = seed, .next_incarnation = FIRST};
        stage *s = l.s;

        s->model.evaluates = seed % 2;
        s->model.calls_back = seed % 3 == 0;
        stage_cast(s);
        for (size_t i = 0; i < WF_COUNT(l.tasks); i++)
            l.tasks[i] = &s->players[i];
        s->players[1].lazy = s->players[2].lazy = true;
        stage_submit(s, "one", "ledger");
        for (int i = 0; i < MESSAGES; i++) {
            stage_player **p = &l.tasks[below(&l, WF_COUNT(l.tasks))];

            if ((*p)->dismissed_how && !replace(&l, p))
                break;
            if (below(&l, 8) == 0)
                (*p)->lazy = !(*p)->lazy;
            send_anything(&l, *p);
            if (below(&l, 30) == 0)
                ask_anything(&l);
            stage_turn(s, (int64_t)below(&l, 300));
            if (s->rc != WF_OK)
                fail_msg("seed %lu: the master ended: %s", (unsigned long)seed, s->err.what);
        }
        for (uint32_t i = 0; i < s->n_players; i++)
            for (int kind = 0; kind < STAGE_KINDS; kind++)
                heard[kind] += s->players[i].heard[kind];
        stage_free(&s);
    }
    /* They have come far: each of these follows from an edge. */
    assert_true(heard[WF_SETUP] > seeds && heard[WF_START] > seeds && heard[WF_SPLIT] > seeds);
    assert_true(heard[WF_CUT_OPEN] > seeds && heard[WF_CUT_COMMIT] > seeds / 4);
    assert_true(heard[WF_EVAL] > seeds / 4 && heard[WF_HALT] > seeds);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_may_say_anything),
    };

    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
