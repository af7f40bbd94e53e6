/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/split_size.c */
#include "master/epoch/split_size.h"
#include "common/base/size.h"

enum {
    PER_WORKER = 16,
    IN_STEP = 4, /* of a worker: a turn of the master on one's processor is a wait for all */
    MOST = 64,   /* batches */
    /* A pipeline that drains stands still for about half a step (bench/deepfm.py): of so many
     * batches that is a hundredth. */
    DRAIN_BATCHES = 48,
    DRAINS_PER_WORKER = 2
};

uint64_t wf_split_size_longest(uint64_t batches, uint32_t workers, uint64_t each)
{
    uint64_t full = batches / each, turns = full / workers;

    return turns * each + (full % workers ? each : batches % each);
}

/* Whoever has no more splits waits for the others until the epoch ends: of sizes down to half of
 * the one that is wanted, the one with which equally fast workers wait least. */
static uint64_t make_even(uint64_t batches, uint32_t workers, uint64_t wanted)
{
    uint64_t best = wanted, least = wf_split_size_longest(batches, workers, wanted);

    for (uint64_t each = wanted - 1; each > 0 && each >= wanted / 2; each--) {
        uint64_t longest = wf_split_size_longest(batches, workers, each);

        if (longest < least) {
            least = longest;
            best = each;
        }
    }
    return best;
}

uint64_t wf_split_size(uint64_t batches, uint32_t workers, const wf_split_job *job)
{
    uint64_t each = batches / ((uint64_t)workers * (job->in_step ? IN_STEP : PER_WORKER));

    if (job->drains)
        each = WF_MAX(each, WF_MIN(batches / ((uint64_t)workers * DRAINS_PER_WORKER),
                                   (uint64_t)DRAIN_BATCHES));
    return make_even(batches, workers, WF_MAX(WF_MIN(each, (uint64_t)MOST), 1));
}
