/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_buckets.c - all gradients lie in one array, the last variable first: a
 * backward pass comes to the gradients of the last layers first. The array is cut into buckets, and
 * each is a sum of its own, so that many small variables share messages and the parts of a large
 * one are under way at once. */
#include "common/base/size.h"
#include "worker/exchange/ring_state.h"

#include <stdlib.h>
#include <string.h>

static void keep(void *data, void *hint)
{
    (void)data, (void)hint; /* the array's own buffer frees it */
}

static float *array(const wf_ring *r)
{
    return r->gradients->data;
}

/* ---- layout ---- */

static bool has_gradient(const wf_local_variable *v)
{
    return !wf_local_is_frozen(v) && v->count > 0;
}

static wf_status lay_out_variables(wf_ring *r, wf_err *err)
{
    const wf_local *l = &r->local;
    size_t bytes;

    for (uint32_t i = l->n_variables; i > 0; i--) {
        wf_ring_variable *v = &r->variables[i - 1];

        if (!has_gradient(&l->variables[i - 1]))
            continue;
        v->is_in = true;
        v->at = r->n_gradients;
        r->n_gradients += l->variables[i - 1].count;
    }
    if (!wf_mul_size((size_t)r->n_gradients, sizeof(float), &bytes))
        return wf_fail(err, WF_PROTO, NULL, "variables of %lu elements have no size that fits",
                       (unsigned long)r->n_gradients);
    r->gradients = wf_buf_new(bytes);
    r->means = wf_buf_new(bytes);
    return r->gradients && r->means ? WF_OK : wf_fail_nomem(err, bytes);
}

/* The exchange of a worker's own variables reads means as if they were its gradients. */
static wf_status lend_means(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        wf_local_variable *v = &r->local.variables[i];

        if (!r->variables[i].is_in)
            continue;
        v->gradient = wf_buf_wrap((float *)r->means->data + r->variables[i].at,
                                  v->count * sizeof(float), keep, NULL);
        if (!v->gradient)
            return wf_fail_nomem(err, sizeof *v->gradient);
    }
    return WF_OK;
}

/* Which buckets a variable has a part in. Those with an element are not empty. */
static void find_buckets(wf_ring *r)
{
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        wf_ring_variable *v = &r->variables[i];

        if (!v->is_in)
            continue;
        v->first = (uint32_t)(v->at / WF_RING_BUCKET);
        v->last = (uint32_t)((v->at + r->local.variables[i].count - 1) / WF_RING_BUCKET);
        for (uint32_t b = v->first; b <= v->last; b++)
            r->buckets[b].missing = ++r->buckets[b].variables;
    }
}

static wf_status open_bucket(const wf_ring *r, wf_ring_bucket *b, wf_err *err)
{
    WF_TRY(wf_reduce_plan_make(WF_REDUCE_BY_SIZE, r->n_members, r->me, b->n, &b->plan, err));
    for (int i = 0; i < WF_RING_AT_ONCE; i++)
        WF_TRY(wf_reduce_init(&b->sums[i], &b->plan, err));
    return WF_OK;
}

wf_status wf_ring_buckets_open(wf_ring *r, wf_err *err)
{
    uint64_t n;

    r->variables = calloc(r->local.n_variables + (size_t)1, sizeof *r->variables);
    if (!r->variables)
        return wf_fail_nomem(err, r->local.n_variables * sizeof *r->variables);
    WF_TRY(lay_out_variables(r, err));
    WF_TRY(lend_means(r, err));
    n = (r->n_gradients + WF_RING_BUCKET - 1) / WF_RING_BUCKET;
    if (n > UINT32_MAX)
        return wf_fail(err, WF_PROTO, NULL, "variables of %lu elements", (unsigned long)n);
    r->buckets = calloc(n + 1, sizeof *r->buckets);
    if (!r->buckets)
        return wf_fail_nomem(err, n * sizeof *r->buckets);
    for (; r->n_buckets < n; r->n_buckets++) {
        wf_ring_bucket *b = &r->buckets[r->n_buckets];

        b->at = (uint64_t)r->n_buckets * WF_RING_BUCKET;
        b->n = WF_MIN(r->n_gradients - b->at, (uint64_t)WF_RING_BUCKET);
        WF_TRY(open_bucket(r, b, err));
    }
    find_buckets(r);
    return WF_OK;
}

void wf_ring_buckets_close(wf_ring *r)
{
    uint64_t n = (r->n_gradients + WF_RING_BUCKET - 1) / WF_RING_BUCKET;

    for (uint64_t i = 0; r->buckets && i < n; i++) {
        for (int k = 0; k < WF_RING_AT_ONCE; k++)
            if (r->buckets[i].sums[k].held)
                wf_reduce_close(&r->buckets[i].sums[k]);
        wf_reduce_plan_close(&r->buckets[i].plan);
    }
    free(r->buckets);
    free(r->variables);
    wf_buf_unref(&r->gradients);
    wf_buf_unref(&r->means);
}

/* ---- sums ---- */

static wf_reduce *sum_of(const wf_ring *r, uint32_t bucket)
{
    return &r->buckets[bucket].sums[wf_ring_slot(r->clock + 1)];
}

wf_status wf_ring_pump(wf_ring *r, uint32_t bucket, wf_err *err)
{
    wf_reduce_message m;

    while (wf_reduce_next(sum_of(r, bucket), &m))
        WF_TRY(wf_ring_send_sums(r, bucket, &m, err));
    return WF_OK;
}

/* A mean over the records of this worker counts as often as it has records. */
static wf_status begin(wf_ring *r, uint32_t bucket, wf_err *err)
{
    const wf_ring_bucket *b = &r->buckets[bucket];
    const float weight = (float)r->records;
    float *g = array(r) + b->at;

    for (uint64_t i = 0; r->n_members > 1 && i < b->n; i++)
        g[i] *= weight;
    wf_reduce_begin(sum_of(r, bucket), g);
    return wf_ring_pump(r, bucket, err);
}

float *wf_ring_gradient(const wf_ring *r, uint32_t variable)
{
    return array(r) + r->variables[variable].at;
}

wf_status wf_ring_give(wf_ring *r, uint32_t variable, wf_err *err)
{
    wf_ring_variable *v = &r->variables[variable];

    wf_assert(v->is_in && !v->pushed);
    v->pushed = true;
    for (uint32_t b = v->first; b <= v->last; b++)
        if (--r->buckets[b].missing == 0)
            WF_TRY(begin(r, b, err));
    return WF_OK;
}

wf_status wf_ring_give_rest(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        const wf_ring_variable *v = &r->variables[i];

        if (!v->is_in || v->pushed)
            continue;
        memset(array(r) + v->at, 0, r->local.variables[i].count * sizeof(float));
        WF_TRY(wf_ring_give(r, i, err));
        r->variables[i].pushed = false;
    }
    return WF_OK;
}

bool wf_ring_sums_are_in(const wf_ring *r)
{
    for (uint32_t b = 0; b < r->n_buckets; b++)
        if (!wf_reduce_is_done(sum_of(r, b)))
            return false;
    return true;
}

void wf_ring_end_sums(wf_ring *r, uint64_t records)
{
    const float total = r->n_members > 1 ? (float)records : 1;
    const float *sum = array(r);
    float *mean = r->means->data;

    for (uint64_t i = 0; records > 0 && i < r->n_gradients; i++)
        mean[i] = sum[i] / total;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        wf_reduce_again(sum_of(r, b));
        r->buckets[b].missing = r->buckets[b].variables;
    }
    for (uint32_t i = 0; i < r->local.n_variables; i++)
        r->variables[i].pushed = false;
}
