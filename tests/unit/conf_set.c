/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/conf_set.c - numbers of a job that are changed on the way. */
#include "common/base/cc.h"
#include "common/conf/conf.h"
#include "tests/unit/conf.h"

#include <stdlib.h>
#include <string.h>

static const char job[] = "job: j\n"
                          "model: {onnx: m.onnx}\n"
                          "data: {format: npy, train: {x: a}, eval: {x: a}}\n"
                          "batch: 8\n"
                          "optimizer: adam\n"
                          "callbacks:\n"
                          "  - early_stopping\n"
                          "  - reduce_lr_on_plateau: {factor: 0.5}";

/* The text after the changes, one after the other; NULL when one is refused. The caller frees it.
 */
static char *change(const char *const changes[], size_t n, wf_err *err)
{
    char *text = strdup(job), *next;

    for (size_t i = 0; text && i < n; i++) {
        next = NULL;
        if (wf_job_change(text, changes[i], true, &next, err) != WF_OK)
            assert_null(next);
        free(text);
        text = next;
    }
    return text;
}

static void changes_are_read_as_if_they_had_been_written(void **state)
{
    static const char *const changes[] = {
        "epochs=5",           "optimizer.learning_rate=0.5",
        "epochs=7",           "callbacks.early_stopping.patience=4",
        "checkpoint.keep=9",  "callbacks.reduce_lr_on_plateau.factor=0.25",
        "optimizer.beta_1=0", "batch=16",
        "codec.pull=bf16",    "codec.push=int8",
    };
    wf_job_conf *j = NULL;
    wf_err err = {0};
    char *text = change(changes, WF_COUNT(changes), &err);

    (void)state;
    assert_non_null(text);
    if (wf_job_parse(text, strlen(text), "/j.yaml", &j, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(j->epochs, 7);
    assert_int_equal(j->batch, 16);
    assert_int_equal(j->keep, 9);
    assert_int_equal(j->n_codecs, 1);
    assert_string_equal(j->codecs[0].push, "int8");
    assert_string_equal(j->codecs[0].pull, "bf16");
    assert_true(wf_conf_number(&j->optimizer, "learning_rate", 0) == 0.5);
    assert_true(wf_conf_number(&j->optimizer, "beta_1", 1) == 0);
    assert_int_equal(wf_conf_int(&j->callbacks[0], "patience", 0), 4);
    assert_true(wf_conf_number(&j->callbacks[1], "factor", 0) == 0.25);
    assert_string_equal(wf_job_changes(text), "  optimizer.learning_rate: 0.5\n"
                                              "  epochs: 7\n"
                                              "  callbacks.early_stopping.patience: 4\n"
                                              "  checkpoint.keep: 9\n"
                                              "  callbacks.reduce_lr_on_plateau.factor: 0.25\n"
                                              "  optimizer.beta_1: 0\n"
                                              "  batch: 16\n"
                                              "  codec.pull: bf16\n"
                                              "  codec.push: int8\n");
    assert_null(wf_job_changes(job));
    wf_job_free(&j);
    free(text);
}

static void what_may_not_change_is_named(void **state)
{
    static const struct {
        const char *change, *part;
    } bad[] = {
        {"seed=3", "\"seed\" cannot change"},
        {"model.onnx=x", "\"model.onnx\" cannot change"},
        {"epochs", "has no value"},
        {"epochs=", "sets no number"},
        {"epochs=1: 2", "sets no number"},
        {"epochs=1\nseed: 2", "sets no number"},
        {"optimizer.x y=1", "sets no number"},
    };
    (void)state;

    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_err err = {0};

        assert_null(change(&bad[i].change, 1, &err));
        if (!strstr(err.what, bad[i].part))
            fail_msg("\"%s\" does not say \"%s\"", err.what, bad[i].part);
    }
}

/* As of JSON; behind the brace there is no place for a block of lines. */
static void a_job_in_braces_is_not_changed(void **state)
{
    static const char *const bad[] = {"{job: j}", "--- {job: j}\n",
                                      "# c\n\n--- # d\n  {\n\"job\": \"j\"}\n"};
    char *out = NULL;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_err err = {0};

        assert_int_equal(wf_job_change(bad[i], "epochs=2", true, &out, &err), WF_UNSUPPORTED);
        assert_null(out);
        assert_non_null(strstr(err.what, "this one is written in braces {...}"));
    }
}

static void a_number_without_a_place_is_refused(void **state)
{
    static const struct {
        const char *change, *part;
    } bad[] = {
        {"epochs=many", "\"epochs\" must be a whole number"},
        {"callbacks.model_checkpoint.mode=max", "no place for \"callbacks.model_checkpoint.mode\""},
        {"callbacks.early_stopping=1", "no place"},
        {"callbacks.early_stopping.patiense=1", "unknown option"},
        {"optimizer.learning_rate.cosine_decay.alpha=1", "no place"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_job_conf *j = NULL;
        wf_err err = {0};
        char *text = change(&bad[i].change, 1, &err);

        assert_non_null(text);
        assert_int_equal(wf_job_parse(text, strlen(text), "/j.yaml", &j, &err), WF_USAGE);
        if (!strstr(err.what, bad[i].part))
            fail_msg("\"%s\" does not say \"%s\"", err.what, bad[i].part);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_read_as_if_they_had_been_written),
        cmocka_unit_test(what_may_not_change_is_named),
        cmocka_unit_test(a_job_in_braces_is_not_changed),
        cmocka_unit_test(a_number_without_a_place_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
