/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/world.h - what the files of the simulator share: processes, the agenda, the bad
 * network.
 *
 *   sim.c      the loop: what happens, happens to a process, which then runs
 *   life.c     birth and death; the shells around the roles
 *   over.c     what a process began is over
 *   draw.c     a history is drawn from its seed
 *   socket.c   transports, and connections between them
 *   network.c  what becomes of a packet
 *   beat.c     signs of life, and the watchdog of a process that hangs
 *   faults.c   what goes wrong, and when
 *   moves.c    slices move between ps
 *   growth.c   files that appear while a job trains
 *   client.c   a person: a job is stopped and recovered; and deaths are told where nobody
 * supervises supervised.c  processes under the supervisor's role, which is in the client's process
 *   oracle.c   what must hold after every event; checkpoints.c: what must hold on disk; copies.c:
 *              of variables that each worker has
 */
#ifndef WF_TESTS_SIM_WORLD_H
#define WF_TESTS_SIM_WORLD_H

#include "common/base/clock.h"
#include "common/ckpt/manifest.h"
#include "common/wire/net.h"
#include "master/master.h"
#include "ps/ps.h"
#include "supervisor/supervisor.h"
#include "tests/kit/logged.h"
#include "tests/kit/memdisk.h"
#include "tests/kit/model.h"
#include "tests/sim/clock.h"
#include "tests/sim/sim.h"
#include "tests/sim/socket.h"
#include "worker/worker.h"

#define MS WF_NS_PER_MS
enum {
    MOST_PROCESSES = 256,
    MOST_SLICES = 64,
    MOST_GONE = 1024,
    TICK_MS = 50,
    DEAD_MS = 600,
    STUCK_MS = 2000,
    CUT_MS = 7000, /* longer than two long steps, one after the other */
    KEEP = 3
};

/* A file of data that grows: records [begin, begin + n). While it is written it is shorter. */
enum { MOST_FILES = 12 };
typedef struct wf_sim_file {
    char path[16];
    uint32_t begin, n;
    int64_t appears_ns, whole_ns;
} wf_sim_file;

typedef enum wf_sim_kind {
    PACKET,
    CONNECT,
    LOST, /* a connection, and its dialler learns of it */
    WAKE,
    BEAT,
    COMPUTED,
    EVALUATED,
    SAVED,
    WORKED, /* what the master began is done */
    BOOT,
    TELL,  /* a supervisor that is played has seen a death */
    ENDED, /* a process; the supervisor hears of it */
    TERM,  /* a process that was asked to end hears it */
    THAW,
    HEAL,
    /* faults */
    KILL,
    KILL_ALL,
    FREEZE,
    CUT,
    SWIZZLE,
    BREAK,
    HANG,
    BUSY,
    JUMP,
    DISK_ERROR,
    DISK_FULL,
    DISK_FREE,
    STOP,
    MOVE,
    DOWN
} wf_sim_kind;

/* The records of a worker's step. */
enum { WF_SIM_GAVE = 8, WF_SIM_BATCH = 8 };
typedef struct wf_ring_batch {
    uint32_t era, step, n, records[WF_SIM_BATCH];
} wf_ring_batch;

typedef struct wf_sim_copy wf_sim_copy; /* copies.c */

