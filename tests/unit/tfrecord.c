/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tfrecord.c - records of tf.Example: lists, packed or not, and damage of any kind. */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "tests/unit/datasets.h"
#include "tests/unit/tfrecords.h"

static wf_status open_feature(const char *path, wf_dtype want, wf_dataset **d, wf_err *err)
{
    return open_one("tfrecord", path, NULL, 0, want, d, err);
}

/* "FILE#NAME" */
static const char *feature_of(const char *file, const char *name)
{
    static char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s#%s", test_path(&folder, file), name);
    return path;
}

static void features_are_fields(void **state)
{
    static test_text file;
    wf_dataset *d = NULL;
    wf_err err = {0};

    (void)state;
    file.n = 0;
    for (int i = 0; i < 100; i++)
        put_example(&file, i);
    test_write(&folder, "a.tfrecord", file.data, file.n);
    test_write_gz(&folder, "a.tfrecord.gz", file.data, file.n);
    for (int packed = 0; packed < 2; packed++) {
        const char *name = packed ? "a.tfrecord.gz" : "a.tfrecord";
        uint64_t at = 71;
        float f[2];
        int64_t i;
        uint8_t b[6];

        if (open_feature(feature_of(name, "f"), WF_NONE, &d, &err) != WF_OK)
            fail_msg("%s", err.what);
        assert_int_equal(wf_dataset_records(d), 100);
        assert_int_equal(wf_dataset_field(d, 0)->dtype, WF_F32);
        assert_int_equal(wf_dataset_field(d, 0)->dims[0], 2);
        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, f, NULL), WF_OK);
        assert_true(f[0] == 71 && f[1] == 35.5F);
        wf_dataset_free(&d);
        assert_int_equal(open_feature(feature_of(name, "i"), WF_NONE, &d, NULL), WF_OK);
        assert_int_equal(wf_dataset_field(d, 0)->rank, 0);
        at = 98;
        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, &i, NULL), WF_OK);
        assert_int_equal(i, -98);
        wf_dataset_free(&d);
        assert_int_equal(open_feature(feature_of(name, "b"), WF_NONE, &d, NULL), WF_OK);
        assert_int_equal(wf_dataset_field(d, 0)->dtype, WF_U8);
        assert_int_equal(wf_dataset_field(d, 0)->rank, 2);
        assert_int_equal(wf_dataset_gather(d, 0, &at, 1, b, NULL), WF_OK);
        assert_memory_equal(b, ((uint8_t[]){'a', 98, 0, 'b', 'c', 98}), 6);
        wf_dataset_free(&d);
    }
}

static void what_does_not_fit_is_named(void **state)
{
    static test_text file, list, features, example;

    (void)state;
    file.n = 0;
    put_example(&file, 1);
    test_write(&folder, "a", file.data, file.n);
    expect_refused("tfrecord", feature_of("a", "g"), WF_NOTFOUND,
                   "a: record 0: it has no feature \"g\"");
    put_record(&file, "", 0);
    test_write(&folder, "a", file.data, file.n);
    expect_refused("tfrecord", feature_of("a", "f"), WF_NOTFOUND, "record 1: it has no feature");
    for (int kind = 0; kind < 3; kind++) {
        static const char *const says[] = {
            "record 1: the feature \"f\" has 3 values, the first record's 2",
            "record 1: the feature \"f\" is a list of int64",
            "record 1: the feature \"f\" is a list of nothing"};

        file.n = list.n = features.n = example.n = 0;
        put_example(&file, 1);
        if (kind == 0)
            put_body(&list, 1, (float[]){1, 2, 3}, 12);
        else if (kind == 1)
            put_body(&list, 1, "\1\2", 2);
        put_feature(&features, "f", kind == 0 ? 2 : kind == 1 ? 3 : 9, &list);
        put_body(&example, 1, features.data, features.n);
        put_record(&file, example.data, example.n);
        test_write(&folder, "a", file.data, file.n);
        expect_refused("tfrecord", feature_of("a", "f"), kind ? WF_INVALID : WF_UNSUPPORTED,
                       says[kind]);
    }
    file.n = 0;
    put_record(&file, "\1\1\1", 3);
    test_write(&folder, "a", file.data, file.n);
    expect_refused("tfrecord", feature_of("a", "f"), WF_INVALID, "record 0: it is no tf.Example");
    test_write(&folder, "a", "a,b\n1,2\n3,4\n", 12);
    expect_refused("tfrecord", feature_of("a", "f"), WF_INVALID, "the file is no TFRecord file");
    test_write(&folder, "a", "", 0);
    expect_refused("tfrecord", feature_of("a", "f"), WF_INVALID, "a holds no records");
}

/* Each cut, and a changed bit in each byte of a file, is found, by the checksums. */
static void damage_is_found(void **state)
{
    static test_text file;
    size_t ends[3];

    (void)state;
    file.n = 0;
    for (int i = 0; i < 3; i++) {
        put_example(&file, i);
        ends[i] = file.n;
    }
    for (size_t n = 0; n < file.n; n++) {
        wf_dataset *d = NULL;
        wf_err err = {0};
        wf_status rc;

        test_write(&folder, "a", file.data, n);
        rc = open_feature(feature_of("a", "i"), WF_NONE, &d, &err);
        assert_int_equal(rc, n == ends[0] || n == ends[1] ? WF_OK : WF_INVALID);
        wf_dataset_free(&d);
        file.data[n] ^= (uint8_t)(1 << n % 8);
        test_write(&folder, "a", file.data, file.n);
        assert_int_equal(open_feature(feature_of("a", "i"), WF_NONE, &d, &err), WF_INVALID);
        assert_non_null(strstr(err.what, n < ends[0]   ? "a: record 0: "
                                         : n < ends[1] ? "a: record 1: "
                                                       : "a: record 2: "));
        file.data[n] ^= (uint8_t)(1 << n % 8);
    }
}

/* Bytes that are no Example, under right checksums, are read or refused. */
static void hostile_examples_are_read_or_refused(void **state)
{
    static test_text whole, file;
    wf_rng_key key = {6, 6};

    (void)state;
    whole.n = 0;
    put_example(&whole, 2);
    for (uint64_t i = 0; i < 1200; i++) {
        uint8_t *data = malloc(whole.n);
        size_t n = whole.n - 16;
        wf_dataset *d = NULL;

        memcpy(data, whole.data + 12, n);
        for (uint64_t k = 0; k < 1 + i % 3; k++)
            data[wf_rng_below(key, 8 * i + 2 * k, n)] = (uint8_t)wf_rng_u64(key, 8 * i + 2 * k + 1);
        if (i % 4 == 0)
            n = wf_rng_below(key, 8 * i + 7, n);
        file.n = 0;
        put_record(&file, data, n);
        free(data);
        test_write(&folder, "a", file.data, file.n);
        if (open_feature(feature_of("a", i % 2 ? "f" : "b"), WF_NONE, &d, NULL) == WF_OK)
            assert_int_equal(wf_dataset_records(d), 1);
        wf_dataset_free(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_fields),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(hostile_examples_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
