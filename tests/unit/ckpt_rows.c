/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/ckpt_rows.c - a table's values in a checkpoint, in a type of fewer bits: read as they
 * are and as float32, across slices; arrays that cannot be are refused. */
#include "common/base/cc.h"
#include "common/ckpt/ckpt.h"
#include "tests/kit/memdisk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* emb [1500, 3], cut after 400 rows: a slice is longer than what is converted at once. */
enum { ROWS = 1500, WIDTH = 3, CUT_AT = 400, ELEMS = ROWS * WIDTH };

typedef struct spoilt {
    bool no_scales;
    uint64_t fewer;      /* scales than rows, of the second slice */
    float scale_of_last; /* 0: as it should be */
} spoilt;

static int8_t bytes[ELEMS];
static uint16_t halves[ELEMS];
static float scales[ROWS];

static void fill(void)
{
    for (int i = 0; i < ELEMS; i++) {
        bytes[i] = (int8_t)(i * 7 % 255 - 127);
        halves[i] = (uint16_t)(i * 31 % 0x7000);
    }
    for (int i = 0; i < ROWS; i++)
        scales[i] = (float)(i % 50) * 0.01F;
}

static wf_status write_shard(wf_disk *disk, const char *folder, wf_dtype dtype, uint64_t first,
                             uint64_t rows, spoilt how, wf_ckpt_file *file, wf_cut_id cut,
                             wf_err *err)
{
    char path[WF_CKPT_PATH + 80], cut_text[WF_CUT_TEXT], names[2][64];
    bool scaled = dtype == WF_I8 && !how.no_scales, last = first > 0;
    uint64_t n_scales = rows - (last ? how.fewer : 0);
    wf_shard_tensor t[2] = {
        {.name = names[0], .dtype = dtype, .rank = 1, .dims = {(int64_t)(rows * WIDTH)}},
        {.name = names[1], .dtype = WF_F32, .rank = 1, .dims = {(int64_t)n_scales}}};
    wf_shard_meta meta[WF_CKPT_N_META];
    wf_shard_writer *w = NULL;
    float of_rows[ROWS];
    wf_status rc;

    memcpy(of_rows, scales + first, rows * sizeof *of_rows);
    if (last && how.scale_of_last != 0)
        of_rows[rows - 1] = how.scale_of_last;
    wf_ckpt_tensor_name("emb", NULL, first * WIDTH, false, names[0], sizeof names[0]);
    wf_ckpt_tensor_name("emb", WF_CKPT_SCALE, first * WIDTH, false, names[1], sizeof names[1]);
    wf_ckpt_meta("job", cut, cut_text, meta);
    snprintf(path, sizeof path, "%s/%s", folder, file->name);
    WF_TRY(wf_shard_create(disk, path, t, scaled ? 2 : 1, meta, WF_CKPT_N_META, &w, err));
    rc = dtype == WF_I8 ? wf_shard_write(w, bytes + first * WIDTH, rows * WIDTH, err)
                        : wf_shard_write(w, halves + first * WIDTH, rows * WIDTH * 2, err);
    if (rc == WF_OK && scaled)
        rc = wf_shard_write(w, of_rows, n_scales * sizeof *of_rows, err);
    if (rc == WF_OK)
        rc = wf_shard_finish(&w, &file->bytes, file->sum, err);
    wf_shard_abort(&w);
    return rc;
}

static wf_memdisk *save(wf_dtype dtype, spoilt how)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *disk = wf_memdisk_disk(m);
    wf_cut_id cut = {1, 1, 0xabc};
    char folder[WF_CKPT_PATH], names[2][64];
    wf_ckpt_file files[2] = {{.name = names[0]}, {.name = names[1]}};
    wf_ckpt_slice slices[] = {{0, CUT_AT * WIDTH, 0, 10},
                              {CUT_AT * WIDTH, (ROWS - CUT_AT) * WIDTH, 1, 11}};
    wf_ckpt_variable emb = {.name = "emb",
                            .dtype = dtype,
                            .rank = 2,
                            .dims = {ROWS, WIDTH},
                            .kind = "trainable",
                            .slices = slices,
                            .n_slices = 2};
    wf_manifest manifest = {.job = "job",
                            .digest = "d1",
                            .global_step = 100,
                            .cut = cut,
                            .weft = "0.1.0",
                            .rule = "sgd",
                            .variables = &emb,
                            .n_variables = 1,
                            .files = files,
                            .n_files = 2};

    assert_int_equal(wf_ckpt_begin(disk, "ckpt", "job", cut, folder, NULL), WF_OK);
    for (uint32_t i = 0; i < 2; i++) {
        wf_ckpt_shard_name(i, 2, names[i], sizeof names[i]);
        assert_int_equal(write_shard(disk, folder, dtype, i ? CUT_AT : 0,
                                     i ? ROWS - CUT_AT : CUT_AT, how, &files[i], cut, NULL),
                         WF_OK);
    }
    assert_int_equal(wf_ckpt_commit(disk, "ckpt", folder, &manifest, NULL), WF_OK);
    return m;
}

