/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_model.c - libweft's models: opened, described, run, differentiated, changed and
 * written. */
#include "tests/unit/lib_stage.h"

#include <stdio.h>

static test_folder folder;
static wf_bytes bytes; /* the model of lib_stage.h */
static char path[PATH_MAX];

static float numbers[6] = {1, 2, 3, 4, 5, 6};
static int64_t shape[2] = {2, 3};
static weft_tensor x = {numbers, WEFT_F32, 2, shape, NULL, NULL};
static const weft_feed feeds[] = {{"x", &x, "x.npy"}};

static weft_model *open_model(void)
{
    weft_model *m = NULL;

    assert_works(weft_model_open(path, &m, &error));
    return m;
}

static void assert_tensor(const weft_tensor *t, int32_t rank, const int64_t dims[],
                          const float want[])
{
    assert_non_null(t);
    assert_int_equal(t->rank, rank);
    for (int32_t i = 0; i < rank; i++)
        assert_int_equal(t->shape[i], dims[i]);
    assert_memory_equal(t->data, want, (size_t)weft_tensor_elements(t) * sizeof(float));
}

static const float product[6] = {0.5f, 3, 7.5f, 2, 7.5f, 15};
static const float sum[1] = {35.5f};

static void a_model_is_described(void **state)
{
    weft_model *m = open_model();
    weft_port p;

    (void)state;
    assert_int_equal(weft_model_count(m, WEFT_INPUT), 1);
    assert_int_equal(weft_model_count(m, WEFT_OUTPUT), 2);
    assert_int_equal(weft_model_count(m, WEFT_VARIABLE), 1);
    assert_int_equal(weft_model_count(m, (weft_kind)7), 0);
    assert_int_equal(weft_model_count(NULL, WEFT_INPUT), 0);
    assert_works(weft_model_port(m, WEFT_INPUT, 0, &p, &error));
    assert_string_equal(p.name, "x");
    assert_int_equal(p.rank, 2);
    assert_int_equal(p.shape[0], -1);
    assert_int_equal(p.shape[1], 3);
    assert_int_equal(p.dtype, WEFT_F32);
    assert_works(weft_model_port(m, WEFT_OUTPUT, 1, &p, &error));
    assert_string_equal(p.name, "loss");
    assert_int_equal(p.rank, 0);
    assert_works(weft_model_port(m, WEFT_VARIABLE, 0, &p, &error));
    assert_string_equal(p.name, "w");
    assert_true(p.trainable);
    assert_fails(weft_model_port(m, WEFT_INPUT, 1, &p, &error), WEFT_INVALID, "weft_model_count");
    assert_fails(weft_model_port(NULL, WEFT_INPUT, 0, &p, &error), WEFT_INVALID, "m is NULL");
    assert_fails(weft_model_port(m, WEFT_INPUT, 0, NULL, &error), WEFT_INVALID, "out is NULL");
    weft_model_free(&m);
    assert_null(m);
    weft_model_free(&m);
    weft_model_free(NULL);
}

static void what_is_no_model_is_refused(void **state)
{
    weft_model *m = NULL;
    char none[PATH_MAX];

    (void)state;
    snprintf(none, sizeof none, "%s/none.onnx", folder.path);
    assert_fails(weft_model_open(none, &m, &error), WEFT_NOTFOUND, "none.onnx");
    assert_fails(weft_model_open(NULL, &m, &error), WEFT_INVALID, "path is NULL");
    assert_fails(weft_model_open(path, NULL, &error), WEFT_INVALID, "out is NULL");
    assert_fails(weft_model_decode(bytes.data, bytes.size / 2, &m, &error), WEFT_INVALID, "");
    assert_fails(weft_model_decode(NULL, 5, &m, &error), WEFT_INVALID, "data is NULL");
    assert_fails(weft_model_of_job(NULL, NULL, &m, &error), WEFT_INVALID, "job is NULL");
    assert_null(m);
}

