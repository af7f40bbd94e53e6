/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_prediction.c - a prediction is made while memory ends: its result is right, or
 * there is none. */
#include "tests/kit/nomem_disk.h"
#include "tests/unit/nomem.h"
#include "tests/unit/prediction_make.h"

typedef struct expected {
    const char *out;
    wf_bytes content; /* of the csv file, or of the first npy file */
} expected;

static void count(void *arg, const char *file, wf_dtype dtype, uint32_t rank, const int64_t dims[])
{
    (void)file, (void)dtype, (void)rank, (void)dims;
    ++*(int *)arg;
}

static wf_status compute(wf_disk *disk, const wf_prediction_ask *ask, wf_err *err)
{
    const wf_prediction_how how = {.pool = pool, .disk = disk};
    wf_prediction_found found;
    wf_prediction *p = NULL;
    int files = 0;
    wf_status rc = wf_prediction_open(ask, &how, &p, err);

    if (rc == WF_OK)
        rc = wf_prediction_begin(p, &found, err);
    for (uint64_t i = 0; rc == WF_OK && i < SPLITS; i++)
        rc = wf_prediction_split(p, i, err);
    if (rc == WF_OK)
        rc = wf_prediction_join(p, count, &files, err);
    if (rc == WF_OK && files == 0)
        rc = wrong(err, "no file was made");
    wf_prediction_free(&p);
    return rc;
}

/* The request goes through its text, as it does to a worker. */
static wf_status pass_on(wf_disk *disk, wf_arena *a, wf_prediction_ask *ask, wf_err *err)
{
    const wf_prediction_how how = {.pool = pool, .disk = disk};
    wf_prediction *p = NULL;
    wf_bytes text = {0};
    wf_status rc = wf_prediction_open(ask, &how, &p, err);

    if (rc == WF_OK)
        rc = wf_prediction_write(p, &text, err);
    if (rc == WF_OK)
        rc = wf_prediction_read(wf_bytes_str(&text), text.size, a, ask, err);
    wf_bytes_close(&text);
    wf_prediction_free(&p);
    return rc;
}

static wf_status predict(void *of, wf_err *err)
{
    expected *want = of;
    wf_prediction_ask ask = ask_for(want->out);
    bool was = wf_nomem_spare(true);
    wf_memdisk *m = wf_memdisk_new();
    wf_arena *a;
    const uint8_t *bytes;
    size_t size = 0;
    wf_status rc;

    wf_nomem_disk(wf_memdisk_disk(m));
    wf_nomem_spare(was);
    a = wf_arena_new(0);
    rc = a ? pass_on(wf_memdisk_disk(m), a, &ask, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK)
        rc = compute(wf_memdisk_disk(m), &ask, err);
    wf_arena_free(&a);
    was = wf_nomem_spare(true);
    bytes = wf_memdisk_bytes(m, strstr(want->out, ".csv") ? want->out : "/out/m_Relu.npy", &size);
    if (rc == WF_OK && !want->content.size)
        wf_bytes_add(&want->content, bytes, size);
    if (bytes && (size != want->content.size || memcmp(bytes, want->content.data, size) != 0))
        rc = wrong(err, "the result has other bytes");
    if (rc == WF_OK && !bytes)
        rc = wrong(err, "there is no result");
    wf_memdisk_free(&m);
    wf_nomem_spare(was);
    return rc;
}

static void a_folder_is_made(void **state)
{
    expected want = {.out = "/out"};

    (void)state;
    assert_survives_by(1, predict, &want);
    wf_bytes_close(&want.content);
}

static void csv_is_made(void **state)
{
    expected want = {.out = "/out.csv"};

    (void)state;
    assert_survives_by(1, predict, &want);
    wf_bytes_close(&want.content);
}

static int set_up(void **unused)
{
    wf_err err = {0};

    (void)unused;
    test_folder_make(&folder);
    write_model();
    write_records(RECORDS, -8);
    return wf_pool_new(1, &pool, &err) == WF_OK ? 0 : -1;
}

static int tear_down(void **unused)
{
    (void)unused;
    wf_pool_free(&pool);
    test_folder_remove(&folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_made),
        cmocka_unit_test(csv_is_made),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
