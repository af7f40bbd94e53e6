/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/dataset.c - data files whole and broken, map steps, labels. */
#include "common/base/rng.h"
#include "common/data/data.h"
#include "tests/unit/datasets.h"
#include "tests/unit/skip.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* 3 images of 2 x 2: 0 to 11. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0,  0,
                                 0, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9};

static void check_images(const char *path)
{
    static const uint64_t at[] = {2, 0};
    wf_dataset *d = NULL;
    uint8_t out[8];

    assert_int_equal(open_one("idx", path, NULL, 0, WF_NONE, &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_records(d), 3);
    assert_int_equal(wf_dataset_bytes(d), 12);
    assert_int_equal(wf_dataset_field(d, 0)->dtype, WF_U8);
    assert_int_equal(wf_dataset_field(d, 0)->rank, 2);
    assert_int_equal(wf_dataset_field(d, 0)->record_bytes, 4);
    assert_int_equal(wf_dataset_gather(d, 0, at, 2, out, NULL), WF_OK);
    assert_memory_equal(out, ((uint8_t[]){8, 9, 10, 11, 0, 1, 2, 3}), 8);
    wf_dataset_free(&d);
    assert_null(d);
}

static void an_idx_file_is_read_plain_and_through_gzip(void **unused)
{
    (void)unused;
    check_images(test_write(&folder, "x.idx", images, sizeof images));
    test_write_gz(&folder, "x.idx.gz", images, sizeof images);
    check_images(test_path(&folder, "x.idx.gz"));
}

static uint64_t digest_of(const char *path)
{
    wf_dataset *d = NULL;
    uint64_t digest;

    assert_int_equal(open_one("idx", path, NULL, 0, WF_NONE, &d, NULL), WF_OK);
    digest = wf_dataset_digest(d);
    wf_dataset_free(&d);
    return digest;
}

static void a_digest_tells_other_content(void **unused)
{
    uint8_t other[sizeof images];
    uint64_t digest = digest_of(test_write(&folder, "x.idx", images, sizeof images));

    (void)unused;
    assert_true(digest != 0);
    test_write_gz(&folder, "x.idx.gz", images, sizeof images);
    assert_true(digest_of(test_path(&folder, "x.idx.gz")) == digest);
    for (size_t i = 16; i < sizeof images; i++) {
        memcpy(other, images, sizeof images);
        other[i]++;
        assert_true(digest_of(test_write(&folder, "x.idx", other, sizeof other)) != digest);
    }
}

static void every_truncation_of_a_plain_file_is_refused(void **unused)
{
    (void)unused;
    for (size_t n = 0; n < sizeof images; n++)
        expect_refused("idx", test_write(&folder, "x", images, n), WF_INVALID, "bytes wanted");
    expect_refused("idx", test_write(&folder, "x", images, 20), WF_INVALID,
                   "28 bytes wanted by its header, 20 present");
}

static void every_truncation_of_a_packed_file_is_refused(void **unused)
{
    static uint8_t packed[4096], raw[600];
    size_t n, got;
    FILE *file;

    (void)unused;
    memcpy(raw, (uint8_t[]){0, 0, 8, 1, 0, 0, 2, 0x50}, 8); /* 592 records */
    for (size_t i = 8; i < sizeof raw; i++)
        raw[i] = (uint8_t)wf_rng_below((wf_rng_key){1, 2}, i, 7);
    n = test_write_gz(&folder, "whole.gz", raw, sizeof raw);
    file = fopen(folder.file, "rb");
    got = fread(packed, 1, sizeof packed, file);
    fclose(file);
    assert_int_equal(n, got);
    for (size_t cut = 0; cut < n; cut++)
        expect_refused("idx", test_write(&folder, "cut.gz", packed, cut), WF_INVALID, "cut.gz");
    packed[n / 2] ^= 0x10; /* a flipped bit, as gzip's checksum sees it */
    expect_refused("idx", test_write(&folder, "bad.gz", packed, n), WF_INVALID, "bad.gz");
}

/* Files that are large enough to be unpacked at once, and what is wrong with them. */
static void large_packed_files_are_read_and_refused_as_small_ones(void **unused)
{
    enum { RECORDS = 200000, SIZE = RECORDS + 8 };
    uint8_t *raw = malloc(SIZE), *packed = malloc(2 * SIZE), byte;
    uint64_t last = RECORDS - 1;
    wf_dataset *d = NULL;
    size_t n, half;
    FILE *file;

    (void)unused;
    assert_true(raw && packed);
    memcpy(raw, (uint8_t[]){0, 0, 8, 1, 0, 3, 0x0d, 0x40}, 8);
    for (size_t i = 8; i < SIZE; i++)
        raw[i] = (uint8_t)wf_rng_below((wf_rng_key){1, 2}, i, 256);
    half = test_write_gz(&folder, "half.gz", raw, SIZE / 2);
    file = fopen(test_path(&folder, "half.gz"), "rb");
    assert_int_equal(fread(packed, 1, half, file), half);
    fclose(file);
    n = test_write_gz(&folder, "rest.gz", raw + SIZE / 2, SIZE - SIZE / 2);
    file = fopen(test_path(&folder, "rest.gz"), "rb");
    assert_int_equal(fread(packed + half, 1, n, file), n);
    fclose(file);
    /* Two members, as gzip joins files, are one file. */
    assert_int_equal(open_one("idx", test_write(&folder, "two.gz", packed, half + n), NULL, 0,
                              WF_NONE, &d, NULL),
                     WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, &last, 1, &byte, NULL), WF_OK);
    assert_int_equal(byte, raw[SIZE - 1]);
    wf_dataset_free(&d);

    n = test_write_gz(&folder, "one.gz", raw, SIZE);
    file = fopen(test_path(&folder, "one.gz"), "rb");
    assert_int_equal(fread(packed, 1, n, file), n);
    fclose(file);
    assert_int_equal(open_one("idx", test_path(&folder, "one.gz"), NULL, 0, WF_NONE, &d, NULL),
                     WF_OK);
    for (uint64_t at = 0; at < RECORDS; at += 4999) {
        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &byte, NULL), WF_OK);
        assert_int_equal(byte, raw[8 + at]);
    }
    wf_dataset_free(&d);
    expect_refused("idx", test_write(&folder, "cut.gz", packed, n - 9), WF_INVALID, "cut.gz");
    expect_refused("idx", test_write(&folder, "cut.gz", packed, n - 3), WF_INVALID, "cut.gz");
    packed[n / 2] ^= 0x10;
    expect_refused("idx", test_write(&folder, "bad.gz", packed, n), WF_INVALID, "bad.gz");
    test_write_gz(&folder, "short.gz", raw, SIZE - 1);
    expect_refused("idx", test_path(&folder, "short.gz"), WF_INVALID, "wanted");
    free(raw);
    free(packed);
}

