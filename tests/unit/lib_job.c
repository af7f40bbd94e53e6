/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_job.c - libweft's jobs: read, trained, stopped and resumed, evaluated; their
 * checkpoints. */
#include "tests/unit/lib_folder.h"

#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL                                                                                      \
    "model: {input: {x: [4]}, layers: [{dense: 3}]}\n"                                             \
    "loss: sparse_categorical_crossentropy\n"                                                      \
    "metrics: [accuracy]\n"
#define DATA "data: {format: npy, train: {x: x.npy, y: y.npy}, eval: {x: x.npy, y: y.npy}}\n"
#define REST "batch: 8\noptimizer: {adam: {learning_rate: 0.05}}\ncheckpoint: {every_steps: 10}\n"
#define JOB "job: small\n" MODEL DATA REST

enum { RECORDS = 96 };

/* What a fit reported. */
typedef struct seen {
    int calls, stop_at;
    uint32_t epochs; /* the highest that was seen */
    uint64_t step;
    double part;
} seen;

static int on_report(void *arg, const weft_report *r)
{
    seen *s = arg;

    s->calls++;
    assert_true(r->step >= s->step);
    s->step = r->step;
    if (r->epoch > s->epochs)
        s->epochs = r->epoch;
    s->part = r->part;
    return s->stop_at && s->step >= (uint64_t)s->stop_at;
}

static void what_is_no_job_is_refused(void **state)
{
    weft_job *j = NULL;
    char none[PATH_MAX];

    (void)state;
    snprintf(none, sizeof none, "%s", in("none.yaml"));
    assert_fails(weft_job_open(none, &j, &error), WEFT_NOTFOUND, "there is no job file");
    assert_fails(weft_job_open(NULL, &j, &error), WEFT_INVALID, "path is NULL");
    assert_fails(weft_job_open(none, NULL, &error), WEFT_INVALID, "out is NULL");
    assert_fails(weft_job_parse("jab: a\n", 7, NULL, &j, &error), WEFT_USAGE, "job.yaml:1");
    assert_fails(weft_job_parse("", 0, "a.yaml", &j, &error), WEFT_USAGE, "a.yaml");
    assert_fails(weft_job_parse("", 1u << 30, NULL, &j, &error), WEFT_INVALID, "less than");
    assert_fails(weft_job_parse(NULL, 0, NULL, &j, &error), WEFT_INVALID, "text is NULL");
    assert_null(j);
    j = parse("job: a\nmodel: {input: {x: [4]}, layers: [{dense: 3}]}\nloss: mse\n" DATA
              "batch: 8\noptimizer: adm\n");
    assert_fails(weft_job_check(j, &error), WEFT_USAGE, "did you mean \"adam\"");
    assert_fails(weft_job_check(NULL, &error), WEFT_INVALID, "j is NULL");
    weft_job_free(&j);
    j = parse(JOB);
    assert_works(weft_job_check(j, &error));
    weft_job_free(&j);
    assert_string_equal(weft_job_name(NULL), "");
    weft_job_free(&j);
    weft_job_free(NULL);
}

