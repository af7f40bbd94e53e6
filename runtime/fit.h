/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/fit.h - a job trained in this process: a master and one worker that holds the variables,
 * in one thread, over a transport in memory. It has a journal and checkpoints as every cluster has,
 * and nobody outside can reach it.
 *
 * Belongs to one thread. Time passes in wf_fit_turn and wf_fit_wait alone.
 */
#ifndef WF_RUNTIME_FIT_H
#define WF_RUNTIME_FIT_H

#include "common/base/status.h"
#include "common/conf/conf.h"
#include "common/wire/net.h"
#include "master/master.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_fit wf_fit;

typedef struct wf_fit_conf {
    const char *state_dir; /* absolute; the journal is in its folder "local", runs are in "jobs" */
    const char *checkpoint_dir;
    uint32_t threads;           /* of the executor */
    const char *device;         /* of its plans: "cuda:0"; NULL: the cpu */
    const char *const *devices; /* [n_devices]: likewise, of a job whose model is divided among */
    size_t n_devices;           /* them (`place`), a stage on each; 0: no model is divided */
    const char *loss_log;       /* as in wf_trainer_conf */
    const struct wf_memory *memory; /* likewise: borrowed until wf_fit_close */
    const wf_named_list *optimizer; /* as in wf_master_loop: borrowed until wf_fit_close */
    bool temporary;                 /* both folders go when it is over: nothing has to be durable */
} wf_fit_conf;

/* Starts it; `conf` is read during the call only. Close *out after an error as well. Errors:
 * WF_EXISTS when another does the same there; those of wf_device_open; WF_IO; WF_NOMEM. */
WF_MUST_USE wf_status wf_fit_open(const wf_fit_conf *conf, wf_fit **out, wf_err *err);
/* Ends it; what is being trained goes on when its job is submitted again. NULL is fine. */
void wf_fit_close(wf_fit **f);
/* Borrowed for its life. */
const wf_cluster_conf *wf_fit_cluster(const wf_fit *f);
wf_master *wf_fit_master(wf_fit *f);

/* Does what is due, or waits for that for `ms` at most. Errors end it all. */
WF_MUST_USE wf_status wf_fit_turn(wf_fit *f, int64_t ms, wf_err *err);

/* For a client that asks the master with messages: a transport to it, and time that passes until
 * `whose` has a message, or for `ms`. `fit` is the wf_fit. */
WF_MUST_USE wf_status wf_fit_dial(void *fit, wf_transport **out, wf_err *err);
WF_MUST_USE wf_status wf_fit_wait(void *fit, wf_net *whose, int64_t ms, wf_err *err);

#endif
