/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench.c - which cases are measured, and for how long; bench/rounds.c measures one. */
#include "cmd/cli/bench/report.h"
#include "cmd/cli/bench/report_rows.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/progress.h"
#include "common/base/clock.h"
#include "common/base/machine.h"
#include "common/base/nearest.h"
#include "common/base/process.h"
#include "common/base/size.h"
#include "common/tensor/row_values.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A size takes so many times its bytes: gradients and weights of a worker and its pulls, weights,
 * spares and slots of the ps, the echo and the copies. */
enum { TIMES_IN_MEMORY = 16, MOST_SIZES = 16 };

enum { MOST_DIM = 4096, MOST_DRAWN = 1 << 22 };

/* Of the machine's memory, what the ps and the flat loops may take; the rest is for batches and for
 * whoever else is there. */
static const double OF_MEMORY = 0.85, GIB = 1 << 30;

/* All measurements take so long, if the machine has nothing else to do; a large size, whose work
 * takes longer, has more of it. */
static const int64_t ALL_NS = 14 * WF_NS_PER_S;
static const size_t LARGE = (size_t)16 << 20;
static const char *const rules[] = {"sgd", "adam"};

typedef struct bench {
    char *sizes, *transports; /* cut at their commas */
    const wf_bench_wire *wires[MOST_SIZES];
    const char *size[MOST_SIZES];
    size_t bytes[MOST_SIZES], n_wires, n_sizes, n, n_done;
    unsigned long long n_ps, n_workers, steps;
    bool table;
    wf_coding push, pull;
    unsigned long long rows, dim, drawn, at_once; /* of a table */
    wf_dtype dtype;
    wf_bench_case *cases;     /* [n] */
    wf_bench_result *results; /* [n] */
    wf_progress progress;
} bench;

static volatile sig_atomic_t asked_to_stop;

static void on_signal(int number)
{
    (void)number;
    asked_to_stop = 1;
}

static bool stopped(void)
{
    return asked_to_stop;
}

static void catch_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_signal};

    for (size_t i = 0; i < WF_COUNT(ends); i++)
        sigaction(ends[i], &act, NULL);
}

/* ---- words ---- */

/* The words between the commas of a copy of `text`, which the caller frees. */
static wf_status cut(const char *option, const char *text, char **copy,
                     const char *words[MOST_SIZES], size_t *n, wf_err *err)
{
    char *rest;

    *copy = rest = strdup(text);
    if (!rest)
        return wf_fail_nomem(err, strlen(text));
    for (*n = 0; rest;) {
        if (*n == MOST_SIZES)
            return wf_fail(err, WF_USAGE, NULL, "%s has more than %d words", option, MOST_SIZES);
        words[(*n)++] = strsep(&rest, ",");
    }
    return WF_OK;
}

static wf_status no_wire(const char *word, wf_err *err)
{
    const char *names[MOST_SIZES], *near;
    char list[128] = "write ";
    size_t n = 0;

    for (; wf_bench_wires[n].name; n++) {
        names[n] = wf_bench_wires[n].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n ? " or " : "",
                 names[n]);
    }
    near = wf_nearest(word, names, n);
    if (near)
        snprintf(list, sizeof list, "did you mean %s?", near);
    return wf_fail(err, WF_USAGE, list, "--transports: there is no transport \"%.64s\"", word);
}

static wf_status read_wires(bench *b, const char *text, wf_err *err)
{
    const char *words[MOST_SIZES];

    if (!text) {
        for (; wf_bench_wires[b->n_wires].name; b->n_wires++)
            b->wires[b->n_wires] = &wf_bench_wires[b->n_wires];
        return WF_OK;
    }
    WF_TRY(cut("--transports", text, &b->transports, words, &b->n_wires, err));
    for (size_t i = 0; i < b->n_wires; i++) {
        b->wires[i] = wf_bench_wire_find(words[i]);
        if (!b->wires[i])
            return no_wire(words[i], err);
    }
    return WF_OK;
}

static wf_status read_sizes(bench *b, const char *text, wf_err *err)
{
    size_t most = wf_machine_memory() / TIMES_IN_MEMORY / (b->n_workers + 1);

    WF_TRY(cut("--sizes", text, &b->sizes, b->size, &b->n_sizes, err));
    for (size_t i = 0; i < b->n_sizes; i++) {
        WF_TRY(wf_arg_bytes("--sizes", b->size[i], &b->bytes[i], err));
        if (b->bytes[i] % sizeof(float))
            return wf_fail(err, WF_USAGE, "write a multiple of 4",
                           "--sizes: %s is no whole number of float32", b->size[i]);
        if (b->bytes[i] > most)
            return wf_fail(err, WF_USAGE, "write a smaller one, or fewer workers",
                           "--sizes: %s takes %d times as much for each task, and the machine has "
                           "memory for %zu bytes",
                           b->size[i], TIMES_IN_MEMORY, most);
    }
    return WF_OK;
}

