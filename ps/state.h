/* SPDX-License-Identifier: Apache-2.0 */
/* ps/state.h - what the handlers of this room share; nobody else includes it. */
#ifndef WF_PS_STATE_H
#define WF_PS_STATE_H

#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/histogram.h"
#include "common/base/index.h"
#include "common/kernels/pool.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/parts.h"
#include "common/wire/session.h"
#include "ps/clocks.h"
#include "ps/containers.h"
#include "ps/life.h"
#include "ps/map.h"
#include "ps/ps.h"
#include "ps/together.h"

/* wf_var_kind of common/graph, as the wire carries it. */
enum { WF_PS_TRAINABLE = 1, WF_PS_STATISTIC = 2 };

/* A worker has one pull open for each of its weight sets, and one for frozen variables. */
enum { WF_PS_MAX_LISTS = 16, WF_PS_MAX_PULLS = 5 };

/* A worker registers the slices that it pulls and pushes once, and then names the list. */
typedef struct wf_ps_list {
    uint32_t *slices; /* places in ps->slices */
    uint32_t *where;  /* [n_slices of the ps]: 1 + a slice's place in the list; 0: not in it */
    uint32_t n;
} wf_ps_list;

/* A pull that waits, slice by slice, for pushes of its worker (P3), or for room (P6). */
typedef struct wf_ps_pull {
    bool open, behind; /* behind: ready slices are not answered yet, because there is no room */
    uint32_t list, request, step, after, clock, left;
    int64_t since_ns;
    uint8_t *answered; /* [n of the list] */
    uint32_t room;
    wf_rows *rows; /* [n of the list]: of tables, what is asked for; their ids are in `ids` */
    wf_buf **ids;  /* [n_ids]: frames of the pull */
    uint32_t n_ids;
    struct wf_answer_room *into; /* answer.c's; NULL: nothing was answered into memory of its own */
} wf_ps_pull;

typedef struct wf_ps_worker {
    wf_peer *peer;
    uint32_t at;  /* place in ps->workers */
    bool in_view; /* P4 */
    bool denied;  /* a push, of a slice on its way, or its lists: no push counts before a new one */
    bool is_behind; /* in the list of those with a pull that is behind */
    struct wf_ps_worker *next_behind;
    wf_ps_list lists[WF_PS_MAX_LISTS];
    wf_ps_pull pulls[WF_PS_MAX_PULLS];
} wf_ps_worker;

/* The last cut that copies were taken for: a chief whose link was lost asks again. */
typedef struct wf_ps_saving {
    uint64_t chief; /* 0: none */
    uint32_t cut;
    uint16_t generation;
    wf_bytes said; /* the packed body of WF_CUT_SAVED, once the shard is written */
} wf_ps_saving;

/* The slice that this ps gives to another (move.c); one at a time. */
typedef struct wf_ps_move {
    wf_move_state state; /* written by change (move.c) alone */
    uint32_t slice, version, to;
    uint64_t incarnation; /* of the other */
    wf_peer *peer;        /* the other, dialled */
    int64_t since_ns;
    int64_t frozen_ns; /* since when the slice is not served */
} wf_ps_move;

typedef struct wf_ps_member {
    uint32_t role, index;
    uint64_t incarnation;
} wf_ps_member;

/* The parts of a step that workers have made together, for one slice: [n] in ps->together.taken. */
typedef struct wf_ps_group {
    wf_slice *slice;
    uint32_t first, n;
} wf_ps_group;

/* One part that is being applied, and its place among the chunks of all. */
typedef struct wf_ps_update {
    wf_slice_update update;
    uint64_t first_chunk;
    wf_slice_part rows; /* of a table: the mean of a group, which this owns */
    float *mean;        /* else: where the mean of a group goes; NULL: the part is one push's */
    uint64_t staleness; /* updates between its pull and now; 0 of a group */
    wf_ps_group group;
    uint64_t records; /* of the group */
} wf_ps_update;

/* acks.c: applied pushes that are to be acknowledged, in order. */
typedef struct wf_ps_ack {
    wf_ps_worker *worker;    /* NULL: its link is lost */
    uint32_t step, first, n; /* slices [first, first + n) */
} wf_ps_ack;
typedef struct wf_acks {
    wf_ps_ack *rows;
    uint32_t *slices;
    uint32_t n, room, n_slices, slices_room;
} wf_acks;

