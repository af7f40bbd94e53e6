/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/job_data.c - a job's data as the master describes it and a worker reads it. */
#include "common/session/job_data_conf.h"
#include "common/session/job_data_message.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define JOB(loss)                                                                                  \
    "job: j\n"                                                                                     \
    "model:\n"                                                                                     \
    "  input: {x: [4]}\n"                                                                          \
    "  layers:\n"                                                                                  \
    "    - dense: {units: 3}\n"                                                                    \
    "loss: " loss "\n"                                                                             \
    "data:\n"                                                                                      \
    "  format: npy\n"                                                                              \
    "  train: {x: x.npy, y: [y.npy, y-*.npy], unused: z.npy}\n"                                    \
    "  map: {x: [{scale: 0.5}, {reshape: {shape: [4]}}]}\n"                                        \
    "batch: 8\n"                                                                                   \
    "optimizer: sgd\n"
#define CLASSES "sparse_categorical_crossentropy"

typedef struct fixture {
    wf_job_conf *job;
    wf_compiled *c;
    wf_arena *arena;
    wf_job_data from, to;
    Weft__JobData *m;
} fixture;

static void open_job(fixture *f, const char *text)
{
    wf_compile_spec spec;
    wf_model model;
    wf_err err = {0};

    *f = (fixture){.arena = wf_arena_new(0)};
    if (wf_job_parse(text, strlen(text), "/jobs/j.yaml", &f->job, &err) != WF_OK)
        fail_msg("%s", err.what);
    wf_compile_spec_of_job(f->job, WF_COMPILE_TRAIN, wf_strategy_find("parameter_server"), 1,
                           &model, &spec);
    if (wf_compile(&spec, &f->c, &err) != WF_OK ||
        wf_job_data_of(f->job, &f->job->train, f->c, &f->from, &err) != WF_OK ||
        wf_job_data_put(&f->from, f->arena, &f->m, &err) != WF_OK)
        fail_msg("%s", err.what);
}

static void close_job(fixture *f)
{
    wf_arena_free(&f->arena);
    wf_compiled_free(&f->c);
    wf_job_free(&f->job);
}

static const wf_field_spec *field(const wf_job_data *d, const char *name)
{
    for (size_t i = 0; i < d->spec.n_fields; i++)
        if (strcmp(d->fields[i].name, name) == 0)
            return &d->fields[i];
    return NULL;
}

static void a_worker_reads_what_the_master_wrote(void **state)
{
    const wf_field_spec *x, *y;
    fixture f;

    (void)state;
    open_job(&f, JOB(CLASSES));
    assert_int_equal(wf_job_data_get(f.m, 7, f.arena, &f.to, NULL), WF_OK);
    assert_string_equal(f.to.spec.format, "npy");
    assert_int_equal(f.to.spec.seed, 7);
    assert_int_equal(f.to.batch, 8);
    assert_true(f.to.shuffle);
    assert_string_equal(f.to.path, "/jobs/j.yaml");
    assert_int_equal(f.to.line, f.job->train.line);
    assert_true(f.to.line > f.job->data_line);
    assert_int_equal(f.to.spec.n_fields, 2); /* the graph has no use for the third */
    x = field(&f.to, "x");
    y = field(&f.to, "y");
    assert_string_equal(x->path, "/jobs/x.npy");
    assert_int_equal(x->want, WF_F32);
    assert_int_equal(x->n_steps, 2);
    assert_string_equal(x->steps[0].type, "scale");
    assert_true(x->steps[0].number == 0.5);
    assert_string_equal(x->steps[1].type, "reshape");
    assert_int_equal(x->steps[1].n_ints, 1);
    assert_int_equal(x->steps[1].ints[0], 4);
    assert_int_equal(x->classes, 0);
    assert_int_equal(x->n_more, 0);
    assert_string_equal(y->path, "/jobs/y.npy");
    assert_int_equal(y->n_more, 1);
    assert_string_equal(y->more[0], "/jobs/y-*.npy");
    assert_int_equal(y->classes, 3);
    assert_false(y->may_ignore);
    assert_string_equal(y->loss, CLASSES);
    assert_false(y->is_share);
    assert_null(x->loss);
    close_job(&f);
}