static void a_file_is_run(void **state)
{
    const weft_run_options two = {.threads = 2, .seed = 3};
    const char *wanted[] = {"loss"};
    weft_list *out = NULL;

    (void)state;
    assert_works(weft_run_file(path, 1, feeds, 0, NULL, NULL, &out, &error));
    assert_int_equal(weft_list_count(out), 2);
    assert_tensor(weft_list_find(out, "y"), 2, shape, product);
    assert_tensor(weft_list_find(out, "loss"), 0, NULL, sum);
    weft_list_free(&out);
    assert_works(weft_run_file(path, 1, feeds, 1, wanted, &two, &out, &error));
    assert_int_equal(weft_list_count(out), 1);
    assert_string_equal(weft_list_name(out, 0), "loss");
    weft_list_free(&out);
}

static void wrong_feeds_are_refused(void **state)
{
    int64_t narrow[2] = {3, 2};
    weft_tensor other = {numbers, WEFT_F32, 2, narrow, NULL, NULL};
    weft_tensor whole = {numbers, WEFT_I32, 2, shape, NULL, NULL};
    weft_tensor nothing = {NULL, WEFT_F32, 2, shape, NULL, NULL};
    const weft_feed twice[] = {feeds[0], feeds[0]}, unknown[] = {{"xx", &x, NULL}},
                    shaped[] = {{"x", &other, NULL}}, typed[] = {{"x", &whole, "x.npy"}},
                    nameless[] = {{NULL, &x, NULL}}, none[] = {{"x", NULL, NULL}},
                    empty[] = {{"x", &nothing, NULL}};
    const char *wanted[] = {"yy"}, *null[] = {NULL};
    const weft_run_options small = {.memory_limit = 1}, many = {.threads = 100000};
    weft_list *out = NULL;
    weft_error e;

    (void)state;
    assert_fails(weft_run_file(path, 2, twice, 0, NULL, NULL, &out, &error), WEFT_USAGE, "twice");
    assert_fails(weft_run_file(path, 1, unknown, 0, NULL, NULL, &out, &error), WEFT_USAGE,
                 "did you mean \"x\"");
    assert_fails(weft_run_file(path, 1, shaped, 0, NULL, NULL, &out, &error), WEFT_SHAPE,
                 "the feed is float32[3, 2], and input \"x\" is float32[batch, 3]");
    assert_fails(weft_run_file(path, 1, typed, 0, NULL, NULL, &out, &error), WEFT_SHAPE,
                 "x.npy is int32[2, 3]");
    assert_fails(weft_run_file(path, 1, nameless, 0, NULL, NULL, &out, &error), WEFT_INVALID,
                 "name of feed 0");
    assert_fails(weft_run_file(path, 1, none, 0, NULL, NULL, &out, &error), WEFT_INVALID,
                 "input \"x\": the feed is NULL");
    assert_fails(weft_run_file(path, 1, empty, 0, NULL, NULL, &out, &error), WEFT_INVALID,
                 "data is NULL");
    assert_fails(weft_run_file(path, 1, NULL, 0, NULL, NULL, &out, &error), WEFT_INVALID, "feeds");
    assert_fails(weft_run_file(path, 1, feeds, 1, NULL, NULL, &out, &error), WEFT_INVALID,
                 "fetches");
    assert_fails(weft_run_file(path, 1, feeds, 1, wanted, NULL, &out, &error), WEFT_NOTFOUND, "yy");
    assert_fails(weft_run_file(path, 1, feeds, 1, null, NULL, &out, &error), WEFT_INVALID, "NULL");
    assert_fails(weft_run_file(NULL, 1, feeds, 0, NULL, NULL, &out, &error), WEFT_INVALID, "path");
    assert_fails(weft_run_file(path, 1, feeds, 0, NULL, &small, &out, &error), WEFT_NOMEM,
                 "memory_limit");
    assert_fails(weft_run_file(path, 1, feeds, 0, NULL, &many, &out, &error), WEFT_INVALID, "");
    assert_int_equal(weft_run_file(path, 0, NULL, 0, NULL, NULL, &out, &e), WEFT_USAGE);
    assert_string_equal(e.name, "x");
    assert_null(out);
}