/* Opened for its shape alone; a tenth of the records is held out. */
static wf_status open_head(const char *const paths[], size_t n, wf_dataset **out, wf_err *err)
{
    wf_field_spec field = {
        .name = "x", .path = paths[0], .more = paths + 1, .n_more = n - 1, .head_only = true};
    wf_dataset_spec spec = {
        .format = "idx", .fields = &field, .n_fields = 1, .held_out = 0.4, .is_held_out = true};

    return wf_dataset_open(&spec, out, err);
}

static void expect_head(const char *const paths[], size_t n, uint64_t records, size_t bytes)
{
    wf_dataset *d = NULL;

    assert_int_equal(open_head(paths, n, &d, NULL), WF_OK);
    assert_int_equal(wf_dataset_records(d), records);
    assert_int_equal(wf_dataset_field(d, 0)->record_bytes, 4);
    assert_int_equal(wf_dataset_bytes(d), bytes);
    wf_dataset_free(&d);
}

static size_t read_whole(const char *path, uint8_t to[static 128])
{
    FILE *file = fopen(path, "rb");
    size_t n = fread(to, 1, 128, file);

    fclose(file);
    return n;
}

static void a_head_says_what_a_shape_needs_and_a_short_file_is_still_found(void **unused)
{
    uint8_t packed[256];
    const char *paths[2];
    wf_dataset *d = NULL;
    wf_err err = {0};
    size_t n;

    (void)unused;
    paths[0] = paths[1] = test_write(&folder, "x.idx", images, sizeof images);
    expect_head(paths, 1, 2, 0);
    expect_head(paths, 2, 3, 0);
    paths[0] = test_write(&folder, "cut.idx", images, sizeof images - 1);
    assert_int_equal(open_head(paths, 1, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "cut short"));
    test_write_gz(&folder, "x.idx.gz", images, sizeof images);
    paths[0] = test_path(&folder, "x.idx.gz");
    expect_head(paths, 1, 2, 0);
    n = read_whole(paths[0], packed);
    for (size_t cut = 1; cut < n; cut++) {
        paths[0] = test_write(&folder, "cut.gz", packed, cut);
        assert_int_equal(open_head(paths, 1, &d, NULL), WF_INVALID);
        assert_null(d);
    }
    /* Two members: the length at the end is that of the last, and the records are read after all.
     */
    test_write_gz(&folder, "none.gz", images, 0);
    n += read_whole(test_path(&folder, "none.gz"), packed + n);
    paths[0] = test_write(&folder, "two.gz", packed, n);
    expect_head(paths, 1, 2, 8);
}

