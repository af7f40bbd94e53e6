/* SPDX-License-Identifier: Apache-2.0 */
/* ps/ps.h - the front door of ps: a parameter server's logic. It holds slices of one job at a time,
 * answers pulls, applies pushes, and hands copies to be saved.
 *
 * A ps is empty, loads what a set-up asks for, then serves it until a newer set-up or a halt
 * (life.h).
 *
 * No socket, no clock, no thread: events of a net and the time go in, messages go out through the
 * net; checkpoints are read through a wf_disk, and shards are written by the shell in its own time.
 *
 * Invariants
 *   P1  a push is checked whole before any of it is applied: view, generation, slices, sizes and
 *       values
 *   P2  a part is applied once per (slice, incarnation, step), however often it arrives
 *   P3  a pull that counts on own pushes up to step s is answered, slice by slice, when they are
 *       applied and not before
 *   P4  only incarnations of the newest view are served
 *   P5  a push is applied by all threads together, and nothing else is done meanwhile
 *   P6  the bytes sent to one worker and not taken by it are bounded (wf_ps.answer_room)
 *   P7  a slice is changed by one ps at a time: one that is on its way is not changed (move.c)
 *   P8  sessions of clients are served with and without a job, and change nothing of one
 *       (containers.h)
 */
#ifndef WF_PS_PS_H
#define WF_PS_PS_H

#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/wire/net.h"
#include "common/wire/tasks.h"
#include "common/wire/waiting.h"
#include "ps/slice.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_ps wf_ps;

/* A variable as the job's set-up names it; strings live as long as the set-up. */
typedef struct wf_ps_variable {
    const char *name;
    uint32_t dtype, rank, kind;
    double momentum; /* of a statistic */
    const int64_t *dims;
    const wf_slice_ops *slice_kind;
    wf_row_policy policy; /* of a table */
    wf_coding pull;       /* how weights are written */
} wf_ps_variable;

/* Copies of this ps's slices (wf_slice_fork), taken for a cut; its shard of the checkpoint is
 * written from them while training goes on. */
typedef struct wf_ps_fork {
    const char *job;
    char *folder, *file; /* where the shard goes: folder is temporary and made by the chief */
    uint32_t cut;
    uint16_t generation;
    uint64_t chief;            /* incarnation of the chief that asked */
    wf_ps_variable *variables; /* [n_variables] */
    uint32_t n_variables;
    wf_slice **slices; /* [n_slices]: copies that do not change any more */
    uint32_t n_slices;
    struct wf_arena *arena; /* of the strings and arrays */
} wf_ps_fork;
void wf_ps_fork_free(wf_ps_fork **f);

typedef struct wf_ps_saved {
    uint64_t bytes;
    char xxh3[40];
} wf_ps_saved;

typedef struct wf_ps_ops {
    void *arg;
    /* Begins to write a fork (wf_ps_fork_write); takes *f. wf_ps_on_saved follows later, on the
     * ps's own thread. On failure it does not, and the fork stays the caller's. */
    wf_status (*save)(void *arg, wf_ps_fork **f, wf_err *err);
    /* A transport to another ps, for a slice that moves there. */
    wf_status (*dial)(void *arg, wf_task task, const char *address, wf_transport **out,
                      wf_err *err);
    void *dial_arg;
    /* The time, so that updates are timed; NULL: they are not. Nothing else depends on it. */
    int64_t (*now)(void);
} wf_ps_ops;

/* Writes a fork as one shard file into its folder, durably. Any thread; nothing of the ps is
 * touched. Errors: WF_IO, WF_NOMEM; no file is left then. */
WF_MUST_USE wf_status wf_ps_fork_write(wf_disk *disk, const wf_ps_fork *f, wf_ps_saved *out,
                                       wf_err *err);

typedef struct wf_ps_conf {
    uint32_t index;
    uint64_t incarnation;
    const char *session;  /* of the supervisor that started this process; "": none did */
    wf_disk *disk;        /* where checkpoints are read */
    const char *rows_dir; /* of files with rows that memory has no room for, made when there are
                             such; NULL: a job with such rows is refused */
    wf_ps_ops ops;
    const wf_slice_ops *const *kinds; /* of slices, beside those that are built in; ends with NULL;
                                         may be NULL */
    uint32_t threads;                 /* that apply updates; 0 is 1 */
    bool checksums;                   /* of payloads sent: off on one host */
    size_t answer_bytes;    /* P6, of all workers together; 0: 256 MiB, or twice the slices */
    int64_t load_ns;        /* between two reports of what slices cost; 0: one second */
    const wf_tasks *tasks;  /* of the cluster, for clients; borrowed for the ps's life; NULL: none
                               are told */
    size_t variables_bytes; /* of clients' variables, at most; 0: a quarter of the memory */
    bool adds; /* steps made together are summed and not averaged: so that a test can count parts */
} wf_ps_conf;

/* A ps that the caller owns; the net is borrowed for its life, `master` is the dialled peer. */
WF_MUST_USE wf_status wf_ps_new(const wf_ps_conf *conf, wf_net *net, wf_peer *master, wf_ps **out,
                                wf_err *err);
void wf_ps_free(wf_ps **ps);

/* For wf_net_conf.admit, with the ps as its argument. */
wf_status wf_ps_admit(void *ps, const wf_hello *hello, wf_err *err);

/* Acknowledges what events have applied, and answers pulls that had no room before. Call after
 * events, before the net is flushed. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_ps_advance(wf_ps *ps, int64_t now_ns, wf_err *err);
/* What this ps waits for now, has done and holds. */
void wf_ps_vitals(const wf_ps *ps, wf_vitals *out);
/* Handles one event of the net (the message is taken). Errors end the process: WF_SUPERSEDED when a
 * newer incarnation has this place, WF_TIMEOUT when the master has given this one up, and the
 * master's refusal of a hello. */
WF_MUST_USE wf_status wf_ps_on_event(wf_ps *ps, wf_event *ev, int64_t now_ns, wf_err *err);
/* The shell has written a fork, or failed: rc and its error. Takes *f. */
void wf_ps_on_saved(wf_ps *ps, wf_ps_fork **f, wf_status rc, const wf_ps_saved *saved,
                    const wf_err *why);

/* For tests and oracles. Slice by place, NULL past the end; the generation that is served, 0 when
 * none is; the view, and whether an incarnation is in it. */
const wf_slice *wf_ps_slice_at(const wf_ps *ps, uint32_t i);
uint16_t wf_ps_generation(const wf_ps *ps);
uint16_t wf_ps_job_number(const wf_ps *ps); /* of the job in hand */
uint32_t wf_ps_view(const wf_ps *ps);
bool wf_ps_in_view(const wf_ps *ps, uint64_t incarnation);

#endif