static void a_loss_is_differentiated(void **state)
{
    const float by_w[3] = {5, 7, 9}, by_x[6] = {0.5f, 1.5f, 2.5f, 0.5f, 1.5f, 2.5f};
    const char *wrt[] = {"x", "w"}, *unknown[] = {"ww"}, *twice[] = {"w", "w"}, *made[] = {"y"};
    weft_model *m = open_model();
    weft_list *out = NULL;

    (void)state;
    assert_works(weft_gradient_file(path, "loss", 1, feeds, 0, NULL, NULL, &out, &error));
    assert_int_equal(weft_list_count(out), 2);
    assert_tensor(weft_list_find(out, "loss"), 0, NULL, sum);
    assert_tensor(weft_list_find(out, "w"), 1, (int64_t[]){3}, by_w);
    weft_list_free(&out);
    for (int from_file = 0; from_file < 2; from_file++) {
        if (from_file)
            assert_works(weft_gradient_file(path, "loss", 1, feeds, 2, wrt, NULL, &out, &error));
        else
            assert_works(weft_model_gradient(m, "loss", 1, feeds, 2, wrt, NULL, &out, &error));
        assert_int_equal(weft_list_count(out), 3);
        assert_string_equal(weft_list_name(out, 1), "x");
        assert_tensor(weft_list_tensor(out, 0), 0, NULL, sum);
        assert_tensor(weft_list_tensor(out, 1), 2, shape, by_x);
        assert_tensor(weft_list_tensor(out, 2), 1, (int64_t[]){3}, by_w);
        weft_list_free(&out);
    }
    assert_fails(weft_model_gradient(m, "loss", 1, feeds, 1, unknown, NULL, &out, &error),
                 WEFT_USAGE, "\"ww\"");
    assert_fails(weft_model_gradient(m, "loss", 1, feeds, 1, made, NULL, &out, &error), WEFT_USAGE,
                 "no variable or input \"y\"");
    assert_fails(weft_model_gradient(m, "loss", 1, feeds, 2, twice, NULL, &out, &error), WEFT_USAGE,
                 "twice");
    assert_fails(weft_model_gradient(m, "loss", 0, NULL, 1, wrt, NULL, &out, &error), WEFT_SHAPE,
                 "not fed");
    assert_fails(weft_model_gradient(m, "none", 1, feeds, 0, NULL, NULL, &out, &error), WEFT_USAGE,
                 "none");
    assert_fails(weft_model_gradient(m, NULL, 1, feeds, 0, NULL, NULL, &out, &error), WEFT_INVALID,
                 "loss is NULL");
    weft_model_free(&m);
}

static void a_model_is_run_again_and_again(void **state)
{
    weft_model *m = NULL;
    weft_list *out = NULL;

    (void)state;
    assert_works(weft_model_decode(bytes.data, bytes.size, &m, &error));
    for (int i = 0; i < 2; i++) {
        assert_works(weft_model_run(m, 1, feeds, 0, NULL, NULL, &out, &error));
        assert_tensor(weft_list_find(out, "y"), 2, shape, product);
        weft_list_free(&out);
    }
    assert_fails(weft_model_run(NULL, 1, feeds, 0, NULL, NULL, &out, &error), WEFT_INVALID, "m is");
    weft_model_free(&m);
}

/* A model of a job has outputs of each record only. */
static weft_model *open_layers(void)
{
    static const char text[] = "job: j\n"
                               "model: {input: {x: [3]}, layers: [{dense: 2}]}\n"
                               "loss: mse\n"
                               "data: {format: npy, train: {x: x.npy, y: y.npy}}\n"
                               "batch: 2\n"
                               "optimizer: sgd\n";
    weft_model *m = NULL;
    weft_job *j = NULL;

    assert_works(weft_job_parse(text, strlen(text), NULL, &j, &error));
    assert_works(weft_model_of_job(j, NULL, &m, &error));
    weft_job_free(&j);
    return m;
}