static void what_a_header_claims_is_held_against_the_file(void **unused)
{
    uint8_t huge[20] = {0,    0,    14,   4,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint8_t large[12] = {0, 0, 8, 2, 0x7f, 0, 0, 0, 0, 0, 1, 0};
    uint8_t longer[sizeof labels + 1] = {0};

    (void)unused;
    expect_refused("idx", test_write(&folder, "x", huge, sizeof huge), WF_INVALID, "no memory");
    expect_refused("idx", test_write(&folder, "x", large, sizeof large), WF_INVALID, "wanted");
    test_write_gz(&folder, "x.gz", large, sizeof large);
    expect_refused("idx", test_path(&folder, "x.gz"), WF_INVALID, "at most");
    memcpy(longer, labels, sizeof labels);
    expect_refused("idx", test_write(&folder, "x", longer, sizeof longer), WF_INVALID, "beyond");
    test_write_gz(&folder, "x.gz", longer, sizeof longer);
    expect_refused("idx", test_path(&folder, "x.gz"), WF_INVALID, "beyond");
}

static void a_wrong_file_is_named(void **unused)
{
    uint8_t bad[sizeof labels];

    (void)unused;
    expect_refused("idx", "/nowhere/at/all", WF_NOTFOUND, "/nowhere/at/all");
    expect_refused("idx", folder.path, WF_INVALID, "not a file");
    expect_refused("idx", test_write(&folder, "plain.gz", labels, sizeof labels), WF_INVALID,
                   "gzip");
    memcpy(bad, labels, sizeof bad);
    bad[2] = 10;
    expect_refused("idx", test_write(&folder, "x", bad, sizeof bad), WF_INVALID, "not an idx file");
    bad[2] = 8;
    bad[3] = 9;
    expect_refused("idx", test_write(&folder, "x", bad, sizeof bad), WF_INVALID, "9 dimensions");
    memset(bad + 4, 0, 4);
    bad[3] = 1;
    expect_refused("idx", test_write(&folder, "x", bad, 8), WF_INVALID, "holds no records");
    bad[3] = 0;
    expect_refused("idx", test_write(&folder, "x", bad, 5), WF_INVALID, "single number");
    expect_refused("npy", test_write(&folder, "x", labels, sizeof labels), WF_INVALID, "npy");
    expect_refused("idxx", folder.file, WF_USAGE, "did you mean \"idx\"");
    expect_refused("text", folder.file, WF_USAGE, "a data set of the format \"text\" has no file");
}

static void fields_of_different_counts_are_refused(void **unused)
{
    char x[PATH_MAX], y[PATH_MAX];
    wf_field_spec fields[] = {{.name = "x", .path = x}, {.name = "y", .path = y}};
    wf_dataset_spec spec = {.format = "idx", .fields = fields, .n_fields = 2};
    uint8_t fewer[sizeof labels - 1];
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)unused;
    strcpy(x, test_write(&folder, "x", images, sizeof images));
    strcpy(y, test_write(&folder, "y", labels, sizeof labels));
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_OK);
    assert_int_equal(wf_dataset_n_fields(d), 2);
    assert_int_equal(wf_dataset_find(d, "y"), 1);
    assert_int_equal(wf_dataset_find(d, "z"), -1);
    assert_int_equal(wf_dataset_check_labels(d, 1, 10, &err), WF_OK);
    assert_int_equal(wf_dataset_check_labels(d, 1, 9, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "record 2 has the label 9"));
    wf_dataset_free(&d);

    spec.limit_bytes = 14;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_NOMEM);
    spec.limit_bytes = 0;
    fields[1].name = "x";
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_USAGE);
    fields[1].name = "y";
    memcpy(fewer, labels, sizeof fewer);
    fewer[7] = 2;
    test_write(&folder, "y", fewer, sizeof fewer);
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "holds 2 records (\"y\")"));
    assert_null(d);
}

