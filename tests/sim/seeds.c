/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/seeds.c - runs a range of seeds; a failing one is printed as the command that repeats
 * it.
 *
 *   seeds FIRST COUNT [KIND] [-1|-v|-vv]   KIND mirrored: without ps; hybrid: with some variables
 * on ps and some in the workers. -1: ends with the first that fails; -v: logs, and the status at
 * the end; -vv: and every event
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *name;
    wf_sim_spec (*draw)(uint64_t seed);
} kinds[] = {{"", wf_sim_draw}, {"mirrored", wf_sim_draw_mirrored}, {"hybrid", wf_sim_draw_hybrid}};

/* The one that is named, else the first. */
static const struct kind *kind_of(const char *name)
{
    for (size_t i = 1; i < WF_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return &kinds[0];
}

static int run_seed(const char *program, uint64_t seed, const struct kind *kind, bool loud,
                    wf_sim_result *r)
{
    wf_sim_spec spec = kind->draw(seed);
    wf_err err;

    spec.loud = loud;
    if (wf_sim_run(&spec, r, &err) == WF_OK)
        return 0;
    printf("seed %lu: %s\n  again: %s %lu 1 %s%s-v\n", (unsigned long)seed, err.what, program,
           (unsigned long)seed, kind->name, kind->name[0] ? " " : "");
    return 1;
}

int main(int argc, char *argv[])
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
    const struct kind *kind = kind_of(argc > 3 ? argv[3] : "");
    int next = 3 + (kind != kinds);
    const char *how = argc > next ? argv[next] : "";
    int most = strcmp(how, "-1") == 0 ? 1 : 10;
    bool loud = strcmp(how, "-vv") == 0;
    bool verbose = loud || strcmp(how, "-v") == 0;
    int64_t began_ns = wf_now_ns();
    uint64_t events = 0, virtual_ms = 0, restarts = 0, checkpoints = 0, hangs = 0, flips = 0,
             moves = 0, downs = 0;
    int failed = 0;

    wf_log_init("sim", verbose ? WF_DEBUG : WF_ERROR + 1);
    for (uint64_t seed = first; seed < first + count && failed < most; seed++) {
        wf_sim_result r = {0}, again = {0};

        failed += run_seed(argv[0], seed, kind, loud, &r);
        if (seed % 40 == 0) { /* one seed, one history */
            failed += run_seed(argv[0], seed, kind, loud, &again);
            if (again.trace != r.trace) {
                printf("seed %lu: two runs differ\n", (unsigned long)seed);
                failed++;
            }
        }
        events += r.events;
        virtual_ms += r.virtual_ms;
        restarts += r.restarts;
        checkpoints += r.checkpoints;
        hangs += r.hangs;
        flips += r.flips;
        moves += r.moves;
        downs += r.downs;
    }
    printf("%lu seeds in %.1f s: %lu events, %.0f virtual s, %lu boots, %lu checkpoints, "
           "%lu hangs, %lu damaged packets, %lu moves, %lu downs, %d failed\n",
           (unsigned long)count, (double)(wf_now_ns() - began_ns) / 1e9, (unsigned long)events,
           (double)virtual_ms / 1e3, (unsigned long)restarts, (unsigned long)checkpoints,
           (unsigned long)hangs, (unsigned long)flips, (unsigned long)moves, (unsigned long)downs,
           failed);
    return failed ? 1 : 0;
}
