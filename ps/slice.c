/* SPDX-License-Identifier: Apache-2.0 */
/* ps/slice.c */
#include "ps/slice.h"
#include "common/base/pages.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

wf_status wf_slice_init(wf_slice *s, const wf_opt *opt, wf_err *err)
{
    size_t bytes;

    if (!wf_mul_size(s->count, sizeof(float), &bytes))
        return wf_fail(err, WF_INVALID, NULL, "slice %u is too large", s->id);
    s->weights = wf_buf_new(bytes);
    if (!s->weights)
        return wf_fail_nomem(err, bytes);
    s->n_slots = s->trainable ? wf_opt_n_slots(opt) : 0;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        float first = wf_opt_slot_initial(opt, i);

        s->slots[i] = wf_pages_alloc(bytes);
        if (!s->slots[i])
            return wf_fail_nomem(err, bytes);
        for (uint64_t k = 0; k < s->count; k++)
            s->slots[i][k] = first;
    }
    return WF_OK;
}

void wf_slice_close(wf_slice *s)
{
    wf_buf_unref(&s->weights);
    for (int i = 0; i < WF_SLICE_SPARES; i++)
        wf_buf_unref(&s->spares[i]);
    for (uint32_t i = 0; i < WF_MAX_SLOTS; i++)
        free(s->slots[i]);
    wf_seen_close(&s->seen);
    *s = (wf_slice){0};
}

/* A buffer that nobody else holds; it leaves the spares, or is new. */
static wf_buf *take_spare(wf_slice *s)
{
    for (int i = 0; i < WF_SLICE_SPARES; i++) {
        wf_buf *b = s->spares[i];

        if (b && wf_buf_refs(b) == 1) {
            s->spares[i] = NULL;
            return b;
        }
    }
    return wf_buf_new(s->weights->bytes);
}

static void keep_spare(wf_slice *s, wf_buf *b)
{
    for (int i = 0; i < WF_SLICE_SPARES; i++)
        if (!s->spares[i]) {
            s->spares[i] = b;
            return;
        }
    wf_buf_unref(&b); /* whoever holds it still frees it */
}

/* In double, and rounded once: equal bits everywhere, as the rules of common/optim. */
static void move_average(float *w, const float *now, uint64_t n, double momentum)
{
    for (uint64_t i = 0; i < n; i++)
        w[i] = (float)((double)w[i] * momentum + (double)now[i] * (1.0 - momentum));
}

wf_status wf_slice_update_begin(wf_slice *s, wf_slice_update *out, wf_err *err)
{
    *out = (wf_slice_update){.slice = s};
    if (wf_buf_refs(s->weights) > 1) { /* V2 */
        wf_buf *fresh = take_spare(s), *old = s->weights;

        if (!fresh)
            return wf_fail_nomem(err, old->bytes);
        out->old = wf_buf_ref(old);
        s->weights = fresh;
        keep_spare(s, old);
    }
    s->updates++;
    return WF_OK;
}

void wf_slice_update_range(const wf_slice_update *u, const wf_opt *opt, const float *grad,
                           uint64_t begin, uint64_t end)
{
    const wf_slice *s = u->slice;
    float *w = wf_slice_weights(s) + begin, *slots[WF_MAX_SLOTS] = {0};

    if (u->old)
        memcpy(w, (const float *)u->old->data + begin, (end - begin) * sizeof *w);
    if (s->statistic) {
        move_average(w, grad + begin, end - begin, s->momentum);
        return;
    }
    for (uint32_t i = 0; i < s->n_slots; i++)
        slots[i] = s->slots[i] + begin;
    wf_opt_apply(opt, s->updates, end - begin, w, grad + begin, slots);
}

void wf_slice_update_end(wf_slice_update *u)
{
    wf_buf_unref(&u->old);
}

wf_status wf_slice_apply(wf_slice *s, const wf_opt *opt, const float *grad, wf_err *err)
{
    wf_slice_update u;

    WF_TRY(wf_slice_update_begin(s, &u, err));
    wf_slice_update_range(&u, opt, grad, 0, s->count);
    wf_slice_update_end(&u);
    return WF_OK;
}
