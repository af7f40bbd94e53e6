/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ckpt_unbounded.c - the rows of an unbounded table are read by rising id, from whatever
 * buckets, shards and types they lie in; ids that cannot be are refused. */
#include "common/base/cc.h"
#include "common/ckpt/ckpt.h"
#include "tests/kit/memdisk.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A row is wider than a bucket has rows; bucket 1 has none. */
enum { WIDTH = 3, N_BUCKETS = 4, N_FILES = 2, N = 1500 + 700 + 1 };
static const uint64_t rows_of[N_BUCKETS] = {1500, 0, 700, 1};

static int64_t ids[N];
static int8_t bytes[N * WIDTH];
static float floats[N * WIDTH], scales[N];

typedef struct spoilt {
    const char *name; /* of the ids of bucket 2; NULL: as it should be */
    uint64_t fewer;   /* ids than rows, of bucket 2 */
    wf_dtype dtype;   /* of these; WF_NONE: int64 */
    bool twice;       /* the last id is that of bucket 2's first row */
} spoilt;

static void fill(void)
{
    for (int i = 0; i < N; i++) { /* 7919 is prime: each id once, in no order */
        ids[i] = ((int64_t)i * 7919 % N - N / 2) * INT64_C(1234567891234);
        scales[i] = (float)(i % 50) * 0.01F;
    }
    ids[5] = INT64_MIN;
    ids[N - 1] = INT64_MAX;
    for (int i = 0; i < N * WIDTH; i++) {
        bytes[i] = (int8_t)(i * 7 % 255 - 127);
        floats[i] = (float)(i * 31 % 1009) - 500;
    }
}

static wf_status write_bucket(wf_shard_writer *w, wf_dtype dtype, uint64_t first, uint64_t rows,
                              uint64_t n_ids, wf_dtype id_dtype, wf_err *err)
{
    static const int64_t none;

    if (dtype == WF_I8) {
        WF_TRY(wf_shard_write(w, bytes + first * WIDTH, rows * WIDTH, err));
        WF_TRY(wf_shard_write(w, scales + first, rows * sizeof *scales, err));
    } else {
        WF_TRY(wf_shard_write(w, floats + first * WIDTH, rows * WIDTH * sizeof *floats, err));
    }
    return wf_shard_write(w, rows ? ids + first : &none, n_ids * wf_dtype_size(id_dtype), err);
}

/* Buckets 2 file and 2 file + 1. */
static wf_status write_shard(wf_disk *disk, const char *folder, wf_dtype dtype, uint32_t file,
                             spoilt how, wf_ckpt_file *to, wf_cut_id cut, wf_err *err)
{
    char path[WF_CKPT_PATH + 80], cut_text[WF_CUT_TEXT], names[6][64];
    uint64_t first = file ? rows_of[0] + rows_of[1] : 0, at = first;
    wf_shard_meta meta[WF_CKPT_N_META];
    wf_shard_writer *w = NULL;
    wf_shard_tensor t[6];
    uint32_t n = 0;
    wf_status rc = WF_OK;

    for (uint32_t b = 2 * file; b < 2 * file + 2; b++) {
        int64_t rows = (int64_t)rows_of[b];
        spoilt s = b == 2 ? how : (spoilt){0};

        t[n] = (wf_shard_tensor){.dtype = dtype, .rank = 2, .dims = {rows, WIDTH}};
        t[n].name = wf_ckpt_tensor_name("emb", NULL, b * WIDTH, false, names[n], sizeof names[n]);
        n++;
        if (dtype == WF_I8) {
            t[n] = (wf_shard_tensor){.dtype = WF_F32, .rank = 1, .dims = {rows}};
            t[n].name =
                wf_ckpt_tensor_name("emb", "scale", b * WIDTH, false, names[n], sizeof names[n]);
            n++;
        }
        t[n] = (wf_shard_tensor){
            .dtype = s.dtype ? s.dtype : WF_I64, .rank = 1, .dims = {rows - (int64_t)s.fewer}};
        t[n].name = wf_ckpt_tensor_name("emb", s.name ? s.name : "ids", b * WIDTH, false, names[n],
                                        sizeof names[n]);
        n++;
    }
    wf_ckpt_meta("job", cut, cut_text, meta);
    snprintf(path, sizeof path, "%s/%s", folder, to->name);
    WF_TRY(wf_shard_create(disk, path, t, n, meta, WF_CKPT_N_META, &w, err));
    for (uint32_t b = 2 * file; rc == WF_OK && b < 2 * file + 2; at += rows_of[b++]) {
        spoilt s = b == 2 ? how : (spoilt){0};

        rc = write_bucket(w, dtype, at, rows_of[b], rows_of[b] - s.fewer,
                          s.dtype ? s.dtype : WF_I64, err);
    }
    if (rc == WF_OK)
        rc = wf_shard_finish(&w, &to->bytes, to->sum, err);
    wf_shard_abort(&w);
    return rc;
}

