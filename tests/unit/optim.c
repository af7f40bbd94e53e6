/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/optim.c - update rules: Keras's numbers, the same bits in every form, options by name.
 */
#include "common/base/rng.h"
#include "common/optim/rule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4, STEPS = 3, MOST = 1100 };

static const float first[N] = {0.5f, -1.25f, 2.0f, 0.0f};
static const float gradients[STEPS][N] = {
    {0.1f, -0.2f, 0.3f, 1e-4f},
    {-0.05f, 0.4f, 0.25f, -2e-4f},
    {0.2f, 0.1f, -0.6f, 3e-4f},
};

typedef struct row {
    const char *rule;
    uint32_t n;
    const char *names[4];
    double values[4];
    float after[N]; /* three steps from `first`, computed by Keras 3 on TensorFlow */
} row;

static const row rows[] = {
    {"sgd", 0, {0}, {0}, {0.497500002f, -1.25300002f, 2.00049996f, -2.00000022e-06f}},
    {"sgd",
     1,
     {"weight_decay"},
     {0.01},
     {0.497350156f, -1.25262499f, 1.99990082f, -2.00000022e-06f}},
    {"sgd",
     2,
     {"learning_rate", "momentum"},
     {0.1, 0.9},
     {0.462399989f, -1.28180003f, 1.93120003f, -1.90999999e-05f}},
    {"sgd",
     3,
     {"learning_rate", "momentum", "nesterov"},
     {0.1, 0.9, 1},
     {0.441159993f, -1.3086201f, 1.94307995f, -3.71900023e-05f}},
    {"momentum", 0, {0}, {0}, {0.49624002f, -1.25318003f, 1.99311996f, -1.91000026e-06f}},
    {"nesterov", 0, {0}, {0}, {0.494116038f, -1.255862f, 1.99430799f, -3.71900001e-06f}},
    {"adagrad", 0, {0}, {0}, {0.499335408f, -1.25037539f, 1.99958098f, -6.32454885e-07f}},
    {"adagrad",
     2,
     {"learning_rate", "weight_decay"},
     {0.1, 0.1},
     {0.41914171f, -1.25074506f, 1.90055382f, -6.32486481e-05f}},
    {"rmsprop", 0, {0}, {0}, {0.49549368f, -1.25042725f, 1.99746358f, -0.000587982475f}},
    {"rmsprop",
     2,
     {"learning_rate", "momentum"},
     {0.01, 0.8},
     {0.421197176f, -1.23159432f, 1.91240442f, -0.00547084399f}},
    {"rmsprop",
     2,
     {"learning_rate", "centered"},
     {0.01, 1},
     {0.451628774f, -1.25310338f, 1.97067809f, -0.00589372916f}},
    {"rmsprop",
     3,
     {"learning_rate", "centered", "momentum"},
     {0.01, 1, 0.5},
     {0.434053779f, -1.24256921f, 1.93409526f, -0.00516551593f}},
    {"adam", 0, {0}, {0}, {0.498075634f, -1.24978185f, 1.99812675f, -0.000948708504f}},
    {"adam",
     4,
     {"learning_rate", "beta_1", "beta_2", "epsilon"},
     {0.01, 0.8, 0.99, 1e-3},
     {0.482341886f, -1.24902332f, 1.9827354f, -0.000145921222f}},
    {"adam", 1, {"amsgrad"}, {1}, {0.498075634f, -1.24978185f, 1.99812675f, -0.000948708504f}},
    {"adam", 1, {"weight_decay"}, {0.1}, {0.497925878f, -1.24940693f, 1.997527f, -0.00094855082f}},
    {"adamw", 0, {0}, {0}, {0.498069644f, -1.24976683f, 1.99810278f, -0.000948702218f}},
    {"adamw",
     1,
     {"learning_rate"},
     {0.1},
     {0.307051986f, -1.22674274f, 1.81038821f, -0.0948077589f}},
};

