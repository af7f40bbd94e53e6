/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/master_loop.h - the master's part of a process's loop: its state folder, what it must not
 * wait for in the background, and an iteration.
 *
 * Threading: all functions are for the loop's thread. */
#ifndef WF_RUNTIME_MASTER_LOOP_H
#define WF_RUNTIME_MASTER_LOOP_H

#include "common/base/disk.h"
#include "common/conf/conf.h"
#include "common/wire/net.h"
#include "master/generation/prepare.h"
#include "master/master.h"
#include "runtime/background.h"
#include "runtime/history.h"
#include <stdbool.h>

typedef struct wf_master_loop {
    wf_master *master;
    wf_background *background;
    wf_history history;
    wf_master_cluster cluster; /* a compilation may go on while the configuration is freed */
    wf_arena *arena;           /* of the cluster's lists */
    char *state_dir, *jobs_dir, *checkpoint_dir;
    wf_disk *disk; /* of the journal and of checkpoints */
    int lock;
    const wf_named_list *optimizer; /* that jobs go on with, as wf_prepared has it; NULL: none */
} wf_master_loop;

/* Locks the state folder of `conf`, makes folders, starts the background threads and the master.
 * `session` is borrowed; each run has a folder in `jobs_dir`; `strategy` is whatever jobs say, or
 * NULL; journal and checkpoints are on `disk`. Close it after an error as well. Errors: WF_EXISTS
 * when another master uses the folder; WF_IO; WF_NOMEM; those of the journal. */
WF_MUST_USE wf_status wf_master_loop_open(wf_master_loop *l, const wf_cluster_conf *conf,
                                          uint64_t incarnation, const char *session,
                                          const char *jobs_dir, const char *strategy, wf_disk *disk,
                                          wf_err *err);
/* What the master wants of its net: to be called before the net is made. */
void wf_master_loop_admit(const wf_master_loop *l, wf_net_conf *conf);
/* Takes events and what is done in the background, and does what is due. Sets *any if there was
 * anything to take. Errors end the process. */
WF_MUST_USE wf_status wf_master_loop_turn(wf_master_loop *l, wf_net *net, int64_t now_ns, bool *any,
                                          wf_err *err);
/* Ends it all, but for the lock, which goes last: wf_master_loop_unlock. False when a thread still
 * compiles or reads, unless that is waited for: then the process must end without freeing what that
 * reads. */
bool wf_master_loop_close(wf_master_loop *l, bool waits);
void wf_master_loop_unlock(wf_master_loop *l);

#endif
