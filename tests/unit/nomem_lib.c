/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_lib.c - models are opened, run, differentiated and changed, and data is lent,
 * through libweft while memory ends. */
#include "tests/unit/lib_stage.h"
#include "tests/unit/nomem.h"

static wf_bytes bytes; /* the model of lib_stage.h */

static float numbers[6] = {1, 2, 3, 4, 5, 6};
static int64_t shape[2] = {2, 3};
static weft_tensor x = {numbers, WEFT_F32, 2, shape, NULL, NULL};
static const weft_feed feeds[] = {{"x", &x, NULL}};
static const weft_run_options all = {.threads = 1};

/* What a call said, as the sweep takes it. */
static wf_status said(weft_code code, const weft_error *e, wf_err *err)
{
    wf_status rc = (wf_status)code;

    if (rc != WF_OK)
        wf_fail(err, rc, e->hint, "%s", e->message);
    return rc;
}
#define TRY(call) WF_TRY(said(call, &error, err))

static wf_status is(const weft_list *l, const char *name, const float want[], wf_err *err)
{
    const weft_tensor *t = weft_list_find(l, name);

    if (!t || memcmp(t->data, want, (size_t)weft_tensor_elements(t) * sizeof *want) != 0)
        return wrong(err, "%s is another", name);
    return WF_OK;
}

static const float product[] = {0.5f, 3, 7.5f, 2, 7.5f, 15}, by_w[] = {5, 7, 9};

static wf_status use(weft_model *m, weft_list **out, wf_err *err)
{
    const char *wrt[] = {"w"}, *fetch[] = {"y"};
    weft_error error;

    TRY(weft_model_run(m, 1, feeds, 1, fetch, &all, out, &error));
    WF_TRY(is(*out, "y", product, err));
    weft_list_free(out);
    TRY(weft_model_gradient(m, "loss", 1, feeds, 1, wrt, &all, out, &error));
    WF_TRY(is(*out, "w", by_w, err));
    weft_list_free(out);
    TRY(weft_model_predict(m, 1, feeds, &all, out, &error));
    return is(*out, "y", product, err);
}

static wf_status open_and_use(void *unused, wf_err *err)
{
    weft_model *m = NULL;
    weft_list *out = NULL;
    weft_error error;
    wf_status rc;

    (void)unused;
    TRY(weft_model_decode(bytes.data, bytes.size, &m, &error));
    rc = use(m, &out, err);
    weft_list_free(&out);
    weft_model_free(&m);
    return rc;
}

/* What could not be put in place leaves the model as it was. */
static wf_status set_weights(weft_model *m, const weft_list *l, wf_err *err)
{
    weft_tensor *t = NULL;
    weft_error error;
    wf_status rc = said(weft_model_set_weights(m, l, &error), &error, err), read;
    bool spared = wf_nomem_spare(true);

    read = said(weft_model_weight(m, "w", &t, &error), &error, err);
    if (read == WF_OK && ((const float *)t->data)[1] != (rc == WF_OK ? 7 : 1.5f))
        rc = wrong(err, "w has become another");
    weft_tensor_free(&t);
    wf_nomem_spare(spared);
    return rc;
}