static void records_are_predicted_in_batches(void **state)
{
    float many[12 * 3];
    int64_t records[2] = {7, 3};
    weft_tensor t = {many, WEFT_F32, 2, records, NULL, NULL};
    const weft_feed all = {"x", &t, NULL};
    weft_model *m = open_layers();
    weft_list *whole = NULL, *out = NULL;

    (void)state;
    for (int i = 0; i < 12 * 3; i++)
        many[i] = (float)(i % 5) - 2;
    assert_works(weft_model_predict(m, 1, &all, NULL, &whole, &error));
    assert_int_equal(weft_list_count(whole), 1);
    for (uint64_t batch = 1; batch < 10; batch++) {
        const weft_run_options o = {.batch = batch, .threads = 1 + (uint32_t)batch / 5};

        assert_works(weft_model_predict(m, 1, &all, &o, &out, &error));
        assert_tensor(weft_list_tensor(out, 0), 2, (int64_t[]){7, 2},
                      weft_list_tensor(whole, 0)->data);
        weft_list_free(&out);
    }
    weft_list_free(&whole);
    for (int i = 0; i < 24; i++) { /* more sizes than plans are kept for */
        records[0] = 1 + i % 12;
        assert_works(weft_model_predict(m, 1, &all, NULL, &out, &error));
        assert_int_equal(weft_list_tensor(out, 0)->shape[0], records[0]);
        weft_list_free(&out);
    }
    weft_model_free(&m);
}

static void what_is_no_prediction_is_refused(void **state)
{
    const weft_run_options by_one = {.batch = 1};
    const weft_feed unknown[] = {{"z", &x, NULL}};
    weft_model *m = open_model();
    weft_list *out = NULL;
    weft_error e;

    (void)state;
    assert_works(weft_model_predict(m, 1, feeds, NULL, &out, &error));
    assert_tensor(weft_list_find(out, "loss"), 0, NULL, sum);
    weft_list_free(&out);
    assert_fails(weft_model_predict(m, 1, feeds, &by_one, &out, &error), WEFT_SHAPE,
                 "\"loss\" is of a batch and not of each record");
    assert_fails(weft_model_predict(m, 1, unknown, NULL, &out, &error), WEFT_USAGE, "no input");
    assert_fails(weft_model_predict(NULL, 1, feeds, NULL, &out, &error), WEFT_INVALID, "m is NULL");
    assert_fails(weft_model_predict(m, 1, NULL, NULL, &out, &error), WEFT_INVALID, "feeds");
    assert_int_equal(weft_model_predict(m, 0, NULL, NULL, &out, &e), WEFT_USAGE);
    assert_string_equal(e.name, "x");
    assert_null(out);
    weft_model_free(&m);
}

