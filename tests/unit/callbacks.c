/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/callbacks.c - what follows from an evaluation, epoch by epoch, as Keras decides it. */
#include "master/callbacks/callbacks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    "job: j\nmodel: {onnx: m.onnx}\ndata: {format: npy, train: {x: a}, eval: {x: a}}\n"            \
    "batch: 8\nepochs: 50\noptimizer: sgd\ncallbacks:\n"

static const char *const metrics[] = {"loss", "accuracy"};

static wf_status read_callbacks(const char *list, double rate, wf_callbacks *c, wf_err *err)
{
    wf_job_conf *job = NULL;
    char text[1024];
    wf_status rc;

    snprintf(text, sizeof text, HEAD "%s", list);
    rc = wf_job_parse(text, strlen(text), "/j.yaml", &job, err);
    if (rc == WF_OK)
        rc = wf_callbacks_init(c, job, metrics, 2, rate, err);
    wf_job_free(&job);
    return rc;
}

static wf_callbacks make(const char *list)
{
    wf_callbacks c;
    wf_err err = {0};

    if (read_callbacks(list, 0.1, &c, &err) != WF_OK)
        fail_msg("%s", err.what);
    return c;
}

static char said[512];

/* One epoch; the state goes through its numbers, as it does in journal and checkpoints. */
static void epoch(const wf_callbacks *c, wf_callbacks_state *s, uint32_t number, double loss,
                  double accuracy)
{
    const wf_callbacks_metric m[] = {{"loss", loss}, {"accuracy", accuracy}};
    const char *names[WF_CALLBACKS_NUMBERS];
    double values[WF_CALLBACKS_NUMBERS];
    wf_callbacks_state again = {0};
    size_t n;

    wf_callbacks_step(c, s, number, m, 2, said, sizeof said);
    n = wf_callbacks_put(s, c->n, names, values);
    for (size_t i = 0; i < n; i++)
        wf_callbacks_take(&again, names[i], values[i]);
    assert_memory_equal(&again, s, sizeof again);
}

/* The epoch after which it stops, or -1. */
static int stops_after(const wf_callbacks *c, const double loss[], int n)
{
    wf_callbacks_state s = {0};

    for (int i = 0; i < n; i++) {
        epoch(c, &s, (uint32_t)i, loss[i], 0);
        if (s.stopped)
            return i;
    }
    return -1;
}

static void training_stops_when_patience_ends(void **unused)
{
    static const double loss[] = {5, 4, 3, 3.5, 2.9, 3, 3, 3, 2, 9};
    wf_callbacks c = make("  - early_stopping: {patience: 3}\n");

    (void)unused;
    assert_int_equal(stops_after(&c, loss, 10), 7);
    c = make("  - early_stopping\n");
    assert_int_equal(stops_after(&c, loss, 10), 3);
    c = make("  - early_stopping: {min_delta: 0.5, patience: 2}\n");
    assert_int_equal(stops_after(&c, loss, 10), 4);
    c = make("  - early_stopping: {start_from_epoch: 6, patience: 1}\n");
    assert_int_equal(stops_after(&c, loss, 10), 7);
    c = make("  - early_stopping: {baseline: 1, patience: 4}\n");
    assert_int_equal(stops_after(&c, loss, 10), 3);
    c = make("  - early_stopping: {monitor: val_accuracy, patience: 2}\n");
    assert_true(c.rows[0].larger_is_better);
    assert_int_equal(stops_after(&c, loss, 10), 2);
    c = make("  - early_stopping: {mode: max, patience: 2}\n");
    assert_int_equal(stops_after(&c, loss, 10), 2);
}

static void a_number_that_is_none_never_improves(void **unused)
{
    const double loss[] = {(double)NAN, 3, (double)NAN, (double)NAN, 2};
    wf_callbacks c = make("  - early_stopping: {patience: 2}\n");

    (void)unused;
    assert_int_equal(stops_after(&c, loss, 5), 3);
}