static void each_side_of_a_split_is_told_which_it_is(void **state)
{
    static const char text[] = JOB(CLASSES);
    char split[sizeof text + 32];
    const char *map = strstr(text, "  map:");
    fixture f;

    (void)state;
    snprintf(split, sizeof split, "%.*s  validation_split: 0.25\n%s", (int)(map - text), text, map);
    open_job(&f, split);
    assert_true(wf_job_evaluates(f.job));
    for (int side = 0; side < 2; side++) {
        assert_int_equal(
            wf_job_data_of(f.job, side ? &f.job->eval : &f.job->train, f.c, &f.from, NULL), WF_OK);
        assert_int_equal(wf_job_data_put(&f.from, f.arena, &f.m, NULL), WF_OK);
        assert_int_equal(wf_job_data_get(f.m, 7, f.arena, &f.to, NULL), WF_OK);
        assert_true(f.to.spec.held_out == 0.25);
        assert_int_equal(f.to.spec.is_held_out, side);
        assert_int_equal(f.to.spec.n_fields, 2);
    }
    f.m->held_out = 1; /* no master sends that */
    assert_int_equal(wf_job_data_get(f.m, 7, f.arena, &f.to, NULL), WF_PROTO);
    f.m->held_out = (double)NAN;
    assert_int_equal(wf_job_data_get(f.m, 7, f.arena, &f.to, NULL), WF_PROTO);
    close_job(&f);
}

static void labels_that_may_be_ignored_are_for_the_loss_to_judge(void **state)
{
    fixture f;

    (void)state;
    open_job(&f, JOB("{" CLASSES ": {ignore_class: 2}}"));
    assert_int_equal(field(&f.from, "y")->classes, 3);
    assert_true(field(&f.from, "y")->may_ignore);
    close_job(&f);
}

static void numbers_are_no_labels(void **state)
{
    fixture f;

    (void)state;
    open_job(&f, JOB("mean_squared_error"));
    assert_int_equal(field(&f.from, "y")->classes, 0);
    assert_string_equal(field(&f.from, "y")->loss, "mean_squared_error");
    assert_false(field(&f.from, "y")->is_share);
    close_job(&f);
}

/* Requires that the message is refused. */
static void assert_refused(fixture *f)
{
    wf_err err = {0};

    assert_int_equal(wf_job_data_get(f->m, 0, f->arena, &f->to, &err), WF_PROTO);
    assert_true(err.what[0]);
}

static void counts_and_numbers_out_of_bounds_are_refused(void **state)
{
    Weft__DataField *many[WF_DATA_MAX_FIELDS + 1], **fields;
    int64_t negative = -1, axes[WF_MAX_RANK + 1] = {0};
    Weft__DataField *first;
    fixture f;

    (void)state;
    open_job(&f, JOB(CLASSES));
    fields = f.m->fields;
    first = fields[0];
    for (size_t i = 0; i < WF_COUNT(many); i++)
        many[i] = first;
    f.m->fields = many;
    f.m->n_fields = WF_COUNT(many);
    assert_refused(&f);
    f.m->fields = fields;
    f.m->n_fields = 2;
    f.m->batch = 0;
    assert_refused(&f);
    f.m->batch = 8;
    first->dims = &negative;
    first->n_dims = 1;
    assert_refused(&f);
    first->dims = axes;
    first->n_dims = WF_COUNT(axes);
    assert_refused(&f);
    first->n_dims = 0;
    first->dtype = 5;
    assert_refused(&f);
    first->dtype = WF_F32;
    first->classes = -1;
    assert_refused(&f);
    first->classes = 0;
    first->n_steps = WF_DATA_MAX_STEPS + 2;
    assert_refused(&f);
    first->n_steps = 0;
    assert_int_equal(wf_job_data_get(f.m, 0, f.arena, &f.to, NULL), WF_OK);
    close_job(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_reads_what_the_master_wrote),
        cmocka_unit_test(each_side_of_a_split_is_told_which_it_is),
        cmocka_unit_test(labels_that_may_be_ignored_are_for_the_loss_to_judge),
        cmocka_unit_test(numbers_are_no_labels),
        cmocka_unit_test(counts_and_numbers_out_of_bounds_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
