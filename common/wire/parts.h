/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/parts.h - the part table of a push or of weights: which bytes of which payload frame
 * are which slice. It is the control part of WF_PUSH and WF_WEIGHTS, outside protobuf.
 *
 * Little-endian: count u32, zero u32, then for each part 32 bytes: slice u32, codec u8, frame u8,
 * coding u8, zero u8, offset u32 (in the frame), bytes u32, version u64, checksum u64 (XXH3-64 of
 * the bytes; 0: not sent, as on one host, where nothing but memory lies between). A part with rows
 * is two such entries: the values, and behind them the ids of the rows. A pull of rows has entries
 * of ids alone. In a pull and in a push a few words precede the table.
 */
#ifndef WF_WIRE_PARTS_H
#define WF_WIRE_PARTS_H

#include "common/base/status.h"
#include "common/wire/coding.h"
#include "common/wire/decisions.h"
#include "common/wire/msg.h"
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    WF_MAX_PARTS = 512,
    WF_PART_BYTES = 32,
    WF_PART_TABLE_BYTES = 8,
    WF_PULL_BYTES = 12,
    WF_PUSH_BYTES = 8,
    WF_MAX_CONTRIBUTORS = 4096
};

typedef enum wf_codec {
    WF_CODEC_F32 = 0, /* the whole slice: float32, unless `coding` says how else */
    WF_CODEC_NONE, /* no bytes, in no frame: the worker dropped the step, which counts as applied */
    WF_CODEC_ROWS, /* the same of some rows; the next entry has their ids */
    WF_CODEC_BYTES, /* of the state of a slice that moves: whatever its array is */
    WF_CODEC_IDS    /* ids of rows, u64 each: of the entry before, or that a pull asks for */
} wf_codec;

/* Ids of rows, in the order of the sender. They may lie at any address: wf_row_id reads them. */
typedef struct wf_rows {
    uint64_t n; /* 0: none are named */
    const uint8_t *ids;
} wf_rows;

/* A range of a payload frame. */
typedef struct wf_part_range {
    uint8_t frame;
    uint64_t offset, bytes; /* a frame has less than 4 GiB */
    uint64_t checksum;
} wf_part_range;

typedef struct wf_part {
    uint32_t slice;
    uint8_t codec, frame;
    uint8_t coding;         /* how the numbers of a slice or of rows are written (coding.h) */
    uint64_t offset, bytes; /* a frame has less than 4 GiB */
    /* How many updates the weights hold. A push says it of the weights that it was computed from,
     * so that the ps knows how stale the gradient is. */
    uint64_t version;
    uint64_t checksum;
    wf_part_range ids; /* of WF_CODEC_ROWS: where the ids of its rows are */
} wf_part;

/* The control part of WF_PULL: which list, and the worker's own step up to which its pushes must be
 * applied before a slice is answered. The header's `request` names the pull; its answers carry it.
 * `clock`: that of the step, where staleness is bounded (ps/clocks.h); 0: the pull waits for nobody
 * else. For each slice of a table that it asks for, a part of WF_CODEC_IDS follows; slices of
 * tables that have none are not answered.
 */
typedef struct wf_pull_body {
    uint32_t list, after, clock;
} wf_pull_body;
WF_MUST_USE wf_status wf_pull_put(wf_msg *m, wf_pull_body body, const wf_part rows[], uint32_t n,
                                  wf_err *err);
/* rows [WF_MAX_PARTS]. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_pull_get(const wf_msg *m, wf_pull_body *body, wf_part rows[], uint32_t *n,
                                  wf_err *err);

/* The control part of WF_PUSH, before its table: the clock of the step, where workers wait for each
 * other (ps/clocks.h), else 0; and the number of records that the gradients are means over. */
typedef struct wf_push_body {
    uint32_t clock, records;
} wf_push_body;
WF_MUST_USE wf_status wf_push_put(wf_msg *m, wf_push_body body, const wf_part parts[], uint32_t n,
                                  wf_err *err);
/* parts [WF_MAX_PARTS], checked as by wf_parts_get. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_push_get(const wf_msg *m, wf_push_body *body, wf_part parts[], uint32_t *n,
                                  wf_err *err);

/* The control part of WF_DECIDED. wf_decided_get fills d->workers, which has room for
 * WF_MAX_CONTRIBUTORS. Errors: WF_NOMEM; WF_PROTO. */
WF_MUST_USE wf_status wf_decided_put(wf_msg *m, const wf_decision *d, wf_err *err);
WF_MUST_USE wf_status wf_decided_get(const wf_msg *m, wf_decision *d, wf_err *err);

/* The control part of WF_CLOCK: a worker joins with the step of the header, or leaves; and of
 * WF_CLOCK_OK: the clock that this step has. */
typedef enum wf_clock_state { WF_CLOCK_LEAVES = 0, WF_CLOCK_JOINS } wf_clock_state;
typedef struct wf_clock_body {
    uint32_t state, clock;
} wf_clock_body;
WF_MUST_USE wf_status wf_clock_put(wf_msg *m, wf_clock_body body, wf_err *err);
WF_MUST_USE wf_status wf_clock_get(const wf_msg *m, wf_clock_body *body, wf_err *err);

/* Writes the table of n parts as the message's control bytes. Errors: WF_NOMEM; WF_FULL for more
 * than WF_MAX_PARTS entries. */
WF_MUST_USE wf_status wf_parts_put(wf_msg *m, const wf_part parts[], uint32_t n, wf_err *err);
/* Reads it into parts [WF_MAX_PARTS], and checks that each part lies inside its frame and that the
 * codec and the coding are known, and that a part has whole numbers, and one with rows whole rows.
 * What a coding says is not looked at (wf_coded_check). Checksums were compared when the
 * message arrived. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_parts_get(const wf_msg *m, wf_part parts[], uint32_t *n, wf_err *err);
/* Reads entry i of the table, unchecked; false past the end, and for a table of a wrong size. */
bool wf_parts_at(const wf_msg *m, uint32_t i, wf_part *p);
/* Checks the table as wf_parts_get does, and each part's checksum where there is one: net.c calls
 * it before a message is acknowledged. Errors: WF_PROTO; WF_CORRUPT for a checksum. */
WF_MUST_USE wf_status wf_parts_verify(const wf_msg *m, wf_err *err);
/* The control part of WF_PUSH_OK: the slices of the header's step that are applied, n words. */
WF_MUST_USE wf_status wf_slices_put(wf_msg *m, const uint32_t slices[], uint32_t n, wf_err *err);
/* Reads them into slices [WF_MAX_PARTS]. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_slices_get(const wf_msg *m, uint32_t slices[], uint32_t *n, wf_err *err);
/* What a part that wf_parts_get or wf_pull_get has checked, and that is not WF_CODEC_NONE, holds;
 * borrowed from the message. The rows that it names; and its numbers. */
wf_rows wf_part_rows(const wf_msg *m, const wf_part *p);
wf_coded wf_part_coded(const wf_msg *m, const wf_part *p);
static inline uint64_t wf_row_id(const wf_rows *r, uint64_t i)
{
    uint64_t id;

    memcpy(&id, r->ids + i * sizeof id, sizeof id);
    return le64toh(id);
}
/* Whether each id is above the one before it. */
bool wf_rows_rise(const wf_rows *r);
/* The bytes of a part, borrowed from the message. */
const void *wf_part_data(const wf_msg *m, const wf_part *p);
/* The checksum to be sent for bytes. Never 0. */
uint64_t wf_part_checksum(const void *data, size_t n);

#endif