static wf_ckpt *open_saved(wf_memdisk *m)
{
    wf_ckpt *c = NULL;

    assert_int_equal(wf_ckpt_open(wf_memdisk_disk(m), "ckpt", "job", 100, true, &c, NULL), WF_OK);
    return c;
}

static float value_of(wf_dtype dtype, int i)
{
    if (dtype == WF_I8)
        return (float)bytes[i] * scales[i / WIDTH];
    return dtype == WF_F16 ? wf_f16_to_f32(halves[i]) : wf_bf16_to_f32(halves[i]);
}

static void values_are_read_as_float32(void **state)
{
    const wf_dtype dtypes[] = {WF_BF16, WF_F16, WF_I8};

    (void)state;
    for (size_t k = 0; k < WF_COUNT(dtypes); k++) {
        wf_memdisk *m = save(dtypes[k], (spoilt){0});
        wf_ckpt *c = open_saved(m);
        static float out[ELEMS];

        for (int from = 0; from < ELEMS; from += from < 5 ? 1 : 397) {
            int n = ELEMS - from > 2500 ? 2500 : ELEMS - from;

            assert_int_equal(
                wf_ckpt_read_range(c, "emb", NULL, (uint64_t)from, (uint64_t)n, out, NULL), WF_OK);
            for (int i = 0; i < n; i++)
                assert_true(out[i] == value_of(dtypes[k], from + i));
        }
        assert_int_equal(wf_ckpt_read_range(c, "emb", NULL, ELEMS - 1, 2, out, NULL), WF_INVALID);
        wf_ckpt_close(&c);
        wf_memdisk_free(&m);
    }
}

static void values_are_read_as_they_are(void **state)
{
    wf_memdisk *m = save(WF_I8, (spoilt){0});
    wf_ckpt *c = open_saved(m);
    static int8_t out[ELEMS];
    static float of_rows[ROWS];
    wf_err err;

    (void)state;
    assert_int_equal(wf_ckpt_read_as(c, "emb", NULL, WF_I8, 3, ELEMS - 3, out, NULL), WF_OK);
    assert_memory_equal(out, bytes + 3, ELEMS - 3);
    assert_int_equal(wf_ckpt_read_scales(c, "emb", 0, ROWS, of_rows, NULL), WF_OK);
    assert_memory_equal(of_rows, scales, sizeof scales);
    assert_int_equal(wf_ckpt_read_scales(c, "emb", CUT_AT - 1, 2, of_rows, NULL), WF_OK);
    assert_memory_equal(of_rows, scales + CUT_AT - 1, 2 * sizeof *scales);
    assert_int_equal(wf_ckpt_read_scales(c, "emb", ROWS, 1, of_rows, NULL), WF_INVALID);
    assert_int_equal(wf_ckpt_read_scales(c, "emb", 1, UINT64_MAX, of_rows, NULL), WF_INVALID);
    assert_int_equal(wf_ckpt_read_as(c, "emb", NULL, WF_BF16, 0, 1, out, &err), WF_INVALID);
    assert_string_equal(err.what, "step-00000100: \"emb\" is int8, asked for bfloat16");
    wf_ckpt_close(&c);
    wf_memdisk_free(&m);
}

static void arrays_that_cannot_be_are_refused(void **state)
{
    const spoilt missing[] = {{.no_scales = true}, {.fewer = 1}};
    const float bad[] = {-1, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(missing); i++) {
        wf_memdisk *m = save(WF_I8, missing[i]);
        wf_ckpt *c = NULL;

        assert_int_equal(wf_ckpt_open(wf_memdisk_disk(m), "ckpt", "job", 100, true, &c, NULL),
                         WF_CORRUPT);
        wf_memdisk_free(&m);
    }
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_memdisk *m = save(WF_I8, (spoilt){.scale_of_last = bad[i]});
        wf_ckpt *c = open_saved(m);
        static float out[ELEMS];

        assert_int_equal(wf_ckpt_read_range(c, "emb", NULL, 0, ELEMS, out, NULL), WF_CORRUPT);
        assert_int_equal(wf_ckpt_read_scales(c, "emb", 0, ROWS, out, NULL), WF_CORRUPT);
        assert_int_equal(wf_ckpt_read_range(c, "emb", NULL, 0, ELEMS - WIDTH, out, NULL), WF_OK);
        wf_ckpt_close(&c);
        wf_memdisk_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_as_float32),
        cmocka_unit_test(values_are_read_as_they_are),
        cmocka_unit_test(arrays_that_cannot_be_are_refused),
    };

    fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
