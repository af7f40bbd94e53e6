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
    wf_compile_spec_of_job(j, WF_COMPILE_EVAL, wf_strategy_find("parameter_server"), 2, &m, &spec);
    c = compile(&spec);
    assert_int_equal(c->n_feeds, 2);
    assert_string_equal(c->feeds[0].name, "pixels");
    assert_int_equal(c->feeds[0].axes[0].bound, 64);
    assert_string_equal(c->feeds[1].name, "digit");
    assert_true(c->feeds[1].is_label && !c->feeds[0].is_label);
    assert_string_equal(c->outputs[1].label, "accuracy");
    wf_compiled_free(&c);

    wf_compile_spec_of_job(j, WF_COMPILE_TRAIN, wf_strategy_find("parameter_server"), 2, &m, &spec);
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
    wf_compile_spec_of_job(j, WF_COMPILE_TRAIN, wf_strategy_find("parameter_server"), 1, &m, &spec);
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "/jobs/j.yaml:5");
    assert_says(err, "holds 10 elements, a record before it 12");
    wf_job_free(&j);
}

/* As the cluster has it, or as the job says; what does not fit is named with its line. */
static void a_strategy_fits_the_cluster_or_is_refused(void **state)
{
    static const struct {
        const char *line;
        uint32_t n_ps, n_workers;
        const char *chosen; /* NULL: refused */
        const char *why;
    } cases[] = {
        {"", 2, 3, "parameter_server", NULL},
        {"", 0, 1, "local", NULL},
        {"strategy: local\n", 0, 1, "local", NULL},
        {"strategy: parameter_server\n", 1, 1, "parameter_server", NULL},
        {"", 0, 2, "multi_worker_mirrored", NULL},
        {"strategy: local\n", 0, 2, NULL,
         "strategy local is for at most 1 worker, and the cluster has 2"},
        {"strategy: multi_worker_mirrored\n", 0, 1, "multi_worker_mirrored", NULL},
        {"strategy: multi_worker_mirrored\n", 1, 2, NULL,
         "/jobs/j.yaml:17: strategy multi_worker_mirrored wants at most 0 ps"},
        {"strategy: local\n", 1, 1, NULL, "/jobs/j.yaml:17: strategy local wants at most 0 ps"},
        {"strategy: parameter_server\n", 0, 1, NULL,
         "/jobs/j.yaml:17: strategy parameter_server wants at least 1 ps, and the cluster has 0"},
        {"strategy: mirrored\n", 0, 1, "mirrored", NULL},
        {"strategy: mirrored\n", 1, 1, NULL, "strategy mirrored wants at most 0 ps"},
        {"strategy: mirrored\n", 0, 2, NULL,
         "/jobs/j.yaml:17: strategy mirrored is for at most 1 worker, and the cluster has 2"},
        {"strategy: hybrid\n", 1, 1, "hybrid", NULL},
        {"strategy: hybrid\n", 2, 3, "hybrid", NULL},
        {"strategy: hybrid\n", 0, 2, NULL,
         "/jobs/j.yaml:17: strategy hybrid wants at least 1 ps, and the cluster has 0"},
        {"shard_optimizer: true\n", 0, 2, "multi_worker_mirrored", NULL},
        {"shard_optimizer: true\nplace: auto\n", 0, 2, NULL,
         "shard_optimizer is for strategy multi_worker_mirrored, and not for stages"},
        {"strategy: parameter_sever\n", 1, 1, NULL, "did you mean \"parameter_server\"?"},
        {"strategy: x\n", 1, 1, NULL, "/jobs/j.yaml:17: there is no strategy \"x\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const wf_strategy *s = NULL;
        char job[sizeof text + 64];
        wf_err err = {0};
        wf_job_conf *j;

        snprintf(job, sizeof job, "%s%s", text, cases[i].line);
        j = parse(job);
        if (cases[i].chosen) {
            must(wf_strategy_of_job(j, cases[i].n_ps, cases[i].n_workers, &s, &err), &err);
            assert_string_equal(s->name, cases[i].chosen);
        } else {
            assert_int_not_equal(wf_strategy_of_job(j, cases[i].n_ps, cases[i].n_workers, &s, &err),
                                 WF_OK);
            assert_says(err, cases[i].why);
        }
        wf_job_free(&j);
    }
}

/* A GPU rounds lamb's norms otherwise: of workers with equal copies all have one, or none. */
static void copies_are_on_devices_of_one_kind_where_they_have_to_be(void **state)
{
    static const char *const cpu[] = {"cpu"}, *const gpu[] = {"cuda:1", "cpu"};
    static const wf_worker_devices mixed[] = {{gpu, 2}, {gpu, 2}, {cpu, 1}},
                                   same[] = {{gpu, 2}, {gpu, 2}};
    const wf_stage_workers of_mixed = {mixed, 3}, of_same = {same, 2}, unknown = {NULL, 3};
    const wf_strategy *ring = wf_strategy_find("multi_worker_mirrored");
    wf_err err;
    wf_job_conf *j = parse(text);

    (void)state;
    must(wf_strategy_check_devices(j, ring, &of_mixed, &err), &err);
    j->optimizer.type = "lamb";
    j->optimizer.n_options = 0;
    assert_int_equal(wf_strategy_check_devices(j, ring, &of_mixed, &err), WF_USAGE);
    assert_says(err, "the copies of worker/0 and worker/2 are to stay equal");
    assert_int_equal(wf_strategy_check_devices(j, wf_strategy_find("hybrid"), &of_mixed, &err),
                     WF_USAGE);
    must(wf_strategy_check_devices(j, ring, &of_same, &err), &err);
    must(wf_strategy_check_devices(j, ring, &unknown, &err), &err);
    must(wf_strategy_check_devices(j, wf_strategy_find("parameter_server"), &of_mixed, &err), &err);
    j->shard_optimizer = true;
    must(wf_strategy_check_devices(j, ring, &of_mixed, &err), &err);
    wf_job_free(&j);
}

/* The ends of the exchange are the same wherever it leads; a worker's variables are whole. */
static void a_worker_that_holds_the_variables_has_them_whole(void **state)
{
    char job[sizeof text + 64];
    wf_compile_spec spec;
    wf_compiled *c, *with_ps;
    wf_job_conf *j;
    wf_model m;

    (void)state;
    snprintf(job, sizeof job, "%sslice_bytes: 1024\n", text);
    j = parse(job);
    wf_compile_spec_of_job(j, WF_COMPILE_TRAIN, wf_strategy_find("parameter_server"), 1, &m, &spec);
    with_ps = compile(&spec);
    wf_compile_spec_of_job(j, WF_COMPILE_TRAIN, wf_strategy_find("local"), 0, &m, &spec);
    c = compile(&spec);
    assert_int_equal(c->digest, with_ps->digest);
    assert_true(with_ps->n_slices > with_ps->n_variables);
    assert_int_equal(c->n_slices, c->n_variables);
    for (size_t i = 0; i < c->n_slices; i++) {
        assert_int_equal(c->slices[i].ps, 0);
        assert_int_equal(c->slices[i].count, c->variables[c->slices[i].variable].elems);
    }
    wf_compiled_free(&with_ps);
    wf_compiled_free(&c);
    wf_job_free(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_compiles_as_it_is_written),
        cmocka_unit_test(a_layer_that_does_not_fit_is_named_by_its_line),
        cmocka_unit_test(a_strategy_fits_the_cluster_or_is_refused),
        cmocka_unit_test(copies_are_on_devices_of_one_kind_where_they_have_to_be),
        cmocka_unit_test(a_worker_that_holds_the_variables_has_them_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
