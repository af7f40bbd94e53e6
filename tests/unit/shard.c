/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/shard.c - safetensors files that are not what they claim. The checksum does not help
 * here: these are wrong behind a right one. */
#include "common/ckpt/shard.h"
#include "tests/kit/memdisk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static void put_file(wf_disk *d, uint64_t claimed, const char *header, size_t data_bytes)
{
    wf_bytes b = {0};
    uint8_t length[8];

    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(claimed >> (8 * i));
    wf_bytes_add(&b, length, 8);
    wf_bytes_puts(&b, header);
    for (size_t i = 0; i < data_bytes; i++)
        wf_bytes_add(&b, "\1", 1);
    assert_int_equal(wf_disk_replace(d, "/s", b.data, b.size, NULL), WF_OK);
    wf_bytes_close(&b);
}

static const struct {
    const char *header;
    size_t data_bytes;
    const char *says;
} bad[] = {
    {"", 0, "does not begin with {"},
    {"[]", 0, "does not begin with {"},
    {"{", 0, "unfinished at byte 9"},
    {"{} x", 0, "damaged at byte 12: not JSON"},
    {"{\"a\": 1}", 0, "no dtype"},
    {"{\"a\": {\"dtype\": \"F31\", \"shape\": [1], \"data_offsets\": [0, 4]}}", 4, "no dtype"},
    {"{\"a\": {\"dtype\": \"F32\", \"data_offsets\": [0, 4]}}", 4, "no shape"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1,1,1,1,1,1,1,1,1], \"data_offsets\": [0, 4]}}", 4,
     "no shape"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [-1], \"data_offsets\": [0, 4]}}", 4, "is no size"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1.5], \"data_offsets\": [0, 4]}}", 4, "is no size"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1]}}", 4, "no range"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0]}}", 4, "no range"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [4, 0]}}", 4, "no range"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [-4, 0]}}", 4, "no range"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 4]}}", 4, "do not"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904, 4], \"data_offsets\": [0, 0]}}",
     0, "do not"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904], \"data_offsets\": [0, 0]}}", 0,
     "do not"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [4, 8]}}", 8, "begins at"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]},"
     "\"b\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}",
     4, "begins at"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}", 3, "cut short"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, 4]}}", 5,
     "more than its header declares"},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [0, 0]},"
     "\"a\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [0, 0]}}",
     0, "not JSON (duplicate"},
    {"{\"a\xff\": {\"dtype\": \"F32\", \"shape\": [0], \"data_offsets\": [0, 0]}}", 0, "not JSON"},
    {"{\"__metadata__\": 3}", 0, "not an object"},
    {"{\"__metadata__\": {\"a\": 3}}", 0, "not text"},
    {"{\"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}", 0,
     "nested deeper"},
};

static void each_false_header_is_refused(void **state)
{
    wf_memdisk *m = wf_memdisk_new();

    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_shard *s = NULL;
        wf_err err = {0};

        put_file(wf_memdisk_disk(m), strlen(bad[i].header), bad[i].header, bad[i].data_bytes);
        if (wf_shard_open(wf_memdisk_disk(m), "/s", &s, &err) != WF_CORRUPT ||
            !strstr(err.what, bad[i].says))
            fail_msg("%s\nsaid: %s\nwanted: %s", bad[i].header, err.what, bad[i].says);
        assert_null(s);
    }
    wf_memdisk_free(&m);
}

static void a_header_that_claims_much_allocates_nothing(void **state)
{
    static const uint64_t claims[] = {3, 100000001, UINT64_C(1) << 40, UINT64_MAX};
    wf_memdisk *m = wf_memdisk_new();

    (void)state;
    for (size_t i = 0; i < WF_COUNT(claims); i++) {
        wf_shard *s = NULL;
        wf_err err = {0};

        put_file(wf_memdisk_disk(m), claims[i], "{}", 0);
        assert_int_equal(wf_shard_open(wf_memdisk_disk(m), "/s", &s, &err), WF_CORRUPT);
        assert_non_null(strstr(err.what, "damaged in its first 8 bytes"));
    }
    wf_memdisk_free(&m);
}

