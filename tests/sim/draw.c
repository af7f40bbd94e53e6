/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/draw.c - what a history is made of: sizes, network and faults, all by its seed. */
#include "common/base/size.h"
#include "tests/sim/world.h"

static void draw_network(wf_sim *s, wf_sim_spec *spec)
{
    spec->packets = wf_sim_below(s, 2);
    if (!spec->packets) {
        spec->drop_per_mille = spec->dup_per_mille = 0;
        spec->breaks = (uint32_t)wf_sim_below(s, 5);
    }
    spec->flip_per_mille = wf_sim_below(s, 3) ? 0 : 1 + (uint32_t)wf_sim_below(s, 20);
    spec->bytes_per_ms = wf_sim_below(s, 4) ? 0 : 100 + (uint32_t)wf_sim_below(s, 2000);
}

static void draw_faults(wf_sim *s, wf_sim_spec *spec)
{
    spec->kill_workers = wf_sim_below(s, 2);
    spec->kill_ps = wf_sim_below(s, 2);
    spec->kill_master = wf_sim_below(s, 2);
    spec->tells = wf_sim_below(s, 2);
    spec->kills = (uint32_t)wf_sim_below(s, 5);
    spec->freezes = (uint32_t)wf_sim_below(s, 2);
    spec->cuts = (uint32_t)wf_sim_below(s, 3);
    spec->swizzles = wf_sim_below(s, 4) == 0;
    spec->stops = wf_sim_below(s, 6) == 0;
    spec->kill_alls = wf_sim_below(s, 4) == 0;
    spec->disk_errors = wf_sim_below(s, 4) == 0 ? 1 + (uint32_t)wf_sim_below(s, 3) : 0;
    spec->faults_end_ms = 200 + (int64_t)wf_sim_below(s, 3000);
}

static void draw_more_faults(wf_sim *s, wf_sim_spec *spec)
{
    spec->hangs = wf_sim_below(s, 6) == 0;
    spec->calls = (uint32_t)wf_sim_below(s, 3);
    spec->steps_block = wf_sim_below(s, 2);
    spec->jumps = wf_sim_below(s, 6) == 0;
    spec->fulls = wf_sim_below(s, 10) == 0;
    spec->disk_errors += spec->fulls; /* so that a person recovers a job that failed by it */
    spec->start_fails_per_mille = wf_sim_below(s, 12) ? 0 : 1 + (uint32_t)wf_sim_below(s, 300);
    spec->unfit = wf_sim_below(s, 12) || spec->workers == 1
                      ? 0
                      : 1 + (uint32_t)wf_sim_below(s, spec->workers);
}

/* Only what no process may be given up for: long steps, calls that block the master, a new start of
 * the master. In half of these histories a process hangs. */
static void calm(wf_sim *s, wf_sim_spec *spec)
{
    spec->kills = spec->freezes = spec->cuts = spec->swizzles = spec->kill_alls = 0;
    spec->disk_errors = spec->fulls = spec->breaks = spec->trouble_per_mille = 0;
    spec->start_fails_per_mille = spec->unfit = spec->jumps = 0;
    spec->drop_per_mille = spec->dup_per_mille = spec->downs = 0;
    spec->hangs = (uint32_t)wf_sim_below(s, 2);
    spec->calls = spec->hangs ? 0 : 2;
    spec->is_calm = !spec->hangs;
    spec->kills = spec->is_calm && wf_sim_below(s, 2); /* of the master */
    spec->kill_workers = spec->kill_ps = spec->kill_master = true;
}

/* Gradients and weights in fewer bytes, which say the ledger's numbers exactly (top-k would not);
 * with more records, so that slices are large enough for it, over a network that takes them. */
static void draw_codings(uint64_t draw, wf_sim_spec *spec)
{
    spec->push = (wf_coding)(draw % (WF_CODING_INT8 + 1));
    spec->pull = (wf_coding)(draw / 4 % (WF_CODING_F16 + 1));
    spec->records = (spec->records / spec->batch) * (48 + 16 * spec->batch) + spec->batch;
    spec->batch = 48 + 16 * spec->batch;
    spec->bytes_per_ms = 0;
}