static void a_job_is_trained_evaluated_and_exported(void **state)
{
    char home[PATH_MAX], checkpoints[PATH_MAX];
    weft_fit_options o = {.folder = home, .threads = 1, .report_ms = 1};
    weft_job *j = parse(JOB "epochs: 4\n");
    seen s = {0};
    weft_evaluation before, after;
    weft_checkpoint *list = NULL;
    weft_list *weights = NULL;
    weft_model *m = NULL;
    weft_report last;
    size_t n = 0;

    (void)state;
    snprintf(home, sizeof home, "%s", in("home"));
    snprintf(checkpoints, sizeof checkpoints, "%s", in("home/checkpoints"));
    o.report = on_report;
    o.arg = &s;
    assert_string_equal(weft_job_name(j), "small");
    assert_works(weft_job_evaluate(j, NULL, NULL, &before, &error));
    assert_int_equal(before.records, RECORDS);
    assert_int_equal(before.n_metrics, 2);
    assert_string_equal(before.metrics[0].name, "loss");
    assert_works(weft_fit(j, &o, &last, &error));
    assert_string_equal(last.state, "done");
    assert_int_equal(last.step, 4 * RECORDS / 8);
    assert_int_equal(last.epochs, 4);
    assert_true(s.calls > 4 && s.epochs == 4 && s.step == last.step);
    assert_true(last.n_eval == 2 && last.checkpoint == (int64_t)last.step);

    assert_works(weft_checkpoints(checkpoints, "small", &list, &n, &error));
    assert_true(n >= 1 && list[0].step == last.step && list[0].complete && list[0].bytes > 0);
    weft_checkpoints_free(&list);
    assert_null(list);
    assert_works(weft_job_weights(j, checkpoints, WEFT_STEP_NEWEST, NULL, NULL, &weights, &error));
    assert_string_equal(weft_list_origin(weights), "step-00000048");
    assert_int_equal(weft_list_find(weights, "dense/kernel")->shape[1], 3);
    assert_works(weft_job_evaluate(j, weights, NULL, &after, &error));
    assert_true(after.metrics[0].value < before.metrics[0].value);
    assert_true(fabs(after.metrics[0].value - last.eval[0].value) < 1e-5);
    assert_works(weft_model_of_job(j, weights, &m, &error));
    weft_list_free(&weights);
    assert_works(weft_job_weights(j, checkpoints, 48, NULL, NULL, &weights, &error));
    weft_list_free(&weights);
    assert_fails(weft_job_weights(j, checkpoints, 47, NULL, NULL, &weights, &error), WEFT_NOTFOUND,
                 "at step 47");
    assert_fails(weft_job_weights(j, checkpoints, WEFT_STEP_BEST, NULL, NULL, &weights, &error),
                 WEFT_NOTFOUND, "marked as the best");
    assert_fails(weft_job_weights(j, checkpoints, -3, NULL, NULL, &weights, &error), WEFT_INVALID,
                 "-3 is no step");
    weft_model_free(&m);
    weft_job_free(&j);
}

/* A run that goes on with weights and optimizer of another. */
static weft_code go_on(const char *home, const weft_list *weights, const weft_list *optimizer,
                       weft_list **end_weights, weft_list **end_optimizer, weft_error *why)
{
    char path[PATH_MAX], checkpoints[PATH_MAX + 16], text[PATH_MAX + 2048];
    char from[PATH_MAX];
    weft_fit_options o = {.folder = path, .threads = 1, .temporary = 1, .optimizer = optimizer};
    weft_model *m = NULL;
    weft_job *j = parse(JOB "epochs: 1\n");
    weft_code rc;

    snprintf(from, sizeof from, "%s", in("from.safetensors"));
    assert_works(weft_model_of_job(j, weights, &m, &error));
    assert_works(weft_model_save(m, from, &error));
    weft_model_free(&m);
    weft_job_free(&j);
    snprintf(text, sizeof text, "%sepochs: 1\nweights: {file: \"%s\", strict: false}\n", JOB, from);
    j = parse(text);
    snprintf(path, sizeof path, "%s", in(home));
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", path);
    rc = weft_fit(j, &o, NULL, why);
    if (rc == WEFT_OK)
        assert_works(
            weft_job_state(j, checkpoints, WEFT_STEP_NEWEST, end_weights, end_optimizer, &error));
    weft_job_free(&j);
    return rc;
}

static void the_state_of_an_optimizer_is_handed_on(void **state)
{
    weft_list *w[2] = {NULL}, *s[2] = {NULL}, *bad = NULL;
    const weft_tensor *t;
    float numbers[3] = {0};
    int64_t steps = RECORDS / 8, shape[1] = {3};
    weft_error why;

    (void)state;
    assert_int_equal(go_on("on1", NULL, NULL, &w[0], &s[0], &why), WEFT_OK);
    t = weft_list_find(s[0], "dense/kernel/updates");
    assert_non_null(t);
    assert_true(t->dtype == WEFT_I64 && *(const int64_t *)t->data == steps);
    t = weft_list_find(s[0], "dense/kernel/momentum");
    assert_non_null(t);
    assert_true(t->dtype == WEFT_F32 && t->rank == 2 && t->shape[1] == 3);
    assert_int_equal(go_on("on2", w[0], s[0], &w[1], &s[1], &why), WEFT_OK);
    assert_int_equal(*(int64_t *)weft_list_find(s[1], "dense/bias/updates")->data, 2 * steps);
    weft_list_free(&w[1]);
    weft_list_free(&s[1]);
    assert_int_equal(go_on("on3", w[0], NULL, &w[1], &s[1], &why), WEFT_OK); /* it begins anew */
    assert_int_equal(*(int64_t *)weft_list_find(s[1], "dense/bias/updates")->data, steps);

    assert_works(weft_list_new(&bad, &error));
    assert_works(weft_list_add(
        bad, "dense/kernel/momentum",
        &(weft_tensor){.data = numbers, .dtype = WEFT_F32, .rank = 1, .shape = shape}, &error));
    assert_int_equal(go_on("on4", w[0], bad, &w[1], &s[1], &why), WEFT_INVALID);
    assert_non_null(strstr(why.message, "dense/kernel/momentum"));
    weft_list_free(&bad);
    for (int i = 0; i < 2; i++) {
        weft_list_free(&w[i]);
        weft_list_free(&s[i]);
    }
}

