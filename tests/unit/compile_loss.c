/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_loss.c - each loss and metric against its formula in double; what a loss reads
 * and what it refuses. */
#include "tests/unit/compile_eval.h"
#include <math.h>

enum { N = EVAL_BATCH, C = 4 };

static const wf_conf_input input[] = {{.name = "x", .dims = {3}, .rank = 1, .line = 3}};

/* x [3] -> dense `units` with an activation. */
typedef struct small {
    wf_conf_option options[3];
    wf_conf_item layer;
    wf_model m;
} small;

static void small_model(small *s, int64_t units, const char *activation)
{
    *s = (small){.options = {INT_OPTION("units", units), TEXT_OPTION("activation", activation),
                             TEXT_OPTION("kernel_initializer", "random_normal")}};
    s->layer = (wf_conf_item){.type = "dense", .options = s->options, .n_options = 3, .line = 6};
    s->m = (wf_model){.inputs = input, .n_inputs = 1, .layers = &s->layer, .n_layers = 1};
}

/* Runs eval and infer of one model; gives the model's output, the loss and the first metric. */
typedef struct seen {
    float output[N * C];
    float loss;
    int64_t hits;
    float sum;
    double per_record;
} seen;

static seen see(const small *s, const char *loss, const char *metric, void *labels)
{
    seen r = {0};
    float x[N * 3];
    fed feeds[] = {{"x", x}, {"y", labels}, {NULL, NULL}};
    wf_conf_term term = {.item = {.type = metric}};
    wf_compile_spec spec = {.model = &s->m,
                            .mode = WF_COMPILE_EVAL,
                            .loss = loss,
                            .metrics = &term,
                            .n_metrics = 1,
                            .seed = 5};
    wf_compiled *c = compile(&spec);
    evaluated p;

    fill(x, N * 3, 1);
    p = eval_graph(c->graph, feeds);
    assert_int_equal(c->n_outputs, 2);
    assert_int_equal(c->outputs[0].meaning, WF_MEANS_LOSS);
    r.loss = *(const float *)output_of(&p, c->outputs[0].name)->data;
    r.per_record = c->outputs[1].per_record;
    if (c->outputs[1].meaning == WF_MEANS_HITS)
        r.hits = *(const int64_t *)output_of(&p, c->outputs[1].name)->data;
    else
        r.sum = *(const float *)output_of(&p, c->outputs[1].name)->data;
    eval_free(&p);
    wf_compiled_free(&c);
    spec.mode = WF_COMPILE_INFER;
    c = compile(&spec);
    assert_int_equal(c->n_feeds, 1);
    p = eval_graph(c->graph, feeds);
    memcpy(r.output, output_of(&p, "output")->data,
           (size_t)N * (size_t)s->options[0].i * sizeof(float));
    eval_free(&p);
    wf_compiled_free(&c);
    return r;
}

static double log_softmax(const float *z, int at)
{
    double sum = 0.0;

    for (int i = 0; i < C; i++)
        sum += exp((double)z[i]);
    return (double)z[at] - log(sum);
}

static int largest(const float *z)
{
    int best = 0;

    for (int i = 1; i < C; i++)
        best = z[i] > z[best] ? i : best;
    return best;
}

static void sparse_crossentropy_of_logits_and_of_softmax(void **state)
{
    int64_t y[N] = {0, 3, 1, 2, 0};
    small logits, soft;
    seen a, b;
    double want = 0.0;
    int64_t hits = 0;

    (void)state;
    small_model(&logits, C, "linear");
    small_model(&soft, C, "softmax");
    a = see(&logits, "sparse_categorical_crossentropy", "accuracy", y);
    b = see(&soft, "sparse_categorical_crossentropy", "accuracy", y);
    for (int i = 0; i < N; i++) {
        want -= log_softmax(a.output + i * C, (int)y[i]) / N;
        hits += largest(a.output + i * C) == y[i];
    }
    assert_true(fabs(a.loss - want) < 1e-6);
    assert_true(a.loss == b.loss); /* the same fused form */
    assert_int_equal(a.hits, hits);
    assert_int_equal(b.hits, hits);
    assert_true(a.per_record == 1.0);
    assert_true(fabs(log((double)b.output[0]) - log_softmax(a.output, 0)) < 1e-5);
}

static void categorical_crossentropy(void **state)
{
    float y[N * C] = {0};
    const int classes[N] = {0, 3, 1, 2, 0};
    small logits;
    seen a;
    double want = 0.0;
    int64_t hits = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        y[i * C + classes[i]] = 1.0f;
    small_model(&logits, C, "linear");
    a = see(&logits, "categorical_crossentropy", "accuracy", y);
    for (int i = 0; i < N; i++) {
        want -= log_softmax(a.output + i * C, classes[i]) / N;
        hits += largest(a.output + i * C) == classes[i];
    }
    assert_true(fabs(a.loss - want) < 1e-6);
    assert_int_equal(a.hits, hits);
}