/* Half of the histories are small: bugs show there first, and they run fast. */
wf_sim_spec wf_sim_draw(uint64_t seed)
{
    wf_sim s = {.spec = {.seed = seed}, .draws = 1000000};
    wf_sim_spec spec = {.seed = seed};
    bool small = wf_sim_below(&s, 4) > 0;

    spec.workers = 1 + (uint32_t)wf_sim_below(&s, small ? 3 : 6);
    spec.ps = 1 + (uint32_t)wf_sim_below(&s, small ? 2 : 4);
    spec.batch = 1 + (uint32_t)wf_sim_below(&s, 8);
    spec.records =
        spec.batch * (20 + (uint32_t)wf_sim_below(&s, 60)) + (uint32_t)wf_sim_below(&s, spec.batch);
    spec.epochs = 1 + (uint32_t)wf_sim_below(&s, 3);
    spec.every_steps = (uint32_t)wf_sim_below(&s, 4) * 13;
    spec.every_seconds = seed % 7 == 2 ? 1 + (uint32_t)(seed / 7 % 3) : 0;
    spec.pipeline = (uint32_t)wf_sim_below(&s, 2);
    spec.evaluates = wf_sim_below(&s, 2);
    spec.calls_back = seed % 4 < 2;
    spec.logged = seed % 8 < 4;
    spec.bounded = seed % 5 == 3 ? 1 + (uint32_t)(seed / 5 % 4) : 0;
    spec.together = seed % 10 == 4;
    spec.backups = spec.together && seed / 10 % 3 == 0 ? 1 + (uint32_t)(seed / 30 % 2) : 0;
    if (spec.together)
        spec.bounded = 1;
    spec.moves = spec.ps > 1 && seed % 3 ? 1 + (uint32_t)(seed / 3 % 20) : 0;
    spec.balances = spec.ps > 1 && seed % 3 == 0;
    spec.delay_us_min = 50;
    spec.delay_us_max = 50 + (int64_t)wf_sim_below(&s, 8000);
    spec.drop_per_mille = wf_sim_below(&s, 2) ? (uint32_t)wf_sim_below(&s, 60) : 0;
    spec.dup_per_mille = wf_sim_below(&s, 2) ? (uint32_t)wf_sim_below(&s, 30) : 0;
    draw_faults(&s, &spec);
    spec.gone_ms = wf_sim_below(&s, 2) ? 300 : 3000;
    spec.end_ms = 120000;
    spec.stuck_per_mille = wf_sim_below(&s, 6) == 0 ? (uint32_t)wf_sim_below(&s, 300) : 0;
    spec.jobs = wf_sim_below(&s, 4) ? 1 : 2;
    spec.trouble_per_mille = wf_sim_below(&s, 6) == 0 ? 1 + (uint32_t)wf_sim_below(&s, 40) : 0;
    spec.restores_best = spec.evaluates && wf_sim_below(&s, 4) == 0;
    spec.epochs += spec.restores_best;
    spec.goes_back = wf_sim_below(&s, 2);
    spec.stops_again = wf_sim_below(&s, 2);
    if (spec.restores_best && wf_sim_below(&s, 2)) {
        /* With no other checkpoints than the best: what follows one is left again at once, so that
         * a later generation saves the same step with the next epoch begun. */
        spec.every_steps = 0;
        spec.stops = 1;
        spec.goes_back = spec.stops_again = true;
    }
    spec.journal_least = 1 + (size_t)wf_sim_below(&s, 4096);
    spec.work_ms = wf_sim_below(&s, 3) ? 1 + (int64_t)wf_sim_below(&s, 400) : 0;
    draw_network(&s, &spec);
    draw_more_faults(&s, &spec);
    spec.supervised = seed % 5 == 1 || seed % 5 == 2;
    spec.downs = spec.supervised && seed % 3;
    if (wf_sim_below(&s, 8) == 0)
        calm(&s, &spec);
    spec.pipeline += spec.pipeline && seed / 3 % 2;
    spec.at_once = spec.pipeline && !spec.bounded && seed % 3 ? WF_WORKER_AT_ONCE : 1;
    if (seed % 7 == 5)
        draw_codings(seed / 7, &spec);
    if (seed % 16 == 7) { /* the worker holds the variables itself */
        spec.ps = 0;
        spec.workers = 1;
        spec.unfit = 0;
    }
    if (seed % 11 == 6) { /* one epoch for each record, in as many rounds as it takes */
        spec.files = 1 + (uint32_t)(seed / 11 % MOST_FILES);
        spec.epochs = 1;
        spec.jumps = 0; /* of a clock that jumps nobody can say how long a file was the same */
        spec.restores_best = false;
    }
    spec.shards = seed % 13 == 9 && !spec.files ? 1 + (uint32_t)(seed / 13 % MOST_FILES) : 0;
    return spec;
}

wf_sim_spec wf_sim_draw_mirrored(uint64_t seed)
{
    wf_sim_spec spec = wf_sim_draw(seed);

    spec.ps = 0;
    spec.workers = 2 + (uint32_t)(seed % 4);
    spec.pipeline = spec.bounded = spec.backups = spec.moves = 0;
    spec.at_once = 1;
    spec.together = spec.logged = spec.balances = false;
    spec.push = spec.pull = WF_CODING_F32;
    if (spec.batch > 8) { /* of a history with codings */
        spec.batch = 1 + (uint32_t)(seed % 8);
        spec.records = spec.batch * (20 + (uint32_t)(seed % 60));
    }
    spec.unfit = spec.unfit > spec.workers ? 1 : spec.unfit;
    spec.divides = seed % 5 == 2;
    spec.apart = seed / 4 % 2;
    return spec;
}

wf_sim_spec wf_sim_draw_hybrid(uint64_t seed)
{
    wf_sim_spec spec = wf_sim_draw(seed);

    spec.hybrid = true;
    spec.ps = WF_MAX(spec.ps, 1u);
    spec.workers = 2 + (uint32_t)(seed % 4);
    spec.bounded = spec.backups = 0;
    spec.together = false;
    spec.at_once = 1;
    spec.unfit = spec.unfit > spec.workers ? 1 : spec.unfit;
    spec.apart = seed / 4 % 2;
    return spec;
}
