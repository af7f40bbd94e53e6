/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/stage_homes.c - where the stages of a divided model are: on workers, and on
 * devices of a worker. They are in the order of the workers' numbers, and of a worker's devices as
 * cluster.yaml lists them.
 */
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/tensor/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A home, and its place among the devices of its worker. */
typedef struct found {
    wf_stage_home home;
    uint32_t at;
    const char *written; /* in the job; NULL: the worker alone */
} found;

const char *wf_stage_home_str(const wf_stage_home *h, char *text, size_t size)
{
    snprintf(text, size, "worker/%u%s%.64s", h->worker, h->device ? "/" : "",
             h->device ? h->device : "");
    return text;
}

static const wf_worker_devices unknown;

/* "cpu" is "cpu:0". */
static const char *plain(const char *device)
{
    return strcmp(device, "cpu") == 0 ? "cpu:0" : device;
}

bool wf_stage_same_device(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(plain(a), plain(b)) == 0);
}

bool wf_stages_name_devices(const wf_job_conf *job)
{
    for (size_t i = 0; i < job->n_stages; i++)
        if (job->stages[i].device)
            return true;
    return false;
}

size_t wf_stages_devices(const wf_job_conf *job, const char *devices[WF_STAGES_MOST])
{
    size_t n = 0;

    for (size_t i = 0; i < job->n_stages; i++) {
        const wf_conf_stage *s = &job->stages[i];
        bool known = false;

        if (s->worker > 0 || !s->device)
            return 0;
        for (size_t k = 0; k < n; k++)
            known |= wf_stage_same_device(devices[k], s->device);
        if (!known && n == WF_STAGES_MOST)
            return 0;
        if (!known)
            devices[n++] = s->device;
    }
    return n < 2 ? 0 : n;
}

/* Where nobody knows the devices of workers, they are in the order in which the job names them. */
static uint32_t order_of_naming(const found homes[], uint32_t n, const wf_conf_stage *s)
{
    for (uint32_t i = 0; i < n; i++)
        if (homes[i].home.worker == s->worker &&
            wf_stage_same_device(homes[i].home.device, s->device))
            return homes[i].at;
    return n;
}

static void list_devices(const wf_worker_devices *w, char *text, size_t size)
{
    size_t at = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < w->n_devices && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%.64s", i ? ", " : "", w->devices[i]);
}

static wf_status find_device(const wf_job_conf *job, const wf_conf_stage *s,
                             const wf_worker_devices *w, found *out, wf_err *err)
{
    char have[256];

    if (!s->device)
        return WF_OK;
    for (; out->at < w->n_devices; out->at++)
        if (wf_stage_same_device(w->devices[out->at], s->device)) {
            out->home.device = w->devices[out->at];
            return WF_OK;
        }
    list_devices(w, have, sizeof have);
    return wf_fail(err, WF_USAGE, "list it under devices in cluster.yaml",
                   "%s:%d: place: \"%.200s\" is to be on %.64s of worker/%u, which has %s",
                   job->path, s->line, s->match, s->device, s->worker, have);
}

static wf_status check_worker(const wf_job_conf *job, const wf_conf_stage *s, uint32_t n_workers,
                              wf_err *err)
{
    char hint[128];

    snprintf(hint, sizeof hint, "write it as worker/0/%.64s", s->is_any ? s->device : "");
    if (s->is_any && n_workers > 1)
        return wf_fail(err, WF_USAGE, hint,
                       "%s:%d: place: \"%.200s\" is to be on %.64s, and the cluster has %u workers",
                       job->path, s->line, s->match, s->device, n_workers);
    if (s->worker < n_workers)
        return WF_OK;
    return wf_fail(err, WF_USAGE, "name a worker of cluster.yaml",
                   "%s:%d: place: \"%.200s\" is to be on worker/%u, and the cluster has %u "
                   "worker%s, from worker/0",
                   job->path, s->line, s->match, s->worker, n_workers, n_workers == 1 ? "" : "s");
}

