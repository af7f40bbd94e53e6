/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/master_stage.c */
#include "master_stage.h"
#include "common/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS WF_NS_PER_MS
enum { ROUNDS = 40, TURNS = 500 };

wf_net_conf stage_net_conf(stage *s, wf_task self, uint64_t incarnation)
{
    wf_net_conf c = wf_memnet_conf(&s->nets, self, incarnation);

    c.pid = incarnation;
    c.ack_delay_ns = 0;
    c.ping_ns = 100 * MS;
    c.gone_ns = 1000 * MS;
    return c;
}

/* ---- the master ---- */

/* Text decides: "bad..." does not compile, nor does "batch: 666", "others" is a file of another
 * job's name, "wide" has more to say than a message carries. */
static wf_status prepare(void *arg, const char *job, const char *text, const char *path,
                         wf_prepared **out, wf_err *err)
{
    stage *s = arg;

    (void)path;
    s->compiles++;
    if ((strncmp(text, "bad", 3) == 0 || strstr(text, "batch: 666")) && s->compiled.status != WF_OK)
        return wf_fail(err, s->compiled.status, "change it", "%s", s->compiled.what);
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

static wf_status list(void *arg, const char *const patterns[], size_t n, wf_arena *a,
                      wf_listed **out, size_t *n_out, wf_err *err)
{
    const stage *s = arg;

    assert_int_equal(n, 1);
    if (s->listing != WF_OK)
        return wf_fail(err, s->listing, NULL, "%s cannot be listed", patterns[0]);
    *out = wf_arena_memdup(a, s->files, s->n_files * sizeof *s->files);
    *n_out = s->n_files;
    return WF_OK;
}

static void forget(void *arg, const char *job)
{
    stage *s = arg;
    size_t at = strlen(s->forgotten);

    snprintf(s->forgotten + at, sizeof s->forgotten - at, "%s ", job);
}

static wf_status make_master(stage *s, wf_memdisk *disk, size_t least, wf_master **out, wf_err *err)
{
    static const wf_master_task tasks[] = {{{WF_ROLE_PS, 0}, "ps-0"},
                                           {{WF_ROLE_WORKER, 0}, "worker-0"},
                                           {{WF_ROLE_WORKER, 1}, "worker-1"},
                                           {{WF_ROLE_PS, 1}, "ps-1"}};

    bool holds = s->holds_syncs || s->holds_slow;

    return wf_master_new(&(wf_master_conf){.incarnation = 1,
                                           .session = s->session,
                                           .tasks = tasks,
                                           .n_tasks = STAGE_PS + STAGE_WORKERS + s->two_ps,
                                           .disk = wf_memdisk_disk(disk),
                                           .journal_dir = "/state",
                                           .checkpoint_dir = "/ckpt",
                                           .journal_least = least,
                                           .dead_ns = 5000 * MS,
                                           .stuck_ns = 20000 * MS,
                                           .cut_ns = 3000 * MS,
                                           .ops = {.arg = s,
                                                   .begin = holds ? begin : NULL,
                                                   .prepare = prepare,
                                                   .list = list,
                                                   .note = note,
                                                   .forget = forget}},
                         s->now_ns, out, err);
}

void stage_raise(stage *s)
{
    wf_net_conf conf;

    s->rc = make_master(s, s->disk, s->journal_least, &s->master, &s->err);
    if (s->rc != WF_OK)
        return;
    conf = stage_net_conf(s, (wf_task){WF_ROLE_MASTER, 0}, wf_memnet_id(&s->nets));
    conf.admit = wf_master_admit;
    conf.admit_arg = s->master;
    conf.on_refused = wf_master_on_refused;
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

/* ---- everybody's turns ---- */

void stage_cast(stage *s)
{
    stage_enter(s, WF_ROLE_PS, 0, 10);
    stage_enter(s, WF_ROLE_WORKER, 0, 20);
    stage_enter(s, WF_ROLE_WORKER, 1, 21);
    stage_enter(s, WF_ROLE_CLIENT, 0, 30);
    stage_turn(s, 20);
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
            busy |= stage_play(s, &s->players[k]);
        busy |= lead(s);
        quiet = busy ? 0 : quiet + 1;
    }
    s->now_ns += ms * MS;
}

void stage_wait(stage *s, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 100)
        stage_turn(s, 100);
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

void stage_submit(stage *s, const char *job, const char *text)
{
    assert_int_equal(wf_master_submit(s->master, job, text, "", false, NULL), WF_OK);
}

void stage_run(stage *s, const char *job)
{
    stage_submit(s, job, "ledger");
    stage_until(s, job, "running");
}

void stage_begin_lazy(stage *s)
{
    stage_cast(s);
    s->players[1].lazy = s->players[2].lazy = true;
    stage_run(s, "one");
    stage_turn(s, 0);
    stage_turn(s, 0);
}