static wf_status change(void *unused, wf_err *err)
{
    float sevens[3] = {7, 7, 7};
    int64_t three = 3, step = 1;
    weft_tensor w = {sevens, WEFT_F32, 1, &three, &step, NULL};
    weft_model *m = NULL;
    weft_tensor *t = NULL;
    weft_list *l = NULL;
    void *data = NULL;
    size_t size;
    weft_error error;
    wf_status rc;

    (void)unused;
    rc = said(weft_model_decode(bytes.data, bytes.size, &m, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_list_new(&l, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_list_add(l, "w", &w, &error), &error, err);
    if (rc == WF_OK)
        rc = set_weights(m, l, err);
    if (rc == WF_OK)
        rc = said(weft_model_encode(m, &data, &size, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_tensor_view(sevens, WEFT_F32, 1, &three, NULL, &t, &error), &error, err);
    weft_tensor_free(&t);
    weft_bytes_free(&data);
    weft_list_free(&l);
    weft_model_free(&m);
    return rc;
}

static const char unbounded[] = "job: rows\n"
                                "model:\n"
                                "  input: {ids: {shape: [2], dtype: int64}}\n"
                                "  layers:\n"
                                "    - embedding: {input_dim: unbounded, output_dim: 3, name: e}\n"
                                "loss: mse\n"
                                "data: {format: npy, train: {ids: x.npy, y: y.npy}}\n"
                                "batch: 8\n"
                                "optimizer: sgd\n"
                                "tables: [{match: 'e/*', rows: unbounded}]\n";

/* A model of a job with an unbounded table, which has no rows yet, is written and asked. */
static wf_status write_table(void *job, wf_err *err)
{
    static int64_t ids[4] = {1, -1, 5, 1}, dims[2] = {2, 2};
    static weft_tensor of_ids = {ids, WEFT_I64, 2, dims, NULL, NULL};
    const weft_feed fed = {"ids", &of_ids, NULL};
    weft_model *m = NULL;
    weft_list *out = NULL;
    void *data = NULL;
    size_t size = 0;
    weft_error error;
    wf_status rc;

    TRY(weft_model_of_job(job, NULL, &m, &error));
    rc = said(weft_model_encode(m, &data, &size, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_model_predict(m, 1, &fed, &all, &out, &error), &error, err);
    if (rc == WF_OK && weft_tensor_elements(weft_list_tensor(out, 0)) != 12)
        rc = wrong(err, "another output");
    weft_bytes_free(&data);
    weft_list_free(&out);
    weft_model_free(&m);
    return rc;
}

static void a_table_is_written_and_asked(void **state)
{
    weft_job *job = NULL;
    weft_error error;

    (void)state;
    assert_int_equal(weft_job_parse(unbounded, strlen(unbounded), NULL, &job, &error), WEFT_OK);
    assert_survives(write_table, job);
    weft_job_free(&job);
}

static void a_model_is_opened_and_used(void **state)
{
    (void)state;
    assert_survives(open_and_use, NULL);
}

static void weights_are_changed(void **state)
{
    (void)state;
    assert_survives(change, NULL);
}

static const char in_memory[] =
    "job: m\nmodel: {input: {x: [3]}, layers: [{dense: 2}]}\nloss: mse\nbatch: 2\n"
    "optimizer: sgd\ndata: {format: memory, train: {x: x, y: y}, eval: {x: x, y: y}}\n";

/* y is a column of numbers, which strides say: it is copied. */
static wf_status feed(void *arg, wf_err *err)
{
    int64_t narrow[] = {2, 2}, strides[] = {3, 1};
    weft_tensor y = {numbers, WEFT_F32, 2, narrow, strides, NULL};
    weft_job *job = NULL;
    weft_evaluation e;
    weft_error error;
    wf_status rc;

    (void)arg;
    rc = said(weft_job_parse(in_memory, strlen(in_memory), NULL, &job, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_job_feed(job, "x", &x, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_job_feed(job, "y", &y, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_job_check(job, &error), &error, err);
    if (rc == WF_OK)
        rc = said(weft_job_evaluate(job, NULL, &all, &e, &error), &error, err);
    if (rc == WF_OK && e.records != 2)
        rc = wrong(err, "%u records", (unsigned)e.records);
    weft_job_free(&job);
    return rc;
}

static void data_in_memory_is_evaluated(void **state)
{
    (void)state;
    assert_survives(feed, NULL);
}

static int set_up(void **state)
{
    (void)state;
    write_model(&bytes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_bytes_close(&bytes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_opened_and_used),
        cmocka_unit_test(weights_are_changed),
        cmocka_unit_test(a_table_is_written_and_asked),
        cmocka_unit_test(data_in_memory_is_evaluated),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