static void weights_are_read_and_replaced(void **state)
{
    float ones[3] = {1, 1, 1}, twos[3] = {2, 2, 2};
    int64_t three = 3, two = 2;
    weft_tensor w = {ones, WEFT_F32, 1, &three, NULL, NULL}, short_one = w, typed = w;
    weft_model *m = open_model();
    weft_list *l = NULL, *out = NULL;
    weft_tensor *t = NULL;

    (void)state;
    short_one.shape = &two;
    typed.dtype = WEFT_I32;
    assert_works(weft_model_weight(m, "w", &t, &error));
    assert_tensor(t, 1, &three, (float[]){0.5f, 1.5f, 2.5f});
    weft_tensor_free(&t);
    assert_works(weft_model_predict(m, 1, feeds, NULL, &out, &error));
    weft_list_free(&out);
    assert_works(weft_model_set_weight(m, "w", &w, &error));
    assert_works(weft_model_predict(m, 1, feeds, NULL, &out, &error));
    assert_tensor(weft_list_find(out, "y"), 2, shape, numbers);
    weft_list_free(&out);
    assert_fails(weft_model_set_weight(m, "w", &short_one, &error), WEFT_SHAPE, "float32[3]");
    assert_fails(weft_model_set_weight(m, "w", &typed, &error), WEFT_SHAPE, "int32[3]");
    assert_fails(weft_model_set_weight(m, "v", &w, &error), WEFT_NOTFOUND, "no weight \"v\"");
    assert_fails(weft_model_set_weight(m, "x", &w, &error), WEFT_NOTFOUND, "no weight \"x\"");
    assert_fails(weft_model_set_weight(m, NULL, &w, &error), WEFT_INVALID, "name is NULL");
    assert_fails(weft_model_set_weight(m, "w", NULL, &error), WEFT_INVALID, "t is NULL");
    assert_fails(weft_model_weight(m, "v", &t, &error), WEFT_NOTFOUND, "no weight \"v\"");
    assert_fails(weft_model_weight(m, NULL, &t, &error), WEFT_INVALID, "name is NULL");

    /* One that does not fit: none is replaced. */
    w.data = twos;
    assert_works(weft_list_new(&l, &error));
    assert_works(weft_list_add(l, "w", &w, &error));
    assert_works(weft_list_add(l, "v", &w, &error));
    assert_fails(weft_model_set_weights(m, l, &error), WEFT_NOTFOUND, "no weight \"v\"");
    assert_works(weft_model_weight(m, "w", &t, &error));
    assert_tensor(t, 1, &three, ones);
    weft_tensor_free(&t);
    assert_fails(weft_model_set_weights(m, NULL, &error), WEFT_INVALID, "weights is NULL");
    weft_list_free(&l);
    weft_model_free(&m);
}

static void a_model_is_written_and_read_back(void **state)
{
    char file[PATH_MAX], weights[PATH_MAX];
    weft_model *m = open_model(), *back = NULL;
    weft_list *l = NULL;
    void *data = NULL;
    size_t size = 0;

    (void)state;
    snprintf(file, sizeof file, "%s/back.onnx", folder.path);
    snprintf(weights, sizeof weights, "%s/w.safetensors", folder.path);
    assert_works(weft_model_write(m, file, &error));
    assert_works(weft_model_open(file, &back, &error));
    weft_model_free(&back);
    assert_works(weft_model_encode(m, &data, &size, &error));
    assert_works(weft_model_decode(data, size, &back, &error));
    weft_bytes_free(&data);
    assert_null(data);
    for (int i = 0; i < 2; i++) /* the second replaces the first */
        assert_works(weft_model_save(m, weights, &error));
    assert_works(weft_list_read(weights, &l, &error));
    assert_int_equal(weft_list_count(l), 1);
    assert_works(weft_model_set_weights(back, l, &error));
    weft_list_free(&l);
    assert_works(weft_list_read(file, &l, &error));
    assert_non_null(weft_list_find(l, "w"));
    weft_list_free(&l);
    assert_fails(weft_model_write(m, "/nowhere/a.onnx", &error), WEFT_NOTFOUND, "/nowhere");
    assert_fails(weft_model_save(m, "/nowhere/a.safetensors", &error), WEFT_NOTFOUND, "/nowhere");
    assert_fails(weft_model_write(m, NULL, &error), WEFT_INVALID, "path is NULL");
    assert_fails(weft_model_encode(m, &data, NULL, &error), WEFT_INVALID, "size is NULL");
    assert_fails(weft_model_save(NULL, weights, &error), WEFT_INVALID, "m is NULL");
    weft_model_free(&back);
    weft_model_free(&m);
}

static const char unbounded[] =
    "job: rows\n"
    "model:\n"
    "  input: {ids: {shape: [2], dtype: int64}}\n"
    "  layers:\n"
    "    - embedding: {input_dim: unbounded, output_dim: 3, name: e%s}\n"
    "loss: mse\n"
    "data: {format: npy, train: {ids: x.npy, y: y.npy}}\n"
    "batch: 8\n"
    "optimizer: sgd\n"
    "tables: [{match: 'e/*', rows: unbounded}]\n";

