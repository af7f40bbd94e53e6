/* SPDX-License-Identifier: Apache-2.0 */
/* ps/table_state.c - the state of a table's slice leaves and comes: values in the type that they
 * are held in. */
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "ps/table.h"

#include <stdlib.h>

uint32_t wf_table_save(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS])
{
    wf_dtype dtype = wf_slice_dtype(s);
    uint32_t n = wf_dense_save(s, out);

    out[0].dtype = dtype;
    out[0].bytes = wf_row_values_bytes(dtype, s->count);
    if (dtype == WF_I8)
        out[n++] = (wf_slice_array){.slot = WF_CKPT_SCALE,
                                    .dtype = WF_F32,
                                    .data = wf_table_scale(wf_table_dense(s), 0),
                                    .bytes = s->count / s->row * sizeof(float)};
    return n;
}

/* Rows from number `first` of the slice on, [n] as float32, to the type that they are held in. */
static void round_rows(const wf_dense *d, uint64_t first, uint64_t n, const float from[])
{
    uint64_t row = d->base.row;

    for (uint64_t i = 0; i < n; i++)
        wf_row_values_round(wf_slice_dtype(&d->base), from + i * row, row,
                            wf_table_values(d, (first + i) * row),
                            wf_table_scale(d, (first + i) * row));
}

/* Rows as they come from somewhere, a few at a time: the float32 of a table are never held whole.
 */
typedef wf_status give_rows(const wf_slice *s, const wf_slice_source *from, uint64_t first,
                            uint64_t n, float out[], wf_err *err);

static wf_status convert(wf_slice *s, const wf_slice_source *from, give_rows *give, wf_err *err)
{
    enum { PIECE = 64 << 10 };
    uint64_t rows = s->count / s->row, most = WF_MAX((uint64_t)PIECE / s->row, (uint64_t)1);
    float *piece = malloc(most * s->row * sizeof *piece);
    wf_status rc = piece ? WF_OK : wf_fail_nomem(err, most * s->row * sizeof *piece);

    for (uint64_t i = 0, n; rc == WF_OK && i < rows; i += n) {
        n = WF_MIN(rows - i, most);
        rc = give(s, from, i, n, piece, err);
        if (rc == WF_OK)
            round_rows(wf_table_dense(s), i, n, piece);
    }
    free(piece);
    return rc;
}

/* The first values of a table that is seeded depend on the place of an element alone: neither on
 * slices nor on ps. */
static wf_status first_rows(const wf_slice *s, const wf_slice_source *from, uint64_t first,
                            uint64_t n, float out[], wf_err *err)
{
    const wf_rng_key key = {.seed = s->policy.seed, .stream = s->policy.stream};

    (void)from, (void)err;
    wf_distribution_fill(&s->policy.first, key, s->offset + first * s->row, out, n * s->row);
    return WF_OK;
}

static wf_status stored_rows(const wf_slice *s, const wf_slice_source *from, uint64_t first,
                             uint64_t n, float out[], wf_err *err)
{
    return from->read(from->arg, s, NULL, WF_F32, first * s->row, out, n * s->row, err);
}

/* Bit for bit where the type is the same. */
static wf_status load_values(wf_slice *s, const wf_slice_source *from, wf_err *err)
{
    wf_dtype dtype = wf_slice_dtype(s);

    if (wf_slice_source_dtype(from, s) != dtype)
        return convert(s, from, stored_rows, err);
    WF_TRY(
        from->read(from->arg, s, NULL, dtype, 0, wf_table_dense(s)->weights->data, s->count, err));
    if (dtype != WF_I8)
        return WF_OK;
    return from->read(from->arg, s, WF_CKPT_SCALE, WF_F32, 0, wf_table_scale(wf_table_dense(s), 0),
                      s->count / s->row, err);
}

wf_status wf_table_load(wf_slice *s, const wf_slice_source *from, bool values_only, wf_err *err)
{
    bool seeded = values_only && s->policy.seeded;

    wf_assert(wf_buf_refs(wf_table_dense(s)->weights) == 1); /* V2 */
    if (seeded && wf_slice_dtype(s) == WF_F32)
        return first_rows(s, NULL, 0, s->count / s->row, wf_table_dense(s)->weights->data, err);
    if (seeded)
        return convert(s, NULL, first_rows, err);
    WF_TRY(load_values(s, from, err));
    return values_only ? WF_OK : wf_dense_load_slots(s, from, err);
}