typedef struct process {
    struct wf_sim *sim;
    uint32_t number;
    wf_task task;
    char address[32];
    bool alive, frozen;
    bool hung;             /* its main thread does not go on, until the watchdog ends the process */
    int64_t busy_until_ns; /* its main thread is in a call */
    int64_t ahead_ns;      /* of its clock */
    uint64_t life;         /* the incarnation; 0 before the first boot */
    uint64_t starting;     /* the one that its supervisor has started, and that has not booted */
    wf_net *net;
    wf_peer *to_master;
    wf_socket *listener;
    wf_transport *beat;
    uint64_t turns;     /* of the main thread, and what it computed: it tells of progress */
    int64_t changed_ns; /* when that had grown */
    wf_master *master;
    wf_ps *ps;
    wf_worker *worker;
    wf_supervisor *supervisor; /* a client's */
    int64_t next_wake_ns;
    int64_t asked_ns; /* a client's last question; 0: none yet */
    /* a worker's steps in hand, by step */
    wf_train_step steps[WF_WORKER_AT_ONCE];
    bool computed[WF_WORKER_AT_ONCE]; /* its time is over, and its end is told in its turn */
    uint64_t shared_life;             /* whose `shared` is, */
    uint32_t shared_era;              /* and when */
    float shared;                     /* what WF_MODEL_SHARED was at the last step */
    wf_ring_batch gave[WF_SIM_GAVE];  /* by step */
    uint32_t acked_era, acked_clock;  /* the common step of its last that is acknowledged */
    uint32_t eval_epoch;              /* of the evaluation that was asked for last */
    uint64_t work; /* counts halts: what was begun before one does not end after it */
    uint32_t open[MOST_FILES], n_open; /* of data that grows: the files of its round, in order */
    /* of a task under its supervisor */
    uint32_t starts;
    bool given_up;
    int64_t ended_ns;
    wf_exit last_end;
    /* the oracle's: of this life */
    bool is_member;              /* of the master's newest view */
    uint32_t view;               /* a ps's highest */
    uint32_t known[MOST_SLICES]; /* incarnations that its slices knew, all members of that view */
    uint32_t cut;                /* a worker's last, in `era` */
    uint32_t era;                /* of what is below */
    uint32_t acked[MOST_SLICES]; /* the highest step of each slice that was acknowledged */
    uint32_t cut_links;          /* master_links when it was opened */
    uint32_t links;              /* how many links to ps it has had */
    uint32_t master_links;       /* and to the master */
    uint32_t log_era;            /* of a ps: of what is below */
    uint64_t lines[MOST_SLICES]; /* of the logs of its slices that were looked at */
    float first[MOST_SLICES];    /* weights of `steps` at its first step */
    uint32_t links_at_first;
} process;

/* What a slice must hold: between the parts acknowledged and the parts pushed in its generation. */
typedef struct slice_claim {
    bool known;
    uint64_t start, acked, pushed; /* updates that it began with; parts since */
    uint64_t forgotten;            /* parts of incarnations that it knows no more */
    uint32_t rows;                 /* the incarnations that it knew */
    uint64_t who[MOST_PROCESSES];
} slice_claim;

typedef struct oracle {
    uint32_t era; /* of the claims: a job's number and its generation, see wf_era */
    slice_claim slices[MOST_SLICES];
    uint32_t view, master_view;
    uint64_t members[MOST_PROCESSES]; /* of the newest view that a ps has taken */
    uint32_t n_members;
    uint64_t gone[MOST_GONE]; /* were members, and are not any more */
    uint32_t n_gone;
    uint32_t cut_era;
    uint32_t cut;
    uint64_t cut_chief;
    uint32_t committed_generation; /* the newest checkpoint that the master was told of */
    uint64_t committed_step;
    uint64_t checked_step;
    uint32_t most_complete, n_committed; /* seen on disk; told to the master */
    uint64_t worker_deaths;
    bool look_at_disk;
    uint64_t disk_changes; /* when it was looked at */
    uint32_t failing_era;  /* a push with NaN in it was refused; later ones may yet be applied */
    /* The step that a person has named, while no checkpoint of what follows is committed; -1: none
     */
    int64_t from_step;
    uint32_t from_era; /* what follows has a greater one */
    bool went_back;    /* once is enough for a job */
} oracle;

