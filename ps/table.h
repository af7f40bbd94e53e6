/* SPDX-License-Identifier: Apache-2.0 */
/* ps/table.h - a slice of a table (table.c): where its values lie. What its files share.
 *
 * Values may have a type of fewer bits (row_values.h). The buffer of weights then holds [count] of
 * it, and behind them, from the next multiple of 4 bytes on, the scales of int8 rows, [count /
 * row].
 */
#ifndef WF_PS_TABLE_H
#define WF_PS_TABLE_H

#include "ps/dense.h"

static inline const wf_dense *wf_table_dense(const wf_slice *s)
{
    return (const wf_dense *)s;
}

static inline uint64_t wf_table_first_row(const wf_slice *s)
{
    return s->offset / s->row;
}

/* Where the scales begin in the buffer of weights. */
static inline uint64_t wf_table_scales_at(const wf_slice *s)
{
    return (wf_row_values_bytes(wf_slice_dtype(s), s->count) + 3) / 4 * 4;
}

/* Bytes of the buffer. */
static inline uint64_t wf_table_values_room(const wf_slice *s)
{
    uint64_t scales = wf_slice_dtype(s) == WF_I8 ? s->count / s->row * sizeof(float) : 0;

    return wf_table_scales_at(s) + scales;
}

/* The values from element `at` on. */
static inline void *wf_table_values(const wf_dense *d, uint64_t at)
{
    return (uint8_t *)d->weights->data + wf_row_values_bytes(wf_slice_dtype(&d->base), at);
}

/* The scale of the row whose first element is `at`; of another type than int8 it is not read. */
static inline float *wf_table_scale(const wf_dense *d, uint64_t at)
{
    float *scales = (float *)(void *)((uint8_t *)d->weights->data + wf_table_scales_at(&d->base));

    return scales + at / d->base.row;
}

/* table_state.c: functions of wf_slice_table. */
uint32_t wf_table_save(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS]);
WF_MUST_USE wf_status wf_table_load(wf_slice *s, const wf_slice_source *from, bool values_only,
                                    wf_err *err);

#endif