static size_t count_checkpoints(const char *dir, const char *name)
{
    weft_checkpoint *list = NULL;
    size_t n = 0;

    if (weft_checkpoints(dir, name, &list, &n, NULL) == WEFT_NOTFOUND)
        return 0;
    weft_checkpoints_free(&list);
    return n;
}

/* With none of the names an evaluation would be one of first values. */
static void weights_of_another_model_are_refused(void **state)
{
    static float values[12];
    weft_tensor kernel = {.data = values, .dtype = WEFT_F32, .rank = 2, .shape = (int64_t[]){4, 3}};
    weft_job *j = parse(JOB);
    weft_list *weights = NULL;
    weft_model *m = NULL;
    weft_evaluation e;

    (void)state;
    assert_works(weft_list_new(&weights, &error));
    assert_works(weft_job_evaluate(j, weights, NULL, &e, &error)); /* empty: its first values */
    assert_works(weft_list_add(weights, "its/kernel", &kernel, &error));
    assert_fails(weft_job_evaluate(j, weights, NULL, &e, &error), WEFT_NOTFOUND,
                 "the model has none of these weights: the first of 1 is \"its/kernel\"");
    assert_fails(weft_model_of_job(j, weights, &m, &error), WEFT_NOTFOUND, "none of these weights");
    assert_null(m);
    assert_works(weft_list_add(weights, "dense/kernel", &kernel, &error));
    assert_works(weft_job_evaluate(j, weights, NULL, &e, &error));
    weft_list_free(&weights);
    weft_job_free(&j);
}

