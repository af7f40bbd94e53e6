/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/report_rows.c */
#include "cmd/cli/bench/report_rows.h"
#include "cmd/cli/bench/report.h"
#include "cmd/cli/json.h"
#include "cmd/cli/table.h"
#include "common/tensor/row_values.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

/* What is said of one kind of work. */
typedef struct figures {
    const wf_bench_work *work;
    size_t n;
    int64_t p50, p90, p99, flat; /* ns; flat: the median of the flat loop */
    double rate, flat_rate;      /* rows a second: of all workers, and of one flat loop */
} figures;

static figures look(const wf_bench_case *of, wf_bench_result *r, size_t k)
{
    figures f = {.work = &wf_bench_works[k], .n = r->weft[k].n};

    f.p50 = wf_samples_at(&r->weft[k], 0.5);
    f.p90 = wf_samples_at(&r->weft[k], 0.9);
    f.p99 = wf_samples_at(&r->weft[k], 0.99);
    f.flat = wf_samples_at(&r->bare[k], 0.5);
    f.rate = f.p50 > 0 ? of->n_workers * r->named * 1e9 / (double)f.p50 : 0;
    f.flat_rate = f.flat > 0 ? r->named * 1e9 / (double)f.flat : 0;
    return f;
}

static double of_flat(const figures *f)
{
    return f->flat_rate > 0 ? f->rate / f->flat_rate : 0;
}

/* What a ps holds for a row: its values with their scale, and an accumulator for each element. */
static uint64_t row_bytes(const wf_bench_case *of)
{
    return wf_row_values_bytes(of->dtype, of->dim) + (of->dtype == WF_I8 ? sizeof(float) : 0) +
           of->dim * sizeof(float);
}

static void add_row(wf_rows *t, const wf_bench_case *of, const wf_bench_result *r, const figures *f)
{
    wf_bench_cell rows, each, named, rate, p50, p90, p99, flat, part;

    snprintf(rows, sizeof rows, "%" PRIu64 " x %" PRIu32, of->rows, of->dim);
    snprintf(each, sizeof each, "%" PRIu64, row_bytes(of));
    snprintf(named, sizeof named, "%.0f", r->named);
    snprintf(rate, sizeof rate, "%.1f", f->rate / 1e6);
    snprintf(flat, sizeof flat, "%.1f", f->flat_rate / 1e6);
    snprintf(part, sizeof part, "%.0f %%", 100 * of_flat(f));
    wf_rows_add(t,
                (const char *[]){of->wire->name, rows, wf_dtype_name(of->dtype), each,
                                 of->draw->name, named, of->rule, f->work->name, rate,
                                 wf_bench_time_text((double)f->p50, p50),
                                 wf_bench_time_text((double)f->p90, p90),
                                 wf_bench_time_text((double)f->p99, p99), flat, part},
                14);
}

wf_status wf_bench_print_rows(const wf_bench_case cases[], wf_bench_result results[], size_t n,
                              wf_err *err)
{
    wf_rows rows = {0};

    wf_rows_add(&rows,
                (const char *[]){"TRANSPORT", "TABLE", "DTYPE", "BYTES", "IDS", "ROWS", "RULE",
                                 "WORK", "M ROWS/S", "P50", "P90", "P99", "FLAT M/S", "OF FLAT"},
                14);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < WF_BENCH_WORKS; k++) {
            figures f = look(&cases[i], &results[i], k);

            add_row(&rows, &cases[i], &results[i], &f);
        }
    WF_TRY(wf_rows_print(&rows, stdout, err));
    if (cases[0].at_once > 1)
        printf("A worker had %" PRIu32 " batches under way; times are those of each.\n",
               cases[0].at_once);
    wf_bench_print_lines(results, n);
    if (cases[0].is_apart)
        printf(
            "FLAT was measured before the ps started, and not in turns with them: the memory does "
            "not do for both.\n");
    return WF_OK;
}

static json_t *row(const wf_bench_case *of, const wf_bench_result *r, const figures *f)
{
    return json_pack(
        "{s:s, s:I, s:I, s:s, s:I, s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f,"
        " s:f, s:I}",
        "transport", of->wire->name, "table_rows", (json_int_t)of->rows, "dim", (json_int_t)of->dim,
        "dtype", wf_dtype_name(of->dtype), "row_bytes", (json_int_t)row_bytes(of), "ids",
        of->draw->name, "optimizer", of->rule, "work", f->work->name, "samples", (json_int_t)f->n,
        "rows", r->named, "rows_per_s", f->rate, "p50_us", (double)f->p50 / 1e3, "p90_us",
        (double)f->p90 / 1e3, "p99_us", (double)f->p99 / 1e3, "flat_p50_us", (double)f->flat / 1e3,
        "flat_rows_per_s", f->flat_rate, "of_flat", of_flat(f), "cache_line_ns",
        (json_int_t)r->line_ns);
}

wf_status wf_bench_print_rows_json(const wf_bench_case cases[], wf_bench_result results[], size_t n,
                                   wf_err *err)
{
    json_t *list = json_array(), *all;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < WF_BENCH_WORKS; k++) {
            figures f = look(&cases[i], &results[i], k);

            json_array_append_new(list, row(&cases[i], &results[i], &f));
        }
    all = json_pack("{s:i, s:i, s:i, s:b, s:o}", "ps", (int)cases[0].n_ps, "workers",
                    (int)cases[0].n_workers, "at_once", (int)cases[0].at_once, "flat_apart",
                    cases[0].is_apart, "rows", list);
    return wf_json_print(all, JSON_INDENT(2) | JSON_REAL_PRECISION(6), err);
}