static wf_status make_room(bench *b, size_t n, wf_err *err)
{
    b->n = n;
    b->cases = calloc(n, sizeof *b->cases);
    b->results = calloc(n, sizeof *b->results);
    return b->cases && b->results ? WF_OK : wf_fail_nomem(err, n * sizeof *b->results);
}

static wf_status make_cases(bench *b, wf_err *err)
{
    int64_t shares = 0, share;

    WF_TRY(make_room(b, b->n_wires * b->n_sizes * WF_COUNT(rules), err));
    for (size_t i = 0; i < b->n; i++) {
        size_t size = i / WF_COUNT(rules) % b->n_sizes;

        share = b->bytes[size] >= LARGE ? 3 : 1;
        shares += share;
        b->cases[i] = (wf_bench_case){.wire = b->wires[i / WF_COUNT(rules) / b->n_sizes],
                                      .rule = rules[i % WF_COUNT(rules)],
                                      .size = b->size[size],
                                      .bytes = b->bytes[size],
                                      .push = b->push,
                                      .pull = b->pull,
                                      .n_ps = (uint32_t)b->n_ps,
                                      .n_workers = (uint32_t)b->n_workers,
                                      .at_once = 1,
                                      .steps = b->steps,
                                      .budget_ns = share};
    }
    for (size_t i = 0; i < b->n; i++)
        b->cases[i].budget_ns *= ALL_NS / shares;
    return WF_OK;
}

/* A case for each transport and each way to draw ids. */
static wf_status make_table_cases(bench *b, wf_err *err)
{
    size_t bytes = 0, n_draws = 0;
    double memory = OF_MEMORY * (double)wf_machine_memory(), rows = (double)b->rows,
           accumulators = rows * (double)b->dim * sizeof(float),
           ps = rows * (double)wf_row_values_room(b->dtype, b->dim) + accumulators,
           flat = 2 * accumulators;

    while (wf_bench_draws[n_draws].name)
        n_draws++;
    if (!wf_mul_size(b->rows, b->dim * sizeof(float), &bytes) || WF_MAX(ps, flat) > memory)
        return wf_fail(err, WF_USAGE, "write a smaller table",
                       "--rows: %llu rows of %llu numbers take %.1f GiB with their accumulators, "
                       "and the machine has memory for %.1f GiB",
                       b->rows, b->dim, WF_MAX(ps, flat) / GIB, memory / GIB);
    if (b->rows < b->n_ps)
        return wf_fail(err, WF_USAGE, NULL, "--rows: %llu rows on %llu ps", b->rows, b->n_ps);
    WF_TRY(make_room(b, b->n_wires * n_draws, err));
    for (size_t i = 0; i < b->n; i++)
        b->cases[i] = (wf_bench_case){.wire = b->wires[i / n_draws],
                                      .rule = "adagrad",
                                      .bytes = bytes,
                                      .draw = &wf_bench_draws[i % n_draws],
                                      .is_apart = ps + flat > memory,
                                      .rows = b->rows,
                                      .dim = (uint32_t)b->dim,
                                      .dtype = b->dtype,
                                      .drawn = b->drawn,
                                      .at_once = (uint32_t)b->at_once,
                                      .n_ps = (uint32_t)b->n_ps,
                                      .n_workers = (uint32_t)b->n_workers,
                                      .steps = b->steps,
                                      .budget_ns = ALL_NS / (int64_t)b->n};
    return WF_OK;
}

/* ---- the run ---- */

static void show(bench *b, const wf_bench_case *now)
{
    char facts[96];

    if (!b->progress.term.tty)
        return;
    snprintf(facts, sizeof facts, "%s  %.32s  %s", now->wire->name,
             now->draw ? now->draw->name : now->size, now->rule);
    wf_progress_show(&b->progress, wf_now_ns(), (double)b->n_done / (double)b->n, "bench", facts);
}

static wf_status measure_all(bench *b, wf_err *err)
{
    wf_status rc = WF_OK;

    catch_signals();
    wf_process_keep_blocks(); /* as weft's tasks do */
    WF_TRY(wf_process_raise_files(err));
    b->progress = wf_progress_new(stderr);
    for (; rc == WF_OK && b->n_done < b->n; b->n_done += rc == WF_OK) {
        show(b, &b->cases[b->n_done]);
        rc = wf_bench_rounds(&b->cases[b->n_done], stopped, &b->results[b->n_done], err);
    }
    wf_progress_clear(&b->progress);
    return rc;
}