/* Rules whose numbers tests/parity/optim.py compares, over many steps; here their bits are. */
static const row others[] = {
    {"adadelta", 1, {"weight_decay"}, {0.1}, {0}},
    {"adamax", 0, {0}, {0}, {0}},
    {"amsgrad", 0, {0}, {0}, {0}},
    {"ftrl", 2, {"l1_regularization_strength", "beta"}, {0.01, 0.1}, {0}},
    {"lion", 1, {"weight_decay"}, {0.1}, {0}},
    {"nadam", 0, {0}, {0}, {0}},
    {"adam", 1, {"warmup_steps"}, {5}, {0}},
};

typedef struct state {
    wf_opt opt;
    float w[MOST], storage[WF_MAX_SLOTS][MOST];
    float *slots[WF_MAX_SLOTS];
} state;

static void begin(state *s, const row *r)
{
    wf_err err = {0};

    assert_int_equal(wf_opt_init(&s->opt, r->rule, r->n, r->names, r->values, &err), WF_OK);
    for (uint32_t k = 0; k < wf_opt_n_slots(&s->opt); k++) {
        s->slots[k] = s->storage[k];
        for (size_t i = 0; i < MOST; i++)
            s->slots[k][i] = wf_opt_slot_initial(&s->opt, k);
    }
}

/* Near enough for f32, counted against the way that the weight went: Keras works out Adam's bias
 * correction in f32. */
static void rules_move_weights_as_keras_does(void **unused)
{
    static state s;

    (void)unused;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        begin(&s, &rows[k]);
        memcpy(s.w, first, sizeof first);
        for (uint64_t t = 0; t < STEPS; t++)
            wf_opt_apply(&s.opt, t + 1, N, s.w, gradients[t], s.slots);
        for (size_t i = 0; i < N; i++) {
            float way = fabsf(rows[k].after[i] - first[i]);

            if (fabsf(s.w[i] - rows[k].after[i]) > 1e-4f * way + 2e-7f * fabsf(first[i]))
                fail_msg("row %zu (%s), weight %zu: %.9g, Keras has %.9g", k, rows[k].rule, i,
                         (double)s.w[i], (double)rows[k].after[i]);
        }
    }
}

static void fill(float *x, size_t n, uint64_t stream, float scale)
{
    wf_rng_key key = {7, stream};

    for (size_t i = 0; i < n; i++)
        x[i] = (wf_rng_f32(key, i) - 0.5f) * scale;
}

static void compare_forms(const row *r)
{
    static const size_t sizes[] = {1, 3, 15, 17, 64, 100, 1023, MOST};
    static state whole, cut, plain;
    static float g[MOST];

    begin(&whole, r);
    begin(&cut, r);
    begin(&plain, r);
    fill(whole.w, MOST, 1, 4);
    memcpy(cut.w, whole.w, sizeof whole.w);
    memcpy(plain.w, whole.w, sizeof whole.w);
    for (uint64_t t = 1; t <= 8; t++) {
        size_t n = sizes[t - 1], middle = n / 3;
        double values[WF_MAX_OPTIONS];
        float *rest[WF_MAX_SLOTS] = {0};

        fill(g, n, 1 + t, t % 2 ? 2.0f : 1e-3f);
        wf_opt_apply(&whole.opt, t, n, whole.w, g, whole.slots);
        memcpy(values, plain.opt.values, sizeof values);
        values[0] = wf_opt_rate(&plain.opt, t);
        plain.opt.rule->portable(values, t, n, plain.w, g, plain.slots);
        assert_memory_equal(whole.w, plain.w, sizeof whole.w);
        assert_memory_equal(whole.storage, plain.storage, sizeof whole.storage);
        if (whole.opt.rule->whole)
            continue;
        for (uint32_t i = 0; i < wf_opt_n_slots(&cut.opt); i++)
            rest[i] = cut.slots[i] + middle;
        wf_opt_apply(&cut.opt, t, middle, cut.w, g, cut.slots);
        wf_opt_apply(&cut.opt, t, n - middle, cut.w + middle, g + middle, rest);
        assert_memory_equal(whole.w, cut.w, sizeof whole.w);
        assert_memory_equal(whole.storage, cut.storage, sizeof whole.storage);
    }
}

static void every_form_and_every_cut_gives_the_same_bits(void **unused)
{
    const row lamb = {"lamb", 1, {"weight_decay"}, {0.01}, {0}};

    (void)unused;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        compare_forms(&rows[k]);
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
        compare_forms(&others[k]);
    compare_forms(&lamb);
}

