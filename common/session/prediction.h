/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction.h - the outputs of a model for all records of files, into files.
 *
 * The records are cut into splits of whole batches. The outputs of a split are one or several part
 * files in the folder OUT.parts, each written under another name, synced and renamed: so a part is
 * there whole or not at all, whoever writes it and however often. Once all are there they are
 * joined into OUT. What was asked for, and of which files, stands in OUT.parts/request.json: with
 * the same request a later process goes on where the parts end.
 *
 * A batch is the same records whoever computes it, so OUT has the same bytes wherever it was
 * interrupted and among however many processes its splits were divided.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_SESSION_PREDICTION_H
#define WF_SESSION_PREDICTION_H

#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/kernels/pool.h"
#include "common/tensor/device.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_PREDICTION_INPUTS = 64,
    WF_PREDICTION_FILES = 4096, /* paths and patterns of an input */
    WF_PREDICTION_BATCH = 256,
    WF_PREDICTION_TEXT = 8 << 20, /* bytes of a request */
    WF_PREDICTION_NEAR = 4096     /* runs of records that are near the same hosts */
};

/* Hosts that have files near: those whose path is `match`, or matches it as in fnmatch(3). */
typedef struct wf_prediction_hosts {
    const char *match;
    const char *const *hosts; /* [n] */
    size_t n;
} wf_prediction_hosts;

/* Records that follow each other and are near the same hosts. */
typedef struct wf_prediction_run {
    uint64_t records;
    const char *const *hosts; /* [n_hosts] */
    size_t n_hosts;
} wf_prediction_run;

/* What is asked for. All borrowed; paths that other processes are to understand are absolute. */
typedef struct wf_prediction_ask {
    const char *model; /* path of an ONNX file; NULL: the model of a job: */
    const char *job;   /* the text of its file, */
    const char *job_path;
    const char *run;            /* the run whose checkpoint has the weights, */
    const char *checkpoint_dir; /* which is below this folder, */
    int64_t step;               /* and its step, or as wf_weights_read has it */
    struct wf_prediction_input {
        const char *name;
        const char *const *paths; /* [n] */
        size_t n;
    } inputs[WF_PREDICTION_INPUTS]; /* [n_inputs] */
    size_t n_inputs;
    const char *out;        /* OUT.npy, OUT.csv, or a folder of npy files */
    uint64_t batch;         /* records that are computed at once */
    uint64_t split_records; /* of a part; 0: chosen */
    uint64_t records;       /* in all, as whoever asked has found them; 0: not known yet */
    uint64_t tag;           /* of the request, in the names of its parts; 0: made of it */
    const wf_prediction_hosts *hosts; /* [n_hosts], beside those of the job */
    size_t n_hosts;
    const wf_prediction_run *near; /* [n_near]: of a request that was read; the outputs are the
                                    * same with it and without */
    size_t n_near;
} wf_prediction_ask;

/* An output of a divided model. Axis i has sizes[i] elements, or where that is negative -sizes[i]
 * for each record. */
typedef struct wf_prediction_shape {
    const char *label;
    wf_dtype dtype;
    uint32_t rank;
    int64_t sizes[WF_MAX_RANK];
} wf_prediction_shape;

/* A model that others compute: what it takes and gives. */
typedef struct wf_prediction_model {
    const wf_graph *graph; /* its inputs are those of the model; the rest of it is not looked at */
    const wf_prediction_shape *outputs; /* [n_outputs] */
    size_t n_outputs;
} wf_prediction_model;

typedef struct wf_prediction_how {
    wf_pool *pool;           /* borrowed */
    const wf_device *device; /* NULL: the cpu */
    wf_disk *disk;           /* of the parts and of OUT */
    /* A sentence that the compiler warns with, and one about a checkpoint that is passed over;
     * NULL: they are not wanted. */
    void (*warn)(void *arg, const char *sentence);
    void (*tell)(void *arg, const char *sentence);
    bool (*stopped)(
        void *arg); /* whether to end with WF_STOPPED, asked now and then; NULL: never */
    void *arg;
    /* The job's model is divided among workers, which compute it: it is opened without weights, and
     * its splits are computed by the functions of prediction_divided.c. */
    bool divides;
    const wf_prediction_model *model; /* then, borrowed: it is known; NULL: it is compiled */
} wf_prediction_how;

typedef struct wf_prediction wf_prediction;

/* Reads the model and the weights, finds the records, and computes the first batch to see what the
 * outputs are: what cannot be done is found here, before anything is written. What `ask` points to
 * is borrowed for the prediction's life. The caller owns *out. Errors: those of the model, of its
 * checkpoint and of reading the files; WF_USAGE for an input that is not there or not fed, whose
 * name is then in the hint, and for outputs that do not go into such a file; WF_SHAPE for inputs of
 * different numbers of records; WF_INVALID when there are other records than ask->records. */