/* Opens images with steps, expecting `rank` dims of `dtype`, and returns it. */
static wf_dataset *mapped(const wf_map_step *steps, size_t n, wf_dtype want, wf_dtype dtype,
                          uint32_t rank, int64_t last)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    test_write(&folder, "x", images, sizeof images);
    if (open_one("idx", folder.file, steps, n, want, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(wf_dataset_field(d, 0)->dtype, dtype);
    assert_int_equal(wf_dataset_field(d, 0)->rank, rank);
    assert_int_equal(wf_dataset_field(d, 0)->dims[rank - 1], last);
    return d;
}

static void steps_change_what_a_batch_holds(void **unused)
{
    static const int64_t flat[] = {4}, guess[] = {-1, 4, 1};
    static const uint64_t at[] = {1, 2};
    const wf_map_step scale = {.type = "scale", .number = 0.5};
    const wf_map_step thirds = {.type = "scale", .number = 1.0 / 3};
    const wf_map_step to_flat = {.type = "reshape", .ints = flat, .n_ints = 1};
    const wf_map_step guessed = {.type = "reshape", .ints = guess, .n_ints = 3};
    const wf_map_step to_f64 = {.type = "cast", .text = "float64"};
    const wf_map_step hot = {.type = "one_hot", .number = 12};
    float f[96];
    double g[8];
    int64_t ids[8];
    wf_dataset *d;

    (void)unused;
    d = mapped((wf_map_step[]){scale, to_flat}, 2, WF_NONE, WF_F32, 1, 4);
    assert_int_equal(wf_dataset_gather(d, 0, at, 2, f, NULL), WF_OK);
    for (int i = 0; i < 8; i++)
        assert_true(f[i] == (float)(i + 4) * 0.5f);
    wf_dataset_free(&d);

    d = mapped((wf_map_step[]){to_f64, guessed, thirds}, 3, WF_NONE, WF_F64, 3, 1);
    assert_int_equal(wf_dataset_gather(d, 0, at, 2, g, NULL), WF_OK);
    for (int i = 0; i < 8; i++)
        assert_true(g[i] == (double)(i + 4) * (1.0 / 3));
    wf_dataset_free(&d);

    d = mapped(NULL, 0, WF_I64, WF_I64, 2, 2);
    assert_int_equal(wf_dataset_gather(d, 0, at, 2, ids, NULL), WF_OK);
    assert_int_equal(ids[7], 11);
    wf_dataset_free(&d);

    d = mapped((wf_map_step[]){hot}, 1, WF_F64, WF_F64, 3, 12);
    wf_dataset_free(&d);
    d = mapped((wf_map_step[]){{.type = "cast", .text = "int64"}, hot}, 2, WF_F32, WF_F32, 3, 12);
    assert_int_equal(wf_dataset_gather(d, 0, at, 2, f, NULL), WF_OK);
    for (int i = 0; i < 96; i++)
        assert_true(f[i] == (i % 12 == i / 12 + 4 ? 1.0f : 0.0f));
    wf_dataset_free(&d);
}

static void steps_that_do_not_fit_are_named(void **unused)
{
    static const int64_t five[] = {5}, none[] = {0}, two_free[] = {-1, -1}, huge[] = {1LL << 62, 8};
    const struct {
        wf_map_step steps[2];
        size_t n;
        wf_status status;
        const char *part;
    } rows[] = {
        {{{.type = "scal"}}, 1, WF_USAGE, "did you mean \"scale\""},
        {{{.type = "zoom"}}, 1, WF_USAGE, "unknown map step \"zoom\""},
        {{{.type = "cast", .text = "float31"}}, 1, WF_USAGE, "float31"},
        {{{.type = "cast"}}, 1, WF_USAGE, "dtype"},
        {{{.type = "scale", .number = NAN}}, 1, WF_USAGE, "finite"},
        {{{.type = "reshape", .ints = five, .n_ints = 1}}, 1, WF_SHAPE, "[2, 2], 4 elements"},
        {{{.type = "reshape", .ints = none, .n_ints = 1}}, 1, WF_SHAPE, "0 cannot"},
        {{{.type = "reshape", .ints = two_free, .n_ints = 2}}, 1, WF_SHAPE, "-1 cannot"},
        {{{.type = "reshape", .ints = huge, .n_ints = 2}}, 1, WF_SHAPE, "cannot"},
        {{{.type = "one_hot", .number = 11}}, 1, WF_INVALID, "record 2 has the label 11"},
        {{{.type = "one_hot", .number = 0}}, 1, WF_USAGE, "classes"},
        {{{.type = "one_hot", .number = 1e9}}, 1, WF_USAGE, "classes"},
        {{{.type = "scale", .number = 1}, {.type = "one_hot", .number = 12}},
         2,
         WF_SHAPE,
         "integers"},
        {{{.type = "one_hot", .number = 12}, {.type = "scale", .number = 1}},
         2,
         WF_USAGE,
         "after one_hot"},
        {{{.type = "one_hot", .number = 12}, {.type = "one_hot", .number = 2}},
         2,
         WF_SHAPE,
         "integers"},
    };

    (void)unused;
    test_write(&folder, "x", images, sizeof images);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wf_dataset *d = NULL;
        wf_err err = {0};

        assert_int_equal(open_one("idx", folder.file, rows[i].steps, rows[i].n, WF_NONE, &d, &err),
                         rows[i].status);
        if (!strstr(err.what, rows[i].part))
            fail_msg("\"%s\" does not say \"%s\"", err.what, rows[i].part);
        assert_null(d);
    }
}

