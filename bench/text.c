/* SPDX-License-Identifier: Apache-2.0 */
/* bench/text.c - how fast a text file is opened (its records found) and read in batches.
 *
 *     bench_text FILE COLUMNS [libsvm|pairs|criteo|words|characters]
 *
 * A csv file without a header, of so many columns of numbers; csv_files.py makes one and runs
 * others beside it. Or a libsvm file of so many features; or its labels, indices and values, up to
 * so many of a line. Or Criteo's layout: the label, 13 counts
 * filled, clipped and as log(1 + n), 26 words hashed into so many bins each. Or plain text: up to
 * so many words of each line, by a vocabulary of 20,000 (which opening learns); or windows of so
 * many characters. lines_s is the limit: the same bytes read from the page cache, with memchr from
 * line end to line end.
 */
#include "common/base/clock.h"
#include "common/data/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST = 64, BATCH = 256 };

static void die(const wf_err *err)
{
    fprintf(stderr, "%s\n", err->what);
    exit(1);
}

static wf_dataset *open_libsvm(const char *path, int n)
{
    static const char *const column[] = {"features"};
    const wf_field_spec field = {.name = "x", .columns = column, .n_columns = 1, .want = WF_F32};
    wf_dataset *d = NULL;
    wf_err err;

    if (wf_dataset_open(&(wf_dataset_spec){.format = "libsvm",
                                           .fields = &field,
                                           .n_fields = 1,
                                           .files = &path,
                                           .n_files = 1,
                                           .features = (uint64_t)n},
                        &d, &err) != WF_OK)
        die(&err);
    return d;
}

static wf_dataset *open_pairs(const char *path, int n)
{
    static const char *const columns[] = {"indices", "values", "label"};
    wf_field_spec fields[3];
    wf_dataset *d = NULL;
    wf_err err;

    for (int i = 0; i < 3; i++)
        fields[i] = (wf_field_spec){.name = columns[i],
                                    .columns = &columns[i],
                                    .n_columns = 1,
                                    .bag_most = (uint64_t)n,
                                    .want = i == 0 ? WF_I64 : WF_F32};
    fields[0].is_bag = fields[1].is_bag = true;
    if (wf_dataset_open(
            &(wf_dataset_spec){
                .format = "libsvm", .fields = fields, .n_fields = 3, .files = &path, .n_files = 1},
            &d, &err) != WF_OK)
        die(&err);
    return d;
}

static wf_dataset *open_csv(const char *path, int n)
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

static wf_dataset *open_criteo(const char *path, int bins)
{
    static wf_column_spec schema[40];
    static const char *names[40];
    static char text[40][8];
    static const double zero[] = {0};
    const wf_map_step counts[] = {
        {.type = "fill"}, {.type = "clip", .numbers = zero, .n_numbers = 1}, {.type = "log1p"}};
    const wf_map_step words[] = {{.type = "hash", .number = bins, .text = "separate"}};
    const wf_field_spec fields[] = {
        {.name = "dense",
         .columns = names + 1,
         .n_columns = 13,
         .is_row = true,
         .steps = counts,
         .n_steps = 3,
         .want = WF_F32},
        {.name = "ids",
         .columns = names + 14,
         .n_columns = 26,
         .is_row = true,
         .steps = words,
         .n_steps = 1,
         .want = WF_I64},
        {.name = "y", .columns = names, .n_columns = 1, .want = WF_F32}};
    wf_dataset *d = NULL;
    wf_err err;

    for (int i = 0; i < 40; i++) {
        snprintf(text[i], sizeof text[i], "c%d", i);
        schema[i].name = names[i] = text[i];
        schema[i].dtype = i == 0 ? WF_I64 : i < 14 ? WF_F32 : WF_U8;
    }
    if (wf_dataset_open(&(wf_dataset_spec){.format = "csv",
                                           .fields = fields,
                                           .n_fields = 3,
                                           .files = &path,
                                           .n_files = 1,
                                           .schema = schema,
                                           .n_schema = 40,
                                           .delimiter = '\t'},
                        &d, &err) != WF_OK)
        die(&err);
    return d;
}

static wf_dataset *open_prose(const char *path, int n, bool characters)
{
    static const char *const column[] = {"text"};
    const wf_map_step step = {
        .type = "text_vectorization",
        .number = characters ? 0 : 20000,
        .tokens = {.split = characters ? WF_SPLIT_CHARACTER : WF_SPLIT_WHITESPACE,
                   .lowers = !characters,
                   .strips = !characters,
                   .length = characters ? 0 : (uint64_t)n}};
    const wf_field_spec field = {
        .name = "x", .columns = column, .n_columns = 1, .steps = &step, .n_steps = 1};
    uint64_t length = characters ? (uint64_t)n : 0;
    wf_dataset *d = NULL;
    wf_err err;

    if (wf_dataset_open(&(wf_dataset_spec){.format = "text",
                                           .fields = &field,
                                           .n_fields = 1,
                                           .files = &path,
                                           .n_files = 1,
                                           .sequence_length = length,
                                           .sequence_stride = length},
                        &d, &err) != WF_OK)
        die(&err);
    return d;
}

static wf_dataset *open_words(const char *path, int n)
{
    return open_prose(path, n, false);
}

static wf_dataset *open_characters(const char *path, int n)
{
    return open_prose(path, n, true);
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

static double find_lines(const char *path)
{
    static char text[256 << 10];
    int64_t from = wf_now_ns();
    FILE *f = fopen(path, "rb");
    size_t lines = 0, n;

    while (f && (n = fread(text, 1, sizeof text, f)) > 0)
        for (const char *at = text; (at = memchr(at, '\n', n - (size_t)(at - text))); at++)
            lines++;
    if (!f || lines == 0 || fclose(f) != 0)
        exit(1);
    return (double)(wf_now_ns() - from) / 1e9;
}

int main(int argc, char *argv[])
{
    bool libsvm = argc == 4 && strcmp(argv[3], "libsvm") == 0;
    bool pairs = argc == 4 && strcmp(argv[3], "pairs") == 0;
    bool criteo = argc == 4 && strcmp(argv[3], "criteo") == 0;
    bool words = argc == 4 && strcmp(argv[3], "words") == 0;
    bool characters = argc == 4 && strcmp(argv[3], "characters") == 0;
    bool is_csv = !libsvm && !pairs && !criteo && !words && !characters;
    int columns = argc == 3 || !is_csv ? atoi(argv[2]) : 0;
    int64_t from = wf_now_ns();
    struct stat st;
    wf_dataset *d;
    double opened;

    if (columns < 1 || (is_csv && columns > MOST) || stat(argv[1], &st) != 0) {
        fprintf(stderr, "usage: bench_text FILE COLUMNS [libsvm|pairs|criteo|words|characters]\n");
        return 2;
    }
    d = (criteo       ? open_criteo
         : words      ? open_words
         : characters ? open_characters
         : pairs      ? open_pairs
         : libsvm     ? open_libsvm
                      : open_csv)(argv[1], columns);
    opened = (double)(wf_now_ns() - from) / 1e9;
    printf(
        "{\"bytes\": %ld, \"records\": %lu, \"held\": %zu, \"open_s\": %.4f, \"in_order_s\": %.4f, "
        "\"shuffled_s\": %.4f, \"lines_s\": %.4f}\n",
        (long)st.st_size, (unsigned long)wf_dataset_records(d), wf_dataset_bytes(d), opened,
        read_all(d, false, 0), read_all(d, true, 0), find_lines(argv[1]));
    wf_dataset_free(&d);
    return 0;
}
