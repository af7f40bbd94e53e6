/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_values.c - variables for a member that lacks them: one that has just joined,
 * or that has not applied a step which another has. They come piece by piece into memory of their
 * own, and replace what is there when all have come: until then nothing is lost if the giver dies.
 */
#include "common/base/size.h"
#include "worker/exchange/ring_state.h"

#include <stdlib.h>
#include <string.h>

/* Weights, then slots, of each variable in turn. */
wf_buf **wf_ring_array_at(const wf_ring *r, uint32_t number, wf_local_variable **of)
{
    const wf_local *l = &r->local;

    for (uint32_t i = 0; i < l->n_variables; i++) {
        wf_local_variable *v = &l->variables[i];
        uint32_t n = r->variables[i].is_in ? 1 + wf_local_n_slots(l, v) : 0;

        if (number < n) {
            if (of)
                *of = v;
            return number ? &v->slots[number - 1] : &v->weights;
        }
        number -= n;
    }
    return NULL;
}

uint32_t wf_ring_count_arrays(const wf_ring *r)
{
    uint32_t n = 0;

    while (wf_ring_array_at(r, n, NULL))
        n++;
    return n;
}

wf_status wf_ring_give_values(wf_ring *r, uint32_t to, wf_err *err)
{
    for (uint32_t a = 0; a < r->n_arrays; a++) {
        wf_local_variable *v;
        const wf_buf *array = *wf_ring_array_at(r, a, &v);

        for (uint64_t at = 0; at < v->count; at += WF_RING_PIECE) {
            uint64_t n = WF_MIN(v->count - at, (uint64_t)WF_RING_PIECE);
            wf_buf *piece = wf_buf_new(n * sizeof(float));
            wf_status rc;

            if (!piece)
                return wf_fail_nomem(err, n * sizeof(float));
            rc = wf_local_read(&r->local, v, array, at, n, piece->data, err);
            if (rc == WF_OK)
                rc = wf_ring_send_values(r, to, a, v->updates, piece, err);
            wf_buf_unref(&piece);
            if (rc != WF_OK)
                return rc;
        }
    }
    return WF_OK;
}

/* ---- receiving ---- */

void wf_ring_drop_values(wf_ring *r)
{
    for (uint32_t i = 0; r->fetch.arrays && i < r->n_arrays; i++)
        wf_buf_unref(&r->fetch.arrays[i]);
    free(r->fetch.arrays);
    free(r->fetch.updates);
    r->fetch = (wf_ring_fetch){0};
}

static wf_status make_room(wf_ring *r, uint32_t from, wf_err *err)
{
    wf_ring_fetch *f = &r->fetch;

    *f = (wf_ring_fetch){.arrays = calloc(r->n_arrays + (size_t)1, sizeof(*f->arrays)),
                         .updates = calloc(r->n_arrays + (size_t)1, sizeof *f->updates),
                         .from = from};
    if (!f->arrays || !f->updates)
        return wf_fail_nomem(err, r->n_arrays * sizeof *f->updates);
    for (uint32_t a = 0; a < r->n_arrays; a++) {
        const wf_buf *array = *wf_ring_array_at(r, a, NULL);

        f->arrays[a] = wf_buf_new(array->bytes);
        if (!f->arrays[a])
            return wf_fail_nomem(err, array->bytes);
    }
    return WF_OK;
}

wf_status wf_ring_on_values(wf_ring *r, uint32_t from, uint32_t array, uint64_t updates,
                            const uint8_t *bytes, uint64_t n, wf_err *err)
{
    wf_ring_fetch *f = &r->fetch;
    wf_local_variable *v = NULL;
    wf_status rc = WF_OK;

    if (wf_ring_is_current(r))
        return wf_fail(err, WF_PROTO, NULL, "worker %u sends values that nobody lacks",
                       r->members[from].index);
    if (!f->arrays)
        rc = make_room(r, from, err);
    if (rc != WF_OK) {
        wf_ring_drop_values(r);
        return rc;
    }
    if (f->from == from && f->array == array)
        wf_ring_array_at(r, array, &v);
    if (!v || n != WF_MIN(v->count - f->at, (uint64_t)WF_RING_PIECE))
        return wf_fail(err, WF_PROTO, NULL, "worker %u: %lu values of array %u, after %u",
                       r->members[from].index, (unsigned long)n, array, f->array);
    memcpy((float *)f->arrays[array]->data + f->at, bytes, n * sizeof(float));
    f->updates[array] = updates;
    f->at += n;
    if (f->at == v->count) {
        f->array++;
        f->at = 0;
    }
    return wf_ring_take_values(r, err);
}

/* Kernels may know where the weights lie: they are copied. */
static wf_status copy_values(wf_ring *r, wf_err *err)
{
    for (uint32_t a = 0; a < r->n_arrays; a++) {
        wf_local_variable *v;
        wf_buf *array = *wf_ring_array_at(r, a, &v);
        const float *from = r->fetch.arrays[a]->data;

        for (uint64_t at = 0, n; at < v->count; at += n) {
            n = WF_MIN(v->count - at, (uint64_t)WF_RING_PIECE);
            WF_TRY(wf_local_write(&r->local, v, array, at, n, from + at, err));
        }
        v->updates = r->fetch.updates[a];
    }
    return WF_OK;
}

wf_status wf_ring_take_values(wf_ring *r, wf_err *err)
{
    if (!r->is_agreed || (r->n_arrays > 0 && !r->fetch.arrays) || r->fetch.array < r->n_arrays)
        return WF_OK;
    if (r->n_arrays > 0 && r->fetch.from != r->giver)
        return wf_fail(err, WF_BROKEN, NULL, "values came from worker %u, and not from worker %u",
                       r->members[r->fetch.from].index, r->members[r->giver].index);
    WF_TRY(copy_values(r, err));
    wf_ring_drop_values(r);
    r->has_values = true;
    r->clock = r->start - 1;
    return wf_ring_end_step(r, err);
}
