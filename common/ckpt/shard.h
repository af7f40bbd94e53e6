/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/shard.h - one safetensors file, written in a stream and read in ranges.
 *
 * Layout: u64 little-endian N, N bytes of JSON, data. weft pads N with spaces so that data begins
 * at a multiple of 64; tensors lie in the order in which they were declared, without gaps. The
 * files open with the safetensors library as they are.
 */
#ifndef WF_CKPT_SHARD_H
#define WF_CKPT_SHARD_H

#include "common/base/arena.h"
#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stddef.h>
#include <stdint.h>

enum {
    WF_SHARD_MAX_HEADER = 100000000, /* bytes; the format's own bound */
    WF_SHARD_MAX_TENSORS = 1 << 20,
    WF_SHARD_MAX_NAME = 1024,
    WF_SUM_TEXT = 33 /* XXH3-128 as 32 hex digits and a zero */
};

/* One tensor as the header declares it. */
typedef struct wf_shard_tensor {
    const char *name; /* UTF-8, unique in the file */
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    uint64_t begin; /* bytes from the start of the data; set by weft */
    uint64_t bytes; /* set by weft */
} wf_shard_tensor;

typedef struct wf_shard_meta {
    const char *key, *value;
} wf_shard_meta;

typedef struct wf_shard_writer wf_shard_writer;
typedef struct wf_shard wf_shard;

/* Creates the file and writes its header. Names and arrays are read during the call only. *out is
 * the caller's until finish or abort. Errors: WF_IO, WF_INVALID (a name twice, or not UTF-8),
 * WF_NOMEM; no file is left behind. */
WF_MUST_USE wf_status wf_shard_create(wf_disk *disk, const char *path,
                                      const wf_shard_tensor tensors[], size_t n,
                                      const wf_shard_meta meta[], size_t n_meta,
                                      wf_shard_writer **out, wf_err *err);
/* The next bytes of data, in the declared order; a call may hold a part of a tensor, or several. */
WF_MUST_USE wf_status wf_shard_write(wf_shard_writer *w, const void *data, size_t bytes,
                                     wf_err *err);
/* Syncs and closes; *bytes is the file's size and `sum` its checksum (XXH3-128, hex). Frees *w, and
 * removes the file when it fails. Errors: WF_IO; WF_INVALID when bytes are missing. */
WF_MUST_USE wf_status wf_shard_finish(wf_shard_writer **w, uint64_t *bytes, char sum[WF_SUM_TEXT],
                                      wf_err *err);
/* Closes and removes the unfinished file and frees *w; NULL is fine. */
void wf_shard_abort(wf_shard_writer **w);

/* Opens a file and checks its header in full: bounds, JSON, dtypes, shapes against ranges, ranges
 * contiguous from 0 to the file's end. The data itself is not read. Errors: WF_CORRUPT naming file
 * and tensor, WF_NOTFOUND, WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_shard_open(wf_disk *disk, const char *path, wf_shard **out, wf_err *err);
/* Closes *s and sets it to NULL; NULL is fine. */
void wf_shard_close(wf_shard **s);
size_t wf_shard_count(const wf_shard *s);
/* Tensor i, ordered by where it lies; borrowed for the shard's life. */
const wf_shard_tensor *wf_shard_at(const wf_shard *s, size_t i);
/* By name; NULL when there is none. */
const wf_shard_tensor *wf_shard_find(const wf_shard *s, const char *name);
/* A value of `__metadata__`, or NULL. */
const char *wf_shard_meta_find(const wf_shard *s, const char *key);
/* Reads `bytes` from `offset` of a tensor of this shard. Errors: WF_INVALID beyond its end, WF_IO.
 */
WF_MUST_USE wf_status wf_shard_read(wf_shard *s, const wf_shard_tensor *t, uint64_t offset,
                                    void *data, size_t bytes, wf_err *err);

/* The checksum of a whole file and its size. */
WF_MUST_USE wf_status wf_shard_sum(wf_disk *disk, const char *path, uint64_t *bytes,
                                   char sum[WF_SUM_TEXT], wf_err *err);

#endif
