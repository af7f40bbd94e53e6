/* SPDX-License-Identifier: Apache-2.0 */
/* bench/csv.c - how fast a csv file is opened (its records found) and read in batches.
 *
 *     bench_csv FILE COLUMNS
 *
 * A file without a header, of so many columns of numbers; csv_files.py makes one and runs
 * others beside it.
 */
#include "common/base/clock.h"
#include "common/data/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST = 64, BATCH = 256 };

static void die(const wf_err *err)
{
    fprintf(stderr, "%s\n", err->what);
    exit(1);
}

static wf_dataset *open_file(const char *path, int n)
{
    static wf_column_spec schema[MOST];
    static const char *names[MOST];
    static char text[MOST][8];
    const wf_field_spec field = {
        .name = "x", .columns = names, .n_columns = (size_t)n, .is_row = true, .want = WF_F32};
    wf_dataset *d = NULL;
    wf_err err;

    for (int i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "c%d", i);
        schema[i].name = names[i] = text[i];
    }
    if (wf_dataset_open(&(wf_dataset_spec){.format = "csv",
                                           .fields = &field,
                                           .n_fields = 1,
                                           .files = &path,
                                           .n_files = 1,
                                           .schema = schema,
                                           .n_schema = (size_t)n,
                                           .delimiter = ','},
                        &d, &err) != WF_OK)
        die(&err);
    return d;
}

static double read_all(const wf_dataset *d, bool shuffle, uint32_t depth)
{
    int64_t from = wf_now_ns();
    wf_data_reader *r = NULL;
    const wf_batch *b;
    wf_err err;

    if (wf_data_reader_new(
            &(wf_data_reader_spec){
                .dataset = d, .batch = BATCH, .seed = 1, .shuffle = shuffle, .depth = depth},
            &r, &err) != WF_OK ||
        wf_data_reader_open(r, 0, 0, 0, wf_dataset_records(d), 0, &err) != WF_OK)
        die(&err);
    do {
        if (wf_data_reader_next(r, &b, &err) != WF_OK)
            die(&err);
        wf_data_reader_release(r, &b);
    } while (wf_data_reader_given(r) * BATCH < wf_dataset_records(d));
    wf_data_reader_free(&r);
    return (double)(wf_now_ns() - from) / 1e9;
}

int main(int argc, char *argv[])
{
    int columns = argc == 3 ? atoi(argv[2]) : 0;
    int64_t from = wf_now_ns();
    struct stat st;
    wf_dataset *d;
    double opened;

    if (columns < 1 || columns > MOST || stat(argv[1], &st) != 0) {
        fprintf(stderr, "usage: bench_csv FILE COLUMNS\n");
        return 2;
    }
    d = open_file(argv[1], columns);
    opened = (double)(wf_now_ns() - from) / 1e9;
    printf(
        "{\"bytes\": %ld, \"records\": %lu, \"held\": %zu, \"open_s\": %.4f, \"in_order_s\": %.4f, "
        "\"shuffled_s\": %.4f}\n",
        (long)st.st_size, (unsigned long)wf_dataset_records(d), wf_dataset_bytes(d), opened,
        read_all(d, false, 0), read_all(d, true, 0));
    wf_dataset_free(&d);
    return 0;
}
