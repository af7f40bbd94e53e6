/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/tune/tune.c
 *
 * A file is of one case. It holds the name of the algorithm and, behind it, the description that
 * its key is the hash of. */
#include "common/kernels/cuda/tune/tune.h"
#include "common/base/clock.h"
#include "common/kernels/cuda/kept.h"
#include "common/log/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const wf_cuda_kind choice_kind = {"choice", "weftpick"};

struct wf_tuned {
    const wf_cuda_calls *calls;
    const char *gpu;
    char model[320];
    pthread_mutex_t lock; /* of measuring */
    /* Since the last line: */
    _Atomic uint32_t measured, found; /* cases, by a race and in a file */
    _Atomic uint32_t built;           /* algorithms */
    _Atomic int64_t took_ns;          /* of races */
    _Atomic int64_t building_ns;
};

wf_status wf_tuned_new(const wf_cuda_calls *calls, const char *gpu, const wf_cuda_properties *has,
                       wf_tuned **out, wf_err *err)
{
    wf_tuned *t = calloc(1, sizeof *t);

    if (!t)
        return wf_fail_nomem(err, sizeof *t);
    t->calls = calls;
    t->gpu = gpu;
    snprintf(t->model, sizeof t->model, "%s, %d.%d, %d processors", has->name, has->major,
             has->minor, has->processors);
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return WF_OK;
}

void wf_tuned_free(wf_tuned **t)
{
    if (*t)
        pthread_mutex_destroy(&(*t)->lock);
    free(*t);
    *t = NULL;
}

bool wf_tune_can(const wf_tuned *t)
{
    return t->calls->timer_ms && wf_cuda_kept_can_write();
}

/* ---- files ---- */

/* What a file says of a case: a name, left open, and the description. False: no memory. */
static bool describe(const wf_tuned *t, const wf_tune_case *c, wf_bytes *out)
{
    static const wf_tune_name open = {{0}};

    wf_bytes_add(out, &open, sizeof open);
    wf_bytes_printf(out, "%s %" PRIu64 " on %s: ", c->library, c->version, t->model);
    wf_bytes_add(out, c->of, c->bytes);
    return !out->failed;
}

static wf_cuda_key key_of(const wf_bytes *described)
{
    XXH128_hash_t h = XXH3_128bits(described->data + sizeof(wf_tune_name),
                                   described->size - sizeof(wf_tune_name));

    return (wf_cuda_key){h.high64, h.low64};
}

static bool read_name(const wf_bytes *described, wf_tune_name *out)
{
    const size_t n = sizeof *out;
    wf_bytes file = {0};
    bool found = wf_cuda_kept_read(&choice_kind, key_of(described), &file) &&
                 file.size == described->size &&
                 memcmp(file.data + n, described->data + n, file.size - n) == 0;

    if (found)
        memcpy(out, file.data, n);
    wf_bytes_close(&file);
    return found;
}

bool wf_tune_find(const wf_tuned *t, const wf_tune_case *c, wf_tune_name *out)
{
    wf_bytes described = {0};
    bool found = t->calls->timer_ms && describe(t, c, &described) && read_name(&described, out);

    wf_bytes_close(&described);
    return found;
}

/* ---- choosing ---- */

static int place_of(const wf_tune_candidates *of, const wf_tune_name *name)
{
    for (unsigned i = 0; i < of->n; i++)
        if (memcmp(&of->names[i], name, sizeof *name) == 0)
            return (int)i;
    return -1;
}

/* The candidate that all processes take from now on. Another may have written its own meanwhile,
 * which is then taken; if that fails, or nothing can be written, all take the first. */
static unsigned keep(wf_bytes *described, const wf_tune_candidates *of, unsigned mine, bool dropped)
{
    const wf_cuda_key key = key_of(described);
    wf_tune_name name;
    int place;

    memcpy(described->data, &of->names[mine], sizeof name);
    if (dropped ? wf_cuda_kept_write(&choice_kind, key, described->data, described->size)
                : wf_cuda_kept_add(&choice_kind, key, described->data, described->size))
        return mine;
    place = read_name(described, &name) ? place_of(of, &name) : -1;
    return place < 0 ? 0 : (unsigned)place;
}

static unsigned find_or_measure(wf_tuned *t, wf_bytes *described, const wf_tune_candidates *of)
{
    const int64_t began_ns = wf_now_ns();
    wf_tune_name name;
    bool found = read_name(described, &name);
    int place = found ? place_of(of, &name) : -1;
    unsigned mine = 0;
    int error;

    if (place >= 0) {
        t->found++;
        return (unsigned)place;
    }
    if (!wf_tune_can(t))
        return 0;
    error = wf_tune_race(t->calls, of, &mine);
    if (error != 0) {
        WF_LOG_WARN("cuda.not_timed",
                    "device=%s error=%d why=\"%s\" instead=\"the algorithm that the library names "
                    "first is taken\"",
                    t->gpu, error, t->calls->error_string(error));
        return 0;
    }
    mine = keep(described, of, mine, found);
    t->measured++;
    t->took_ns += wf_now_ns() - began_ns;
    return mine;
}

unsigned wf_tune_pick(wf_tuned *t, const wf_tune_case *c, const wf_tune_candidates *of)
{
    wf_bytes described = {0};
    unsigned chosen = 0;

    if (of->n > 1 && t->calls->timer_ms && describe(t, c, &described)) {
        pthread_mutex_lock(&t->lock);
        chosen = find_or_measure(t, &described, of);
        pthread_mutex_unlock(&t->lock);
    }
    wf_bytes_close(&described);
    return chosen;
}

void wf_tune_note(wf_tuned *t)
{
    t->found++;
}

void wf_tune_note_built(wf_tuned *t, unsigned n, int64_t took_ns)
{
    t->built += n;
    t->building_ns += took_ns;
}

void wf_tune_say(wf_tuned *t)
{
    uint32_t measured, found;

    if (t->measured == 0 && t->found == 0)
        return;
    measured = atomic_exchange(&t->measured, 0);
    found = atomic_exchange(&t->found, 0);
    if (measured || found)
        WF_LOG_INFO("cuda.chosen",
                    "device=%s timed=%u took_ms=%" PRId64 " kept=%u built=%u built_ms=%" PRId64,
                    t->gpu, measured, atomic_exchange(&t->took_ns, 0) / 1000000, found,
                    atomic_exchange(&t->built, 0), atomic_exchange(&t->building_ns, 0) / 1000000);
}
