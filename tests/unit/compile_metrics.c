/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_metrics.c - areas under curves from bins against those of the sorted scores,
 * for scores that a plain histogram would put into a few bins, in batches that are merged. */
#include "common/kernels/kernel.h"
#include "compile_util.h"
#include <math.h>
#include <stdlib.h>

enum { EXAMPLES = 20000, BATCH = 999 };

typedef struct scored {
    float score, label;
} scored;

typedef struct seeded {
    uint64_t state;
} seeded;

static double uniform(seeded *l)
{
    l->state = l->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(l->state >> 11) * 0x1p-53;
}

static double normal(seeded *l)
{
    return sqrt(-2 * log(1 - uniform(l))) * cos(6.283185307179586 * uniform(l));
}

static int by_score(const void *a, const void *b)
{
    float x = ((const scored *)a)->score, y = ((const scored *)b)->score;

    return (x > y) - (x < y);
}

/* Both areas of sorted examples, tie by tie. */
static void exact(scored *x, size_t n, double *roc, double *pr)
{
    double all[2] = {0, 0}, below[2] = {0, 0}, won = 0, area = 0;

    qsort(x, n, sizeof *x, by_score);
    for (size_t i = 0; i < n; i++)
        all[x[i].label > 0.5f]++;
    for (size_t i = 0, j; i < n; i = j) {
        double tie[2] = {0, 0};

        for (j = i; j < n && x[j].score == x[i].score; j++)
            tie[x[j].label > 0.5f]++;
        won += tie[1] * (below[0] + tie[0] / 2);
        area += tie[1] * (all[1] - below[1]) / (all[0] - below[0] + all[1] - below[1]);
        below[0] += tie[0];
        below[1] += tie[1];
    }
    *roc = won / (all[0] * all[1]);
    *pr = area / all[1];
}

/* The keys of a batch by the kernel, added to a measure. */
static void add_batch(wf_measure *m, const scored *x, size_t n, bool logits)
{
    float scores[BATCH], labels[BATCH];
    wf_tensor *in[2] = {NULL}, *out[1] = {NULL};
    wf_value *given[2], *made;
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_emit e;
    int64_t dims[1] = {(int64_t)n};
    wf_attr attr = wf_attr_int("logits", logits);

    must(wf_graph_new("keys", &g, &err), &err);
    for (int i = 0; i < 2; i++) {
        must(wf_graph_add_value(g, i ? "y" : "x", &given[i], &err), &err);
        wf_value_set_type(given[i], WF_F32, 1, dims);
        must(wf_graph_add_input(g, given[i], &err), &err);
    }
    for (size_t i = 0; i < n; i++) {
        scores[i] = x[i].score;
        labels[i] = x[i].label;
    }
    e = wf_emit_begin(g, "keys", &err);
    made = wf_emit_op(&e, "ScoreKeys", 2, given, 1, &attr);
    must(wf_emit_end(&e), &err);
    must(wf_tensor_over(WF_F32, 1, dims, scores, &in[0], &err), &err);
    must(wf_tensor_over(WF_F32, 1, dims, labels, &in[1], &err), &err);
    must(
        wf_kernel_eval(made->producer, 2, (const wf_tensor *const *)in, 1, out, SIZE_MAX / 2, &err),
        &err);
    must(wf_metric_add(m, WF_MEANS_KEYS, 1.0, n, WF_I64, n, out[0]->data, &err), &err);
    wf_tensor_free(&in[0]);
    wf_tensor_free(&in[1]);
    wf_tensor_free(&out[0]);
    wf_graph_free(&g);
}