static wf_memdisk *save(wf_dtype dtype, spoilt how)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *disk = wf_memdisk_disk(m);
    wf_cut_id cut = {1, 1, 0xabc};
    char folder[WF_CKPT_PATH], names[N_FILES][64];
    wf_ckpt_file files[N_FILES] = {{.name = names[0]}, {.name = names[1]}};
    wf_ckpt_slice slices[N_BUCKETS];
    wf_ckpt_variable emb = {.name = "emb",
                            .dtype = dtype,
                            .rank = 2,
                            .dims = {N_BUCKETS, WIDTH},
                            .kind = "trainable",
                            .slices = slices,
                            .n_slices = N_BUCKETS,
                            .unbounded = true};
    wf_manifest manifest = {.job = "job",
                            .digest = "d1",
                            .global_step = 100,
                            .cut = cut,
                            .weft = "0.1.0",
                            .rule = "sgd",
                            .variables = &emb,
                            .n_variables = 1,
                            .files = files,
                            .n_files = N_FILES};

    if (how.twice)
        ids[N - 1] = ids[rows_of[0]];
    for (uint32_t i = 0; i < N_BUCKETS; i++)
        slices[i] = (wf_ckpt_slice){i * WIDTH, WIDTH, i / 2, 10};
    assert_int_equal(wf_ckpt_begin(disk, "ckpt", "job", cut, folder, NULL), WF_OK);
    for (uint32_t i = 0; i < N_FILES; i++) {
        wf_ckpt_shard_name(i, N_FILES, names[i], sizeof names[i]);
        assert_int_equal(write_shard(disk, folder, dtype, i, how, &files[i], cut, NULL), WF_OK);
    }
    assert_int_equal(wf_ckpt_commit(disk, "ckpt", folder, &manifest, NULL), WF_OK);
    ids[N - 1] = INT64_MAX;
    return m;
}

static int by_id(const void *a, const void *b)
{
    int64_t u = ids[*(const int *)a], v = ids[*(const int *)b];

    return (u > v) - (u < v);
}

static void rows_are_read_by_rising_id(void **state)
{
    const wf_dtype dtypes[] = {WF_F32, WF_I8};
    static int64_t got[N];
    static float values[N * WIDTH];
    int order[N];

    (void)state;
    for (int i = 0; i < N; i++)
        order[i] = i;
    qsort(order, N, sizeof order[0], by_id);
    for (size_t k = 0; k < WF_COUNT(dtypes); k++) {
        wf_memdisk *m = save(dtypes[k], (spoilt){0});
        const wf_ckpt_variable *v;
        wf_ckpt *c = NULL;
        uint64_t n = 0;

        assert_int_equal(wf_ckpt_open(wf_memdisk_disk(m), "ckpt", "job", 100, true, &c, NULL),
                         WF_OK);
        v = wf_ckpt_variable_find(c, "emb");
        assert_int_equal(wf_ckpt_count_rows(c, v, &n, NULL), WF_OK);
        assert_int_equal(n, N);
        assert_int_equal(wf_ckpt_read_rows(c, v, n, got, values, NULL), WF_OK);
        for (int i = 0; i < N; i++) {
            int from = order[i];

            assert_int_equal(got[i], ids[from]);
            for (int e = 0; e < WIDTH; e++) {
                float want = dtypes[k] == WF_I8 ? (float)bytes[from * WIDTH + e] * scales[from]
                                                : floats[from * WIDTH + e];

                assert_true(values[i * WIDTH + e] == want);
            }
        }
        assert_int_equal(wf_ckpt_read_range(c, "emb", NULL, 0, 1, values, NULL), WF_INVALID);
        wf_ckpt_close(&c);
        wf_memdisk_free(&m);
    }
}

static void ids_that_cannot_be_are_refused(void **state)
{
    static const struct {
        spoilt how;
        const char *says;
    } cases[] = {
        {{.name = "id"}, "tensor \"emb/ids#6\" [700] is not in it"},
        {{.fewer = 1}, "tensor \"emb/ids#6\" [700] is not in it"},
        {{.dtype = WF_I32}, "tensor \"emb/ids#6\" [700] is not in it"},
        {{.twice = true}, "\"emb\" has two rows of id "},
    };
    static int64_t got[N];
    static float values[N * WIDTH];

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_memdisk *m = save(WF_F32, cases[i].how);
        wf_ckpt *c = NULL;
        wf_err err = {0};

        assert_int_equal(wf_ckpt_open(wf_memdisk_disk(m), "ckpt", "job", 100, true, &c, NULL),
                         WF_OK);
        assert_int_equal(
            wf_ckpt_read_rows(c, wf_ckpt_variable_find(c, "emb"), N, got, values, &err),
            WF_CORRUPT);
        if (!strstr(err.what, cases[i].says))
            fail_msg("it says: %s", err.what);
        wf_ckpt_close(&c);
        wf_memdisk_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_by_rising_id),
        cmocka_unit_test(ids_that_cannot_be_are_refused),
    };

    fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
