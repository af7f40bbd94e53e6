/* SPDX-License-Identifier: Apache-2.0 */
/* master/member/member.h - the configured tasks, and the incarnation of each that has its place.
 *
 * The life cycle of members:
 *   absent, down, joining --hello--> joining --register--> registered
 *   unclaimed --hello--> same
 *   registered, away --hello--> away --register--> registered
 *   registered, unclaimed --register--> registered
 *   joining, unclaimed, away --link lost--> same
 *   registered --link lost--> away
 *   joining, unclaimed, away, registered --lost--> absent --taken down--> down
 *   absent --replayed--> unclaimed
 *
 * absent: no incarnation has the place. down: nor does its supervisor start one; `reason` says why.
 * joining: one has said hello, and not yet what it holds. registered: a member of the view, over a
 * link. away: a member whose link is lost, or fresh without a register. unclaimed: a member by the
 * journal, which has not registered with this incarnation of the master.
 */
#ifndef WF_MASTER_MEMBER_MEMBER_H
#define WF_MASTER_MEMBER_MEMBER_H

#include "common/log/states.h"
#include "common/wire/waiting.h"
#include "common/wire/wires.h"
#include "master/core/core.h"

typedef enum wf_member_state {
    WF_MEMBER_ABSENT = 0,
    WF_MEMBER_DOWN,
    WF_MEMBER_JOINING,
    WF_MEMBER_UNCLAIMED,
    WF_MEMBER_AWAY,
    WF_MEMBER_REGISTERED
} wf_member_state;

typedef enum wf_member_event {
    WF_MEMBER_HELLO = 0,
    WF_MEMBER_REGISTER,
    WF_MEMBER_LINK_LOST,
    WF_MEMBER_LOST,
    WF_MEMBER_TAKEN_DOWN,
    WF_MEMBER_REPLAYED
} wf_member_event;

extern const wf_states wf_member_states;

enum { WF_MEMBER_LINKS = 32 };

/* A member's part in the job in hand. The life cycle of parts:
 *   none, asked, ready --asked--> asked --done--> ready
 *   none, asked, ready --held--> ready --done--> same
 *   none, asked, ready --let go--> none
 *
 * asked: a set-up or start of `generation` was sent, or the journal says that it has steps of it.
 * held: it registers with it.
 */
typedef enum wf_part_state { WF_PART_NONE = 0, WF_PART_ASKED, WF_PART_READY } wf_part_state;
typedef enum wf_part_event {
    WF_PART_WAS_ASKED = 0,
    WF_PART_WAS_DONE,
    WF_PART_IS_HELD,
    WF_PART_LET_GO
} wf_part_event;

extern const wf_states wf_part_states;

/* What a task reports of itself with its signs of life, and what the master waits for from it:
 * beat.c, watch.c. */
typedef struct wf_progress {
    uint64_t count;              /* grows while its main thread turns or computes */
    int64_t changed_ns, beat_ns; /* when it grew; when the last beat came; 0: none yet */
    wf_waiting waits;            /* what the task waits for */
    int64_t held_ns; /* ps: when it last said that workers wait here for another; 0: never */
    wf_waiting owes; /* what the master waits for; whom is the task */
    wf_waiting_log owes_log;
    int64_t asked_ns;                    /* when the master asked for it again */
    uint64_t updates, held_bytes;        /* ps: of slices, since its process began; of them all */
    uint64_t disk_bytes;                 /* ps: of its slices, in files beside memory */
    uint64_t contained, contained_bytes; /* ps: variables of sessions */
    double updates_per_sec;
    uint32_t job;           /* ps: whose pushes the staleness is of; 0: it has had none */
    wf_histogram staleness; /* ps */
    uint64_t left_out;      /* ps: parts that came too late for their step */
    uint32_t n_links;
    struct wf_progress_link {
        wf_task peer;
        uint64_t resent_bytes, queued_bytes;
    } links[WF_MEMBER_LINKS];
} wf_progress;

/* The splits that an incarnation had in hand when it was lost, and where they went since. */
enum { WF_RETURNED = 16 };
typedef struct wf_returned {
    uint16_t generation;
    uint32_t epoch, n, waiting; /* splits; those that nobody has been given yet */
    uint64_t ids[WF_RETURNED];  /* of those that wait, as far as there is room */
    uint64_t begin, end;        /* records not known to be trained, from the first to the last */
    wf_task to;                 /* who was given the last one */
    bool to_several;
} wf_returned;

/* Failures of a worker in a generation: unfit.c. */
typedef struct wf_unfit {
    uint16_t generation;
    uint32_t failures;
    int64_t retry_ns; /* when its start is asked for again; 0: not planned */
} wf_unfit;

typedef struct wf_member {
    wf_task task;
    char address[WF_ADDRESSES_MAX];
    char fellows[WF_ADDRESSES_MAX]; /* of a worker: where others dial it; "": at its address */
    wf_member_state state;          /* written by wf_member_move alone */
    uint64_t incarnation, pid;
    uint64_t viewed; /* its incarnation in the newest view; 0: not in it */
    wf_peer *peer;   /* NULL: no link now */
    int64_t since_ns, last_heard_ns;
    int64_t challenged_ns;       /* when another process asked for its place; 0: none has */
    int64_t received_present_ns; /* what m->watch.present_ns was when it was heard last */
    wf_progress progress;
    char reason[WF_REASON]; /* how the incarnation before ended, or why it is unfit; "": neither */
    int64_t reason_ns;      /* since when */
    bool refused;           /* the reason is that its hello was refused */
    wf_returned returned;   /* of the incarnation before */
    char session[24];       /* of the supervisor that started it, as its register says */
    uint32_t view_acked;    /* ps */
    /* its part in the job in hand; of another generation this means nothing */
    wf_part_state part;  /* written by wf_member_take_part alone */
    uint16_t generation; /* of its part; 0: none */
    bool tune_sent;      /* who holds variables: the learning rate was sent over this link */
    bool wants;          /* worker: asked for a split */
    /* worker, of data that grows: the round whose files it has open, and the last that it was told
     * over this link; 0: none */
    uint32_t round, round_sent;
    bool reported; /* worker: counted in the open cut */
    double tuned;  /* the same: the rate that it has reported; 0: that of the set-up */
    wf_unfit unfit;
    uint32_t eval_failed; /* 1 + the epoch whose evaluation it could not take part in; 0: none */
    uint64_t steps;       /* worker: acknowledged, in this generation */
    double samples_per_sec;
    int64_t rate_ns;
    uint64_t compute_ns, wait_ns, transfer_ns, data_ns;
} wf_member;