static void binary_crossentropy_of_logits_and_of_sigmoid(void **state)
{
    float y[N * 2] = {0, 1, 1, 1, 0, 0, 1, 0, 0, 1};
    small logits, sigmoid;
    seen a, b;
    double want = 0.0;
    int64_t hits = 0;

    (void)state;
    small_model(&logits, 2, "linear");
    small_model(&sigmoid, 2, "sigmoid");
    a = see(&logits, "binary_crossentropy", "accuracy", y);
    b = see(&sigmoid, "binary_crossentropy", "accuracy", y);
    for (int i = 0; i < N * 2; i++) {
        double z = a.output[i];

        want += (log1p(exp(z)) - z * (double)y[i]) / (N * 2);
        hits += (z > 0) == (y[i] > 0.5f);
    }
    assert_true(fabs(a.loss - want) < 1e-6);
    assert_true(a.loss == b.loss);
    assert_int_equal(a.hits, hits);
    assert_int_equal(b.hits, hits);
    assert_true(a.per_record == 2.0);
}

static void squared_and_absolute_error(void **state)
{
    float y[N * C];
    small linear;
    seen squared, absolute;
    double mse = 0.0, mae = 0.0;

    (void)state;
    fill(y, N * C, 9);
    small_model(&linear, C, "linear");
    squared = see(&linear, "mse", "mae", y);
    absolute = see(&linear, "mean_absolute_error", "mean_squared_error", y);
    for (int i = 0; i < N * C; i++) {
        double d = (double)squared.output[i] - (double)y[i];

        mse += d * d / (N * C);
        mae += fabs(d) / (N * C);
    }
    assert_true(fabs(squared.loss - mse) < 1e-6);
    assert_true(fabs(squared.sum / (N * squared.per_record) - mae) < 1e-6);
    assert_true(fabs(absolute.loss - mae) < 1e-6);
    assert_true(fabs(absolute.sum / (N * absolute.per_record) - mse) < 1e-6);
}

static void probabilities_without_a_softmax_are_held_off_zero(void **state)
{
    int64_t y[N] = {0, 1, 2, 3, 0};
    small relu;
    wf_compile_spec spec;
    wf_compiled *c;
    evaluated p;
    float x[N * 3] = {0};
    fed feeds[] = {{"x", x}, {"y", y}, {NULL, NULL}};

    (void)state;
    small_model(&relu, C, "relu");
    spec = (wf_compile_spec){.model = &relu.m,
                             .mode = WF_COMPILE_EVAL,
                             .loss = "sparse_categorical_crossentropy",
                             .from_logits = WF_COMPILE_LOGITS_FALSE,
                             .seed = 5};
    c = compile(&spec);
    p = eval_graph(c->graph, feeds); /* all probabilities are 0 */
    assert_true(fabs(*(const float *)output_of(&p, c->outputs[0].name)->data + log(1e-7)) < 1e-3);
    eval_free(&p);
    wf_compiled_free(&c);
}

static void what_cannot_be_is_refused_in_words(void **state)
{
    static const wf_conf_term accuracy[] = {{.item = {.type = "accuracy"}}},
                              misspelt[] = {{.item = {.type = "acuracy"}}};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 1);
    small one;
    wf_err err = {0};

    (void)state;
    spec.loss = "sparse_categorical_crossentropi";
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "did you mean \"sparse_categorical_crossentropy\"");
    spec.loss = NULL;
    assert_int_equal(refused(&spec, &err), WF_INVALID);
    assert_says(err, "no loss is named");
    spec = train_spec(&m, 1);
    spec.mode = WF_COMPILE_EVAL;
    spec.metrics = misspelt;
    spec.n_metrics = 1;
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "did you mean \"accuracy\"");
    spec.metrics = accuracy;
    spec.loss = "mse";
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "does not go with the loss \"mse\"");
    small_model(&one, 1, "sigmoid");
    spec = train_spec(&one.m, 1);
    assert_int_equal(refused(&spec, &err), WF_SHAPE);
    assert_says(err, "[batch, ..., classes]");
    spec.stop_after = "plaice";
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "did you mean \"place\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_crossentropy_of_logits_and_of_softmax),
        cmocka_unit_test(categorical_crossentropy),
        cmocka_unit_test(binary_crossentropy_of_logits_and_of_sigmoid),
        cmocka_unit_test(squared_and_absolute_error),
        cmocka_unit_test(probabilities_without_a_softmax_are_held_off_zero),
        cmocka_unit_test(what_cannot_be_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