struct wf_ps {
    wf_ps_conf conf;
    wf_net *net;
    wf_session session; /* with the master; a fault in it ends the job */
    /* the view */
    uint32_t view;
    wf_ps_member *members;
    uint32_t n_members;
    wf_index in_view; /* members by incarnation */
    /* the job */
    wf_ps_state state;               /* written by wf_ps_change alone */
    uint16_t job_number, generation; /* of the last set-up; 0: there was none */
    uint64_t job_id;
    wf_map map;
    wf_arena *arena; /* of the job's names and arrays */
    const char *job, *checkpoint_dir;
    wf_ps_variable *variables;
    uint32_t n_variables;
    wf_opt opt;
    wf_slice **slices; /* [n_slices]: those of this ps */
    uint32_t n_slices;
    uint64_t updates_done;  /* of slices, of whatever job */
    wf_histogram staleness; /* of the parts applied in this generation: updates since their pull */
    uint32_t *place;        /* [map.n]: slice id -> place in slices, UINT32_MAX when not here */
    wf_ps_move move;
    wf_ps_worker **workers;
    uint32_t n_workers;
    wf_ps_worker *behind;
    size_t answer_room; /* bytes that one worker may have been sent and not have taken (P6) */
    wf_pool *pool;
    wf_part parts[WF_MAX_PARTS];        /* of the message in hand */
    wf_ps_update updates[WF_MAX_PARTS]; /* of them, those to be applied */
    wf_acks acks;
    wf_ps_saving saving;
    bool bounded;         /* pulls wait for slower workers */
    bool staleness_aware; /* a stale gradient is applied with a smaller learning rate */
    wf_clocks clocks;
    wf_together together;
    uint64_t left_out;         /* parts that came too late for their step, in this generation */
    int64_t load_ns;           /* since when what slices cost is counted; 0: not yet */
    int64_t now_ns;            /* of the event in hand */
    wf_containers *containers; /* of clients: no job touches them (P8) */
};

/* Whether this ps has reported that a table or its disk is full: the job is over. */
static inline bool wf_ps_is_full(const wf_ps *ps)
{
    return ps->session.fault.status == WF_FULL;
}

/* on_setup.c */
WF_MUST_USE wf_status wf_ps_on_view(wf_ps *ps, const wf_msg *m, wf_err *err);
WF_MUST_USE wf_status wf_ps_on_setup(wf_ps *ps, const wf_msg *m, wf_err *err);
void wf_ps_clear_job(wf_ps *ps);

/* on_push.c: a part of a push as slices take it; borrowed from the message. */
wf_slice_part wf_ps_part(const wf_msg *m, uint64_t incarnation, const wf_part *p);

/* apply.c: applies the first n of ps->parts, each at most once (P2). Errors: WF_NOMEM; WF_FULL,
 * which is reported to the master: some parts are not applied then. */
WF_MUST_USE wf_status wf_ps_apply(wf_ps *ps, uint64_t incarnation, const wf_msg *m, uint32_t n,
                                  wf_err *err);

/* And one update for each group, the mean of its parts: all of which count as seen. */
WF_MUST_USE wf_status wf_ps_apply_together(wf_ps *ps, const wf_ps_group groups[], uint32_t n,
                                           wf_err *err);

/* together.c: holds the first n of ps->parts, of a push that was checked, and applies what is
 * complete. Errors: WF_PROTO for a push without a clock, WF_NOMEM. */
WF_MUST_USE wf_status wf_together_hold(wf_ps *ps, wf_ps_worker *w, const wf_msg *m,
                                       const wf_push_body *body, uint32_t n, wf_err *err);
/* Applies what is complete, after clocks, members or slices have changed; nothing in a job whose
 * workers make no steps together. */
WF_MUST_USE wf_status wf_together_advance(wf_ps *ps, wf_err *err);
/* Whether a slice has not applied yet what other workers make up to `clock`. */
bool wf_together_holds_back(const wf_ps *ps, const wf_slice *s, uint64_t incarnation,
                            int64_t clock);
/* And who makes it wait; NULL where all parts are here, or those that count are decided. */
const wf_clock *wf_together_late(const wf_ps *ps, const wf_slice *s, uint64_t incarnation,
                                 int64_t clock);
