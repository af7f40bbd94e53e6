/* SPDX-License-Identifier: Apache-2.0 */
/* ps/dense.c */
#include "ps/dense.h"
#include "common/base/pages.h"
#include "common/base/size.h"
#include "common/optim/statistic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    GRAIN = 16 << 10 /* elements: 64 KiB each of weights, gradient and slots, which a second-level
                        cache holds together */
};

static wf_dense *dense_of(wf_slice *s)
{
    return (wf_dense *)s;
}

static const wf_dense *dense(const wf_slice *s)
{
    return (const wf_dense *)s;
}

static size_t slot_bytes(const wf_dense *d)
{
    return d->base.count * sizeof(float);
}

wf_status wf_dense_init_sized(wf_slice *s, const wf_opt *opt, size_t value_bytes, wf_err *err)
{
    wf_dense *d = dense_of(s);
    size_t bytes;

    if (!wf_mul_size(s->count, sizeof(float), &bytes))
        return wf_fail(err, WF_INVALID, NULL, "slice %u is too large", s->id);
    s->bytes = value_bytes;
    d->whole = opt->rule->whole;
    d->weights = wf_buf_new(value_bytes);
    if (!d->weights)
        return wf_fail_nomem(err, value_bytes);
    d->n_slots = s->trainable ? wf_opt_n_slots(opt) : 0;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        float first = wf_opt_slot_initial(opt, i);

        d->slot_names[i] = wf_opt_slot_name(opt, i);
        d->slots[i] = wf_pages_alloc(bytes);
        if (!d->slots[i])
            return wf_fail_nomem(err, bytes);
        for (uint64_t k = 0; k < s->count; k++)
            d->slots[i][k] = first;
    }
    return WF_OK;
}

wf_status wf_dense_init(wf_slice *s, const wf_opt *opt, wf_err *err)
{
    size_t bytes;

    if (wf_slice_dtype(s) != WF_F32)
        return wf_fail(err, WF_INVALID, NULL, "slice %u is dense, and would be %s", s->id,
                       wf_dtype_name(wf_slice_dtype(s)));
    if (!wf_mul_size(s->count, sizeof(float), &bytes))
        return wf_fail(err, WF_INVALID, NULL, "slice %u is too large", s->id);
    return wf_dense_init_sized(s, opt, bytes, err);
}

void wf_dense_close(wf_slice *s)
{
    wf_dense *d = dense_of(s);

    wf_buf_unref(&d->weights);
    free(d->gradient);
    for (int i = 0; i < WF_DENSE_SPARES; i++)
        wf_buf_unref(&d->spares[i]);
    for (uint32_t i = 0; i < WF_MAX_SLOTS; i++)
        free(d->slots[i]);
}

wf_status wf_dense_check(const wf_slice *s, const wf_slice_part *p, wf_err *err)
{
    if (p->rows.n > 0)
        return wf_fail(err, WF_PROTO, "push all elements of a dense variable",
                       "slice %u is dense, and the part names %" PRIu64 " rows", s->id, p->rows.n);
    if (p->n != s->count)
        return wf_fail(err, WF_SHAPE, NULL, "slice %u has %" PRIu64 " elements, the part %" PRIu64,
                       s->id, s->count, p->n);
    return WF_OK;
}

/* ---- updates ---- */

/* A buffer that nobody else holds; it leaves the spares, or is new. */
static wf_buf *take_spare(wf_dense *d)
{
    for (int i = 0; i < WF_DENSE_SPARES; i++) {
        wf_buf *b = d->spares[i];

        if (b && wf_buf_refs(b) == 1) {
            d->spares[i] = NULL;
            return b;
        }
    }
    return wf_buf_new(d->weights->bytes);
}

static void keep_spare(wf_dense *d, wf_buf *b)
{
    for (int i = 0; i < WF_DENSE_SPARES; i++)
        if (!d->spares[i]) {
            d->spares[i] = b;
            return;
        }
    wf_buf_unref(&b); /* whoever holds it still frees it */
}

/* Where a coded gradient is read whole. Errors: WF_NOMEM. */
static wf_status reserve_gradient(wf_dense *d, const wf_slice_part *p, wf_err *err)
{
    size_t bytes = d->base.count * sizeof *d->gradient;

    if (!d->whole || p->values || d->gradient)
        return WF_OK;
    d->gradient = malloc(bytes);
    return d->gradient ? WF_OK : wf_fail_nomem(err, bytes);
}

/* u->own is a reference to the weights before the update; NULL when they lie in the buffer already.
 */
wf_status wf_dense_apply_begin(wf_slice_update *u, wf_err *err)
{
    wf_dense *d = dense_of(u->slice);

    WF_TRY(reserve_gradient(d, &u->part, err));
    u->units = u->slice->count;
    u->grain = d->whole || u->units == 0 ? u->units + 1 : GRAIN;
    if (wf_buf_refs(d->weights) > 1) { /* V2 */
        wf_buf *fresh = take_spare(d), *old = d->weights;

        if (!fresh)
            return wf_fail_nomem(err, old->bytes);
        u->own = wf_buf_ref(old);
        d->weights = fresh;
        wf_assert(wf_buf_refs(fresh) == 1); /* V2 */
        keep_spare(d, old);
    }
    return WF_OK;
}

