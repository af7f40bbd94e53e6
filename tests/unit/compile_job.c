/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_job.c - a job file's words become what is compiled. */
#include "tests/unit/compile_util.h"

static const char text[] = "job: j\n"
                           "model:\n"
                           "  input: {pixels: [28, 28]}\n"
                           "  layers:\n"
                           "    - flatten\n"
                           "    - dense: {units: 16, activation: relu}\n"
                           "    - dropout: 0.5\n"
                           "    - dense: {units: 10, activation: softmax}\n"
                           "loss: sparse_categorical_crossentropy\n"
                           "metrics: [accuracy]\n"
                           "data:\n"
                           "  format: idx\n"
                           "  train: {pixels: a.gz, digit: b.gz}\n"
                           "batch: 64\n"
                           "seed: 3\n"
                           "optimizer: adam\n";

static wf_job_conf *parse(const char *job)
{
    wf_job_conf *j = NULL;
    wf_err err = {0};

    must(wf_job_parse(job, strlen(job), "/jobs/j.yaml", &j, &err), &err);
    return j;
}

static void a_job_compiles_as_it_is_written(void **state)
{
    wf_job_conf *j = parse(text);
    wf_model m;
    wf_compile_spec spec;
    wf_compiled *c;

    (void)state;
    wf_compile_spec_of_job(j, WF_COMPILE_EVAL, 2, &m, &spec);
    c = compile(&spec);
    assert_int_equal(c->n_feeds, 2);
    assert_string_equal(c->feeds[0].name, "pixels");
    assert_int_equal(c->feeds[0].axes[0].bound, 64);
    assert_string_equal(c->feeds[1].name, "digit");
    assert_true(c->feeds[1].is_label && !c->feeds[0].is_label);
    assert_string_equal(c->outputs[1].label, "accuracy");
    wf_compiled_free(&c);

    wf_compile_spec_of_job(j, WF_COMPILE_TRAIN, 2, &m, &spec);
    c = compile(&spec);
    assert_int_equal(c->n_variables, 4);
    assert_int_equal(count_op(c->graph, "Push"), 4);
    assert_int_equal(count_op(c->graph, "Dropout"), 1);
    assert_int_equal(count_op(c->graph, "DropoutGrad"), 1);
    assert_int_equal(c->n_outputs, 1);
    wf_compiled_free(&c);
    wf_job_free(&j);
}

static void a_layer_that_does_not_fit_is_named_by_its_line(void **state)
{
    wf_job_conf *j = parse("job: j\n"
                           "model:\n"
                           "  input: {x: [12]}\n"
                           "  layers:\n"
                           "    - reshape: [5, 2]\n"
                           "loss: mse\n"
                           "data: {format: npy, train: {x: a.npy, y: b.npy}}\n"
                           "batch: 8\n"
                           "optimizer: sgd\n");
    wf_model m;
    wf_compile_spec spec;
    wf_err err = {0};

    (void)state;
    wf_compile_spec_of_job(j, WF_COMPILE_TRAIN, 1, &m, &spec);
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "/jobs/j.yaml:5");
    assert_says(err, "holds 10 elements, a record before it 12");
    wf_job_free(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_compiles_as_it_is_written),
        cmocka_unit_test(a_layer_that_does_not_fit_is_named_by_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