/* What another ps has decided, from a worker. Errors: WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_ps_on_decided(wf_ps *ps, const wf_msg *m, wf_err *err);
/* Tells a worker whose link is fresh what was decided here. */
WF_MUST_USE wf_status wf_together_tell(wf_ps *ps, const wf_ps_worker *w, wf_err *err);
/* The part that is held longest because of another worker, and that one; NULL: there is none. */
const wf_held_part *wf_together_find_held(const wf_ps *ps, const wf_clock **late);
void wf_together_close(wf_together *t);

/* load.c: fills the slices of this ps from the first values or the checkpoint of the set-up. */
WF_MUST_USE wf_status wf_ps_load(wf_ps *ps, const Weft__Setup *setup, wf_err *err);

/* on_pull.c */
WF_MUST_USE wf_status wf_ps_on_list(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err);
WF_MUST_USE wf_status wf_ps_on_pull(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err);
/* Answers pulls of the worker that have waited for one of the slices [n], given by their ids. */
WF_MUST_USE wf_status wf_ps_answer_waiting(wf_ps *ps, wf_ps_worker *w, const uint32_t slices[],
                                           uint32_t n, wf_err *err);
/* The same for all other workers, which may have waited for that one's steps (ps/clocks.h). */
WF_MUST_USE wf_status wf_ps_answer_others(wf_ps *ps, const wf_ps_worker *w, const uint32_t slices[],
                                          uint32_t n, wf_err *err);
/* Looks at all pulls again that have waited for other workers: the clocks have changed. */
WF_MUST_USE wf_status wf_ps_answer_held(wf_ps *ps, wf_err *err);
/* The worker whose pull has waited longest for another, and for whom; NULL: none does. */
const wf_ps_pull *wf_ps_find_held(const wf_ps *ps, wf_task *waits, wf_task *late, uint32_t *step);
/* Answers pulls that are behind, as far as there is room now. */
WF_MUST_USE wf_status wf_ps_answer_behind(wf_ps *ps, wf_err *err);
/* Sets answer_room, after the number of workers or the slices have changed. */
void wf_ps_share_room(wf_ps *ps);
/* Frees all lists and pulls of a worker. */
void wf_ps_close_pulls(wf_ps *ps, wf_ps_worker *w);

/* weights.c: how n weights of a slice are to be written for a pull. */
wf_coding wf_weights_coding(const wf_ps *ps, const wf_slice *s, uint64_t n);
/* Writes them so: a reference to what is sent takes the place of *values, float32, and *coding says
 * what it is. Weights that the coding cannot say stay as they are. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_weights_write(const wf_ps *ps, const wf_slice *s, const wf_peer *to,
                                       wf_buf **values, wf_coding *coding, wf_err *err);

/* rows.c: whether the parts [n] of a pull name rows of tables in its list. Errors: WF_PROTO,
 * WF_SHAPE. And notes these for the pull, whose `answered` and `left` are set for whole slices.
 * Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_ps_check_rows(const wf_ps *ps, const wf_ps_list *list, const wf_msg *m,
                                       const wf_part parts[], uint32_t n, wf_err *err);
WF_MUST_USE wf_status wf_ps_take_rows(const wf_ps *ps, const wf_ps_list *list, const wf_msg *m,
                                      const wf_part parts[], uint32_t n, wf_ps_pull *pull,
                                      wf_err *err);
void wf_ps_drop_rows(wf_ps_pull *pull);

/* ps.c: members have changed; drops workers that are not members any more. */
void wf_ps_check_workers(wf_ps *ps);

/* on_push.c */
WF_MUST_USE wf_status wf_ps_on_push(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err);

/* acks.c: hands over a push whose parts of the slices [n] are applied; its acknowledgement leaves
 * from wf_acks_advance, when nothing is left to wait for. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_acks_add(wf_ps *ps, wf_ps_worker *w, uint32_t step,
                                  const uint32_t slices[], uint32_t n, wf_err *err);
WF_MUST_USE wf_status wf_acks_advance(wf_ps *ps, wf_err *err);
/* The worker's link is lost: it gets none of those that wait. */
void wf_acks_forget(wf_ps *ps, const wf_ps_worker *w);
void wf_acks_close(wf_acks *a);

/* on_clock.c */
WF_MUST_USE wf_status wf_ps_on_clock(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err);

/* on_tune.c */
WF_MUST_USE wf_status wf_ps_on_tune(wf_ps *ps, const wf_msg *m, wf_err *err);

/* on_variable.c: what clients of sessions ask; their errors are answered. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_ps_on_client(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err);
/* on_contained.c: a client asks which variables there are. Errors: WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_ps_on_contained(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err);

/* on_save.c */
WF_MUST_USE wf_status wf_ps_on_save(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err);

