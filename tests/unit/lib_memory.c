/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_memory.c - jobs of libweft on data that is in memory: what is learnt is what the
 * same data in files teach, bit for bit, and nothing is copied that is dense. */
#include "tests/unit/lib_folder.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#define MODEL                                                                                      \
    "job: %s\nmodel: {input: {x: [4]}, layers: [{dense: 3}]}\n"                                    \
    "loss: sparse_categorical_crossentropy\nbatch: 8\noptimizer: adam\nepochs: 3\n"
#define FILES "data: {format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.25}\n"
#define MEMORY "data: {format: memory, train: {x: x, y: y}, validation_split: 0.25}\n"

enum { RECORDS = 96 };

static float x[RECORDS * 4];
static int64_t y[RECORDS];
static int64_t x_shape[] = {RECORDS, 4}, y_shape[] = {RECORDS};
static weft_tensor xs = {.data = x, .dtype = WEFT_F32, .rank = 2, .shape = x_shape};
static weft_tensor ys = {.data = y, .dtype = WEFT_I64, .rank = 1, .shape = y_shape};

static weft_job *named(const char *name, const char *data)
{
    char text[1024];

    snprintf(text, sizeof text, MODEL "%s", name, data);
    return parse(text);
}

/* The kernel that a job learns; the caller frees it. */
static weft_list *learnt(weft_job *j, weft_report *last)
{
    char home[PATH_MAX], checkpoints[PATH_MAX];
    weft_fit_options o = {.folder = home, .threads = 1};
    weft_list *weights = NULL;

    snprintf(home, sizeof home, "%s", in("home"));
    snprintf(checkpoints, sizeof checkpoints, "%s", in("home/checkpoints"));
    assert_works(weft_fit(j, &o, last, &error));
    assert_works(weft_job_weights(j, checkpoints, WEFT_STEP_NEWEST, NULL, NULL, &weights, &error));
    return weights;
}

static void assert_same_kernel(const weft_list *a, const weft_list *b)
{
    assert_memory_equal(weft_list_find(a, "dense/kernel")->data,
                        weft_list_find(b, "dense/kernel")->data, 12 * sizeof(float));
}

static void memory_teaches_what_files_teach(void **state)
{
    weft_job *files = named("files", FILES), *memory = named("memory", MEMORY);
    weft_report of_files, of_memory;
    weft_list *a, *b;
    weft_evaluation e;

    (void)state;
    assert_works(weft_job_feed(memory, "x", &xs, &error));
    assert_works(weft_job_feed(memory, "y", &ys, &error));
    a = learnt(files, &of_files);
    b = learnt(memory, &of_memory);
    assert_same_kernel(a, b);
    assert_int_equal(of_memory.step, 3 * 72 / 8);
    assert_true(of_files.eval[0].value == of_memory.eval[0].value);
    assert_works(weft_job_evaluate(memory, b, NULL, &e, &error));
    assert_int_equal(e.records, 24);
    weft_list_free(&a);
    weft_list_free(&b);
    weft_job_free(&files);
    weft_job_free(&memory);
}

/* Columns of a wider array, which only strides can say. */
static void strides_are_followed(void **state)
{
    static double wide[4][RECORDS];
    int64_t strides[] = {1, RECORDS};
    weft_tensor t = {
        .data = wide, .dtype = WEFT_F64, .rank = 2, .shape = x_shape, .strides = strides};
    weft_job *files = named("dense", FILES), *memory = named("strided", MEMORY);
    weft_report last;
    weft_list *a, *b;

    (void)state;
    for (int i = 0; i < RECORDS; i++)
        for (int k = 0; k < 4; k++)
            wide[k][i] = x[4 * i + k];
    assert_works(weft_job_feed(memory, "x", &t, &error));
    assert_works(weft_job_feed(memory, "y", &ys, &error));
    memset(wide, 0, sizeof wide); /* it was copied */
    a = learnt(files, &last);
    b = learnt(memory, &last);
    assert_same_kernel(a, b);
    weft_list_free(&a);
    weft_list_free(&b);
    weft_job_free(&files);
    weft_job_free(&memory);
}

