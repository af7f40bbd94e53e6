/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/growth.c - data that grows: the ledger's records lie in files, which appear at random
 * times and take a while to be written. Names follow no order of time. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_MS = 1500, WRITTEN_MS = 250 };

static uint64_t luck(const wf_sim *s, uint64_t what, uint64_t below)
{
    return wf_rng_u64((wf_rng_key){s->spec.seed, 91}, what) % below;
}

void wf_sim_make_files(wf_sim *s)
{
    uint32_t at = 0, n = s->spec.files;

    for (uint32_t i = 0; i < n; i++) {
        wf_sim_file *f = &s->files[i];
        uint32_t left = s->spec.records - at, most = left - (n - 1 - i); /* one each for the rest */

        f->begin = at;
        f->n = i + 1 == n ? left : 1 + (uint32_t)luck(s, 4 * i, WF_MIN(most, 2 * left / (n - i)));
        at += f->n;
        f->appears_ns = (int64_t)luck(s, 4 * i + 1, LAST_MS) * MS;
        f->whole_ns = f->appears_ns + (int64_t)luck(s, 4 * i + 2, WRITTEN_MS) * MS;
        snprintf(f->path, sizeof f->path, "/in/%02u-%u", (unsigned)luck(s, 4 * i + 3, 100), i);
    }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const wf_listed *)a)->path, ((const wf_listed *)b)->path);
}

wf_status wf_sim_list_files(void *master, const char *const patterns[], size_t n, wf_arena *a,
                            wf_listed **out, size_t *n_out, wf_err *err)
{
    const wf_sim *s = ((const process *)master)->sim;
    wf_listed *list = wf_arena_array(a, s->spec.files, sizeof *list);

    (void)patterns, (void)n, (void)err;
    wf_assert(list);
    *n_out = 0;
    for (uint32_t i = 0; i < s->spec.files; i++) {
        const wf_sim_file *f = &s->files[i];
        int64_t changed_ns = WF_MIN(s->now_ns, f->whole_ns);
        bool whole = s->now_ns >= f->whole_ns;

        if (s->now_ns >= f->appears_ns)
            list[(*n_out)++] = (wf_listed){f->path, whole ? f->n : f->n + 1000, changed_ns};
    }
    if (*n_out)
        qsort(list, *n_out, sizeof *list, by_path);
    *out = list;
    return WF_OK;
}

static uint32_t find(const wf_sim *s, const char *path)
{
    uint32_t i = 0;

    while (i < s->spec.files && strcmp(s->files[i].path, path) != 0)
        i++;
    return i;
}

wf_status wf_sim_open_round(void *worker, const Weft__Round *round, wf_worker_job *out, wf_err *err)
{
    process *p = worker;
    wf_sim *s = p->sim;

    (void)err;
    out->train_records = 0;
    out->train_digest = 1;
    p->n_open = 0;
    for (size_t i = 0; round && i < round->n_files; i++) {
        uint32_t at = find(s, round->files[i]->path);

        if (at == s->spec.files || p->n_open == MOST_FILES ||
            round->files[i]->bytes != s->files[at].n)
            wf_sim_broken(s, "a round is of whole files", at, round->files[i]->bytes);
        p->open[p->n_open++] = at;
        out->train_records += s->files[at].n;
        out->train_digest = out->train_digest * 31 + at;
    }
    return WF_OK;
}

uint32_t wf_sim_record(const process *worker, uint64_t position)
{
    const wf_sim *s = worker->sim;
    uint64_t left = position;

    if (s->spec.files == 0)
        return (uint32_t)position;
    for (uint32_t i = 0; i < worker->n_open; i++) {
        const wf_sim_file *f = &s->files[worker->open[i]];

        if (left < f->n)
            return f->begin + (uint32_t)left;
        left -= f->n;
    }
    wf_assert(false && "a position within the round");
    return 0;
}

/* Whether a position of the open epoch is trained. */
static bool is_trained(const wf_ckpt_ledger *l, uint64_t at)
{
    for (size_t i = 0; i < l->n_finished; i++)
        if (at >= l->finished[i].begin && at < l->finished[i].end)
            return true;
    for (size_t i = 0; i < l->n_open; i++)
        if (at >= l->open[i].begin && at < l->open[i].next)
            return true;
    return false;
}

static void claim_rounds(const wf_sim *s, const wf_ckpt_ledger *l, uint8_t times[])
{
    uint64_t at = 0;

    for (size_t i = 0; l->rounds && i < l->rounds->n_earlier; i++)
        for (uint32_t k = 0; k < s->spec.files; k++)
            if (wf_listed_id(s->files[k].path) == l->rounds->earlier[i])
                for (uint32_t r = 0; r < s->files[k].n; r++)
                    times[s->files[k].begin + r]++;
    for (size_t i = 0; l->rounds && i < l->rounds->n_files; i++) {
        const wf_sim_file *f = &s->files[find(s, l->rounds->files[i].path)];

        for (uint32_t r = 0; r < f->n; r++, at++)
            times[f->begin + r] += is_trained(l, at);
    }
}

void wf_sim_claimed(const wf_sim *s, const wf_ckpt_ledger *l, uint8_t times[])
{
    memset(times, 0, s->spec.records);
    if (s->spec.files)
        claim_rounds(s, l, times);
    for (uint32_t r = 0; s->spec.files == 0 && r < s->spec.records; r++)
        times[r] = (uint8_t)(l->epoch + is_trained(l, r));
}