static wf_status add(const wf_job_conf *job, const found *f, int line, found homes[], uint32_t *n,
                     wf_err *err)
{
    char one[96], other[96];

    for (uint32_t i = 0; i < *n; i++) {
        const wf_stage_home as_written = {f->home.worker, f->written};
        const wf_stage_home before = {homes[i].home.worker, homes[i].written};

        if (homes[i].home.worker != f->home.worker || homes[i].at != f->at)
            continue;
        wf_stage_home_str(&before, one, sizeof one);
        wf_stage_home_str(&as_written, other, sizeof other);
        if (strcmp(one, other) == 0)
            return WF_OK;
        return wf_fail(err, WF_USAGE, "write it in one way",
                       "%s:%d: place: %s and %s are one device under two names", job->path, line,
                       one, other);
    }
    if (*n == WF_STAGES_MOST)
        return wf_fail(err, WF_UNSUPPORTED, "name fewer workers",
                       "%s:%d: \"place\" names more than %d workers and devices", job->path,
                       job->place_line, WF_STAGES_MOST);
    homes[(*n)++] = *f;
    return WF_OK;
}

/* All of them, with a stage for each device. */
static uint32_t take_all(const wf_stage_workers *of, found homes[])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < of->n; i++) {
        const wf_worker_devices *w = of->workers ? &of->workers[i] : &unknown;
        uint32_t first = n;

        for (uint32_t k = 0; k < WF_MAX(w->n_devices, 1u) && n < WF_STAGES_MOST; k++) {
            bool known = false;

            for (uint32_t j = first; w->devices && j < n; j++)
                known |= wf_stage_same_device(homes[j].home.device, w->devices[k]);
            if (!known)
                homes[n++] = (found){.home = {i, w->n_devices > 1 ? w->devices[k] : NULL}, .at = k};
        }
    }
    return n;
}

static int compare(const void *a, const void *b)
{
    const found *x = a, *y = b;

    if (x->home.worker != y->home.worker)
        return x->home.worker < y->home.worker ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

wf_status wf_stages_of_job(const wf_job_conf *job, const wf_stage_workers *of,
                           wf_stage_home homes[WF_STAGES_MOST], uint32_t *n, wf_err *err)
{
    found all[WF_STAGES_MOST], f;

    *n = job->finds_stages ? take_all(of, all) : 0;
    for (size_t i = 0; i < job->n_stages; i++) {
        const wf_conf_stage *s = &job->stages[i];

        WF_TRY(check_worker(job, s, of->n, err));
        f = (found){.home = {s->worker, s->device}, .written = s->device};
        if (of->workers)
            WF_TRY(find_device(job, s, &of->workers[s->worker], &f, err));
        else
            f.at = order_of_naming(all, *n, s);
        WF_TRY(add(job, &f, s->line, all, n, err));
    }
    qsort(all, *n, sizeof *all, compare);
    for (uint32_t i = 0; i < *n; i++)
        homes[i] = all[i].home;
    if (*n < 2)
        return wf_fail(err, WF_USAGE,
                       "name two workers or devices, or more, or leave \"place\" out",
                       "%s:%d: \"place\" divides the model among workers and their devices, and "
                       "there is one",
                       job->path, job->place_line);
    if (job->batch % WF_MAX(job->micro_batches, *n) && !job->micro_batches)
        return wf_fail(err, WF_USAGE, "say how many with \"micro_batches\"",
                       "%s:%d: a batch of %lu is not divided by the %u micro-batches that as many "
                       "stages have",
                       job->path, job->place_line, (unsigned long)job->batch, *n);
    return WF_OK;
}

uint32_t wf_stages_workers(const wf_job_conf *job)
{
    uint32_t n = job->finds_stages ? 2 : 1;

    for (size_t i = 0; i < job->n_stages; i++)
        n = WF_MAX(n, job->stages[i].worker + 1);
    return n;
}

void wf_stages_put(const wf_job_conf *job, const wf_stage_home homes[], uint32_t n,
                   wf_compile_spec *spec)
{
    wf_opt opt;

    memcpy(spec->stage_homes, homes, n * sizeof *homes);
    spec->n_stages = n;
    spec->stages = job->stages;
    spec->n_stage_rules = job->n_stages;
    spec->finds_stages = job->finds_stages;
    spec->place_line = job->place_line;
    spec->batch = (int64_t)(job->batch / (job->micro_batches ? job->micro_batches : n));
    spec->accumulates = true;
    spec->narrow = WF_NONE; /* a value has the same type on all devices */
    spec->slots = wf_compile_optimizer_of_job(job, &opt, NULL) == WF_OK ? wf_opt_n_slots(&opt) : 0;
}
