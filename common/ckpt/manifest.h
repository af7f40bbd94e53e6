/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/manifest.h - what makes a set of shard files one checkpoint, as a struct and as JSON.
 *
 * 64-bit numbers that may pass 2^53 (incarnations, seeds) are written as hex text, so that any JSON
 * reader keeps them whole. The last member is `sum`, the XXH3-128 of the text before it: a flipped
 * byte anywhere in the file is found.
 */
#ifndef WF_CKPT_MANIFEST_H
#define WF_CKPT_MANIFEST_H

#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/ckpt/shard.h"
#include "common/data/learnt.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_MANIFEST_FORMAT = 1,
    WF_MANIFEST_MAX_BYTES = 256 << 20,
    WF_CKPT_ID_DIGITS = 16, /* of a file's id, in hex; ids stand one behind the other */
    WF_CKPT_MAX_SLOTS = 8,
    WF_DIGEST_TEXT = 33 /* a graph's digest as text: up to 32 hex digits and a zero */
};

/* Ordered by generation, then number, then the chief's incarnation; a higher cut replaces a lower
 * one (docs/checkpoints.md, "The id of a cut"). */
typedef struct wf_cut_id {
    uint32_t generation, number;
    uint64_t chief;
} wf_cut_id;

/* A contiguous part of a variable, and where its values and slots lie. */
typedef struct wf_ckpt_slice {
    uint64_t offset, count; /* elements of the row-major variable */
    uint32_t file;          /* index in `files` */
    uint64_t updates;       /* applied to it so far: schedules and bias correction count these */
} wf_ckpt_slice;

typedef struct wf_ckpt_variable {
    const char *name;
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    const char *kind; /* "trainable", "statistic", "frozen" */
    const char *slots[WF_CKPT_MAX_SLOTS];
    uint32_t n_slots;
    wf_ckpt_slice *slices; /* [n_slices], ascending, from 0 to the end without a gap */
    size_t n_slices;
    bool
        unbounded; /* a table of any ids: a slice is a bucket, whose shard says which rows it has */
} wf_ckpt_variable;

typedef struct wf_ckpt_file {
    const char *name; /* in the folder; no '/' */
    uint64_t bytes;
    char sum[WF_SUM_TEXT];
} wf_ckpt_file;

/* Positions in an epoch's order of records, [begin, end). */
typedef struct wf_ckpt_range {
    uint64_t begin, end;
} wf_ckpt_range;

/* A split in hand at the cut: records before `next` are in the weights. */
typedef struct wf_ckpt_split {
    uint64_t id, begin, next, end;
} wf_ckpt_split;

/* Of data that grows: the files of the epochs so far. */
typedef struct wf_ckpt_rounds {
    struct wf_ckpt_round_file {
        const char *path;
        uint64_t bytes;
    } * files; /* [n_files] of the open epoch; none: all of it is trained */
    size_t n_files;
    uint64_t *earlier; /* [n_earlier] ids of the files before (common/data/listing.h) */
    size_t n_earlier;
    uint64_t steps_before, records_before; /* of the epochs before */
    uint64_t digest;                       /* of the open epoch's records; 0: not known */
} wf_ckpt_rounds;

typedef struct wf_ckpt_ledger {
    uint32_t epoch; /* the open one, from 0 */
    uint64_t records, split_records;
    bool evaluated;          /* the epoch before this one has been evaluated */
    uint64_t next_cut;       /* global step of the next checkpoint; 0: none planned */
    wf_ckpt_range *finished; /* [n_finished], ascending, merged */
    size_t n_finished;
    wf_ckpt_split *open; /* [n_open] */
    size_t n_open;
    uint64_t *file_ends; /* [n_file_ends]: where the records of each file end, ascending; there are
                            some where no split of the open epoch has records of two files */
    size_t n_file_ends;
    struct wf_ckpt_rounds *rounds;    /* of data that grows; else NULL */
    struct wf_ckpt_number *callbacks; /* [n_callbacks]: their state, as the master names it */
    size_t n_callbacks;
} wf_ckpt_ledger;

typedef struct wf_ckpt_clock {
    uint32_t worker; /* task index */
    uint64_t incarnation, step;
} wf_ckpt_clock;

typedef struct wf_ckpt_number {
    const char *name;
    double value;
} wf_ckpt_number;

typedef struct wf_manifest {
    const char *job;
    char digest[WF_DIGEST_TEXT]; /* of the graph */
    uint64_t global_step;
    wf_cut_id cut;
    uint64_t pause_ms;  /* how long training stood still for it */
    int64_t created_ms; /* since 1970 */
    uint64_t seed;
    const char *weft; /* the release that wrote it */
    const char *rule; /* the optimizer's name */
    wf_ckpt_number *options;
    size_t n_options;
    wf_ckpt_variable *variables;
    size_t n_variables;
    wf_ckpt_file *files;
    size_t n_files;
    wf_ckpt_ledger ledger;
    wf_ckpt_clock *clocks;
    size_t n_clocks;
    wf_ckpt_number *metrics; /* loss and metrics as last known */
    size_t n_metrics;
    wf_learnt *learnt; /* [n_learnt]: what map steps took from the training data */
    size_t n_learnt;   /* 0: nothing, or a weft wrote it that did not keep it */
} wf_manifest;

/* Appends the JSON text to *out. Errors: WF_INVALID when the manifest breaks its own rules (slices
 * with a gap, a file index out of range), WF_NOMEM. */
WF_MUST_USE wf_status wf_manifest_encode(const wf_manifest *m, wf_bytes *out, wf_err *err);
/* Reads JSON text; what *out points to lies in the arena. `path` is for messages. Everything that
 * encode promises is checked. Errors: WF_CORRUPT, WF_UNSUPPORTED (written by a newer weft),
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_manifest_decode(const char *text, size_t size, const char *path,
                                         wf_arena *arena, wf_manifest *out, wf_err *err);
/* A number of the callbacks' state, or `otherwise`. */
double wf_manifest_callback(const wf_manifest *m, const char *name, double otherwise);
/* The step whose checkpoint was the best when this one was written, its own among them; UINT64_MAX
 * when no callback has chosen one. */
uint64_t wf_manifest_best(const wf_manifest *m);
/* Lower, equal or higher: -1, 0, 1, by generation, then number, then chief. */
int wf_cut_compare(wf_cut_id a, wf_cut_id b);

#endif
