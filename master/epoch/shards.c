/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/shards.c */
#include "master/epoch/shards.h"
#include "common/base/size.h"
#include "common/conf/conf.h"
#include "master/epoch/epoch.h"

#include <stdlib.h>

wf_status wf_shards_take(wf_shards *s, size_t n, const uint64_t ends[], uint64_t records,
                         wf_err *err)
{
    wf_shards fresh = {0};
    uint64_t end = 0;

    if (n) {
        fresh.ends = calloc(n, sizeof *fresh.ends);
        if (!fresh.ends)
            return wf_fail_nomem(err, n * sizeof *fresh.ends);
    }
    for (size_t i = 0; i < n && end < records; i++) {
        if (ends[i] <= end)
            continue;
        end = WF_MIN(ends[i], records);
        fresh.ends[fresh.n++] = end;
    }
    if (n && end < records) {
        wf_shards_close(&fresh);
        return wf_fail(err, WF_INVALID, "check that all tasks read the same files",
                       "the files have %lu records, and the data %lu", (unsigned long)end,
                       (unsigned long)records);
    }
    wf_shards_close(s);
    *s = fresh;
    return WF_OK;
}

void wf_shards_close(wf_shards *s)
{
    free(s->ends);
    *s = (wf_shards){0};
}

static uint64_t batches_of(uint64_t records, uint64_t batch)
{
    return records / batch + (records % batch != 0);
}

uint64_t wf_shards_batches(const wf_shards *s, uint64_t at, uint64_t batch)
{
    uint64_t begin = 0, all = 0;

    if (!s->n)
        return batches_of(at, batch);
    for (size_t i = 0; i < s->n && begin < at; begin = s->ends[i++])
        all += batches_of(WF_MIN(at, s->ends[i]) - begin, batch);
    return all;
}

uint64_t wf_shards_records(const wf_shards *s, uint64_t records, uint64_t batches, uint64_t batch)
{
    uint64_t begin = 0;

    if (!s->n) /* a product beyond 64 bits is more than all records */
        return batches >= batches_of(records, batch) ? records : batches * batch;
    for (size_t i = 0; i < s->n && begin < records; begin = s->ends[i++]) {
        uint64_t here = batches_of(s->ends[i] - begin, batch);

        if (batches < here)
            return WF_MIN(begin + batches * batch, records);
        batches -= here;
    }
    return records;
}

/* ---- of a job ---- */

/* Whether an epoch that begins has splits of whole files. */
static bool wants_files(const wf_master *m, const wf_job *j, size_t n_files)
{
    const int policy = j->prepared->shard;

    return n_files && !wf_job_grows(j) &&
           (policy == WF_SHARD_FILE || (policy == WF_SHARD_AUTO && n_files >= m->n_workers));
}

bool wf_shards_known(const wf_job *j)
{
    return j->prepared->shard == WF_SHARD_DATA || j->epoch->near.told;
}

wf_status wf_shards_choose(wf_master *m, wf_job *j, wf_err *err)
{
    wf_epoch *e = j->epoch;
    size_t n = e->near.n_files;
    uint64_t *ends;
    wf_status rc;

    if (!wants_files(m, j, n)) {
        wf_shards_close(&e->shards);
        return WF_OK;
    }
    ends = calloc(n, sizeof *ends);
    for (size_t i = 0; ends && i < n; i++)
        ends[i] = e->near.files[i].end;
    rc = ends ? wf_shards_take(&e->shards, n, ends, e->train_records, err)
              : wf_fail_nomem(err, n * sizeof *ends);
    free(ends);
    if (rc == WF_OK && !wants_files(m, j, e->shards.n)) /* files without records do not count */
        wf_shards_close(&e->shards);
    else if (rc == WF_OK && e->shards.n < m->n_workers && !e->shards_told)
        wf_job_note(m, j, "job.shard",
                    "shard: file has %zu file%s for %u workers: those without a file take part of "
                    "others'",
                    e->shards.n, e->shards.n == 1 ? "" : "s", m->n_workers);
    e->shards_told = true;
    return rc;
}
