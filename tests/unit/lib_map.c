/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_map.c - what data.map has learnt goes with the weights: records, evaluations and a
 * model that has the map in front of it stay the same when the training data change or are gone. */
#include "tests/unit/lib_folder.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

#define MODEL                                                                                      \
    "model: {input: {x: [6]}, layers: [{dense: 3}]}\n"                                             \
    "loss: sparse_categorical_crossentropy\n"
#define DATA "data: {format: npy, train: {x: x.npy, y: y.npy}, eval: {x: z.npy, y: y.npy}, map: "
#define MAP "{x: [{scale: 1/255}, {reshape: [6]}, log1p, standardise]}}\n"
#define REST "batch: 8\noptimizer: {adam: {learning_rate: 0.05}}\n"

enum { RECORDS = 64, EACH = 6 };

/* Bytes [RECORDS, 2, 3] around `middle`. */
static const uint8_t *images(int middle)
{
    static uint8_t x[RECORDS * EACH];

    for (int i = 0; i < RECORDS * EACH; i++)
        x[i] = (uint8_t)(middle + 29 * i % 17 + (i % EACH == i / EACH % 3 ? 60 : 0));
    return x;
}

static void write_images(const char *name, int middle)
{
    write_npy(name, "|u1", "64, 2, 3", images(middle), RECORDS * EACH);
}

static weft_list *train(weft_job *j, const char *home)
{
    char path[PATH_MAX], checkpoints[PATH_MAX + 16];
    weft_list *weights = NULL;

    snprintf(path, sizeof path, "%s", in(home));
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", path);
    assert_works(weft_fit(j, &(weft_fit_options){.folder = path, .threads = 1}, NULL, &error));
    assert_works(weft_job_weights(j, checkpoints, WEFT_STEP_NEWEST, NULL, NULL, &weights, &error));
    return weights;
}

static weft_tensor *mapped(weft_job *j, const weft_list *weights)
{
    char path[PATH_MAX];
    weft_tensor *t = NULL;

    snprintf(path, sizeof path, "%s", in("z.npy"));
    assert_works(weft_job_records(j, weights, "x", path, WEFT_F32, &t, &error));
    return t;
}

static weft_list *predict(weft_model *m, const weft_tensor *x)
{
    weft_list *out = NULL;

    assert_works(weft_model_predict(m, 1, &(weft_feed){"x", x, "x"},
                                    &(weft_run_options){.threads = 1}, &out, &error));
    return out;
}

/* Raw records through the model with its map in front give, to the bit, what mapped records give
 * the model alone; also from a file. */
static void check_model(weft_job *j, const weft_list *weights)
{
    char path[PATH_MAX], inputs[64];
    weft_tensor *x = mapped(j, weights), *raw = NULL;
    weft_model *alone = NULL, *whole = NULL, *read = NULL;
    weft_list *want, *got;

    snprintf(path, sizeof path, "%s", in("m.onnx"));
    assert_works(weft_model_of_job(j, weights, &alone, &error));
    assert_works(weft_model_of_job(j, weights, &whole, &error));
    assert_works(weft_model_take_map(whole, j, weights, inputs, sizeof inputs, &error));
    assert_string_equal(inputs, "x");
    assert_works(weft_model_write(whole, path, &error));
    assert_works(weft_model_open(path, &read, &error));
    assert_works(weft_tensor_new(WEFT_U8, 3, (int64_t[]){RECORDS, 2, 3}, &raw, &error));
    memcpy(raw->data, images(100), RECORDS * EACH);
    want = predict(alone, x);
    got = predict(read, raw);
    assert_memory_equal(weft_list_tensor(got, 0)->data, weft_list_tensor(want, 0)->data,
                        RECORDS * 3 * sizeof(float));
    weft_list_free(&want);
    weft_list_free(&got);
    weft_tensor_free(&raw);
    weft_tensor_free(&x);
    weft_model_free(&alone);
    weft_model_free(&whole);
    weft_model_free(&read);
}