typedef struct wf_sim {
    wf_sim_spec spec;
    int64_t now_ns;
    uint64_t draws, session;
    char session_text[24];
    wf_supervisor_task tasks[MOST_PROCESSES];
    int64_t down_ns; /* when the end of all was ordered; 0: it was not */
    wf_agenda agenda;
    wf_msg_pool pool;    /* of messages under way */
    wf_socket **sockets; /* by number; NULL: closed */
    wf_connection **connections;
    uint32_t n_sockets, n_connections;
    wf_memdisk *memdisk;
    wf_disk *disk;
    process procs[MOST_PROCESSES];
    uint32_t n; /* processes; the last one is the client */
    bool severed[MOST_PROCESSES][MOST_PROCESSES];
    int64_t clogged_ns[MOST_PROCESSES][MOST_PROCESSES]; /* packets wait until then */
    char job[24];                  /* the one that runs; when it is done, the next is submitted */
    uint32_t n_done;               /* jobs */
    wf_sim_file files[MOST_FILES]; /* [spec.files] */
    Weft__FileRecords shards[MOST_FILES], *shard_list[MOST_FILES]; /* [spec.shards] */
    uint64_t master_boots;
    uint32_t last_map; /* the newest version of the slice map that a move was to make */
    int64_t quiet_ns;  /* faults and what follows from them are over by then */
    bool submitted, recovered_all, stop_wanted, stop_again, recovered;
    oracle oracle;
    wf_sim_copy *copies; /* [n_copies] */
    uint32_t n_copies;
    uint32_t copies_era, copies_view, n_copies_members; /* the newest view of those who have them */
    uint64_t copies_members[MOST_PROCESSES];
    wf_sim_result result;
    wf_status rc;
    wf_err err;
} wf_sim;

/* One that is greater is later: generations of a job follow each other, and so do jobs. */
static inline uint32_t wf_era(uint16_t job, uint16_t generation)
{
    return (uint32_t)job << 16 | generation;
}

static inline wf_model_spec wf_sim_model(const wf_sim *s)
{
    return (wf_model_spec){.seed = s->spec.seed,
                           .ps = s->spec.ps,
                           .mirrored = s->spec.ps == 0 && s->spec.workers > 1,
                           .hybrid = s->spec.hybrid,
                           .divides = s->spec.divides,
                           .records = s->spec.records,
                           .batch = s->spec.batch,
                           .epochs = s->spec.epochs,
                           .every_steps = s->spec.every_steps,
                           .every_seconds = s->spec.every_seconds,
                           .grows = s->spec.files > 0,
                           .keep = KEEP,
                           .eval_unit = 2,
                           .evaluates = s->spec.evaluates,
                           .calls_back = s->spec.calls_back,
                           .restores_best = s->spec.restores_best,
                           .logged = s->spec.logged,
                           .bounded = s->spec.bounded,
                           .together = s->spec.together,
                           .backups = s->spec.backups,
                           .push = s->spec.push,
                           .pull = s->spec.pull,
                           .balances = s->spec.balances};
}

/* Whether records were left out, for workers were killed with them again and again. */
bool wf_sim_left_out(const wf_sim *s);

/* Luck, by the seed. */
uint64_t wf_sim_below(wf_sim *s, uint64_t n);
int64_t wf_sim_between(wf_sim *s, int64_t least, int64_t most);
uint64_t wf_sim_id(void *sim); /* never 0 */
void wf_sim_plan(wf_sim *s, int64_t after_ns, wf_happening h);
/* A claim is broken: the history ends with it. */
void wf_sim_broken(wf_sim *s, const char *claim, uint64_t a, uint64_t b);
void wf_sim_failed(wf_sim *s, const char *where, wf_status rc, const wf_err *err);
/* Lets a process take what has reached it, and do what is due. */
void wf_sim_run_process(process *p);

/* The process's own monotonic clock. */
static inline int64_t wf_sim_clock(const process *p)
{
    return p->sim->now_ns + p->ahead_ns;
}

/* Whether its main thread does nothing now. */
static inline bool wf_sim_stands_still(const process *p)
{
    return p->frozen || p->hung || p->busy_until_ns > p->sim->now_ns;
}

/* network.c */
/* Takes the packet's message. */
void wf_sim_carry(wf_sim *s, wf_connection *c, wf_packet *packet);
/* Frees the packet; the process that it was for. */
uint32_t wf_sim_arrive(wf_sim *s, wf_packet *packet);

