/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/many.c - short histories of 200 processes: 4 ps and 195 workers, few records.
 *
 *   many FIRST COUNT [-v]
 */
#include "common/base/clock.h"
#include "common/log/log.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_sim_spec many(uint64_t seed)
{
    return (wf_sim_spec){.seed = seed,
                         .workers = 195,
                         .ps = 4,
                         .jobs = 1,
                         .records = 1200,
                         .batch = 2,
                         .epochs = 1,
                         .every_steps = 300,
                         .pipeline = 1,
                         .packets = seed % 2,
                         .delay_us_min = 50,
                         .delay_us_max = 3000,
                         .drop_per_mille = seed % 2 ? 5 : 0,
                         .gone_ms = 3000,
                         .kills = 4,
                         .breaks = 20,
                         .hangs = seed % 3 == 0,
                         .calls = 3,
                         .tells = true,
                         .kill_workers = true,
                         .kill_ps = seed % 4 == 0,
                         .kill_master = seed % 4 == 1,
                         .journal_least = 4096,
                         .work_ms = 20,
                         .faults_end_ms = 1500,
                         .end_ms = 60000};
}

int main(int argc, char *argv[])
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 4;
    int failed = 0;

    wf_log_init("sim", argc > 3 ? WF_DEBUG : WF_ERROR + 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        wf_sim_spec spec = many(seed);
        int64_t began_ns = wf_now_ns();
        wf_sim_result r = {0};
        wf_err err;

        if (wf_sim_run(&spec, &r, &err) != WF_OK) {
            printf("seed %lu: %s\n  again: %s %lu 1 -v\n", (unsigned long)seed, err.what, argv[0],
                   (unsigned long)seed);
            failed++;
        }
        printf("seed %lu in %.1f s: %lu events, %.1f virtual s, %lu boots, %lu checkpoints\n",
               (unsigned long)seed, (double)(wf_now_ns() - began_ns) / 1e9, (unsigned long)r.events,
               (double)r.virtual_ms / 1e3, (unsigned long)r.restarts, (unsigned long)r.checkpoints);
    }
    return failed ? 1 : 0;
}