/* Relative paths go by the folder where the job was opened. */
static void a_process_may_go_elsewhere_before_it_trains(void **state)
{
    char here[PATH_MAX], home[PATH_MAX];
    weft_fit_options o = {.folder = home, .threads = 1, .temporary = 1};
    FILE *f = fopen(in("here.yaml"), "w");
    weft_report last;
    weft_job *j = NULL;

    (void)state;
    snprintf(home, sizeof home, "%s", in("elsewhere"));
    assert_true(f && fputs(JOB, f) >= 0 && fclose(f) == 0 && getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    assert_works(weft_job_open("here.yaml", &j, &error));
    assert_int_equal(chdir("/"), 0);
    assert_works(weft_fit(j, &o, &last, &error));
    assert_int_equal(chdir(here), 0);
    assert_string_equal(last.state, "done");
    weft_job_free(&j);
}

static void each_training_is_a_run_of_which_the_newest_are_kept(void **state)
{
    char home[PATH_MAX], checkpoints[PATH_MAX];
    weft_fit_options o = {.folder = home, .threads = 1};
    weft_list *weights = NULL;
    weft_report last;
    weft_job *j = NULL;

    (void)state;
    snprintf(home, sizeof home, "%s", in("runs"));
    snprintf(checkpoints, sizeof checkpoints, "%s", in("runs/checkpoints"));
    for (unsigned run = 1; run <= 3; run++) {
        char text[1024];

        snprintf(text, sizeof text, "%sepochs: %u\nkeep_runs: 2\n", JOB, run);
        j = parse(text);
        assert_works(weft_fit(j, &o, &last, &error));
        assert_int_equal(last.run, run);
        assert_int_equal(last.step, run * RECORDS / 8);
        if (run < 3)
            weft_job_free(&j);
    }
    assert_int_equal(count_checkpoints(checkpoints, "small#1"), 0);
    assert_int_equal(count_checkpoints(checkpoints, "small#2"), 3);
    assert_int_equal(count_checkpoints(checkpoints, "small"), 3);
    assert_works(weft_job_weights(j, checkpoints, WEFT_STEP_NEWEST, NULL, NULL, &weights, &error));
    assert_string_equal(weft_list_origin(weights), "step-00000036");
    weft_list_free(&weights);
    weft_job_set_run(j, 2);
    assert_works(weft_job_weights(j, checkpoints, WEFT_STEP_NEWEST, NULL, NULL, &weights, &error));
    assert_string_equal(weft_list_origin(weights), "step-00000024");
    weft_list_free(&weights);
    weft_job_set_run(j, 1);
    assert_fails(weft_job_weights(j, checkpoints, WEFT_STEP_NEWEST, NULL, NULL, &weights, &error),
                 WEFT_NOTFOUND, "small#1");
    assert_fails(
        weft_checkpoints(checkpoints, "Small", &(weft_checkpoint *){NULL}, &(size_t){0}, &error),
        WEFT_USAGE, "no name of a job");
    weft_job_free(&j);
}

static void a_job_of_another_model_has_other_weights(void **state)
{
    weft_job *j = parse("job: small\n"
                        "model: {input: {x: [4]}, layers: [{dense: 5}]}\n"
                        "loss: mse\n" DATA REST);
    char checkpoints[PATH_MAX];
    weft_list *weights = NULL;
    weft_evaluation e;
    weft_checkpoint *list = NULL;
    size_t n;

    (void)state;
    snprintf(checkpoints, sizeof checkpoints, "%s", in("home/checkpoints"));
    assert_fails(weft_job_weights(j, checkpoints, WEFT_STEP_NEWEST, NULL, NULL, &weights, &error),
                 WEFT_MISMATCH, "was saved by graph");
    assert_fails(weft_job_weights(NULL, checkpoints, 0, NULL, NULL, &weights, &error), WEFT_INVALID,
                 "j is NULL");
    assert_fails(weft_job_weights(j, NULL, 0, NULL, NULL, &weights, &error), WEFT_INVALID,
                 "checkpoint_dir is NULL");
    assert_fails(weft_checkpoints(checkpoints, "none", &list, &n, &error), WEFT_NOTFOUND, "none");
    assert_fails(weft_checkpoints(NULL, "none", &list, &n, &error), WEFT_INVALID, "checkpoint_dir");
    assert_fails(weft_job_evaluate(NULL, NULL, NULL, &e, &error), WEFT_INVALID, "j is NULL");
    assert_fails(weft_job_evaluate(j, NULL, NULL, NULL, &error), WEFT_INVALID, "out is NULL");
    weft_job_free(&j);
    j = parse("job: small\n" MODEL "data: {format: npy, train: {x: x.npy, y: y.npy}}\n" REST);
    assert_fails(weft_job_evaluate(j, NULL, NULL, &e, &error), WEFT_USAGE, "no data to evaluate");
    weft_job_free(&j);
}

static void a_job_is_stopped_and_resumed(void **state)
{
    weft_job *j = parse("job: long\n" MODEL DATA REST "epochs: 40\n");
    char home[PATH_MAX];
    seen s = {.stop_at = 20};
    weft_fit_options o = {.folder = home, .report_ms = 1, .report = on_report, .arg = &s};
    weft_report last;

    (void)state;
    snprintf(home, sizeof home, "%s", in("other"));
    assert_fails(weft_fit(j, &o, &last, &error), WEFT_STOPPED, "resume");
    assert_string_equal(last.state, "stopped");
    assert_true(last.checkpoint >= 20 && last.part < 1);
    o.resume = 1;
    s = (seen){.step = last.step}; /* it goes on from there in all that is reported */
    assert_works(weft_fit(j, &o, &last, &error));
    assert_int_equal(last.step, 40 * RECORDS / 8);
    assert_true(s.part > 0.99);
    weft_job_free(&j);
}

typedef struct trainee {
    const weft_job *job;
    char home[PATH_MAX];
    weft_report last;
    weft_error error;
} trainee;

static void *train(void *arg)
{
    trainee *t = arg;
    const weft_fit_options o = {.folder = t->home, .threads = 1};

    weft_fit(t->job, &o, &t->last, &t->error);
    return NULL;
}

/* The same job in two folders, at the same time. */
static void two_threads_train_each_its_own(void **state)
{
    weft_job *j = parse("job: twin\n" MODEL DATA REST "epochs: 5\n");
    static trainee all[2];
    pthread_t threads[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        all[i].job = j;
        snprintf(all[i].home, sizeof all[i].home, "%s", in(i ? "twin-1" : "twin-0"));
        assert_int_equal(pthread_create(&threads[i], NULL, train, &all[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(all[i].error.message, "");
        assert_int_equal(all[i].last.step, 5 * RECORDS / 8);
        assert_true(all[i].last.eval[0].value == all[0].last.eval[0].value);
    }
    weft_job_free(&j);
}

static void what_cannot_be_trained_is_refused(void **state)
{
    char home[PATH_MAX];
    const weft_fit_options o = {.folder = home}, nowhere = {.folder = "/proc/none"};
    weft_job *j =
        parse("job: a\n" MODEL "data: {format: npy, train: {x: no.npy, y: y.npy}}\n" REST);
    weft_report last;

    (void)state;
    snprintf(home, sizeof home, "%s", in("third"));
    assert_fails(weft_fit(NULL, &o, NULL, &error), WEFT_INVALID, "j is NULL");
    assert_fails(weft_fit(j, &o, &last, &error), WEFT_NOTFOUND, "there is no file");
    weft_job_free(&j);
    j = parse("job: a\n" MODEL "data: {format: npy, train: {x: y.npy, y: y.npy}}\n" REST);
    assert_fails(weft_fit(j, &o, &last, &error), WEFT_INVALID, "job a failed");
    assert_string_equal(last.state, "failed");
    assert_fails(weft_fit(j, &nowhere, NULL, &error), WEFT_NOTFOUND, "/proc/none");
    weft_job_free(&j);
}

/* The files of a job, and others, through its map. */
static void other_files_are_read_and_evaluated(void **state)
{
    weft_job *j = parse("job: b\n" MODEL "data: {format: npy, train: {x: x.npy, y: y.npy}, "
                        "map: {x: [{scale: 2}]}}\n" REST);
    const char *names[] = {"x", "y"}, *wrong[] = {"x", "z"}, *none[] = {NULL, "y"};
    char x[PATH_MAX], y[PATH_MAX];
    const char *paths[] = {x, y};
    weft_tensor *t = NULL;
    weft_evaluation e;

    (void)state;
    snprintf(x, sizeof x, "%s", in("x.npy"));
    snprintf(y, sizeof y, "%s", in("y.npy"));
    assert_works(weft_job_records(j, NULL, "x", x, WEFT_F32, &t, &error));
    assert_int_equal(t->shape[0], RECORDS);
    assert_true(((float *)t->data)[0] == 2.0f);
    weft_tensor_free(&t);
    assert_fails(weft_job_records(j, NULL, "x", in("none.npy"), WEFT_F32, &t, &error),
                 WEFT_NOTFOUND, "none.npy");
    assert_null(t);
    assert_fails(weft_job_records(NULL, NULL, "x", x, WEFT_F32, &t, &error), WEFT_INVALID,
                 "j is NULL");
    assert_fails(weft_job_evaluate(j, NULL, NULL, &e, &error), WEFT_USAGE, "no data to evaluate");
    assert_fails(weft_job_eval_files(j, 1, names, paths, &error), WEFT_USAGE, "\"y\" is given no");
    assert_fails(weft_job_eval_files(j, 2, wrong, paths, &error), WEFT_USAGE, "no field \"z\"");
    assert_fails(weft_job_eval_files(j, 2, none, paths, &error), WEFT_USAGE, "npy files hold one");
    assert_fails(weft_job_eval_files(NULL, 2, names, paths, &error), WEFT_INVALID, "j is NULL");
    assert_works(weft_job_eval_files(j, 2, names, paths, &error));
    assert_works(weft_job_evaluate(j, NULL, NULL, &e, &error));
    assert_int_equal(e.records, RECORDS);
    weft_job_free(&j);
}

static int set_up(void **state)
{
    static float x[RECORDS * 4];
    static int64_t y[RECORDS];

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
        cmocka_unit_test(what_is_no_job_is_refused),
        cmocka_unit_test(a_job_is_trained_evaluated_and_exported),
        cmocka_unit_test(the_state_of_an_optimizer_is_handed_on),
        cmocka_unit_test(a_job_of_another_model_has_other_weights),
        cmocka_unit_test(weights_of_another_model_are_refused),
        cmocka_unit_test(a_process_may_go_elsewhere_before_it_trains),
        cmocka_unit_test(each_training_is_a_run_of_which_the_newest_are_kept),
        cmocka_unit_test(a_job_is_stopped_and_resumed),
        cmocka_unit_test(two_threads_train_each_its_own),
        cmocka_unit_test(what_cannot_be_trained_is_refused),
        cmocka_unit_test(other_files_are_read_and_evaluated),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