static void check_areas(const char *what, scored *x, bool logits)
{
    wf_measure m[2] = {{.metric = "auc"}, {.metric = "auc"}};
    wf_err err = {0};
    double roc, pr;

    /* Two workers, whose batches end short. */
    for (size_t i = 0, n; i < EXAMPLES; i += n) {
        n = i + BATCH < EXAMPLES ? BATCH : EXAMPLES - i;
        add_batch(&m[i / BATCH % 2], x + i, n, logits);
    }
    must(wf_measure_merge(&m[0], &m[1], &err), &err);
    exact(x, EXAMPLES, &roc, &pr);
    if (!(fabs(wf_metric_value(&m[0]) - roc) < 1e-3))
        fail_msg("%s: area %.6f, exactly %.6f", what, wf_metric_value(&m[0]), roc);
    snprintf(m[0].metric, sizeof m[0].metric, "pr_auc");
    if (!(fabs(wf_metric_value(&m[0]) - pr) < 1e-3))
        fail_msg("%s: average precision %.6f, exactly %.6f", what, wf_metric_value(&m[0]), pr);
    assert_true(m[0].count == EXAMPLES);
    wf_measures_close(m, 2);
}

/* How a score is made of a logit with mean 0 or `apart` by class. */
static double huge(double z)
{
    return z * 1e30;
}
static double plain(double z)
{
    return z;
}
static double probability(double z)
{
    return 1 / (1 + exp(-z));
}
static double near_zero(double z)
{
    return exp(z / 4 - 20);
}
static double near_one(double z)
{
    return 1 - exp(z / 4 - 12);
}
static double narrow(double z)
{
    return 0.3 + z * 1e-3;
}
static double few(double z)
{
    return floor(z * 2) / 64 + 0.5;
}

static void areas_are_those_of_the_sorted_scores(void **state)
{
    static const struct {
        const char *what;
        double (*of)(double z);
        bool logits;
    } cases[] = {
        {"logits", plain, true},
        {"huge logits", huge, true},
        {"probabilities", probability, false},
        {"near 0", near_zero, false},
        {"near 1", near_one, false},
        {"narrow", narrow, false},
        {"few different", few, false},
    };
    static const double apart[] = {0, 0.5, 2, 6}, share[] = {0.5, 0.01};
    static scored x[EXAMPLES];

    (void)state;
    for (size_t c = 0; c < WF_COUNT(cases); c++)
        for (size_t k = 0; k < WF_COUNT(apart) * WF_COUNT(share); k++) {
            seeded l = {c * 100 + k + 1};

            for (size_t i = 0; i < EXAMPLES; i++) {
                x[i].label = uniform(&l) < share[k % 2];
                x[i].score =
                    (float)cases[c].of(normal(&l) + (x[i].label > 0.5f ? apart[k / 2] : 0));
            }
            check_areas(cases[c].what, x, cases[c].logits);
        }
}

static void one_class_has_no_area(void **state)
{
    wf_measure m = {.metric = "auc"};
    scored x[3] = {{0.1f, 1}, {0.7f, 1}, {NAN, 1}};

    (void)state;
    add_batch(&m, x, 3, false);
    assert_true(wf_metric_value(&m) == 0);
    snprintf(m.metric, sizeof m.metric, "pr_auc");
    assert_true(wf_metric_value(&m) == 0);
    wf_measures_close(&m, 1);
}

/* A batch of two and one of one: means of means would be wrong. */
static void short_batches_count_by_their_records(void **state)
{
    wf_measure m = {.metric = "root_mean_squared_error"};
    const float sums[] = {8, 10};
    double sum, count;
    wf_err err = {0};

    (void)state;
    must(wf_metric_add(&m, WF_MEANS_SUM, 1.0, 2, WF_F32, 1, &sums[0], &err), &err);
    must(wf_metric_add(&m, WF_MEANS_SUM, 1.0, 1, WF_F32, 1, &sums[1], &err), &err);
    assert_true(fabs(wf_metric_value(&m) - sqrt(6.0)) < 1e-12);
    assert_false(wf_metric_mean(&m, &sum, &count));
}

static wf_conf_term term_of(const char *output, const char *type)
{
    return (wf_conf_term){.output = output, .item = {.type = type, .line = 3}};
}