static void the_rate_falls_on_a_plateau(void **unused)
{
    static const double loss[] = {5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
    static const double rates[] = {0, 0, 0, .05, .05, .05, .025, .025, .025, .02, .02, .02};
    wf_callbacks c = make("  - reduce_lr_on_plateau: {factor: 0.5, patience: 2, cooldown: 2, "
                          "min_lr: 0.02}\n");
    wf_callbacks_state s = {0};

    (void)unused;
    for (uint32_t i = 0; i < 12; i++) {
        epoch(&c, &s, i, loss[i], 0);
        if (fabs(s.rate - rates[i]) > 1e-12)
            fail_msg("after epoch %u the rate is %g, not %g", i, s.rate, rates[i]);
        assert_true((said[0] != 0) == (i == 3 || i == 6 || i == 9));
    }
    wf_callbacks_restored(&c, &s, 100, 11);
    assert_true(s.rate == 0.02);
    c.rate = 0.3; /* a person has chosen another one */
    wf_callbacks_restored(&c, &s, 100, 11);
    assert_true(s.rate == 0);
}

static void the_best_is_kept_and_ended_with(void **unused)
{
    wf_callbacks c = make("  - early_stopping: {restore_best_weights: true, patience: 2}\n"
                          "  - model_checkpoint: {save_best_only: true}\n");
    wf_callbacks_state s = {0};

    (void)unused;
    epoch(&c, &s, 0, 3, 0);
    assert_true(s.save && s.best);
    wf_callbacks_saved(&s, 100, 0);
    epoch(&c, &s, 1, 2, 0);
    assert_true(s.save && s.best);
    assert_false(wf_callbacks_restores(&c, &s, 1));
    wf_callbacks_saved(&s, 200, 1);
    assert_int_equal(s.best_step, 201);
    epoch(&c, &s, 2, 4, 0);
    assert_false(s.save || s.stopped);
    assert_true(wf_callbacks_restores(&c, &s, 2));
    assert_false(wf_callbacks_restores(&c, &s, 1));
    epoch(&c, &s, 3, 4, 0);
    assert_int_equal(s.stopped, 50);
    wf_callbacks_restored(&c, &s, 400, 3);
    assert_int_equal(s.stopped, 50);
    c.epochs = 60;
    wf_callbacks_restored(&c, &s, 400, 3);
    assert_int_equal(s.stopped, 0);
}

static void each_epoch_is_saved_if_not_only_the_best(void **unused)
{
    wf_callbacks c = make("  - model_checkpoint: {monitor: val_accuracy}\n");
    wf_callbacks_state s = {0};

    (void)unused;
    epoch(&c, &s, 0, 0, 0.5);
    assert_true(s.save && s.best);
    wf_callbacks_saved(&s, 10, 0);
    epoch(&c, &s, 1, 0, 0.25);
    assert_true(s.save && !s.best);
    wf_callbacks_not_saved(&s);
    assert_false(s.save);
    assert_int_equal(s.best_step, 11);
}

static void expect(const char *list, double rate, wf_status status, const char *part)
{
    wf_err err = {0};
    wf_callbacks c;

    assert_int_equal(read_callbacks(list, rate, &c, &err), status);
    if (!strstr(err.what, part))
        fail_msg("\"%s\" does not say \"%s\"", err.what, part);
}

static void wrong_callbacks_are_named_by_line(void **unused)
{
    (void)unused;
    expect("  - erly_stopping\n", 1, WF_USAGE, "/j.yaml:8: unknown callback");
    expect("  - early_stopping: {patiense: 1}\n", 1, WF_USAGE,
           "unknown option of early_stopping \"patiense\"");
    expect("  - early_stopping: {monitor: val_acuracy}\n", 1, WF_USAGE,
           "/j.yaml:8: early_stopping: the evaluation gives no \"val_acuracy\"; did you mean "
           "\"val_accuracy\"?");
    expect("  - early_stopping: {monitor: loss}\n", 1, WF_UNSUPPORTED, "monitor is \"val_loss\"");
    expect("  - csv_logger\n", 1, WF_UNSUPPORTED, "not built yet");
    expect("  - terminate_on_nan\n  - reduce_lr_on_plateau\n", (double)NAN, WF_USAGE,
           "/j.yaml:9: reduce_lr_on_plateau changes a learning rate that follows a schedule");
    expect("  - reduce_lr_on_plateau: {factor: 1}\n", 1, WF_USAGE, "factor");
    expect("  - early_stopping: {restore_best_weights: true, min_delta: 1}\n"
           "  - model_checkpoint\n",
           1, WF_UNSUPPORTED, "/j.yaml:9: model_checkpoint chooses another best");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_stops_when_patience_ends),
        cmocka_unit_test(a_number_that_is_none_never_improves),
        cmocka_unit_test(the_rate_falls_on_a_plateau),
        cmocka_unit_test(the_best_is_kept_and_ended_with),
        cmocka_unit_test(each_epoch_is_saved_if_not_only_the_best),
        cmocka_unit_test(wrong_callbacks_are_named_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
