/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/reader.h - batches of a dataset, made ready ahead of time.
 *
 * A worker queues ranges (splits) and takes their batches in order. A range is a part of an epoch's
 * permutation (order.h); batches never cross its end, so the last one may be short. A thread of
 * the reader's own fills up to `depth` batches ahead.
 *
 * Nobody waits for a wake-up (30 us) who could do the work: when no batch is ready,
 * wf_data_reader_next gathers one itself, on the caller's thread and those that share its work. The
 * thread sleeps when `depth` batches are ready, and is woken when half are left. Depth 0 has no
 * thread.
 *
 * Measured (bench/reader.c, MNIST's shape, 2 cores): gathering takes 6.7 us for 32 images, 23 for
 * 128, 93 for 512. With depth 4 and a core to spare the trainer pays 4 to 6 us a batch whatever its
 * size; with both cores busy 4 to 35 us. So small batches are best gathered by who needs them:
 * wf_data_reader_depth_for says.
 *
 * Nothing is allocated per batch: buffers are made at the start and rotate.
 *
 * Threading: one thread calls these functions.
 */
#ifndef WF_DATA_READER_H
#define WF_DATA_READER_H

#include "common/base/status.h"
#include "common/data/data.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    WF_READER_DEPTH = 4, /* of batches that are worth a thread */
    WF_READER_MAX_DEPTH = 64,
    WF_READER_HELD = 4 /* batches that the caller may hold at once */
};

typedef struct wf_data_reader wf_data_reader;

typedef struct wf_batch {
    uint64_t epoch, split; /* as given to wf_data_reader_open */
    uint64_t index; /* of the batch in its split, from 0: with epoch and split it seeds Dropout */
    uint64_t n;     /* records: the batch size, or fewer at the end of a split */
    bool last;      /* of its split */
    const uint64_t *at;      /* [n] the records, by their numbers in the dataset */
    const wf_tensor *fields; /* [n_fields of the dataset], each [n, dims...] of its wf_field_info;
                              * the data is aligned to WF_BUF_ALIGN */
} wf_batch;

/* Threads that share work with the caller: calls fn(arg, begin, end) for ranges that make up [0,
 * n), each of `grain` or more unless n is less, and returns when all are done. This room knows no
 * pools. */
typedef struct wf_reader_threads {
    void *pool;
    void (*share)(void *pool, int64_t n, int64_t grain,
                  void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
} wf_reader_threads;

typedef struct wf_data_reader_spec {
    const wf_dataset *dataset; /* borrowed for the reader's life */
    uint64_t batch;            /* records of a batch, > 0 */
    uint64_t seed;             /* the job's */
    bool shuffle;
    uint32_t depth;          /* batches ahead, at most WF_READER_MAX_DEPTH */
    const wf_device *device; /* that batches are copied to: they lie in memory pinned for it; NULL:
                              * they are not copied to a device */
    wf_reader_threads threads; /* of the caller, for batches that are not ready; {0}: it is alone */
} wf_data_reader_spec;

/* The depth to give for batches of so many records: 0 when gathering one costs less than waking a
 * thread (up to 512 KiB of a batch of arrays), WF_READER_DEPTH otherwise. */
uint32_t wf_data_reader_depth_for(const wf_dataset *d, uint64_t batch);

/* Starts a reader; the caller owns *out. Errors: WF_INVALID for a batch of 0 or a depth above the
 * maximum; WF_NOMEM; WF_IO if no thread can be started. */
WF_MUST_USE wf_status wf_data_reader_new(const wf_data_reader_spec *spec, wf_data_reader **out,
                                         wf_err *err);
/* Ends the thread, frees *r with all batches and sets it to NULL; NULL is fine. */
void wf_data_reader_free(wf_data_reader **r);

/* Queues positions [first, end) of an epoch's permutation as split `split`, behind what is queued.
 * `next_batch` batches of it are passed over: 0, or where a checkpoint says that the split was; the
 * first batch to come has that index. A range with nothing (left) in it gives no batch. Errors:
 * WF_INVALID for positions beyond the dataset; WF_NOMEM. */
WF_MUST_USE wf_status wf_data_reader_open(wf_data_reader *r, uint64_t epoch, uint64_t split,
                                          uint64_t first, uint64_t end, uint64_t next_batch,
                                          wf_err *err);

/* The same where the order permutes records [order_begin, order_end), as those of a file, in place
 * of all: positions in between are of these. 0, 0: of all. */
WF_MUST_USE wf_status wf_data_reader_open_within(wf_data_reader *r, uint64_t epoch, uint64_t split,
                                                 uint64_t first, uint64_t end, uint64_t next_batch,
                                                 uint64_t order_begin, uint64_t order_end,
                                                 wf_err *err);

/* The next batch, borrowed until wf_data_reader_release; *out is NULL when all that was queued has
 * been given. Never waits for longer than one batch takes to gather. No more than WF_READER_HELD
 * may be out. Errors: those of wf_dataset_gather, in the batch's turn; it is passed over. */
WF_MUST_USE wf_status wf_data_reader_next(wf_data_reader *r, const wf_batch **out, wf_err *err);
/* Gives a batch back, in any order, and sets *b to NULL; NULL is fine. */
void wf_data_reader_release(wf_data_reader *r, const wf_batch **b);
/* Drops everything that is queued and not given yet. Batches that are out stay valid. */
void wf_data_reader_cancel(wf_data_reader *r);

/* Batches given so far, and how many of them were not ready and were gathered by the caller. */
uint64_t wf_data_reader_given(const wf_data_reader *r);
uint64_t wf_data_reader_late(const wf_data_reader *r);

#endif