static void what_was_learnt_goes_with_the_weights(void **state)
{
    weft_job *j = parse("job: kept\n" MODEL DATA MAP REST);
    weft_list *weights;
    weft_tensor *before, *after, *anew;
    weft_evaluation one, two, other;

    (void)state;
    write_images("x.npy", 20);
    write_images("z.npy", 100);
    weights = train(j, "home");
    before = mapped(j, weights);
    assert_works(weft_job_evaluate(j, weights, NULL, &one, &error));
    check_model(j, weights);

    write_images("x.npy", 140); /* other training data by the same name */
    after = mapped(j, weights);
    anew = mapped(j, NULL);
    assert_memory_equal(before->data, after->data, RECORDS * EACH * sizeof(float));
    assert_memory_not_equal(before->data, anew->data, RECORDS * EACH * sizeof(float));
    assert_works(weft_job_evaluate(j, weights, NULL, &two, &error));
    assert_true(one.metrics[0].value == two.metrics[0].value);
    assert_works(weft_job_evaluate(j, NULL, NULL, &other, &error));

    assert_int_equal(remove(in("x.npy")), 0); /* and none at all */
    check_model(j, weights);
    assert_works(weft_job_evaluate(j, weights, NULL, &two, &error));
    assert_true(one.metrics[0].value == two.metrics[0].value);
    assert_fails(weft_job_evaluate(j, NULL, NULL, &other, &error), WEFT_NOTFOUND, "x.npy");

    weft_tensor_free(&before);
    weft_tensor_free(&after);
    weft_tensor_free(&anew);
    weft_list_free(&weights);
    weft_job_free(&j);
    write_images("x.npy", 20);
}

/* Weights from elsewhere have nothing with them: the training data say it. */
static void without_a_checkpoint_the_training_data_are_read(void **state)
{
    weft_job *j = parse("job: older\n" MODEL DATA MAP REST);
    weft_list *none = NULL;
    weft_model *m = NULL;
    char inputs[64];

    (void)state;
    assert_works(weft_list_new(&none, &error));
    check_model(j, NULL);
    check_model(j, none);
    assert_int_equal(remove(in("x.npy")), 0);
    assert_works(weft_model_of_job(j, none, &m, &error));
    assert_fails(weft_model_take_map(m, j, none, inputs, sizeof inputs, &error), WEFT_NOTFOUND,
                 "nothing is kept of what \"x\" is standardised by");
    weft_model_free(&m);
    write_images("x.npy", 20);
    weft_list_free(&none);
    weft_job_free(&j);
}

static void another_map_is_refused(void **state)
{
    weft_job *j = parse("job: first\n" MODEL DATA MAP REST);
    weft_job *other = parse("job: first\n" MODEL DATA "{x: [{reshape: [6]}, standardise]}}\n" REST);
    weft_job *hashed = parse("job: first\n" MODEL DATA "{x: [{reshape: [6]}, standardise, "
                             "{cast: int64}, {hash: 9}]}}\n" REST);
    weft_job *plain = parse("job: first\n" MODEL DATA "{x: [{reshape: [6]}]}}\n" REST);
    weft_list *weights = train(j, "first"), *none = NULL;
    char path[PATH_MAX], inputs[64];
    weft_tensor *t = NULL;
    weft_model *m = NULL;
    weft_evaluation e;

    (void)state;
    snprintf(path, sizeof path, "%s", in("z.npy"));
    assert_fails(weft_job_records(other, weights, "x", path, WEFT_F32, &t, &error), WEFT_MISMATCH,
                 "step 4 of data.map of \"x\" is not there, and was standardise in training");
    assert_fails(weft_job_evaluate(other, weights, NULL, &e, &error), WEFT_MISMATCH, "in training");
    assert_works(weft_list_new(&none, &error));
    assert_works(weft_model_of_job(hashed, none, &m, &error));
    assert_fails(weft_model_take_map(m, hashed, none, inputs, sizeof inputs, &error),
                 WEFT_UNSUPPORTED, "has hash behind standardise");
    assert_fails(weft_model_take_map(NULL, j, none, inputs, 1, &error), WEFT_INVALID, "m is NULL");
    assert_fails(weft_model_take_map(m, NULL, none, inputs, 1, &error), WEFT_INVALID,
                 "job is NULL");
    assert_fails(weft_model_take_map(m, j, none, NULL, 0, &error), WEFT_INVALID, "inputs is NULL");
    weft_model_free(&m);
    assert_works(weft_model_of_job(plain, none, &m, &error));
    assert_works(weft_model_take_map(m, plain, none, inputs, sizeof inputs, &error));
    assert_string_equal(inputs, "");
    weft_model_free(&m);
    weft_list_free(&none);
    weft_list_free(&weights);
    weft_job_free(&j);
    weft_job_free(&other);
    weft_job_free(&hashed);
    weft_job_free(&plain);
}

static int set_up(void **state)
{
    static int64_t y[RECORDS];

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < RECORDS; i++)
        y[i] = i % 3;
    write_npy("y.npy", "<i8", "64,", y, sizeof y);
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
        cmocka_unit_test(what_was_learnt_goes_with_the_weights),
        cmocka_unit_test(without_a_checkpoint_the_training_data_are_read),
        cmocka_unit_test(another_map_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
