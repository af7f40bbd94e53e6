/* SPDX-License-Identifier: Apache-2.0 */
/* worker/replicas.c */
#include "worker/replicas.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/log/log.h"

#include <stdlib.h>
#include <string.h>

uint64_t wf_replica_share(uint64_t records, uint32_t n, uint32_t i, uint64_t *begin)
{
    uint64_t each = records / n, more = records % n;

    *begin = i * each + WF_MIN((uint64_t)i, more);
    return each + (i < more);
}

/* ---- beginning and end ---- */

/* Names that stand for one device count once. */
static void take_all(wf_replicas *r, const wf_device *const devices[], size_t n_devices,
                     wf_pool *pool)
{
    size_t n = 0;

    for (size_t i = 0; i < n_devices; i++) {
        bool known = false;

        for (size_t k = 0; k < n; k++)
            known |= r->distinct[k] == devices[i];
        if (!known)
            r->distinct[n++] = devices[i];
    }
    r->n = 1;
    r->devices[0] = r->distinct[0];
    r->on[0] = (wf_side_replica){.devices = r->distinct, .n_devices = n, .pool = pool};
}

/* Host and GPU would wait for each other at each step, and gradients have no common memory. */
static wf_status check_kinds(const wf_device *const devices[], size_t n, wf_err *err)
{
    for (size_t i = 1; i < n; i++)
        if (devices[i]->is_host != devices[0]->is_host)
            return wf_fail(err, WF_UNSUPPORTED,
                           "list either processors, as cpu:0 and cpu:1, or GPUs under devices in "
                           "cluster.yaml",
                           "strategy mirrored takes devices of one kind, and this worker has %s "
                           "and %s",
                           devices[0]->name, devices[i]->name);
    return WF_OK;
}

static wf_status give_threads(wf_replicas *r, wf_pool *pool, wf_err *err)
{
    for (uint32_t i = 0; i < r->n; i++) {
        uint64_t ignored, threads = wf_replica_share(wf_pool_threads(pool), r->n, i, &ignored);

        WF_TRY(wf_pool_new((uint32_t)WF_MAX(threads, (uint64_t)1), &r->of[i].pool, err));
        r->on[i].pool = r->of[i].pool;
    }
    return wf_pool_new(r->n, &r->beside, err);
}

static wf_status mirror(wf_replicas *r, const wf_device *const devices[], size_t n_devices,
                        wf_pool *pool, wf_err *err)
{
    WF_TRY(check_kinds(devices, n_devices, err));
    if (n_devices == 1)
        WF_LOG_WARN("worker.one_replica",
                    "device=%s why=\"strategy mirrored on one device trains as local does\"",
                    devices[0]->name);
    r->n = (uint32_t)n_devices;
    for (uint32_t i = 0; i < r->n; i++) {
        r->devices[i] = devices[i];
        r->on[i] = (wf_side_replica){.devices = &r->devices[i], .n_devices = 1, .pool = pool};
    }
    if (r->n == 1)
        return WF_OK;
    WF_LOG_INFO("worker.replicas", "n=%u device=%s", r->n, devices[0]->is_host ? "cpu" : "gpu");
    return devices[0]->is_host ? give_threads(r, pool, err) : WF_OK;
}

wf_status wf_replicas_open(wf_replicas *r, const wf_device *const devices[], size_t n_devices,
                           bool mirrored, wf_pool *pool, wf_err *err)
{
    wf_assert(n_devices > 0 && n_devices <= WF_REPLICAS_MOST);
    *r = (wf_replicas){0};
    if (mirrored)
        return mirror(r, devices, n_devices, pool, err);
    take_all(r, devices, n_devices, pool);
    return WF_OK;
}

void wf_replicas_close(wf_replicas *r)
{
    wf_pool_free(&r->beside);
    for (uint32_t i = 0; i < r->n; i++) {
        wf_apart_free(&r->of[i].apart);
        wf_pool_free(&r->of[i].pool);
        free(r->of[i].fields);
    }
    *r = (wf_replicas){0};
}

/* ---- a batch ---- */

static wf_status share_of(const wf_replicas *r, uint32_t i, const wf_batch *batch,
                          const wf_dataset *data, wf_replica *out, wf_err *err)
{
    uint32_t n_fields = wf_dataset_n_fields(data);
    uint64_t begin;

    if (!out->fields)
        out->fields = calloc(n_fields + (size_t)1, sizeof *out->fields);
    if (!out->fields)
        return wf_fail_nomem(err, n_fields * sizeof *out->fields);
    out->batch = *batch;
    out->batch.n = wf_replica_share(batch->n, r->n, i, &begin);
    out->batch.at = batch->at + begin;
    out->batch.fields = out->fields;
    for (uint32_t f = 0; f < n_fields; f++) {
        out->fields[f] = batch->fields[f];
        out->fields[f].dims[0] = (int64_t)out->batch.n;
        out->fields[f].data =
            (char *)batch->fields[f].data + begin * wf_dataset_field(data, f)->record_bytes;
    }
    return WF_OK;
}

wf_status wf_replicas_share(wf_replicas *r, const wf_batch *batch, const wf_dataset *data,
                            const wf_step_key *key, wf_err *err)
{
    for (uint32_t i = 0; i < r->n; i++) {
        wf_replica *of = &r->of[i];

        of->plan = NULL;
        of->bad_output = -1;
        of->rc = WF_OK;
        of->key = *key;
        if (i > 0)
            of->key.seed = wf_rng_fold(key->seed, i);
        if (r->n == 1)
            of->batch = *batch;
        else
            WF_TRY(share_of(r, i, batch, data, of, err));
    }
    return WF_OK;
}

typedef struct each {
    void (*fn)(void *arg, uint32_t i);
    void *arg;
} each;

static void call(void *arg, int64_t begin, int64_t end)
{
    const each *e = arg;

    for (int64_t i = begin; i < end; i++)
        e->fn(e->arg, (uint32_t)i);
}

void wf_replicas_each(const wf_replicas *r, void (*fn)(void *arg, uint32_t i), void *arg)
{
    wf_pool_for(r->beside, r->n, 1, call, &(each){fn, arg});
}
