/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/npy.c - the types that npy files hold, and headers that they may not have. */
#include "common/data/data.h"
#include "tests/unit/datasets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void npy_types_come_in_as_weft_holds_them(void **unused)
{
    static const struct {
        const char *descr;
        uint8_t bytes[8];
        size_t size;
        wf_dtype dtype;
        double value;
    } rows[] = {
        {"|u1", {200}, 1, WF_U8, 200},
        {"|b1", {2}, 1, WF_BOOL, 1},
        {"|i1", {0xfe}, 1, WF_I32, -2},
        {"<i2", {0xfe, 0xff}, 2, WF_I32, -2},
        {">i2", {0xff, 0xfe}, 2, WF_I32, -2},
        {"<u2", {0xfe, 0xff}, 2, WF_I32, 65534},
        {"<i4", {0xfe, 0xff, 0xff, 0xff}, 4, WF_I32, -2},
        {"<u4", {0xfe, 0xff, 0xff, 0xff}, 4, WF_I64, 4294967294.0},
        {"<i8", {3, 0, 0, 0, 1}, 8, WF_I64, 4294967299.0},
        {">i8", {0, 0, 0, 1, 0, 0, 0, 3}, 8, WF_I64, 4294967299.0},
        {"<f2", {0, 0x3e}, 2, WF_F16, 1.5},
        {"<f4", {0, 0, 0xc0, 0x3f}, 4, WF_F32, 1.5},
        {">f4", {0x3f, 0xc0, 0, 0}, 4, WF_F32, 1.5},
        {"<f8", {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 8, WF_F64, 1.5},
    };
    uint8_t file[512];
    char dict[128];

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wf_dataset *d = NULL;
        wf_field_range range;
        uint64_t at = 0;
        double value;
        size_t n;

        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }\n",
                 rows[i].descr);
        n = make_npy(file, dict, rows[i].bytes, rows[i].size);
        assert_int_equal(
            open_one("npy", test_write(&folder, "x.npy", file, n), NULL, 0, WF_F64, &d, NULL),
            WF_OK);
        assert_int_equal(wf_dataset_field(d, 0)->raw_dtype, rows[i].dtype);
        assert_int_equal(wf_dataset_field(d, 0)->rank, 0);
        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &value, NULL), WF_OK);
        assert_true(value == rows[i].value);
        range = wf_dataset_range(d, 0);
        assert_true(range.least == rows[i].value && range.most == rows[i].value);
        wf_dataset_free(&d);
        for (size_t cut = 0; cut < n; cut++)
            expect_refused("npy", test_write(&folder, "x.npy", file, cut), WF_INVALID, "x.npy");
    }
}

static void npy_headers_that_numpy_does_not_write_are_refused(void **unused)
{
    static const struct {
        const char *dict;
        wf_status status;
        const char *says; /* NULL: the file's name is enough */
    } rows[] = {
        {"", WF_INVALID},
        {"{", WF_INVALID},
        {"{}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}",
         WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", WF_INVALID,
         "x.npy has 9 dimensions; weft takes up to 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 0)}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", WF_INVALID},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}", WF_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", WF_UNSUPPORTED,
         "x.npy holds records of several fields"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", WF_UNSUPPORTED},
        {"{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", WF_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", WF_UNSUPPORTED},
        {"{'descr': '<f', 'fortran_order': False, 'shape': (1,)}", WF_UNSUPPORTED},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (1,)}", WF_INVALID},
    };
    uint8_t file[512];

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = make_npy(file, rows[i].dict, "\0\0\0\0", 4);

        expect_refused("npy", test_write(&folder, "x.npy", file, n), rows[i].status,
                       rows[i].says ? rows[i].says : "x.npy");
    }
    file[6] = 9;
    expect_refused("npy", test_write(&folder, "x.npy", file, 64), WF_UNSUPPORTED, "version 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_types_come_in_as_weft_holds_them),
        cmocka_unit_test(npy_headers_that_numpy_does_not_write_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