/* Elements [begin, begin + n) by their gradient [n]. */
static void update(const wf_dense *d, const wf_opt *opt, uint64_t begin, uint64_t n,
                   const float *gradient)
{
    float *w = (float *)d->weights->data + begin, *slots[WF_MAX_SLOTS] = {0};

    if (d->base.statistic) {
        wf_statistic_apply(d->base.momentum, n, w, gradient);
        return;
    }
    for (uint32_t i = 0; i < d->n_slots; i++)
        slots[i] = d->slots[i] + begin;
    wf_opt_apply(opt, d->base.updates, n, w, gradient, slots);
}

/* A coded gradient is read piece by piece, each while it is in the nearest cache. */
void wf_dense_apply_range(const wf_slice_update *u, const wf_opt *opt, uint64_t begin, uint64_t end)
{
    const wf_dense *d = dense(u->slice);
    const wf_buf *old = u->own;
    uint64_t most = u->part.values || d->whole ? end - begin : WF_SLICE_READ;
    float room[WF_SLICE_READ];

    if (old)
        memcpy((float *)d->weights->data + begin, (const float *)old->data + begin,
               (end - begin) * sizeof(float));
    for (uint64_t i = begin, n; i < end; i += n) {
        n = WF_MIN(end - i, most);
        update(d, opt, i, n, wf_slice_part_values(&u->part, i, n, d->whole ? d->gradient : room));
    }
}

void wf_dense_apply_end(wf_slice_update *u)
{
    wf_buf *old = u->own;

    wf_buf_unref(&old);
    u->own = NULL;
}

/* ---- the state leaves and comes ---- */

wf_status wf_dense_answer(const wf_slice *s, wf_buf **out, wf_err *err)
{
    (void)err;
    *out = wf_buf_ref(dense(s)->weights);
    return WF_OK;
}

/* Weights are shared until they are updated, slots are copied: an update writes them in place. */
wf_status wf_dense_fork(const wf_slice *s, wf_slice *to, wf_err *err)
{
    const wf_dense *d = dense(s);
    wf_dense *copy = dense_of(to);
    size_t bytes = slot_bytes(d);

    copy->weights = wf_buf_ref(d->weights);
    copy->n_slots = d->n_slots;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        copy->slot_names[i] = d->slot_names[i];
        copy->slots[i] = malloc(bytes + 1);
        if (!copy->slots[i])
            return wf_fail_nomem(err, bytes);
        memcpy(copy->slots[i], d->slots[i], bytes);
    }
    return WF_OK;
}

uint32_t wf_dense_save(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS])
{
    const wf_dense *d = dense(s);

    out[0] =
        (wf_slice_array){.dtype = WF_F32, .data = d->weights->data, .bytes = d->weights->bytes};
    for (uint32_t i = 0; i < d->n_slots; i++)
        out[1 + i] = (wf_slice_array){
            .slot = d->slot_names[i], .dtype = WF_F32, .data = d->slots[i], .bytes = slot_bytes(d)};
    return 1 + d->n_slots;
}

wf_status wf_dense_load_slots(wf_slice *s, const wf_slice_source *from, wf_err *err)
{
    wf_dense *d = dense_of(s);

    for (uint32_t i = 0; i < d->n_slots; i++)
        WF_TRY(from->read(from->arg, s, d->slot_names[i], WF_F32, 0, d->slots[i], s->count, err));
    return WF_OK;
}

wf_status wf_dense_load(wf_slice *s, const wf_slice_source *from, bool values_only, wf_err *err)
{
    wf_dense *d = dense_of(s);

    wf_assert(wf_buf_refs(d->weights) == 1); /* V2 */
    WF_TRY(from->read(from->arg, s, NULL, WF_F32, 0, d->weights->data, s->count, err));
    return values_only ? WF_OK : wf_dense_load_slots(s, from, err);
}

uint64_t wf_dense_digest(const wf_slice *s)
{
    const wf_dense *d = dense(s);
    uint64_t digest = XXH3_64bits_withSeed(d->weights->data, d->weights->bytes, s->updates);

    for (uint32_t i = 0; i < d->n_slots; i++)
        digest = XXH3_64bits_withSeed(d->slots[i], slot_bytes(d), digest);
    return digest;
}

const wf_slice_ops wf_slice_dense = {
    .name = "dense",
    .size = sizeof(wf_dense),
    .init = wf_dense_init,
    .close = wf_dense_close,
    .check = wf_dense_check,
    .apply_begin = wf_dense_apply_begin,
    .apply_range = wf_dense_apply_range,
    .apply_end = wf_dense_apply_end,
    .answer = wf_dense_answer,
    .fork = wf_dense_fork,
    .save = wf_dense_save,
    .load = wf_dense_load,
    .digest = wf_dense_digest,
};
