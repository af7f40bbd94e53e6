/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/idle_shell.c */
#include "tests/kit/idle_shell.h"

static wf_status start(void *arg, const Weft__Start *body, wf_worker_job *out, wf_err *err)
{
    const wf_idle_shell *s = arg;

    (void)body, (void)err;
    *out = (wf_worker_job){.batch = 1, .train_records = s->records};
    return WF_OK;
}

static void halt(void *arg)
{
    ((wf_idle_shell *)arg)->computing = false;
}

static wf_status read_range(void *arg, const wf_batch_id *range, wf_err *err)
{
    (void)arg, (void)range, (void)err;
    return WF_OK;
}

static wf_status compute(void *arg, const wf_train_step *step, wf_err *err)
{
    wf_idle_shell *s = arg;

    (void)step, (void)err;
    s->steps++;
    s->computing = true;
    return WF_OK;
}

wf_worker_ops wf_idle_shell_ops(wf_idle_shell *s)
{
    return (wf_worker_ops){
        .arg = s, .start = start, .halt = halt, .read = read_range, .compute = compute};
}

wf_status wf_idle_shell_end_step(wf_idle_shell *s, wf_worker *w, wf_err *err)
{
    bool computing = s->computing;

    s->computing = false;
    return computing ? wf_worker_on_computed(w, &(wf_train_result){0}, err) : WF_OK;
}
