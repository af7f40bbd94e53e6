/* SPDX-License-Identifier: Apache-2.0 */
/* ps/slice.h - one slice: a contiguous part of a variable, of some kind (slice_ops.h). Here is what
 * all kinds have: place, count of updates, and which steps of which workers are applied.
 *
 * Invariants
 *   V1  updates grows by exactly 1 per applied part; a restore brings the saved number back
 */
#ifndef WF_PS_SLICE_H
#define WF_PS_SLICE_H

#include "common/base/distribution.h"
#include "common/base/fold.h"
#include "common/tensor/row_values.h"
#include "ps/held.h"
#include "ps/seen.h"
#include "ps/slice_ops.h"
#include <stdbool.h>
#include <stdint.h>

/* Of a table: how its rows begin; of an unbounded one (hashed.h) which ids get a row, and when they
 * lose it. */
typedef struct wf_row_policy {
    bool seeded; /* first values follow from what is below, else they are loaded */
    wf_distribution first;
    uint64_t seed, stream; /* the job's; the variable's */
    uint32_t admit_after;  /* pushes that name an id before it has a row; 0 is 1 */
    uint64_t
        filter_bytes; /* these are counted by a filter of so many bytes (id_filter.h); 0: exactly */
    uint32_t evict_after; /* updates of the slice; 0: rows stay, however old */
    uint64_t max_rows;    /* of the slice; 0: no limit of the job's */
    uint64_t max_bytes;   /* that the slice may take at the end of a push; 0: no limit */
    bool fails_full;      /* a push beyond them is refused, and no row leaves for it */
    const char *disk;     /* rows beyond them lie in files of this folder, and none leaves; NULL:
                             in no files. Borrowed for the slice's life */
    bool by_frequency;    /* beyond them the least frequently used leave, not the least recently */
    wf_dtype dtype;       /* of its values (row_values.h); WF_NONE: float32 */
    uint64_t rounding;    /* seeds their stochastic rounding */
} wf_row_policy;

/* What a slice has cost since it was counted last (loads.c). */
typedef struct wf_slice_load {
    uint64_t pulled_bytes, pushed_bytes, parts; /* parts: pulled and pushed */
    uint64_t apply_ns; /* its share, by bytes, of the time in which pushes were applied */
} wf_slice_load;

struct wf_slice {
    const wf_slice_ops *ops;
    uint32_t id, variable;
    uint64_t offset, count; /* elements of the variable, f32 */
    uint64_t row;           /* elements of one of its rows: all that lies behind axis 0 */
    bool trainable;         /* updated by the optimizer's rule */
    bool statistic;         /* a moving average of pushed values; neither: never pushed */
    double momentum;        /* of a statistic: how much of the old value an update keeps */
    bool leaving;           /* on its way to another ps: nothing is applied, no pull is answered */
    wf_row_policy policy;   /* of a table */
    uint64_t bytes;         /* of the values as they are held, set by the kind */
    uint64_t updates;       /* V1 */
    wf_seen seen;
    wf_slice_load load;
    wf_held held;   /* of steps that are not complete (together.c) */
    uint32_t clock; /* of the last step that workers have made together; 0: there was none */
};

/* A slice of the kind, place and variable's facts of `like`, which is copied but for bytes, updates
 * and seen; the caller's. Errors as of `init`. */
WF_MUST_USE wf_status wf_slice_new(const wf_slice_ops *ops, const wf_slice *like, const wf_opt *opt,
                                   wf_slice **out, wf_err *err);
/* Closes and frees *s, and sets it to NULL; NULL is fine. */
void wf_slice_free(wf_slice **s);

static inline bool wf_slice_is_frozen(const wf_slice *s)
{
    return !s->trainable && !s->statistic;
}

/* The type that the values are held in. */
static inline wf_dtype wf_slice_dtype(const wf_slice *s)
{
    return s->policy.dtype ? s->policy.dtype : WF_F32;
}

/* What rows are rounded by in the update in hand: with the number or key of a row its draw. */
static inline uint64_t wf_slice_draws(const wf_slice *s)
{
    return wf_fold(s->policy.rounding, s->updates);
}

static inline wf_draw wf_slice_draw(const wf_slice *s, uint64_t row)
{
    return wf_draw_of(wf_fold(wf_slice_draws(s), row));
}

/* Begins to apply a part that `check` has let pass, and moves updates on by 1. ops->apply_range for
 * all units and ops->apply_end have to follow. Errors: WF_NOMEM; nothing is changed then. */
WF_MUST_USE wf_status wf_slice_apply_begin(wf_slice *s, const wf_slice_part *p,
                                           wf_slice_update *out, wf_err *err);
/* All of one part, by this thread. Errors as of wf_slice_apply_begin. */
WF_MUST_USE wf_status wf_slice_apply(wf_slice *s, const wf_opt *opt, const wf_slice_part *p,
                                     wf_err *err);
/* A copy of the state as it is now, with its number of updates and without what was seen; the
 * caller's. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_slice_fork(const wf_slice *s, wf_slice **out, wf_err *err);
/* Bytes of memory that the state takes; bytes that it takes in files beside. */
uint64_t wf_slice_on_disk(const wf_slice *s);
uint64_t wf_slice_held(const wf_slice *s);
/* The values of float32, [count], borrowed until the slice is changed: for tests and oracles. */
const float *wf_slice_values(const wf_slice *s);

#endif