static void dense_memory_is_read_where_it_is(void **state)
{
    static float own[RECORDS * 4];
    weft_tensor t = xs;
    weft_job *j = named("where", MEMORY);
    weft_evaluation before, after;

    (void)state;
    memcpy(own, x, sizeof own);
    t.data = own;
    assert_works(weft_job_feed(j, "x", &t, &error));
    assert_works(weft_job_feed(j, "y", &ys, &error));
    assert_works(weft_job_evaluate(j, NULL, NULL, &before, &error));
    memset(own, 0, sizeof own);
    assert_works(weft_job_evaluate(j, NULL, NULL, &after, &error));
    assert_true(before.metrics[0].value != after.metrics[0].value);
    assert_works(weft_job_feed(j, "x", &xs, &error)); /* in place of the first */
    assert_works(weft_job_evaluate(j, NULL, NULL, &after, &error));
    assert_true(before.metrics[0].value == after.metrics[0].value);
    weft_job_free(&j);
}

static void what_cannot_be_data_is_refused(void **state)
{
    static uint8_t bools[RECORDS] = {[7] = 2};
    static char bytes[RECORDS * sizeof(float) + 1];
    int64_t nothing[] = {0, 4}, fewer[] = {RECORDS - 1}, column[] = {RECORDS};
    weft_tensor t = {.data = x, .dtype = WEFT_F32, .rank = 0, .shape = NULL};
    weft_job *j = named("bad", MEMORY);
    weft_evaluation e;
    weft_report last;
    char home[PATH_MAX], name[32];
    weft_fit_options o = {.folder = home};

    (void)state;
    snprintf(home, sizeof home, "%s", in("home"));
    assert_fails(weft_job_feed(NULL, "x", &xs, &error), WEFT_INVALID, "j is NULL");
    assert_fails(weft_job_feed(j, NULL, &xs, &error), WEFT_INVALID, "name is NULL");
    assert_fails(weft_job_feed(j, "x", NULL, &error), WEFT_INVALID, "x is NULL");
    assert_fails(weft_job_feed(j, "../x", &xs, &error), WEFT_INVALID, "no name for data");
    assert_fails(weft_job_feed(j, "", &xs, &error), WEFT_INVALID, "no name for data");
    assert_fails(weft_job_feed(j, "x", &t, &error), WEFT_INVALID, "a single number");
    t = (weft_tensor){.data = x, .dtype = WEFT_F32, .rank = 2, .shape = nothing};
    assert_fails(weft_job_feed(j, "x", &t, &error), WEFT_INVALID, "no records");
    t = (weft_tensor){.data = bools, .dtype = WEFT_BOOL, .rank = 1, .shape = column};
    assert_fails(weft_job_feed(j, "x", &t, &error), WEFT_INVALID, "byte 7 is 2");
    t = (weft_tensor){.data = bytes + 1, .dtype = WEFT_F32, .rank = 1, .shape = column};
    if ((uintptr_t)bytes % sizeof(float) == 0)
        assert_fails(weft_job_feed(j, "x", &t, &error), WEFT_INVALID, "no multiple of that");

    assert_fails(weft_fit(j, &o, &last, &error), WEFT_INVALID, "no data \"x\" in memory");
    assert_works(weft_job_feed(j, "x", &xs, &error));
    assert_fails(weft_job_evaluate(j, NULL, NULL, &e, &error), WEFT_USAGE, "no data \"y\"");
    t = (weft_tensor){.data = y, .dtype = WEFT_I64, .rank = 1, .shape = fewer};
    assert_works(weft_job_feed(j, "y", &t, &error));
    assert_fails(weft_fit(j, &o, &last, &error), WEFT_INVALID, "memory:y holds 95 records");
    y[5] = 3;
    assert_works(weft_job_feed(j, "y", &ys, &error));
    assert_fails(weft_fit(j, &o, &last, &error), WEFT_INVALID, "memory:y");
    y[5] = 2;
    for (int i = 0; i < 62; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_works(weft_job_feed(j, name, &xs, &error));
    }
    assert_fails(weft_job_feed(j, "one-more", &xs, &error), WEFT_FULL, "there are 64");
    weft_job_free(&j);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < RECORDS; i++) {
        y[i] = i % 3;
        for (int k = 0; k < 4; k++)
            x[4 * i + k] = (float)(k == i % 3) + 0.1f * (float)(i % 7);
    }
    write_npy("x.npy", "<f4", "96, 4", x, sizeof x);
    write_npy("y.npy", "<i8", "96,", y, sizeof y);
    return 0;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(folder, drop, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_teaches_what_files_teach),
        cmocka_unit_test(strides_are_followed),
        cmocka_unit_test(dense_memory_is_read_where_it_is),
        cmocka_unit_test(what_cannot_be_data_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
