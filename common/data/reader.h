/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/reader.h - batches made ready ahead of time, on a thread of the reader's own.
 *
 * Ranges of positions in an epoch's order are queued with wf_reader_open; their batches come
 * out of wf_reader_next in order, each gathered and mapped. A batch never crosses a range's
 * end: the last of a range may be short. `depth` batches are held in buffers that are made once and
 * rotate; nothing is allocated for a batch. The thread sleeps only when all buffers are full and is
 * woken when half are free again, so that a wake-up (30 us on a virtual machine) is not paid for
 * each batch.
 *
 * Threading: all calls come from one thread, but for the reader's own.
 */
#ifndef WF_DATA_READER_H
#define WF_DATA_READER_H

#include "common/base/status.h"
#include "common/data/data.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_READER_DEPTH = 4, WF_READER_MAX_DEPTH = 64, WF_READER_MAX_RANGES = 1024 };

typedef struct wf_reader wf_reader;

/* Positions [begin, end) of an epoch's order. */
typedef struct wf_range {
    uint32_t epoch;
    uint64_t split;      /* handed back with each batch */
    uint64_t number;     /* of the first batch in its split: 0 unless the split was begun before */
    uint64_t begin, end; /* end <= records of the data set */
} wf_range;

typedef struct wf_batch {
    uint32_t epoch;
    uint64_t split, number; /* of this batch in its split */
    uint64_t begin, end;    /* positions */
    uint64_t n;             /* records: end - begin */
    /* [fields of the data set], in its order: [n, dims...] as wf_dataset_field says */
    void *const *fields;
    uint32_t slot; /* for the reader */
} wf_batch;

/* What a reader is to do; zero depth is WF_READER_DEPTH. The data set is borrowed for its life. */
typedef struct wf_reader_conf {
    const wf_dataset *dataset;
    uint64_t batch; /* records, at least 1 */
    uint64_t seed;
    bool shuffle;
    uint32_t depth; /* 0: WF_READER_DEPTH */
} wf_reader_conf;

/* Starts a reader that the caller owns. Errors: WF_INVALID, WF_NOMEM, WF_IO (no thread). */
WF_MUST_USE wf_status wf_reader_new(const wf_reader_conf *conf, wf_reader **out, wf_err *err);
/* Ends the thread, frees *r and sets it to NULL; NULL is fine. Batches are gone with it. */
void wf_reader_free(wf_reader **r);

/* Queues a range behind those queued before; an empty one gives no batch.
 * Errors: WF_INVALID when it reaches past the data set; WF_FULL when WF_READER_MAX_RANGES wait. */
WF_MUST_USE wf_status wf_reader_open(wf_reader *r, const wf_range *range, wf_err *err);
/* Lends the next batch until it is released, waiting until it is gathered. Up to depth batches may
 * be out at once. Errors: WF_NOTFOUND when no queued range has one left; WF_FULL when depth batches
 * are out. */
WF_MUST_USE wf_status wf_reader_next(wf_reader *r, wf_batch *out, wf_err *err);
/* Gives a batch back, in any order. */
void wf_reader_release(wf_reader *r, const wf_batch *batch);
/* Drops all queued ranges and batches that were not handed out. */
void wf_reader_cancel(wf_reader *r);

#endif