/* beat.c */
void wf_sim_begin_beats(process *p);
void wf_sim_beat(process *p);

/* life.c */
/* `life`: of the process that a supervisor has started, or 0. */
void wf_sim_boot(process *p, uint64_t life);
/* With a linger_ms that is not 0 it takes leave. */
void wf_sim_die(process *p, int linger_ms);
/* A process ends, and another one takes its place: by its supervisor, or after a while. */
void wf_sim_ends(process *p, wf_exit how);
void wf_sim_wake_at(process *p, int64_t at_ns);
/* Whether a step goes wrong: while faults are about, now and then one does. */
bool wf_sim_in_trouble(wf_sim *s);

/* over.c: what a process began is over. */
void wf_sim_over(process *p, wf_happening *h);

/* faults.c */
/* The claims about time hold again when a fault and what follows from it are over. */
void wf_sim_disturbed(wf_sim *s);
void wf_sim_plan_faults(wf_sim *s);
void wf_sim_fault(wf_sim *s, const wf_happening *h);

/* moves.c: tells a ps in the master's name to give one of its slices to another. */
void wf_sim_move(wf_sim *s);
/* Where slices move, some do while a checkpoint is taken. */
void wf_sim_cut_opens(wf_sim *s);
/* A ps is to give a slice away, by the master's order: now and then somebody dies of it. */
void wf_sim_move_begins(wf_sim *s);

/* growth.c */
void wf_sim_make_files(wf_sim *s);
WF_MUST_USE wf_status wf_sim_list_files(void *master, const char *const patterns[], size_t n,
                                        wf_arena *a, wf_listed **out, size_t *n_out, wf_err *err);
/* For wf_worker_ops: a round is opened; with NULL none is. */
WF_MUST_USE wf_status wf_sim_open_round(void *worker, const Weft__Round *round, wf_worker_job *out,
                                        wf_err *err);
/* The record at a position of the epoch's order. */
uint32_t wf_sim_record(const process *worker, uint64_t position);
/* How often each record is trained by what a ledger says, into times [records]. */
void wf_sim_claimed(const wf_sim *s, const wf_ckpt_ledger *l, uint8_t times[]);

/* client.c */
void wf_sim_tell(process *client, const process *dead, uint64_t life);
void wf_sim_client_advance(process *client);

/* supervised.c */
WF_MUST_USE wf_status wf_sim_supervise(process *client, wf_err *err);
void wf_sim_supervisor_advance(process *client);
void wf_sim_reap_later(process *p, uint64_t pid, wf_exit how);
void wf_sim_reap(wf_sim *s, const wf_happening *h);
void wf_sim_term(process *p);
void wf_sim_down(wf_sim *s);

/* copies.c */
/* Whether each worker has all variables. */
bool wf_sim_copies(const wf_sim *s);
void wf_sim_check_copy(process *ran);
/* A worker gives the gradients of a step. */
void wf_sim_gave(process *p, const wf_train_step *of);
/* What `records` of a checkpoint says becomes how often each was trained. */
void wf_sim_count_times(wf_sim *s, float records[]);
void wf_sim_free_copies(wf_sim *s);

/* oracle.c */
void wf_oracle_hear(process *p, const wf_event *ev); /* before the role takes it */
void wf_oracle_computes(process *p, uint32_t step, const float *steps);
void wf_oracle_pushes(process *p);
void wf_oracle_check(process *ran); /* after each event */
void wf_oracle_reborn(process *p);
/* The watchdog ends a process that hangs: the master must have given it up. */
void wf_oracle_ends_stuck(const process *p);
/* A history is over. */
void wf_oracle_end(wf_sim *s);
/* A process dies. What a worker trained and had not reported may be trained again. */
void wf_oracle_dies(const process *p);

/* checkpoints.c */
void wf_sim_check_disk(wf_sim *s);
/* The step of a checkpoint of the job, not the newest if there are others; -1: there is none. */
int64_t wf_sim_old_step(wf_sim *s);
void wf_sim_check_end(wf_sim *s);

#endif
