/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_stage.c - a master begins, leads a job and ends it while memory ends. It may
 * fail the job with a word of memory, or end and begin again; then the job goes on from the
 * journal. The players have all the memory that they want: the linker leads the calls of the master
 * through here
 * (--wrap), and what is allocated outside of them is spared. */
#include "common/log/log.h"
#include "master_stage.h"
#include "tests/kit/nomem_disk.h"
#include "tests/unit/nomem.h"

enum { TURNS = 1500 }; /* of 20 ms: longer than a member may be silent, and a checkpoint last */

static bool armed; /* memory may end in the master */

#define LED(call)                                                                                  \
    bool was = wf_nomem_spare(!armed);                                                             \
    wf_status rc = call;                                                                           \
                                                                                                   \
    wf_nomem_spare(was);                                                                           \
    return rc

wf_status __real_wf_master_new(const wf_master_conf *conf, int64_t now_ns, wf_master **out,
                               wf_err *err);
wf_status __wrap_wf_master_new(const wf_master_conf *conf, int64_t now_ns, wf_master **out,
                               wf_err *err);
wf_status __real_wf_master_on_event(wf_master *m, wf_event *ev, int64_t now_ns, wf_err *err);
wf_status __wrap_wf_master_on_event(wf_master *m, wf_event *ev, int64_t now_ns, wf_err *err);
wf_status __real_wf_master_advance(wf_master *m, int64_t now_ns, wf_err *err);
wf_status __wrap_wf_master_advance(wf_master *m, int64_t now_ns, wf_err *err);
wf_status __real_wf_master_submit(wf_master *m, const char *job, const char *text, const char *path,
                                  bool resume, wf_err *err);
wf_status __wrap_wf_master_submit(wf_master *m, const char *job, const char *text, const char *path,
                                  bool resume, wf_err *err);
wf_status __real_wf_model_prepare(const wf_model_spec *spec, const char *job, wf_prepared **out,
                                  wf_err *err);
wf_status __wrap_wf_model_prepare(const wf_model_spec *spec, const char *job, wf_prepared **out,
                                  wf_err *err);

wf_status __wrap_wf_master_new(const wf_master_conf *conf, int64_t now_ns, wf_master **out,
                               wf_err *err)
{
    LED(__real_wf_master_new(conf, now_ns, out, err));
}

wf_status __wrap_wf_master_on_event(wf_master *m, wf_event *ev, int64_t now_ns, wf_err *err)
{
    LED(__real_wf_master_on_event(m, ev, now_ns, err));
}

wf_status __wrap_wf_master_advance(wf_master *m, int64_t now_ns, wf_err *err)
{
    LED(__real_wf_master_advance(m, now_ns, err));
}

wf_status __wrap_wf_master_submit(wf_master *m, const char *job, const char *text, const char *path,
                                  bool resume, wf_err *err)
{
    LED(__real_wf_master_submit(m, job, text, path, resume, err));
}

/* The test's own part of a submit. */
wf_status __wrap_wf_model_prepare(const wf_model_spec *spec, const char *job, wf_prepared **out,
                                  wf_err *err)
{
    bool was = wf_nomem_spare(true);
    wf_status rc = __real_wf_model_prepare(spec, job, out, err);

    wf_nomem_spare(was);
    return rc;
}

static bool is_over(const stage *s)
{
    const char *state = s->master ? wf_master_job_state(s->master, "one") : "";

    return strcmp(state, "done") == 0 || strcmp(state, "failed") == 0;
}

/* Until the job is over, or the master. */
static void lead(stage *s)
{
    for (int i = 0; i < TURNS && s->master && !is_over(s); i++)
        stage_turn(s, 20);
}

/* With memory back: the master begins anew if it ended, and the job comes to an end. */
static wf_status go_on(stage *s, wf_err *err)
{
    wf_status rc = s->rc;

    if (rc != WF_OK) {
        *err = s->err;
        stage_raise(s);
        if (s->rc != WF_OK)
            return wrong(err, "the master cannot begin again: %s", s->err.what);
    }
    if (s->n_players == 0)
        stage_cast(s);
    if (!*wf_master_job_state(s->master, "one"))
        return rc; /* the submit is not in the journal: whoever submitted was told so */
    lead(s);
    if (!is_over(s))
        return wrong(err, "the job stands still in state \"%s\"",
                     s->master ? wf_master_job_state(s->master, "one") : "no master");
    if (strcmp(wf_master_job_state(s->master, "one"), "failed") == 0)
        return strstr(s->note, "memory")
                   ? wf_fail(err, WF_NOMEM, NULL, "the job failed: %s", s->note)
                   : wrong(err, "the job failed: %s", s->note);
    return rc;
}

static wf_status lead_a_job(void *unused, wf_err *err)
{
    bool was = wf_nomem_spare(true);
    stage *s = stage_new();
    wf_status rc = WF_OK, submitted = WF_OK;

    (void)unused;
    stage_kill(s);
    wf_nomem_disk(wf_memdisk_disk(s->disk));
    armed = true;
    stage_raise(s);
    if (s->rc == WF_OK)
        stage_cast(s);
    if (s->master)
        submitted = wf_master_submit(s->master, "one", "ledger", "", false, err);
    if (submitted == WF_OK)
        lead(s);
    armed = false;
    rc = go_on(s, err);
    stage_free(&s);
    wf_nomem_spare(was);
    return submitted != WF_OK ? submitted : rc;
}

static void a_job_is_led_to_its_end(void **state)
{
    (void)state;
    assert_survives(lead_a_job, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_led_to_its_end),
    };

    wf_log_init("", (wf_log_level)(WF_ERROR + 1));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