WF_MUST_USE wf_status wf_prediction_open(const wf_prediction_ask *ask, const wf_prediction_how *how,
                                         wf_prediction **out, wf_err *err);
/* Frees *p and sets it to NULL; NULL is fine. */
void wf_prediction_free(wf_prediction **p);

/* Whether a name is that of a npy or csv file, or of a folder. Errors: WF_USAGE. */
WF_MUST_USE wf_status wf_prediction_check_name(const char *out, wf_err *err);
/* The folder of parts; borrowed. */
const char *wf_prediction_parts(const wf_prediction *p);
uint64_t wf_prediction_records(const wf_prediction *p);
uint64_t wf_prediction_split_records(const wf_prediction *p);
uint64_t wf_prediction_splits(const wf_prediction *p);

/* A number of the request, with the model, the weights, the files and the options: others have
 * another one. */
uint64_t wf_prediction_tag(const wf_prediction *p);
/* A number of what the files hold here, as far as their sizes tell: two hosts with other ones do
 * not have the same files. Never 0. */
uint64_t wf_prediction_digest(const wf_prediction *p);
/* The request as text for another process, which has the parts of the same names; it reads it with
 * wf_prediction_read. Errors: WF_INVALID, WF_NOMEM. */
WF_MUST_USE wf_status wf_prediction_write(const wf_prediction *p, wf_bytes *out, wf_err *err);
/* Whether a text is a request, and no job file. */
bool wf_prediction_is(const char *text);
/* Reads a request from anywhere; *out points into the arena. Errors: WF_INVALID, WF_NOMEM. */
WF_MUST_USE wf_status wf_prediction_read(const char *text, size_t size, wf_arena *a,
                                         wf_prediction_ask *out, wf_err *err);

/* What the folder of parts held before. */
typedef struct wf_prediction_found {
    uint64_t done; /* splits of this request */
    bool other;    /* parts of another request, which are removed */
} wf_prediction_found;

/* Makes the folder of parts ready for this request. Errors: WF_NOTFOUND for a folder of OUT that is
 * not there; WF_EXISTS for an OUT that is something else; WF_IO. */
WF_MUST_USE wf_status wf_prediction_begin(wf_prediction *p, wf_prediction_found *found,
                                          wf_err *err);
/* Whether the parts of a split are there, and whole as far as their sizes tell. */
bool wf_prediction_has(const wf_prediction *p, uint64_t split);
/* Computes a split and writes its parts, unless they are there. Errors: those of reading and of
 * plans; WF_IO. */
WF_MUST_USE wf_status wf_prediction_split(wf_prediction *p, uint64_t split, wf_err *err);

/* Of a divided model, whose splits are computed elsewhere (prediction_divided.c). One split at a
 * time is begun, its batches are fed, their outputs come in the order of batches, and it is ended.
 * A split whose parts are there need not be begun. Errors: WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_prediction_begin_split(wf_prediction *p, uint64_t split, wf_err *err);
/* Records [first, first + n), for each input of the model in its order: tensors [n_inputs], which
 * are borrowed until the next call; without data those that nobody feeds. Errors: those of reading;
 * WF_SHAPE. */
WF_MUST_USE wf_status wf_prediction_take(wf_prediction *p, uint64_t first, uint64_t n,
                                         const wf_tensor *out[], wf_err *err);
/* The outputs of the next n records, as many elements of each as it has. Errors: WF_IO; WF_SHAPE.
 */
WF_MUST_USE wf_status wf_prediction_add(wf_prediction *p, uint64_t n, const void *const outputs[],
                                        wf_err *err);
/* Ends the split that was begun, if there is one: its parts are there, or none is. */
WF_MUST_USE wf_status wf_prediction_end_split(wf_prediction *p, bool whole, wf_err *err);
bool wf_prediction_is_divided(const wf_prediction *p);
/* The records of a split, and of a batch. */
uint64_t wf_prediction_first(const wf_prediction *p, uint64_t split);
uint64_t wf_prediction_end(const wf_prediction *p, uint64_t split);
uint64_t wf_prediction_batch(const wf_prediction *p);

/* Removes the folder of parts: of a request that can come to nothing. */
void wf_prediction_drop(wf_prediction *p);
/* Joins all parts into OUT, calling tell(arg, file, dtype, rank, dims) for each file that it has
 * made (of csv with WF_NONE and [records, columns]), and removes the folder of parts. Errors:
 * WF_CORRUPT for a part that is not there or damaged, which is removed; WF_IO. */
WF_MUST_USE wf_status wf_prediction_join(wf_prediction *p,
                                         void (*tell)(void *arg, const char *file, wf_dtype dtype,
                                                      uint32_t rank, const int64_t dims[]),
                                         void *arg, wf_err *err);

#endif
