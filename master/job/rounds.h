/* SPDX-License-Identifier: Apache-2.0 */
/* master/job/rounds.h - data that grows: which files are a job's next round.
 *
 * A round is an epoch whose records are those of files that no round before had. Listings of the
 * job's patterns come in with the time; a file counts as there when its size and modification time
 * have been the same for a while, and it is not empty. A round takes such files in the order of
 * their paths, at most so many as a message may name; the others stay for the next.
 *
 * No file is touched here, and no clock read. What was taken is in the journal before workers hear
 * of it, and in each checkpoint: so that a record is trained once in the history that survives.
 *
 * Invariants
 *   D1  no path is in two rounds: `files` and `earlier` have no file in common, by their ids
 *   D2  `files` change by wf_rounds_take and wf_rounds_set alone
 */
#ifndef WF_MASTER_JOB_ROUNDS_H
#define WF_MASTER_JOB_ROUNDS_H

#include "common/base/status.h"
#include "common/data/listing.h"
#include "common/wire/control.pb-c.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_ROUND_FILES = 1024,        /* of a round at most, */
    WF_ROUND_PATHS = 256 << 10,   /* and so many bytes of their paths */
    WF_ROUNDS_EARLIER = 128 << 10 /* files of all rounds before; a checkpoint lists their ids */
};

typedef struct wf_round_file {
    char *path;
    uint64_t bytes;
} wf_round_file;

/* A file that was listed and is in no round yet. */
typedef struct wf_candidate {
    char *path;
    uint64_t bytes;
    int64_t changed_ns, since_ns; /* since when it is as it is */
} wf_candidate;

typedef struct wf_rounds {
    uint32_t round;       /* the newest one that was taken, from 1; 0: none was */
    wf_round_file *files; /* [n_files] of it, by path, which is the order of their records */
    size_t n_files;
    bool is_over;      /* all of it is trained: nobody needs its files any more */
    uint64_t *earlier; /* [n_earlier] ids of the files of the rounds before, ascending */
    size_t n_earlier;
    wf_candidate *waiting; /* [n_waiting], by path */
    size_t n_waiting;
    /* What workers find in its files; records 0: nobody has said. */
    uint64_t records, digest;
    uint64_t n_taken; /* files of all rounds so far */
    /* How the next one is waited for. */
    int64_t listed_ns; /* when the last listing was asked for; 0: none was */
    int64_t seen_ns;   /* the same, of the last that came */
    int64_t idle_ns;   /* since when there is nothing to train, and no file to come; 0: there is */
    bool is_wanted;    /* nothing is left to train: the next listing brings the next round */
    bool look_now;     /* and is not put off */
    bool is_idle;      /* for as long as the job waits at most */
    char why[256];     /* why files could not be listed; "": they were */
} wf_rounds;

void wf_rounds_close(wf_rounds *r);
/* Of a job that is over only numbers are kept. */
void wf_rounds_end(wf_rounds *r);

/* A listing, in the order of paths, that was made at some moment between the two times. Errors:
 * WF_NOMEM, and it is as it was. */
WF_MUST_USE wf_status wf_rounds_see(wf_rounds *r, const wf_listed list[], size_t n,
                                    int64_t asked_ns, int64_t now_ns, wf_err *err);
/* Takes round `round`, of files that had been as they are for settle_ns when they were seen last.
 * *any: there were some. Errors: WF_FULL with too many files in all rounds; WF_NOMEM; it is as it
 * was. */
WF_MUST_USE wf_status wf_rounds_take(wf_rounds *r, uint32_t round, int64_t settle_ns, bool *any,
                                     wf_err *err);
/* The same round as a message has it: of the journal, when it was taken. */
WF_MUST_USE wf_status wf_rounds_replay(wf_rounds *r, const Weft__Round *round, wf_err *err);
/* All anew, from a checkpoint or a snapshot: this round, and the ids of the files before it, which
 * need not be in order. Errors: WF_INVALID for too many; WF_NOMEM; it is as it was. */
WF_MUST_USE wf_status wf_rounds_set(wf_rounds *r, uint32_t round, Weft__RoundFile *const files[],
                                    size_t n, const uint64_t earlier[], size_t n_earlier,
                                    wf_err *err);

/* The round as a message, which borrows from r; the rows are freed with wf_round_message_free. */
typedef struct wf_round_message {
    Weft__Round body;
    Weft__RoundFile *rows, **list;
} wf_round_message;
WF_MUST_USE wf_status wf_round_message_make(const wf_rounds *r, wf_round_message *out, wf_err *err);
void wf_round_message_free(wf_round_message *m);

#endif