/* NULL when the slice is not on this ps. */
wf_slice *wf_ps_slice(const wf_ps *ps, uint32_t id);
/* A slice of the map as its variable asks for, without values; the caller's. Errors: WF_PROTO,
 * WF_INVALID, WF_NOMEM. */
WF_MUST_USE wf_status wf_ps_make_slice(const wf_ps *ps, uint32_t id, wf_slice **out, wf_err *err);
/* Takes a slice that is not here yet, and the map places here; frees one that is here. Lists and
 * pulls name places of slices: wf_ps_announce_map has to follow. */
void wf_ps_add_slice(wf_ps *ps, wf_slice *s);
void wf_ps_remove_slice(wf_ps *ps, uint32_t id);
/* Whether a slice was here, or is, and is served by another ps now or soon. */
bool wf_ps_is_away(const wf_ps *ps, uint32_t id);
bool wf_ps_serves(const wf_ps *ps);
/* Moves the ps along its life cycle (life.h). */
void wf_ps_change(wf_ps *ps, wf_ps_event event);

/* loads.c: counts a part that was pushed; and the time that the first n of ps->updates took. */
void wf_ps_count_part(wf_slice *s, const wf_slice_part *p);
void wf_ps_count_time(wf_ps *ps, uint32_t n, uint64_t ns);
/* Tells the master what slices have cost, when that is due. */
WF_MUST_USE wf_status wf_ps_tell_load(wf_ps *ps, int64_t now_ns, wf_err *err);
/* Counts from now on: slices have come or gone, or a job has. */
void wf_ps_count_anew(wf_ps *ps);

/* deny.c: tells a worker that its message is not served, and what has moved. */
WF_MUST_USE wf_status wf_ps_deny(wf_ps *ps, const wf_ps_worker *w, const wf_msg *m, wf_err *err);
/* The slices of this ps have changed: ends all lists and pulls, and tells all workers the map. */
WF_MUST_USE wf_status wf_ps_announce_map(wf_ps *ps, wf_err *err);
/* A slice stays after all: answers pulls that have waited for it, and has workers push again what
 * was denied meanwhile. */
WF_MUST_USE wf_status wf_ps_announce_kept(wf_ps *ps, uint32_t slice, wf_err *err);

/* move.c. From the master: give a slice away. */
WF_MUST_USE wf_status wf_ps_on_move(wf_ps *ps, const wf_msg *m, int64_t now_ns, wf_err *err);
/* The link to the taker is up: it is sent the state. Or the taker refuses the link. */
WF_MUST_USE wf_status wf_ps_move_on_up(wf_ps *ps, wf_err *err);
WF_MUST_USE wf_status wf_ps_move_refused(wf_ps *ps, const wf_err *why, wf_err *err);
WF_MUST_USE wf_status wf_ps_on_state_ok(wf_ps *ps, const wf_msg *m, wf_err *err);
/* From another ps: takes a slice. */
WF_MUST_USE wf_status wf_ps_on_state(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err);
/* Ends a move whose taker has not been reached for long: the slice stays. Not once its state has
 * left, since the taker may have it then. */
WF_MUST_USE wf_status wf_ps_move_advance(wf_ps *ps, int64_t now_ns, wf_err *err);
/* Forgets the move: the generation is over. */
void wf_ps_drop_move(wf_ps *ps);

/* slice_state.c: the state of a slice as frames and part table of a message, with what it has seen
 * and whom it waits for.
 * Errors: WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_state_put(const wf_slice *s, const wf_clocks *clocks, bool checksums,
                                   wf_msg *m, wf_err *err);
/* The head of a state, freed by wf_control_free; and its content into a slice that has none.
 * Errors: WF_PROTO, WF_CORRUPT, WF_NOMEM. */
WF_MUST_USE wf_status wf_state_head(const wf_msg *m, Weft__SliceState **out, wf_err *err);
WF_MUST_USE wf_status wf_state_get(const wf_msg *m, const Weft__SliceState *head, wf_slice *s,
                                   wf_err *err);
/* Sets view, job, generation and map, and sends. Takes *m. */
WF_MUST_USE wf_status wf_ps_send(wf_ps *ps, wf_peer *to, wf_lane lane, uint64_t key, wf_msg **m,
                                 wf_err *err);

#endif
