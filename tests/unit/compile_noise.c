/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_noise.c - layers that change what they take in training alone: how much, and
 * that nothing of them is left otherwise. */
#include "tests/unit/compile_eval.h"
#include <math.h>

enum { STEPS = 4, CHANNELS = 1000, RECORD = STEPS * CHANNELS };

static const wf_conf_input series[] = {
    {.name = "x", .dims = {STEPS, CHANNELS}, .rank = 2, .line = 3}};
static float x[EVAL_BATCH * RECORD];

static wf_compiled *compile_layer(const char *type, const char *option, double value,
                                  wf_compile_mode mode, const char *stop_after)
{
    wf_conf_option o = {.name = option, .kind = WF_CONF_NUMBER, .number = value, .line = 7};
    wf_conf_item layer = {.type = type, .options = &o, .n_options = 1, .line = 6};
    wf_model m = {
        .file = "job.yaml", .inputs = series, .n_inputs = 1, .layers = &layer, .n_layers = 1};
    wf_compile_spec spec = {.model = &m, .mode = mode, .seed = 1, .stop_after = stop_after};

    if (mode == WF_COMPILE_TRAIN)
        spec.loss = "mse";
    return compile(&spec);
}

/* What the layer makes of x in training; mean and deviation of it. */
static evaluated in_training(const char *type, const char *option, double value, double *mean,
                             double *deviation)
{
    wf_compiled *c = compile_layer(type, option, value, WF_COMPILE_TRAIN, "mode");
    float labels[EVAL_BATCH * RECORD] = {0};
    fed feeds[] = {{"x", x}, {"y", labels}, {NULL, NULL}};
    evaluated r = eval_graph(c->graph, feeds);
    const float *y = wf_f32(output_of(&r, "output"));
    double sum = 0, squares = 0;

    for (int i = 0; i < EVAL_BATCH * RECORD; i++) {
        sum += (double)y[i];
        squares += (double)y[i] * (double)y[i];
    }
    *mean = sum / (EVAL_BATCH * RECORD);
    *deviation = sqrt(squares / (EVAL_BATCH * RECORD) - *mean * *mean);
    wf_compiled_free(&c);
    return r;
}

static void all_x(float value)
{
    for (int i = 0; i < EVAL_BATCH * RECORD; i++)
        x[i] = value;
}

static void noise_has_the_deviation_that_was_asked_for(void **state)
{
    double mean, deviation;
    evaluated r;

    (void)state;
    all_x(3);
    r = in_training("gaussian_noise", "stddev", 2, &mean, &deviation);
    assert_true(fabs(mean - 3) < 0.06 && fabs(deviation - 2) < 0.06);
    eval_free(&r);
    r = in_training("gaussian_dropout", "rate", 0.2, &mean, &deviation);
    assert_true(fabs(mean - 3) < 0.06 && fabs(deviation - 3 * 0.5) < 0.06);
    eval_free(&r);
}

/* Of numbers of mean 0 and deviation 1 it gives such. */
static void alpha_dropout_keeps_mean_and_deviation(void **state)
{
    double mean, deviation;
    evaluated r;

    (void)state;
    for (int i = 0; i < EVAL_BATCH * RECORD; i++)
        x[i] = i % 2 ? 1 : -1;
    r = in_training("alpha_dropout", "rate", 0.3, &mean, &deviation);
    assert_true(fabs(mean) < 0.04 && fabs(deviation - 1) < 0.04);
    eval_free(&r);
}

static void spatial_dropout_takes_whole_channels(void **state)
{
    double mean, deviation;
    int dropped = 0;
    evaluated r;
    const float *y;

    (void)state;
    all_x(1);
    r = in_training("spatial_dropout1d", "rate", 0.25, &mean, &deviation);
    y = wf_f32(output_of(&r, "output"));
    for (int b = 0; b < EVAL_BATCH; b++)
        for (int c = 0; c < CHANNELS; c++) {
            const float *first = y + b * RECORD + c;

            dropped += *first == 0;
            assert_true(*first == 0 || fabsf(*first - 1 / 0.75f) < 1e-6f);
            for (int s = 1; s < STEPS; s++)
                assert_true(first[s * CHANNELS] == *first);
        }
    assert_true(abs(dropped - EVAL_BATCH * CHANNELS / 4) < 150);
    eval_free(&r);
}

static void nothing_is_left_outside_of_training(void **state)
{
    static const char *const layers[][2] = {{"gaussian_noise", "stddev"},
                                            {"gaussian_dropout", "rate"},
                                            {"alpha_dropout", "rate"},
                                            {"spatial_dropout1d", "rate"}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(layers); i++)
        for (int run = 0; run < 2; run++) {
            wf_compiled *c = compile_layer(layers[i][0], layers[i][1], 0.5,
                                           run ? WF_COMPILE_RUN : WF_COMPILE_INFER, NULL);

            for (size_t k = 0; k < c->graph->n_nodes; k++) {
                const char *op = c->graph->nodes[k]->op->name;

                if (strcmp(op, "Identity") && strcmp(op, "Transpose"))
                    fail_msg("%s leaves a %s", layers[i][0], op);
            }
            wf_compiled_free(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_has_the_deviation_that_was_asked_for),
        cmocka_unit_test(alpha_dropout_keeps_mean_and_deviation),
        cmocka_unit_test(spatial_dropout_takes_whole_channels),
        cmocka_unit_test(nothing_is_left_outside_of_training),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