static void a_writer_holds_its_caller_to_its_word(void **state)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *d = wf_memdisk_disk(m);
    wf_shard_tensor t[2] = {{.name = "a", .dtype = WF_F32, .rank = 1, .dims = {2}},
                            {.name = "a", .dtype = WF_U8, .rank = 0}};
    wf_shard_writer *w = NULL;
    char sum[WF_SUM_TEXT];
    uint64_t bytes;
    float x[3] = {1, 2, 3};
    wf_err err;

    (void)state;
    assert_int_equal(wf_shard_create(d, "/s", t, 2, NULL, 0, &w, &err), WF_INVALID);
    assert_false(wf_disk_exists(d, "/s"));
    t[1].name = "not \xff utf-8";
    assert_int_equal(wf_shard_create(d, "/s", t, 2, NULL, 0, &w, &err), WF_INVALID);
    assert_int_equal(wf_shard_create(d, "/s", t, 1, NULL, 0, &w, &err), WF_OK);
    assert_int_equal(wf_shard_write(w, x, sizeof x, &err), WF_INVALID);
    assert_int_equal(wf_shard_write(w, x, 4, &err), WF_OK);
    assert_int_equal(wf_shard_finish(&w, &bytes, sum, &err), WF_INVALID);
    assert_non_null(strstr(err.what, "4 of 8 declared bytes"));
    assert_null(w);
    assert_false(wf_disk_exists(d, "/s"));
    wf_memdisk_free(&m);
}

static void data_begins_at_a_multiple_of_64(void **state)
{
    wf_memdisk *m = wf_memdisk_new();
    wf_disk *d = wf_memdisk_disk(m);
    char name[80] = "";

    (void)state;
    for (size_t i = 0; i < 70; i++) {
        wf_shard_tensor t = {.name = name, .dtype = WF_F32, .rank = 2, .dims = {1, 2}};
        wf_shard_writer *w = NULL;
        wf_shard *s = NULL;
        char sum[WF_SUM_TEXT], again[WF_SUM_TEXT];
        float x[2] = {5, 6}, y[2] = {0};
        uint64_t bytes, found;
        size_t size;

        name[i] = 'n';
        assert_int_equal(wf_shard_create(d, "/s", &t, 1, NULL, 0, &w, NULL), WF_OK);
        assert_int_equal(wf_shard_write(w, x, sizeof x, NULL), WF_OK);
        assert_int_equal(wf_shard_finish(&w, &bytes, sum, NULL), WF_OK);
        assert_int_equal((bytes - sizeof x) % 64, 0);
        assert_int_equal(wf_shard_sum(d, "/s", &found, again, NULL), WF_OK);
        assert_string_equal(sum, again);
        assert_int_equal(bytes, found);
        assert_non_null(wf_memdisk_bytes(m, "/s", &size));
        assert_int_equal(size, bytes);
        assert_int_equal(wf_shard_open(d, "/s", &s, NULL), WF_OK);
        assert_int_equal(wf_shard_count(s), 1);
        assert_non_null(wf_shard_find(s, name));
        assert_null(wf_shard_find(s, "x"));
        assert_int_equal(wf_shard_read(s, wf_shard_at(s, 0), 4, y, 4, NULL), WF_OK);
        assert_true(y[0] == 6);
        assert_int_equal(wf_shard_read(s, wf_shard_at(s, 0), 4, y, 8, NULL), WF_INVALID);
        wf_shard_close(&s);
    }
    wf_memdisk_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_false_header_is_refused),
        cmocka_unit_test(a_header_that_claims_much_allocates_nothing),
        cmocka_unit_test(a_writer_holds_its_caller_to_its_word),
        cmocka_unit_test(data_begins_at_a_multiple_of_64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
