/* SPDX-License-Identifier: Apache-2.0 */
/* master/core/core.h - what all rooms of the master share: the time, the journal, the way out, and
 * where each room keeps what is its own.
 *
 * A room's part of it is of a type that the header of that room completes: who does not include the
 * header cannot look inside.
 */
#ifndef WF_MASTER_CORE_CORE_H
#define WF_MASTER_CORE_CORE_H

#include "common/base/index.h"
#include "common/base/todo.h"
#include "master/master.h"
#include "master/store/journal.h"
#include "master/store/outbox.h"

enum { WF_MASTER_METRICS = 64, WF_MASTER_RETIRED = 256, WF_REASON = 512, WF_MASTER_STAGES = 64 };

/* When the master could receive from its members; written by watch.c. */
typedef struct wf_watch {
    int64_t iteration_ns;       /* the last iteration of the loop */
    int64_t receiving_since_ns; /* the end of its last absence */
    int64_t present_ns;         /* time that it was there, in all */
    int64_t looked_ns;          /* members were looked at */
    uint32_t events;            /* messages since the last iteration */
} wf_watch;

struct wf_master {
    wf_master_conf conf;
    char *session, *journal_dir, *checkpoint_dir;
    bool replaying, other_session;
    int64_t began_ns, now_ns;
    wf_watch watch;
    wf_net *net;
    wf_journal *journal;
    wf_outbox outbox;
    bool busy;         /* a restore or a compilation is out; of a sync the journal knows */
    wf_work *finished; /* work that the master has done itself, and not looked at yet */

    /* master/member: who lives. */
    struct wf_member *members;
    uint32_t n_members, n_ps, n_workers;
    wf_index by_task; /* members */
    struct wf_facts *facts;
    bool facts_known; /* nothing that they are made of has changed since */
    bool view_stale;  /* membership changed since the last view */
    uint32_t view;
    uint32_t ps_left_out;                /* 1 + a ps of the journal's last view that cluster.yaml
                                          * has no more; 0: there is none */
    uint64_t retired[WF_MASTER_RETIRED]; /* a ring of late: they are told at the hello (M2) */
    uint32_t n_retired;
    uint64_t refused_deaths; /* reports of deaths that no supervisor sent */
    int64_t refused_log_ns;  /* when the last one was logged */

    /* master/job */
    struct wf_job **jobs;
    uint32_t n_jobs;
    struct wf_job *job;                  /* the one in hand, or NULL */
    uint16_t job_number, job_generation; /* of the one in hand, as each header has them; 0: none */

    bool predicts;   /* it has no variables: whoever is lost is no loss to it */
    bool on_workers; /* variables of it are in each worker, all of them or all but tables */
    /* The workers among which its model is divided; the first has the job, and starts the others.
     * None: each worker has the job. */
    uint32_t stages[WF_MASTER_STAGES], n_stages;

    struct wf_placement *placement; /* master/placement */

    /* master/epoch */
    wf_todo wanting;   /* members that have asked for a split, and some that do not want any */
    bool any_returned; /* a split of a lost worker may wait to be given out again */
    /* faults.c */
    bool any_unfit; /* a worker waits to be started again */
};

/* Queues a message behind the records that were journaled so far (M1), and takes *msg. */
WF_MUST_USE wf_status wf_master_send(wf_master *m, wf_peer *to, wf_msg **msg, wf_err *err);
/* Queues an event of a job likewise, and takes json. */
void wf_master_queue_note(wf_master *m, const char *job, char *json);
/* Queues likewise that the files of a job are to go. */
void wf_master_queue_removal(wf_master *m, const char *job);
/* Messages and events whose records are on disk leave the process. */
WF_MUST_USE wf_status wf_master_release(wf_master *m, wf_err *err);

#endif