static wf_status check_memory(const bench *b, wf_err *err)
{
    for (size_t i = 0; i < b->n; i++) {
        bool failed = b->results[i].copy_one.failed | b->results[i].copy_all.failed;

        for (size_t k = 0; k < WF_BENCH_WORKS; k++)
            failed |= b->results[i].weft[k].failed | b->results[i].bare[k].failed;
        if (failed)
            return wf_fail_nomem(err, sizeof(int64_t));
    }
    return WF_OK;
}

static void close_bench(bench *b)
{
    for (size_t i = 0; b->results && i < b->n; i++)
        wf_bench_result_close(&b->results[i]);
    free(b->results);
    free(b->cases);
    free(b->sizes);
    free(b->transports);
}

/* The words of the command line; NULL: not given. */
typedef struct words {
    const char *sizes, *transports, *n_ps, *n_workers, *steps, *rows, *dim, *dtype, *drawn,
        *at_once, *codec;
} words;

static wf_status no_codec(const char *word, size_t n, wf_err *err)
{
    const char *names[WF_N_CODINGS], *near;
    char hint[64] = "weights travel as f32, bf16 or f16";

    for (uint32_t i = 0; i < n; i++)
        names[i] = wf_coding_name(i);
    near = wf_nearest(word, names, n);
    if (near)
        snprintf(hint, sizeof hint, "did you mean %s?", near);
    return wf_fail(err, WF_USAGE, hint, "--codec: there is no codec \"%.64s\" of %s", word,
                   n == WF_N_CODINGS ? "gradients" : "weights");
}

/* PUSH or PUSH,PULL. */
static wf_status read_codec(bench *b, const char *text, wf_err *err)
{
    char push[16], *comma;

    snprintf(push, sizeof push, "%s", text);
    comma = strchr(push, ',');
    if (comma)
        *comma++ = 0;
    b->push = wf_coding_find(push);
    b->pull = comma ? wf_coding_find(comma) : WF_CODING_F32;
    if (b->push == WF_N_CODINGS)
        return no_codec(push, WF_N_CODINGS, err);
    return b->pull > WF_CODING_F16 ? no_codec(comma, WF_CODING_F16 + 1, err) : WF_OK;
}

static wf_status read_numbers(bench *b, const words *w, wf_err *err)
{
    WF_TRY(wf_arg_u64("--ps", w->n_ps ? w->n_ps : "1", 1, WF_BENCH_TASKS, &b->n_ps, err));
    WF_TRY(wf_arg_u64("--workers", w->n_workers ? w->n_workers : "1", 1, WF_BENCH_TASKS,
                      &b->n_workers, err));
    return w->steps ? wf_arg_u64("--steps", w->steps, 1, 1000000, &b->steps, err) : WF_OK;
}

static wf_status read_dense(bench *b, const words *w, wf_err *err)
{
    if (w->rows || w->dim || w->dtype || w->drawn || w->at_once)
        return wf_fail(err, WF_USAGE, "add --table", "--%s is about a table",
                       w->rows    ? "rows"
                       : w->dim   ? "dim"
                       : w->dtype ? "dtype"
                       : w->drawn ? "ids"
                                  : "at-once");
    if (w->codec)
        WF_TRY(read_codec(b, w->codec, err));
    WF_TRY(read_sizes(b, w->sizes ? w->sizes : "4KiB,1MiB,100MB", err));
    return make_cases(b, err);
}

static wf_status read_table(bench *b, const words *w, wf_err *err)
{
    if (w->sizes)
        return wf_fail(err, WF_USAGE, "write --rows and --dim", "--sizes is not about a table");
    if (w->codec)
        return wf_fail(err, WF_USAGE, "leave out --table", "--codec is not about a table");
    WF_TRY(
        wf_arg_u64("--rows", w->rows ? w->rows : "1000000", 1, WF_BENCH_ROWS_MOST, &b->rows, err));
    WF_TRY(wf_arg_u64("--dim", w->dim ? w->dim : "16", 1, MOST_DIM, &b->dim, err));
    b->dtype = w->dtype ? wf_dtype_of(w->dtype) : WF_F32;
    if (!wf_row_values_known(b->dtype))
        return wf_fail(err, WF_USAGE, "float32, bfloat16, float16 and int8 there are",
                       "--dtype: rows of a table are not held as \"%s\"", w->dtype);
    if (b->dtype == WF_I8 && b->dim > WF_INT8_ROW_MOST)
        return wf_fail(err, WF_USAGE, NULL, "--dim: a row of int8 has %d numbers at most",
                       WF_INT8_ROW_MOST);
    WF_TRY(wf_arg_u64("--ids", w->drawn ? w->drawn : "16384", 1, MOST_DRAWN, &b->drawn, err));
    WF_TRY(wf_arg_u64("--at-once", w->at_once ? w->at_once : "1", 1, WF_BENCH_AT_ONCE, &b->at_once,
                      err));
    return make_table_cases(b, err);
}