static void a_whole_file_is_a_tensor_of_any_rank(void **unused)
{
    static const struct {
        const char *shape;
        uint32_t rank;
        int64_t elems;
    } rows[] = {{"()", 0, 1}, {"(1,)", 1, 1}, {"(0, 3)", 2, 0}, {"(1,1,1,1,1,1,1,1)", 8, 1}};
    uint8_t file[256];
    char dict[128];
    wf_tensor *t = NULL;
    wf_err err = {0};

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n;

        snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
                 rows[i].shape);
        n = make_npy(file, dict, "\0\0\xc0\x3f", (size_t)rows[i].elems * 4);
        if (wf_data_load("npy", test_write(&folder, "x.npy", file, n), &t, &err) != WF_OK)
            fail_msg("%s", err.what);
        assert_int_equal(t->rank, rows[i].rank);
        assert_int_equal(wf_elems(t), rows[i].elems);
        assert_true(rows[i].elems == 0 || wf_f32(t)[0] == 1.5f);
        wf_tensor_free(&t);
    }
    assert_int_equal(wf_data_load("npy", "/nowhere", &t, &err), WF_NOTFOUND);
    assert_int_equal(wf_data_load("synthetic", "/nowhere", &t, &err), WF_USAGE);
    assert_null(t);
}

static void synthetic_data_has_the_shape_that_is_asked_for(void **unused)
{
    wf_field_spec fields[] = {
        {.name = "x", .want = WF_F32, .rank = 2, .dims = {3, 5}},
        {.name = "y", .want = WF_I64, .classes = 7},
    };
    wf_dataset_spec spec = {
        .format = "synthetic", .fields = fields, .n_fields = 2, .records = 1000, .seed = 3};
    wf_dataset *d = NULL;
    wf_err err = {0};
    uint64_t at[1000];
    int64_t y[1000];
    float x[15];

    (void)unused;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_OK);
    assert_int_equal(wf_dataset_records(d), 1000);
    assert_int_equal(wf_dataset_check_labels(d, 1, 7, &err), WF_OK);
    assert_int_equal(wf_dataset_check_labels(d, 1, 6, &err), WF_INVALID);
    for (uint64_t i = 0; i < 1000; i++)
        at[i] = i;
    assert_int_equal(wf_dataset_gather(d, 0, at + 999, 1, x, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 1, at, 1000, y, NULL), WF_OK);
    for (int i = 0; i < 15; i++)
        assert_true(x[i] >= 0 && x[i] <= 1);
    wf_dataset_free(&d);
    spec.records = 0;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_USAGE);
    spec.records = INT64_MAX;
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_INVALID);
    spec.format = "idx";
    assert_int_equal(wf_dataset_open(&spec, &d, &err), WF_USAGE);
    assert_null(d);
}