static void an_unbounded_table_has_first_values_and_is_written(void **state)
{
    static const struct {
        const char *option, *note;
        float written;
    } cases[] = {
        {"", "ids without a row get zeros in this file", 0},
        {", embeddings_initializer: {uniform: {minval: 1, maxval: 2}}", "get the mean of", 1.5f},
        {", embeddings_initializer: {constant: 0.5}", "", 0.5f},
    };
    int64_t ids[4] = {1, -1, 5, 1}, dims[2] = {2, 2};
    weft_tensor of_ids = {ids, WEFT_I64, 2, dims, NULL, NULL};
    const weft_feed fed = {"ids", &of_ids, NULL};
    char text[1024], file[PATH_MAX], note[256];

    (void)state;
    snprintf(file, sizeof file, "%s/rows.safetensors", folder.path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weft_model *m = NULL, *back = NULL;
        weft_list *out = NULL;
        weft_job *job = NULL;
        const float *y;
        void *data = NULL;
        size_t size = 0;

        snprintf(text, sizeof text, unbounded, cases[i].option);
        assert_works(weft_job_parse(text, strlen(text), NULL, &job, &error));
        assert_works(weft_model_of_job(job, NULL, &m, &error));
        assert_works(weft_model_predict(m, 1, &fed, NULL, &out, &error));
        y = weft_list_tensor(out, 0)->data; /* [2, 2, 3] */
        assert_memory_equal(y, y + 9, 3 * sizeof *y);
        assert_true((y[0] == y[3]) == (cases[i].note[0] == 0)); /* each id has its own */
        weft_list_free(&out);
        assert_works(weft_model_note(m, note, sizeof note, &error));
        assert_true(cases[i].note[0] ? strstr(note, cases[i].note) != NULL : note[0] == 0);
        assert_works(weft_model_encode(m, &data, &size, &error));
        assert_works(weft_model_decode(data, size, &back, &error));
        assert_works(weft_model_predict(back, 1, &fed, NULL, &out, &error));
        y = weft_list_tensor(out, 0)->data;
        for (int k = 0; k < 12; k++)
            assert_true(y[k] == cases[i].written);
        weft_list_free(&out);
        assert_works(weft_model_note(back, note, sizeof note, &error));
        assert_string_equal(note, "");
        assert_works(weft_model_save(m, file, &error));
        assert_works(weft_list_read(file, &out, &error));
        assert_int_equal(weft_list_count(out), 2);
        assert_int_equal(weft_tensor_elements(weft_list_find(out, "e/embeddings/ids")), 0);
        weft_list_free(&out);
        weft_bytes_free(&data);
        weft_model_free(&back);
        weft_model_free(&m);
        weft_job_free(&job);
    }
    assert_fails(weft_model_note(NULL, note, sizeof note, &error), WEFT_INVALID, "m is NULL");
    assert_fails(weft_model_note(NULL, NULL, 0, &error), WEFT_INVALID, "m is NULL");
}

static int set_up(void **state)
{
    (void)state;
    test_folder_make(&folder);
    write_model(&bytes);
    snprintf(path, sizeof path, "%s", test_write(&folder, "m.onnx", bytes.data, bytes.size));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_bytes_close(&bytes);
    test_folder_remove(&folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_described),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(a_file_is_run),
        cmocka_unit_test(wrong_feeds_are_refused),
        cmocka_unit_test(a_loss_is_differentiated),
        cmocka_unit_test(a_model_is_run_again_and_again),
        cmocka_unit_test(records_are_predicted_in_batches),
        cmocka_unit_test(what_is_no_prediction_is_refused),
        cmocka_unit_test(weights_are_read_and_replaced),
        cmocka_unit_test(a_model_is_written_and_read_back),
        cmocka_unit_test(an_unbounded_table_has_first_values_and_is_written),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