static void what_does_not_fit_is_refused_in_words(void **state)
{
    static const struct {
        const char *loss, *metric, *says;
    } cases[] = {
        {"mse", "auc", "job.yaml:3: metric auc does not go with the loss \"mse\""},
        {"sparse_categorical_crossentropy", "precision", "does not go with"},
        {"mse", "acuracy", "did you mean \"accuracy\""},
        {"mse", "hubber", "did you mean \"huber\""},
        {"MeanSquaredError", "Auc", "metric Auc does not go with the loss \"MeanSquaredError\""},
        {"binary_crossentropy", "rmse", "does not go with"},
        {"hubber", "mae", "job.yaml:3: loss \"hubber\" is neither"},
    };
    wf_model m = mlp();

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_conf_term loss = term_of(NULL, cases[i].loss), metric = term_of(NULL, cases[i].metric);
        wf_compile_spec spec = {.model = &m,
                                .mode = WF_COMPILE_EVAL,
                                .losses = &loss,
                                .n_losses = 1,
                                .metrics = &metric,
                                .n_metrics = 1,
                                .file = "job.yaml"};
        wf_err err = {0};

        assert_int_equal(refused(&spec, &err), WF_USAGE);
        assert_says(err, cases[i].says);
    }
}

static void options_are_held_against_their_rows(void **state)
{
    static const struct {
        const char *loss;
        wf_conf_option option;
        const char *says;
    } cases[] = {
        {"huber",
         {.name = "delta", .kind = WF_CONF_NUMBER, .number = -1, .text = "-1", .line = 4},
         "job.yaml:4: \"delta\" of loss \"huber\" must be a number from 1e-30 to 1e+30, not -1"},
        {"huber",
         {.name = "dleta", .kind = WF_CONF_NUMBER, .text = "1", .line = 4},
         "has no option \"dleta\""},
        {"mse",
         {.name = "delta", .kind = WF_CONF_NUMBER, .text = "1", .line = 4},
         "has no option \"delta\""},
        {"binary_crossentropy",
         {.name = "from_logits", .kind = WF_CONF_TEXT, .text = "maybe", .line = 4},
         "must be auto or true or false, not maybe"},
        {"categorical_crossentropy",
         {.name = "label_smoothing", .kind = WF_CONF_TEXT, .text = "much", .line = 4},
         "a number from 0 to 1, not much"},
        {"sparse_categorical_crossentropy",
         {.name = "ignore_class", .kind = WF_CONF_NUMBER, .number = 0.5, .text = "0.5", .line = 4},
         "a whole number"},
    };
    wf_model m = mlp();

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_conf_term loss = term_of(NULL, cases[i].loss);
        wf_compile_spec spec = {.model = &m,
                                .mode = WF_COMPILE_TRAIN,
                                .losses = &loss,
                                .n_losses = 1,
                                .file = "job.yaml"};
        wf_err err = {0};

        loss.item.options = &cases[i].option;
        loss.item.n_options = 1;
        assert_int_equal(refused(&spec, &err), WF_USAGE);
        assert_says(err, cases[i].says);
    }
}

static void fields_that_are_not_there_are_named(void **state)
{
    static const wf_conf_field fields[] = {{.name = "x"}, {.name = "y"}};
    const wf_conf_said nowhere = {.text = "w"}, labels = {.text = "y"};
    wf_model m = mlp();
    wf_conf_term loss = term_of(NULL, "mse"), of = term_of("outptu", "mse");
    wf_compile_spec spec = {.model = &m,
                            .mode = WF_COMPILE_TRAIN,
                            .losses = &loss,
                            .n_losses = 1,
                            .fields = fields,
                            .n_fields = 2,
                            .sample_weights = &nowhere,
                            .n_sample_weights = 1,
                            .file = "job.yaml"};
    wf_err err = {0};

    (void)state;
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "job.yaml:3: sample_weight: the data has no field \"w\"");
    spec.sample_weights = &labels;
    assert_int_equal(refused(&spec, &err), WF_EXISTS);
    assert_says(err, "sample_weight: \"y\" is the labels");
    spec.n_sample_weights = 0;
    spec.losses = &of;
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "has no output \"outptu\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(areas_are_those_of_the_sorted_scores),
        cmocka_unit_test(one_class_has_no_area),
        cmocka_unit_test(short_batches_count_by_their_records),
        cmocka_unit_test(what_does_not_fit_is_refused_in_words),
        cmocka_unit_test(options_are_held_against_their_rows),
        cmocka_unit_test(fields_that_are_not_there_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
