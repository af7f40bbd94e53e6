/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/held_out.c - records at the end of the files, held out for evaluation: each record is
 * on one side, in its order, whatever the format. */
#include "tests/unit/datasets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 5000 };

typedef struct source {
    const char *format, *path;
    wf_dataset_spec spec;
    wf_field_spec field;
    const char *columns[1];
} source;

/* n records 0 .. n-1, as an npy file or as a table. */
static void make_source(source *s, const char *format, uint32_t n)
{
    static char text[MOST * 8 + 256];
    static uint8_t file[MOST * 4 + 256];
    static int32_t values[MOST];
    char dict[96];
    size_t at = 0;

    *s = (source){.format = format, .columns = {"n"}};
    s->field = (wf_field_spec){.name = "x", .want = WF_I32, .columns = s->columns, .n_columns = 1};
    if (strcmp(format, "csv") == 0) {
        at += (size_t)snprintf(text, sizeof text, "n\n");
        for (uint32_t i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%u\n", i);
        s->path = test_write(&folder, "n.csv", text, at);
    } else if (strcmp(format, "npy") == 0) {
        for (uint32_t i = 0; i < n; i++)
            values[i] = (int32_t)i;
        snprintf(dict, sizeof dict, "{'descr': '<i4', 'fortran_order': False, 'shape': (%u,), }\n",
                 n);
        s->path = test_write(&folder, "n.npy", file, make_npy(file, dict, values, n * 4ul));
    }
    s->field.path = s->path;
    s->spec = (wf_dataset_spec){.format = format,
                                .fields = &s->field,
                                .n_fields = 1,
                                .files = &s->path,
                                .n_files = s->path ? 1 : 0,
                                .header = true,
                                .delimiter = ',',
                                .records = n,
                                .seed = 3};
}

static wf_dataset *open_part(source *s, double share, bool is_held_out)
{
    wf_dataset *d = NULL;
    wf_err err = {0};

    s->spec.held_out = share;
    s->spec.is_held_out = is_held_out;
    if (wf_dataset_open(&s->spec, &d, &err) != WF_OK)
        fail_msg("%s, %g: %s", s->format, share, err.what);
    return d;
}

static void read_all(const wf_dataset *d, int32_t values[])
{
    uint64_t n = wf_dataset_records(d), at[MOST];

    for (uint64_t i = 0; i < n; i++)
        at[i] = n - 1 - i; /* backwards, so that blocks of text change */
    assert_int_equal(wf_dataset_gather(d, 0, at, n, values, NULL), WF_OK);
}

static void the_last_records_are_held_out_as_keras_does(void **state)
{
    static const char *const formats[] = {"npy", "csv"};
    static const struct {
        uint32_t n;
        double share;
        uint64_t before; /* int(floor(n * (1 - share))) in Python */
    } rows[] = {{10, 0.1, 9},  {10, 0.25, 7}, {3, 0.5, 1},  {2, 0.5, 1},        {5000, 0.2, 4000},
                {60, 0.1, 54}, {7, 0.9, 0},   {11, 0.9, 1}, {4999, 0.001, 4994}};
    static int32_t values[MOST];

    (void)state;
    for (size_t f = 0; f < 2; f++)
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
            source s;
            wf_dataset *sides[2];

            make_source(&s, formats[f], rows[r].n);
            if (rows[r].before == 0)
                continue;
            for (int k = 0; k < 2; k++)
                sides[k] = open_part(&s, rows[r].share, k == 1);
            assert_int_equal(wf_dataset_records(sides[0]), rows[r].before);
            assert_int_equal(wf_dataset_records(sides[1]), rows[r].n - rows[r].before);
            assert_int_equal(wf_dataset_digest(sides[0]), wf_dataset_digest(sides[1]));
            for (int k = 0; k < 2; k++) {
                uint64_t n = wf_dataset_records(sides[k]);

                read_all(sides[k], values);
                for (uint64_t i = 0; i < n; i++)
                    assert_int_equal(values[i], (k ? rows[r].before : 0) + n - 1 - i);
                wf_dataset_free(&sides[k]);
            }
        }
}

