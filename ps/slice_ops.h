/* SPDX-License-Identifier: Apache-2.0 */
/* ps/slice_ops.h - what a kind of slice does. The rest of the ps knows slices by this interface
 * alone: it decides which parts are applied, and when; a kind knows what its state is.
 *
 *   dense.c   weights and optimizer slots as arrays of one element each (the default)
 *   table.c   rows, which are pulled and pushed by their ids
 *   hashed.c  rows of any ids, in a hash table: a bucket of an unbounded table
 *
 * A kind is a row: a name and functions. Its struct begins with a wf_slice, which the ps owns and
 * fills before `init`. wf_slice_kind_find names the built-in rows; wf_ps_conf.kinds adds others.
 */
#ifndef WF_PS_SLICE_OPS_H
#define WF_PS_SLICE_OPS_H

#include "common/base/status.h"
#include "common/optim/rule.h"
#include "common/tensor/buf.h"
#include "common/tensor/dtype.h"
#include "common/wire/parts.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_slice wf_slice;

/* One part of a push: a gradient or a batch's statistic, [n] values. With rows.n > 0 the values are
 * those of the rows named, [rows.n][n / rows.n]. Borrowed from the message until apply_end. */
typedef struct wf_slice_part {
    uint64_t incarnation; /* of the worker */
    uint32_t step;
    uint16_t generation;
    uint64_t version;    /* of the weights that it was computed from (slice.h, V1) */
    const float *values; /* NULL: they are in `coded` */
    wf_coded coded;      /* {0}: there are none */
    uint64_t n;
    wf_rows rows;
} wf_slice_part;

enum { WF_SLICE_READ = 2048 /* values that are read at once: 8 KiB, which a stack has room for */ };

/* Whether the part has values at all: not if its worker has dropped the step. */
static inline bool wf_slice_part_has_values(const wf_slice_part *p)
{
    return p->values || p->coded.data;
}

/* The values [begin, begin + n) of a part, lent: where they lie, or read into room [n]. */
static inline const float *wf_slice_part_values(const wf_slice_part *p, uint64_t begin, uint64_t n,
                                                float room[])
{
    if (p->values)
        return p->values + begin;
    wf_coded_read(&p->coded, begin, n, room);
    return room;
}

/* A part that is being applied. `units` pieces of work may be done by several threads, in ranges
 * that do not overlap; each range but the last is a multiple of `grain`. */
typedef struct wf_slice_update {
    wf_slice *slice;
    wf_slice_part part;
    uint64_t units, grain;
    void *own; /* the kind's, between apply_begin and apply_end */
} wf_slice_update;

/* One array of a slice's state. Borrowed until the slice is changed or closed. */
typedef struct wf_slice_array {
    const char *slot; /* NULL: the values, which come first; else a name, static */
    wf_dtype dtype;
    const void *data;
    uint64_t bytes;
    uint64_t row; /* [n, row] elements; 0: the array has one axis, or is cut as its variable is */
} wf_slice_array;

enum { WF_SLICE_ARRAYS = WF_MAX_SLOTS + 8 };

/* Where a slice's state is loaded from: first values, a checkpoint, another ps. */
typedef struct wf_slice_source {
    void *arg;
    /* The type that it has the values in. NULL: float32. */
    wf_dtype (*dtype)(void *arg, const wf_slice *s);
    /* Exactly n elements of the array, from its element `first` on, counted from the place that the
     * slice has in its variable. `as` is float32, or the type of the values: for them alone. */
    wf_status (*read)(void *arg, const wf_slice *s, const char *slot, wf_dtype as, uint64_t first,
                      void *out, uint64_t n, wf_err *err);
    /* An array whose size the kind does not know, slot NULL: the values, as bytes that the caller
     * frees. Errors: WF_NOTFOUND when the source has none. */
    wf_status (*read_all)(void *arg, const wf_slice *s, const char *slot, void **out,
                          uint64_t *bytes, wf_err *err);
} wf_slice_source;

/* The type that a source has the values of a slice in. */
wf_dtype wf_slice_source_dtype(const wf_slice_source *from, const wf_slice *s);

typedef struct wf_slice_ops {
    const char *name;
    size_t size; /* of the kind's struct */

    /* Makes the state of a new slice: zeroed values, slots as the rule says. Sets s->bytes. Errors:
     * WF_NOMEM, WF_INVALID when it cannot be so large. `close` follows in either case. */
    wf_status (*init)(wf_slice *s, const wf_opt *opt, wf_err *err);
    void (*close)(wf_slice *s);

    /* Whether a part may be applied: sizes and row ids, nothing of which has been looked at.
     * Changes nothing. Errors: WF_SHAPE, WF_PROTO. */
    wf_status (*check)(const wf_slice *s, const wf_slice_part *p, wf_err *err);
    /* The same of the rows that a pull asks for; a kind with answer_rows has it. */
    wf_status (*check_rows)(const wf_slice *s, const wf_rows *rows, wf_err *err);
    /* apply: begin, then all units, then end, with nothing else done to the slice between. begin is
     * given u->slice and u->part, and sets the rest. Errors: WF_NOMEM, WF_FULL when a disk is full;
     * nothing is changed then. */
    wf_status (*apply_begin)(wf_slice_update *u, wf_err *err);
    void (*apply_range)(const wf_slice_update *u, const wf_opt *opt, uint64_t begin, uint64_t end);
    void (*apply_end)(wf_slice_update *u);

    /* The values as they are now, for the answer to a pull: a reference to a buffer that no update
     * writes while it is held. Errors: WF_NOMEM. */
    wf_status (*answer)(const wf_slice *s, wf_buf **out, wf_err *err);
    /* In its place, for a kind that is pulled by rows: the values of those that check_rows has let
     * pass, [rows->n][s->row]. */
    void (*answer_rows)(const wf_slice *s, const wf_rows *rows, float out[]);
    /* A copy of the state for a checkpoint or a move, copy-on-write where the kind can. The copy is
     * only saved and closed, by any thread. `to` is a slice of this kind with the common fields
     * set. Errors: WF_NOMEM; `close` of the copy follows then too. */
    wf_status (*fork)(const wf_slice *s, wf_slice *to, wf_err *err);
    /* The arrays that make up the state of a fork; how many. */
    uint32_t (*save)(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS]);
    /* Bytes of memory that the state takes. NULL: the state is arrays, and `save` names them of a
     * slice that is no fork, too. */
    uint64_t (*held)(const wf_slice *s);
    /* Bytes of disk that it takes beside. NULL: none. */
    uint64_t (*on_disk)(const wf_slice *s);
    /* Fills a slice after init. `values_only`: first values, which have no slots. Errors: those of
     * the source, WF_CORRUPT, WF_NOMEM. */
    wf_status (*load)(wf_slice *s, const wf_slice_source *from, bool values_only, wf_err *err);
    /* A hash of the state: equal states have equal digests. */
    uint64_t (*digest)(const wf_slice *s);
} wf_slice_ops;

extern const wf_slice_ops wf_slice_dense, wf_slice_hashed, wf_slice_table;

/* The row of a name, NULL when there is none. "" is the default, dense. `more` (NULL-terminated,
 * may be NULL) is searched first. */
const wf_slice_ops *wf_slice_kind_find(const wf_slice_ops *const *more, const char *name);

#endif