/* Whatever stands in a file, it is opened or refused; what is opened can be gathered. */
static void flipped_bytes_never_do_harm(void **unused)
{
    static const char dict[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }\n";
    uint8_t npy[256], file[256], out[4096];
    size_t n_npy = make_npy(npy, dict, images, 24);
    wf_rng_key key = {5, 5};

    (void)unused;
    for (uint64_t i = 0; i < 3000; i++) {
        bool idx = i % 2;
        size_t n = idx ? sizeof images : n_npy;
        wf_dataset *d = NULL;
        wf_err err = {0};

        memcpy(file, idx ? images : npy, n);
        for (uint64_t k = 0; k <= wf_rng_below(key, 4 * i, 3); k++)
            file[wf_rng_below(key, 8 * i + k, idx ? 16 : n_npy - 24)] ^=
                (uint8_t)(1u << wf_rng_below(key, 16 * i + k, 8));
        test_write(&folder, "x", file, n);
        if (open_one(idx ? "idx" : "npy", folder.file, NULL, 0, WF_NONE, &d, &err) == WF_OK) {
            uint64_t at = wf_dataset_records(d) - 1;

            assert_in_range(wf_dataset_field(d, 0)->record_bytes, 1, sizeof out);
            assert_int_equal(wf_dataset_gather(d, 0, &at, 1, out, NULL), WF_OK);
            wf_dataset_free(&d);
        } else {
            assert_true(err.what[0]);
        }
    }
}

/* MNIST itself, where it is at hand: what a reader in another language finds in it. */
static void mnist_is_read_as_it_is(void **unused)
{
    const char *shared = getenv("WEFT_SHARED");
    char x[PATH_MAX], y[PATH_MAX];
    wf_field_spec fields[] = {{.name = "x", .path = x}, {.name = "y", .path = y}};
    wf_dataset_spec spec = {.format = "idx", .fields = fields, .n_fields = 2};
    wf_dataset *d = NULL;
    uint64_t at = 0;
    uint8_t label;
    wf_err err;

    (void)unused;
    snprintf(x, sizeof x, "%s/data/mnist/t10k-images-idx3-ubyte.gz", shared ? shared : "../shared");
    snprintf(y, sizeof y, "%s/data/mnist/t10k-labels-idx1-ubyte.gz", shared ? shared : "../shared");
    if (access(x, R_OK) != 0)
        skip_file();
    if (wf_dataset_open(&spec, &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(wf_dataset_records(d), 10000);
    assert_int_equal(wf_dataset_bytes(d), 10000 * 785);
    assert_int_equal(wf_dataset_check_labels(d, 1, 10, &err), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 1, &at, 1, &label, NULL), WF_OK);
    assert_int_equal(label, 7);
    assert_true(wf_dataset_range(d, 0).most == 255);
    wf_dataset_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idx_file_is_read_plain_and_through_gzip),
        cmocka_unit_test(a_digest_tells_other_content),
        cmocka_unit_test(every_truncation_of_a_plain_file_is_refused),
        cmocka_unit_test(every_truncation_of_a_packed_file_is_refused),
        cmocka_unit_test(large_packed_files_are_read_and_refused_as_small_ones),
        cmocka_unit_test(a_head_says_what_a_shape_needs_and_a_short_file_is_still_found),
        cmocka_unit_test(what_a_header_claims_is_held_against_the_file),
        cmocka_unit_test(a_wrong_file_is_named),
        cmocka_unit_test(fields_of_different_counts_are_refused),
        cmocka_unit_test(steps_change_what_a_batch_holds),
        cmocka_unit_test(steps_that_do_not_fit_are_named),
        cmocka_unit_test(a_whole_file_is_a_tensor_of_any_rank),
        cmocka_unit_test(synthetic_data_has_the_shape_that_is_asked_for),
        cmocka_unit_test(flipped_bytes_never_do_harm),
        cmocka_unit_test(mnist_is_read_as_it_is),
    };

    return exit_code(cmocka_run_group_tests(tests, set_up, tear_down));
}
