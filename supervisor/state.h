/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/state.h - what the files of the supervisor share. */
#ifndef WF_SUPERVISOR_STATE_H
#define WF_SUPERVISOR_STATE_H

#include "common/wire/session.h"
#include "supervisor/life.h"
#include "supervisor/supervisor.h"

/* The last end of a task's process, as the master is to know it. */
typedef struct wf_last_end {
    uint64_t pid; /* 0: it could not be started */
    bool known, down;
    char reason[WF_SUPERVISOR_REASON];
} wf_last_end;

/* A task that is supervised. */
typedef struct wf_ward {
    const wf_supervisor_task *is;
    wf_life_state state;
    uint64_t pid; /* of its process; 0: there is none */
    int64_t started_ns;
    int64_t due_ns; /* when it is to be started, while it is due */
    wf_restart restart;
    wf_last_end last;
    char hangs[WF_SUPERVISOR_REASON / 2]; /* its process is killed for this; "": it is not */
} wf_ward;

struct wf_supervisor {
    wf_supervisor_conf conf;
    wf_session session; /* with the master, where a supervisor is a client that only reports */
    wf_ward *wards;     /* [conf.n] */
    int64_t kill_ns;    /* when those that still run are killed; 0: no end was ordered */
    bool unreported;    /* a report could not be sent for want of memory */
    int64_t again_ns;   /* when tasks that are down are reported again */
    int64_t listed_ns;  /* when those that run were listed last */
    int64_t turned_ns, awake_ns; /* its last turn; and since when it does not stand still itself */
};

/* supervisor.c: the one writer of a ward's state. */
void wf_ward_move(wf_ward *w, wf_life_event event);

/* report.c: keeps the last end of a task, and reports it if there is a link to the master. */
void wf_report_end(wf_supervisor *s, wf_ward *w, uint64_t pid, bool down, const char *reason);
/* The master may have missed ends, and one that has started again knows of none. */
void wf_report_all(wf_supervisor *s);
/* Reports what is to be reported again. */
void wf_report_advance(wf_supervisor *s, int64_t now_ns);

/* hung.c: tells the master which processes run, and kills a master that hangs. */
void wf_hung_advance(wf_supervisor *s, int64_t now_ns);
/* Kills the process that the master names; one that is another by now, or of no task, stays. */
void wf_hung_on_message(wf_supervisor *s, const wf_msg *m);

/* end.c: kills what has not ended in time. */
void wf_end_advance(wf_supervisor *s, int64_t now_ns);

#endif