/* Whether it is a member of the view. */
static inline bool wf_member_is_live(const wf_member *who)
{
    return who->state >= WF_MEMBER_UNCLAIMED;
}
/* Whether it has said what it holds, over the link that it has now. */
static inline bool wf_member_is_registered(const wf_member *who)
{
    return who->state == WF_MEMBER_REGISTERED;
}
/* Whether a worker has a generation of the job in hand, and a link over which it has said so. */
static inline bool wf_member_trains(const wf_member *who, uint16_t generation)
{
    return who->task.role == WF_ROLE_WORKER && wf_member_is_registered(who) &&
           who->part == WF_PART_READY && who->generation == generation;
}

/* Whether a live member has done its part of a generation's set-up. */
static inline bool wf_member_has_part(const wf_member *who, uint16_t generation)
{
    return wf_member_is_live(who) && who->part == WF_PART_READY && who->generation == generation;
}

/* Whether a worker is told of the job in hand: each is, but where the model is divided. */
static inline bool wf_member_may_have_job(const wf_master *m, const wf_member *who)
{
    return m->n_stages == 0 || who->task.role != WF_ROLE_WORKER || who->task.index == m->stages[0];
}
/* Whether a worker computes a stage of the job in hand. */
static inline bool wf_member_is_stage(const wf_master *m, const wf_member *who)
{
    for (uint32_t i = 0; i < m->n_stages; i++)
        if (who->task.role == WF_ROLE_WORKER && who->task.index == m->stages[i])
            return true;
    return false;
}

/* Whether variables of the job in hand live in it: in every ps, and in every worker where the
 * strategy says so; of a job that predicts in nobody. The job goes back to a checkpoint when a ps
 * is lost, or the last worker that has them. */
static inline bool wf_member_holds_variables(const wf_master *m, const wf_member *who)
{
    return !m->predicts && wf_member_may_have_job(m, who) &&
           (m->on_workers || who->task.role == WF_ROLE_PS);
}

WF_MUST_USE wf_status wf_members_index(wf_master *m, wf_err *err);
wf_member *wf_member_of(const wf_master *m, wf_task task);
/* The member at the other end of a link; NULL: none, or one with a newer link. */
wf_member *wf_member_at(const wf_master *m, const wf_peer *peer);
wf_member *wf_member_find(const wf_master *m, uint64_t incarnation);

/* Moves a member along its life cycle; the facts about members are void then. */
void wf_member_move(wf_master *m, wf_member *who, wf_member_event event);
/* An incarnation's link is up: it takes the place, which is free or its own. */
void wf_member_take_place(wf_master *m, wf_member *who, wf_peer *peer);
/* A message of a member came at that time. */
void wf_member_received(const wf_master *m, wf_member *who, int64_t at_ns);
/* A link is lost; it may be replaced, and silence decides. */
void wf_members_on_down(wf_master *m, const wf_peer *peer);
/* An incarnation is over for good (M2): its place is free, for the reason given. */
void wf_member_end(wf_master *m, wf_member *who, const char *reason);
void wf_member_keep_reason(const wf_master *m, wf_member *who, const char *reason);
/* Moves its part in the job along; with LET_GO the generation is 0. */
void wf_member_take_part(wf_master *m, wf_member *who, wf_part_event event, uint16_t generation);
/* It has no part in the job any more. */
void wf_member_leave_job(wf_master *m, wf_member *who);

/* M2: an incarnation is given up, and known to be; whether one is among the last that were. */
void wf_members_retire(wf_master *m, uint64_t incarnation);
bool wf_members_is_retired(const wf_master *m, uint64_t incarnation);

/* Sends a control message, of a step or a cut (0: of none), with a body or none; a member without a
 * link gets none, and is told at its register. */
WF_MUST_USE wf_status wf_member_send_of(wf_master *m, const wf_member *to, uint16_t kind,
                                        uint32_t step, uint32_t cut, const ProtobufCMessage *body,
                                        wf_err *err);
WF_MUST_USE wf_status wf_member_send(wf_master *m, const wf_member *to, uint16_t kind,
                                     const ProtobufCMessage *body, wf_err *err);
/* Tells an incarnation that it is no member any more; `how` is a WF_DISMISS_. */
WF_MUST_USE wf_status wf_member_dismiss(wf_master *m, wf_peer *peer, uint32_t how, wf_err *err);

/* A view of the journal: its members count as live until they have been silent for too long.
 * `generation` is of the job in hand. */
void wf_members_replay(wf_master *m, const Weft__View *view, uint16_t generation);
/* The journal says that a worker was at `steps` in the generation in hand. */
void wf_members_replay_steps(wf_master *m, uint64_t incarnation, uint64_t steps,
                             uint16_t generation);
/* "ps/1, worker/0" of those that are not live, into text. */
const char *wf_members_missing(const wf_master *m, char *text, size_t size);

#endif
