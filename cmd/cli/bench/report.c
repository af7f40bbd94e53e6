/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/report.c */
#include "cmd/cli/bench/report.h"
#include "cmd/cli/json.h"
#include "cmd/cli/table.h"
#include "common/base/size.h"

#include <jansson.h>
#include <stdio.h>

/* What is said of one kind of work. */
typedef struct figures {
    const wf_bench_work *work;
    size_t n;
    int64_t p50, p90, p99, bare; /* ns; bare: the median over bare ZeroMQ */
    double rate;                 /* payload bytes a second, of all workers */
    double copy_one, copy_all;   /* bytes read and written a second */
    double limit;                /* ns that memcpy would take for what has to be moved */
} figures;

static figures look(const wf_bench_case *of, wf_bench_result *r, size_t k)
{
    const wf_bench_work *work = &wf_bench_works[k];
    figures f = {.work = work, .n = r->weft[k].n};
    double best;

    f.p50 = wf_samples_at(&r->weft[k], 0.5);
    f.p90 = wf_samples_at(&r->weft[k], 0.9);
    f.p99 = wf_samples_at(&r->weft[k], 0.99);
    f.bare = wf_samples_at(&r->bare[k], 0.5);
    f.rate = wf_bench_rate(of->n_workers * wf_bench_sent(work, of->bytes), f.p50);
    f.copy_one = wf_bench_rate(2 * r->copied, wf_samples_at(&r->copy_one, 0.5));
    f.copy_all = wf_bench_rate(2 * r->copied, wf_samples_at(&r->copy_all, 0.5));
    best = WF_MAX(f.copy_one, f.copy_all);
    if (best > 0)
        f.limit = (double)(of->n_workers * wf_bench_moved(work, of->bytes, r->slots)) * 1e9 / best;
    return f;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* ---- the table ---- */

const char *wf_bench_time_text(double ns, wf_bench_cell text)
{
    if (ns < 10e6)
        snprintf(text, sizeof(wf_bench_cell), ns < 100e3 ? "%.1f us" : "%.0f us", ns / 1e3);
    else
        snprintf(text, sizeof(wf_bench_cell), ns < 100e6 ? "%.1f ms" : "%.0f ms", ns / 1e6);
    return text;
}

static const char *rate_text(double bytes, wf_bench_cell text)
{
    snprintf(text, sizeof(wf_bench_cell), bytes < 1e9 ? "%.3f" : "%.2f", bytes / 1e9);
    return text;
}

static void add_row(wf_rows *t, const wf_bench_case *of, const figures *f)
{
    wf_bench_cell rate, p50, p90, p99, bare, times, copy, limit, part;

    snprintf(times, sizeof times, "%.2f", ratio((double)f->p50, (double)f->bare));
    snprintf(part, sizeof part, "%.1f %%", 100 * ratio(f->limit, (double)f->p50));
    wf_rows_add(t,
                (const char *[]){of->wire->name, of->size, of->rule, f->work->name,
                                 rate_text(f->rate, rate), wf_bench_time_text((double)f->p50, p50),
                                 wf_bench_time_text((double)f->p90, p90),
                                 wf_bench_time_text((double)f->p99, p99),
                                 wf_bench_time_text((double)f->bare, bare), times,
                                 rate_text(WF_MAX(f->copy_one, f->copy_all), copy),
                                 wf_bench_time_text(f->limit, limit), part},
                13);
}

void wf_bench_print_lines(const wf_bench_result results[], size_t n)
{
    int64_t least = INT64_MAX, most = 0;

    for (size_t i = 0; i < n; i++) {
        least = WF_MIN(least, results[i].line_ns);
        most = WF_MAX(most, results[i].line_ns);
    }
    if (most > 0)
        printf("A cache line went to another processor and back in %ld to %ld ns.\n", (long)least,
               (long)most);
}

wf_status wf_bench_print_table(const wf_bench_case cases[], wf_bench_result results[], size_t n,
                               wf_err *err)
{
    wf_rows rows = {0};

    wf_rows_add(&rows,
                (const char *[]){"TRANSPORT", "SIZE", "RULE", "WORK", "GB/S", "P50", "P90", "P99",
                                 "ZEROMQ", "TIMES", "MEMCPY GB/S", "LIMIT", "OF LIMIT"},
                13);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < WF_BENCH_WORKS; k++) {
            figures f = look(&cases[i], &results[i], k);

            if (f.n > 0)
                add_row(&rows, &cases[i], &f);
        }
    WF_TRY(wf_rows_print(&rows, stdout, err));
    wf_bench_print_lines(results, n);
    return WF_OK;
}

/* ---- JSON ---- */

static json_t *row(const wf_bench_case *of, const wf_bench_result *r, const figures *f)
{
    return json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:f,"
        " s:I}",
        "transport", of->wire->name, "bytes", (json_int_t)of->bytes, "dtype", "float32",
        "optimizer", of->rule, "work", f->work->name, "samples", (json_int_t)f->n, "gb_per_s",
        f->rate / 1e9, "p50_us", (double)f->p50 / 1e3, "p90_us", (double)f->p90 / 1e3, "p99_us",
        (double)f->p99 / 1e3, "zeromq_p50_us", (double)f->bare / 1e3, "times_zeromq",
        ratio((double)f->p50, (double)f->bare), "memcpy_gb_per_s", f->copy_one / 1e9,
        "memcpy_all_gb_per_s", f->copy_all / 1e9, "moved_bytes",
        (json_int_t)(of->n_workers * wf_bench_moved(f->work, of->bytes, r->slots)), "limit_us",
        f->limit / 1e3, "of_limit", ratio(f->limit, (double)f->p50), "cache_line_ns",
        (json_int_t)r->line_ns);
}

wf_status wf_bench_print_json(const wf_bench_case cases[], wf_bench_result results[], size_t n,
                              wf_err *err)
{
    json_t *list = json_array(), *all;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < WF_BENCH_WORKS; k++) {
            figures f = look(&cases[i], &results[i], k);

            if (f.n > 0)
                json_array_append_new(list, row(&cases[i], &results[i], &f));
        }
    all = json_pack("{s:i, s:i, s:i, s:s, s:s, s:o}", "ps", (int)cases[0].n_ps, "workers",
                    (int)cases[0].n_workers, "threads", (int)results[0].threads, "push",
                    wf_coding_name(cases[0].push), "pull", wf_coding_name(cases[0].pull), "rows",
                    list);
    return wf_json_print(all, JSON_INDENT(2) | JSON_REAL_PRECISION(6), err);
}