/* A rate of 0, as a schedule may have at its end, leaves finite weights behind. */
static void a_rate_of_nothing_moves_nothing(void **unused)
{
    static state s;

    (void)unused;
    for (size_t i = 0; wf_rules[i]; i++) {
        const char *name = "learning_rate";
        const row r = {wf_rules[i]->name, 1, {name}, {0}, {0}};

        begin(&s, &r);
        memcpy(s.w, first, sizeof first);
        wf_opt_apply(&s.opt, 1, N, s.w, gradients[0], s.slots);
        assert_memory_equal(s.w, first, sizeof first);
    }
}

/* Against doubles, far along, where beta^t matters no more and where it does. */
static void adam_corrects_its_bias_by_the_count_it_is_given(void **unused)
{
    static const uint64_t counts[] = {1, 2, 10, 1000, UINT64_C(1) << 40};

    (void)unused;
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        float w = 1, g = 0.25f, m = 0.125f, v = 0.5f;
        float *slots[] = {&m, &v};
        double t = (double)counts[k], mean = 0.125 + (0.25 - 0.125) * 0.1;
        double square = 0.5 + (0.0625 - 0.5) * 0.001;
        double alpha = 0.001 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t));
        wf_opt opt;

        assert_int_equal(wf_opt_init(&opt, "adam", 0, NULL, NULL, NULL), WF_OK);
        wf_opt_apply(&opt, counts[k], 1, &w, &g, slots);
        assert_true(fabs(w - (1 - mean * alpha / (sqrt(square) + 1e-7))) < 1e-7);
        assert_true(fabs(m - mean) < 1e-8 && fabs(v - square) < 6e-8);
    }
}

static void an_opt_can_be_rebuilt_from_names_and_values(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const char *names[WF_MAX_OPTIONS];
        double values[WF_MAX_OPTIONS];
        wf_opt a, b;
        uint32_t n;

        assert_int_equal(
            wf_opt_init(&a, rows[k].rule, rows[k].n, rows[k].names, rows[k].values, NULL), WF_OK);
        n = wf_opt_n_options(&a);
        assert_in_range(n, 2, WF_MAX_SETTINGS);
        for (uint32_t i = 0; i < n; i++) {
            names[i] = wf_opt_option_name(&a, i);
            values[i] = wf_opt_option_value(&a, i);
        }
        assert_int_equal(wf_opt_init(&b, a.rule->name, n, names, values, NULL), WF_OK);
        assert_ptr_equal(a.rule, b.rule);
        assert_memory_equal(a.values, b.values, n * sizeof a.values[0]);
        assert_int_equal(wf_opt_n_slots(&a), wf_opt_n_slots(&b));
    }
}

static void slots_are_there_when_their_option_asks_for_them(void **unused)
{
    const char *names[] = {"centered", "momentum"};
    double values[] = {1, 0.5};
    wf_opt opt;

    (void)unused;
    assert_int_equal(wf_opt_init(&opt, "sgd", 0, NULL, NULL, NULL), WF_OK);
    assert_int_equal(wf_opt_n_slots(&opt), 0);
    assert_int_equal(wf_opt_init(&opt, "rmsprop", 1, names, values, NULL), WF_OK);
    assert_int_equal(wf_opt_n_slots(&opt), 2);
    assert_string_equal(wf_opt_slot_name(&opt, 1), "average_gradient");
    assert_int_equal(wf_opt_init(&opt, "rmsprop", 2, names, values, NULL), WF_OK);
    assert_int_equal(wf_opt_n_slots(&opt), 3);
    assert_string_equal(wf_opt_slot_name(&opt, 1), "momentum");
    assert_int_equal(wf_opt_init(&opt, "adagrad", 0, NULL, NULL, NULL), WF_OK);
    assert_true(wf_opt_slot_initial(&opt, 0) == 0.1f);
}

static void expect(const char *rule, const char *option, double value, wf_status status,
                   const char *part)
{
    wf_opt opt = {0};
    wf_err err = {0};

    assert_int_equal(wf_opt_init(&opt, rule, option ? 1 : 0, &option, &value, &err), status);
    assert_null(opt.rule);
    if (!strstr(err.what, part) && !strstr(err.hint, part))
        fail_msg("\"%s; %s\" does not say \"%s\"", err.what, err.hint, part);
}

