/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/weft-master.c - the master's process: a loop with one socket. */
#include "cmd/shell.h"
#include "common/base/clock.h"
#include "common/kernels/kernel.h"
#include "runtime/master_loop.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static wf_status make(wf_shell *s, wf_master_loop *l, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    char jobs[PATH_MAX];

    if (snprintf(jobs, sizeof jobs, "%s/jobs", s->conf->state_dir) >= (int)sizeof jobs)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", s->conf->state_dir);
    WF_TRY(wf_master_loop_open(l, s->conf, s->incarnation, s->session, jobs, NULL, wf_disk_posix(),
                               err));
    wf_master_loop_admit(l, &conf);
    WF_TRY(wf_shell_connect(s, &conf, err));
    wf_master_set_net(l->master, s->net);
    return WF_OK;
}

static wf_status run(wf_shell *s, wf_master_loop *l, wf_err *err)
{
    bool any;

    while (!wf_shell_stopping()) {
        WF_TRY(wf_master_loop_turn(l, s->net, wf_now_ns(), &any, err));
        wf_shell_wait(s, wf_background_fd(l->background), false);
    }
    return WF_OK;
}

int main(int argc, char *argv[])
{
    wf_master_loop l = {.lock = -1};
    wf_shell s;
    wf_err err;
    wf_status rc = wf_shell_begin(&s, WF_ROLE_MASTER, argc, argv, &err);
    bool ended;
    int code;

    wf_kernels_own_process();
    if (rc == WF_OK)
        rc = make(&s, &l, &err);
    if (rc == WF_OK)
        rc = run(&s, &l, &err);
    ended = wf_master_loop_close(&l, false);
    code = wf_shell_end(&s, rc, &err);
    if (!ended) /* a thread still compiles or reads: nobody waits for what would come of it */
        _exit(code);
    wf_master_loop_unlock(&l);
    return code;
}