static void what_is_held_out_takes_its_own_memory(void **state)
{
    source s;
    wf_dataset *d;

    (void)state;
    make_source(&s, "npy", 1000);
    d = open_part(&s, 0.1, true);
    assert_int_equal(wf_dataset_bytes(d), 100 * 4);
    assert_true(wf_dataset_range(d, 0).least == 900 && wf_dataset_range(d, 0).most == 999);
    wf_dataset_free(&d);
    d = open_part(&s, 0.1, false);
    assert_int_equal(wf_dataset_bytes(d), 900 * 4);
    assert_true(wf_dataset_range(d, 0).most == 899);
    wf_dataset_free(&d);
}

static void a_bad_label_has_its_number_in_the_file(void **state)
{
    source s;
    wf_dataset *d;
    wf_err err = {0};

    (void)state;
    make_source(&s, "npy", 1000);
    d = open_part(&s, 0.1, true);
    assert_int_equal(wf_dataset_check_labels(d, 0, 950, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "record 999 has the label 999"));
    wf_dataset_free(&d);
    make_source(&s, "csv", 100);
    d = open_part(&s, 0.1, true);
    assert_int_equal(wf_dataset_check_labels(d, 0, 95, &err), WF_OK); /* when it is read */
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){4, 5}, 1, &(int32_t[2]){0}, &err), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){5}, 1, &(int32_t[2]){0}, &err),
                     WF_INVALID);
    assert_non_null(strstr(err.what, "n.csv:97: the label is 95"));
    wf_dataset_free(&d);
}

static void generated_records_are_the_same_on_both_sides(void **state)
{
    static float all[64], part[64];
    source s;
    wf_dataset *d;

    (void)state;
    make_source(&s, "synthetic", 64);
    s.field.want = WF_F32;
    d = open_part(&s, 0, false);
    assert_int_equal(wf_dataset_records(d), 64);
    for (uint64_t i = 0; i < 64; i++)
        assert_int_equal(wf_dataset_gather(d, 0, &i, 1, &all[i], NULL), WF_OK);
    wf_dataset_free(&d);
    for (int side = 0; side < 2; side++) {
        d = open_part(&s, 0.25, side == 1);
        for (uint64_t i = 0; i < wf_dataset_records(d); i++)
            assert_int_equal(wf_dataset_gather(d, 0, &i, 1, &part[i + (side ? 48u : 0u)], NULL),
                             WF_OK);
        wf_dataset_free(&d);
    }
    assert_memory_equal(all, part, sizeof all);
}

static void both_sides_must_have_records(void **state)
{
    static const double shares[] = {-0.1, 1, 1.5, NAN};
    static const char *const formats[] = {"npy", "csv"};
    source s;
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)state;
    for (size_t f = 0; f < 2; f++) {
        make_source(&s, formats[f], 7);
        s.spec.held_out = 0.9;
        assert_int_equal(wf_dataset_open(&s.spec, &d, &err), WF_INVALID);
        assert_non_null(strstr(
            err.what, "holds 7 records; a validation_split of 0.9 leaves none for training"));
        s.spec.held_out = 1e-17;
        assert_int_equal(wf_dataset_open(&s.spec, &d, &err), WF_INVALID);
        assert_non_null(strstr(err.what, "leaves none for evaluation"));
        for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
            s.spec.held_out = shares[i];
            assert_int_equal(wf_dataset_open(&s.spec, &d, &err), WF_USAGE);
            assert_null(d);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_records_are_held_out_as_keras_does),
        cmocka_unit_test(what_is_held_out_takes_its_own_memory),
        cmocka_unit_test(a_bad_label_has_its_number_in_the_file),
        cmocka_unit_test(generated_records_are_the_same_on_both_sides),
        cmocka_unit_test(both_sides_must_have_records),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