static wf_status print(const bench *b, bool json, wf_err *err)
{
    if (b->table)
        return (json ? wf_bench_print_rows_json : wf_bench_print_rows)(b->cases, b->results, b->n,
                                                                       err);
    return (json ? wf_bench_print_json : wf_bench_print_table)(b->cases, b->results, b->n, err);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    words w = {0};
    bool json = false;
    bench b = {0};
    const wf_flag flags[] = {
        {"sizes", 0, .value = &w.sizes},     {"table", 0, .set = &b.table},
        {"rows", 0, .value = &w.rows},       {"dim", 0, .value = &w.dim},
        {"dtype", 0, .value = &w.dtype},     {"ids", 0, .value = &w.drawn},
        {"at-once", 0, .value = &w.at_once}, {"transports", 0, .value = &w.transports},
        {"ps", 0, .value = &w.n_ps},         {"workers", 0, .value = &w.n_workers},
        {"steps", 0, .value = &w.steps},     {"codec", 0, .value = &w.codec},
        {"json", 0, .set = &json},           {0}};
    wf_words rest;
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 0, &rest, err));
    WF_TRY(read_numbers(&b, &w, err));
    rc = read_wires(&b, w.transports, err);
    if (rc == WF_OK)
        rc = b.table ? read_table(&b, &w, err) : read_dense(&b, &w, err);
    if (rc == WF_OK)
        rc = measure_all(&b, err);
    if (rc == WF_OK)
        rc = check_memory(&b, err);
    if (rc == WF_OK)
        rc = print(&b, json, err);
    close_bench(&b);
    return rc;
}

const wf_cmd wf_cmd_bench = {
    .name = "bench",
    .help = "measure pushes and pulls on this machine",
    .usage =
        "weft bench [--sizes SIZE,...] [--transports NAME,...] [--ps N] [--workers N] [--steps N]\n"
        "           [--codec PUSH[,PULL]] [--json]\n"
        "weft bench --table [--rows N] [--dim N] [--dtype NAME] [--ids N] [--at-once N]\n"
        "           [--transports NAME,...] [--ps N] [--workers N] [--steps N] [--json]\n"
        "\n"
        "Starts its own parameter servers and measures push, pull and both together: the rate, "
        "and\n"
        "the 50th, 90th and 99th percentile of the time. In turns with them it measures the same\n"
        "messages over bare ZeroMQ, and memcpy. LIMIT is the time of memcpy for the bytes that\n"
        "must be read and written once. No cluster is needed. Takes about 15 seconds.\n"
        "  --sizes SIZE,...       sizes of the variable (default: 4KiB,1MiB,100MB)\n"
        "  --transports NAME,...  shm (shared memory), ipc, tcp (default: all)\n"
        "  --ps N, --workers N    1 to 64 (default 1)\n"
        "  --steps N              number of pushes and pulls, instead of a limited time\n"
        "  --codec PUSH[,PULL]    how gradients and weights travel (codec of a job): f32, bf16, "
        "f16,\n"
        "                         int8, topk; the rate counts them as float32\n"
        "  --table                push and pull rows of a table by their ids, with adagrad, "
        "instead\n"
        "                         of a variable; and loop over flat arrays in this process,\n"
        "                         with as many threads as ps, to compare\n"
        "  --rows N, --dim N      size of the table (default: 1000000 rows of 16 numbers)\n"
        "  --dtype NAME           of its values: float32 (default), bfloat16, float16, int8\n"
        "  --ids N                random ids per batch, uniform and by Zipf's law (default "
        "16384);\n"
        "                         each row is sent once\n"
        "  --at-once N            batches that a worker has under way, 1 to 3 (default 1), as "
        "with\n"
        "                         `pipeline` 0 to 2: times and rates are those of each of them\n"
        "  --json                 for programs\n"
        "\n"
        "  weft bench --sizes 4KiB,64MiB --transports tcp\n"
        "  weft bench --table --rows 10000000 --transports shm,tcp\n",
    .run = run,
};