static void wrong_options_are_named(void **unused)
{
    const char *twice[] = {"momentum", "momentum"}, *clips[] = {"clipnorm", "clipvalue"};
    double values[] = {0.5, 0.5};
    wf_opt opt;

    (void)unused;
    expect("adam", "lr", 0.1, WF_USAGE, "did you mean \"learning_rate\"?");
    expect("adm", NULL, 0, WF_USAGE, "did you mean \"adam\"");
    expect("zzzzzz", NULL, 0, WF_USAGE, "rmsprop");
    expect("muon", NULL, 0, WF_UNSUPPORTED, "muon");
    expect("adam", "learing_rate", 1, WF_USAGE, "did you mean \"learning_rate\"");
    expect("adam", "use_ema", 1, WF_UNSUPPORTED, "use_ema");
    expect("adam", "clipnrm", 1, WF_USAGE, "did you mean \"clipnorm\"");
    expect("adam", "clipnorm", 0, WF_USAGE, "above 0");
    expect("adam", "gradient_accumulation_steps", 1e6, WF_USAGE, "it may be 65536");
    expect("adam", "gradient_accumulation_steps", 1.5, WF_USAGE, "whole number");
    expect("ftrl", "learning_rate_power", -0.25, WF_UNSUPPORTED, "must be -0.5");
    expect("adam", "qqqqqq", 1, WF_USAGE, "qqqqqq");
    expect("adam", "beta_1", 1, WF_USAGE, "below 1");
    expect("adam", "learning_rate", -1, WF_USAGE, "0 or above");
    expect("adam", "learning_rate", (double)NAN, WF_USAGE, "learning_rate");
    expect("adam", "learning_rate", (double)INFINITY, WF_USAGE, "learning_rate");
    expect("adam", "epsilon", 0, WF_USAGE, "above 0");
    expect("adam", "amsgrad", 2, WF_USAGE, "true or false");
    assert_int_equal(wf_opt_init(&opt, "sgd", 2, twice, values, NULL), WF_USAGE);
    assert_int_equal(wf_opt_init(&opt, "sgd", 2, clips, values, NULL), WF_USAGE);
}

static void the_table_is_in_order_and_within_bounds(void **unused)
{
    (void)unused;
    for (size_t i = 0; wf_rules[i]; i++) {
        const wf_rule *r = wf_rules[i];
        size_t n_options = 0, n_slots = 0;

        assert_true(i == 0 || strcmp(wf_rules[i - 1]->name, r->name) < 0);
        assert_ptr_equal(wf_rule_find(r->name), r);
        while (r->options[n_options].name)
            n_options++;
        while (r->slots[n_slots].name)
            n_slots++;
        assert_string_equal(r->options[0].name, "learning_rate");
        assert_in_range(n_options, 1, WF_MAX_OPTIONS);
        assert_in_range(n_slots, 0, WF_MAX_SLOTS);
    }
}

static void one_bad_number_anywhere_is_found(void **unused)
{
    static float x[10000];
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};

    (void)unused;
    fill(x, 10000, 3, 1e38f);
    x[77] = 3.4028234e38f;
    x[78] = -1e-45f;
    assert_true(wf_all_finite(x, 0));
    for (size_t n = 1; n < 10000; n += 333) {
        float kept = x[n - 1];

        assert_true(wf_all_finite(x, n));
        x[n - 1] = bad[n % 4];
        assert_false(wf_all_finite(x, n));
        assert_false(wf_all_finite(x, 10000));
        assert_true(wf_all_finite(x, n - 1));
        x[n - 1] = kept;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_move_weights_as_keras_does),
        cmocka_unit_test(every_form_and_every_cut_gives_the_same_bits),
        cmocka_unit_test(a_rate_of_nothing_moves_nothing),
        cmocka_unit_test(adam_corrects_its_bias_by_the_count_it_is_given),
        cmocka_unit_test(an_opt_can_be_rebuilt_from_names_and_values),
        cmocka_unit_test(slots_are_there_when_their_option_asks_for_them),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(the_table_is_in_order_and_within_bounds),
        cmocka_unit_test(one_bad_number_anywhere_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
