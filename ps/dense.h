/* SPDX-License-Identifier: Apache-2.0 */
/* ps/dense.h - the default kind of slice: an array of weights, and one of each optimizer slot.
 *
 * The weights lie in a counted buffer that answers of pulls and forks for checkpoints borrow. The
 * buffer is never written while anyone else holds it: the next update goes to a spare buffer, which
 * then becomes the weights. So a pull copies nothing and always sees one instant of its slice.
 *
 * Other kinds may begin with a wf_dense and call these functions for the part that is dense.
 *
 * Invariants
 *   V2  a buffer with more than the slice's own reference is never written
 */
#ifndef WF_PS_DENSE_H
#define WF_PS_DENSE_H

#include "ps/slice.h"

enum { WF_DENSE_SPARES = 4 };

typedef struct wf_dense {
    wf_slice base;   /* first */
    wf_buf *weights; /* [count]; of a table of a type of fewer bits as table.c says */
    wf_buf *spares[WF_DENSE_SPARES];
    bool whole;      /* the rule takes norms over all of it: one thread updates it */
    float *gradient; /* [count]: then, a coded one as it is read; NULL before the first */
    float *slots[WF_MAX_SLOTS]; /* each [count] */
    const char *slot_names[WF_MAX_SLOTS];
    uint32_t n_slots;
} wf_dense;

/* The functions of wf_slice_dense. */
WF_MUST_USE wf_status wf_dense_init(wf_slice *s, const wf_opt *opt, wf_err *err);
/* The same with so many bytes for the values, of whatever types they are. */
WF_MUST_USE wf_status wf_dense_init_sized(wf_slice *s, const wf_opt *opt, size_t value_bytes,
                                          wf_err *err);
void wf_dense_close(wf_slice *s);
WF_MUST_USE wf_status wf_dense_check(const wf_slice *s, const wf_slice_part *p, wf_err *err);
WF_MUST_USE wf_status wf_dense_apply_begin(wf_slice_update *u, wf_err *err);
void wf_dense_apply_range(const wf_slice_update *u, const wf_opt *opt, uint64_t begin,
                          uint64_t end);
void wf_dense_apply_end(wf_slice_update *u);
WF_MUST_USE wf_status wf_dense_answer(const wf_slice *s, wf_buf **out, wf_err *err);
WF_MUST_USE wf_status wf_dense_fork(const wf_slice *s, wf_slice *to, wf_err *err);
uint32_t wf_dense_save(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS]);
WF_MUST_USE wf_status wf_dense_load(wf_slice *s, const wf_slice_source *from, bool values_only,
                                    wf_err *err);
/* The slots alone. */
WF_MUST_USE wf_status wf_dense_load_slots(wf_slice *s, const wf_slice_source *from, wf_err *err);
uint64_t wf_dense_digest(const wf_slice *s);

#endif
