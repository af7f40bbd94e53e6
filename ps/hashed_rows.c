/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed_rows.c - what the rows of a bucket hold: how they begin, are updated and read. */
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "common/tensor/first_row.h"
#include "ps/hashed.h"

#include <string.h>

/* ---- first values ---- */

static wf_first_rows first_of(const wf_slice *s)
{
    return (wf_first_rows){.numbers = s->policy.first,
                           .seed = s->policy.seed,
                           .stream = s->policy.stream,
                           .dtype = wf_slice_dtype(s)};
}

/* The values that a row begins with, as it holds them. */
static void begin_values(const wf_slice *s, uint64_t key, void *to, float *scale)
{
    wf_dtype dtype = wf_slice_dtype(s);
    wf_first_rows first = first_of(s);
    wf_rng_key of_row = wf_first_row_key(&first, wf_row_id_of_key(key));
    float values[WF_SLICE_READ]; /* all of an int8 row */

    if (dtype == WF_F32) {
        wf_distribution_fill(&s->policy.first, of_row, 0, to, s->row);
        return;
    }
    memset(to, 0, wf_row_values_room(dtype, s->row)); /* what lies between is in the digest */
    for (uint64_t from = 0, n; from < s->row; from += n) {
        n = WF_MIN(s->row - from, (uint64_t)WF_SLICE_READ);
        wf_distribution_fill(&s->policy.first, of_row, from, values, n);
        wf_row_values_round(dtype, values, n, (uint8_t *)to + wf_row_values_bytes(dtype, from),
                            scale);
    }
}

void wf_hashed_begin_row(const wf_hashed *h, int32_t row, uint64_t key)
{
    void *body = wf_row_set_body(&h->rows, row);

    begin_values(&h->base, key, body, wf_hashed_scale(h, body));
    for (uint32_t k = 0; k < h->n_slots; k++)
        for (uint64_t i = 0; i < h->base.row; i++)
            wf_hashed_slot(h, body, k)[i] = h->slot_first[k];
}

void wf_hashed_answer_first(const wf_slice *s, uint64_t key, float out[])
{
    wf_first_rows first = first_of(s);

    wf_first_row(&first, wf_row_id_of_key(key), s->row, out);
}

/* ---- updates and pulls ---- */

static void update_floats(const wf_hashed *h, const wf_opt *opt, float *body,
                          const wf_slice_part *p, uint64_t i)
{
    uint64_t row = h->base.row, most = p->values ? row : WF_SLICE_READ;
    float *slots[WF_MAX_SLOTS] = {0}, room[WF_SLICE_READ];

    for (uint64_t from = 0, n; from < row; from += n) {
        n = WF_MIN(row - from, most);
        for (uint32_t k = 0; k < h->n_slots; k++)
            slots[k] = wf_hashed_slot(h, body, k) + from;
        wf_opt_apply(opt, h->base.updates, n, body + from,
                     wf_slice_part_values(p, i * row + from, n, room), slots);
    }
}

/* The same of a type of fewer bits, in pieces; an int8 row is one. */
static void update_values(const wf_hashed *h, const wf_opt *opt, uint8_t *body,
                          const wf_slice_part *p, uint64_t i)
{
    float *slots[WF_MAX_SLOTS] = {0}, w[WF_SLICE_READ], room[WF_SLICE_READ];
    wf_dtype dtype = wf_slice_dtype(&h->base);
    uint64_t row = h->base.row;
    wf_draw draw = wf_slice_draw(&h->base, wf_row_id(&p->rows, i));

    for (uint64_t from = 0, n; from < row; from += n) {
        void *values = body + wf_row_values_bytes(dtype, from);

        n = WF_MIN(row - from, (uint64_t)WF_SLICE_READ);
        for (uint32_t k = 0; k < h->n_slots; k++)
            slots[k] = wf_hashed_slot(h, body, k) + from;
        wf_row_values_read(dtype, values, wf_hashed_scale(h, body), n, w);
        wf_opt_apply(opt, h->base.updates, n, w, wf_slice_part_values(p, i * row + from, n, room),
                     slots);
        wf_row_values_draw(dtype, w, n, draw, from, values, wf_hashed_scale(h, body));
    }
}

void wf_hashed_update_row(const wf_hashed *h, const wf_opt *opt, int32_t row,
                          const wf_slice_part *p, uint64_t i)
{
    void *body = wf_row_set_body(&h->rows, row);

    if (wf_slice_dtype(&h->base) == WF_F32)
        update_floats(h, opt, body, p, i);
    else
        update_values(h, opt, body, p, i);
}

void wf_hashed_read_body(const wf_hashed *h, void *body, float out[])
{
    wf_row_values_read(wf_slice_dtype(&h->base), body, wf_hashed_scale(h, body), h->base.row, out);
}
