/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/schedule.c - learning-rate schedules: Keras's numbers, libm's functions, wrong words.
 */
#include "common/optim/exact.h"
#include "common/optim/rule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(double ours, double theirs, const char *what, double x)
{
    if (fabs(ours - theirs) > 1e-13 * fmax(fabs(theirs), 1e-3))
        fail_msg("%s(%.17g) is %.17g, libm has %.17g", what, x, ours, theirs);
}

static void the_functions_agree_with_libm(void **unused)
{
    (void)unused;
    for (int i = 0; i <= 20000; i++) {
        double part = i / 20000.0, x = 1e-6 + part * 3, wide = exp((part - 0.5) * 60);

        /* libm is given pi * part rounded, which counts where the cosine is 0. */
        near(2 + wf_exact_cos_pi(part), 2 + cos(3.14159265358979323846 * part), "cos_pi", part);
        near(wf_exact_exp((part - 0.5) * 40) / exp((part - 0.5) * 40), 1, "exp", part);
        near(wf_exact_log(x), log(x), "log", x);
        near(wf_exact_log(wide), log(wide), "log", wide);
        near(wf_exact_power(part, 0.37), pow(part, 0.37), "power 0.37", part);
        near(wf_exact_power(0.96, part * 1000), pow(0.96, part * 1000), "power of 0.96", part);
    }
    assert_true(wf_exact_power(0, 0) == 1 && wf_exact_power(0, 2) == 0);
    assert_true(wf_exact_exp(-1e300) == 0 && wf_exact_exp(0) == 1);
    assert_true(wf_exact_cos_pi(0) == 1 && wf_exact_cos_pi(1) == -1);
}

enum { MOST = 8 };

typedef struct given {
    uint32_t n;
    const char *names[MOST];
    double values[MOST];
} given;

static wf_status make(const given *g, wf_opt *opt, wf_err *err)
{
    return wf_opt_init(opt, "sgd", g->n, g->names, g->values, err);
}

#define C "learning_rate.cosine_decay."
#define R "learning_rate.cosine_decay_restarts."
#define E "learning_rate.exponential_decay."
#define I "learning_rate.inverse_time_decay."
#define P "learning_rate.polynomial_decay."
#define W "learning_rate.piecewise_constant_decay."

/* What Keras's formulas give before the first update, and after 1, 99, 100, 101 and 1000. */
static const struct {
    given g;
    double rates[6];
} cases[] = {
    {{3, {E "initial_learning_rate", E "decay_steps", E "decay_rate"}, {0.1, 100, 0.5}},
     {0.1, 0.0993092495437036, 0.05034777750283595, 0.05, 0.0496546247718518, 9.765625e-05}},
    {{4,
      {E "initial_learning_rate", E "decay_steps", E "decay_rate", E "staircase"},
      {0.1, 100, 0.5, 1}},
     {0.1, 0.1, 0.1, 0.05, 0.05, 9.765625e-05}},
    {{3, {I "initial_learning_rate", I "decay_steps", I "decay_rate"}, {0.1, 100, 0.5}},
     {0.1, 0.09950248756218907, 0.06688963210702341, 0.06666666666666667, 0.0664451827242525,
      0.016666666666666666}},
    {{4,
      {P "initial_learning_rate", P "decay_steps", P "end_learning_rate", P "power"},
      {0.1, 100, 0.01, 2}},
     {0.1, 0.098209, 0.010009, 0.01, 0.01, 0.01}},
    {{4,
      {P "initial_learning_rate", P "decay_steps", P "end_learning_rate", P "cycle"},
      {0.1, 100, 0.01, 1}},
     {0.1, 0.09910000000000001, 0.010900000000000002, 0.01, 0.05455000000000001, 0.01}},
    {{3, {C "initial_learning_rate", C "decay_steps", C "alpha"}, {0.1, 100, 0.1}},
     {0.1, 0.09997779521645793, 0.010022204783542078, 0.010000000000000002, 0.010000000000000002,
      0.010000000000000002}},
    {{4,
      {C "initial_learning_rate", C "decay_steps", C "warmup_target", C "warmup_steps"},
      {0.0, 1000, 0.1, 100}},
     {0.0, 0.001, 0.099, 0.1, 0.09999975326009292, 0.0024471741852423235}},
    {{2, {R "initial_learning_rate", R "first_decay_steps"}, {0.1, 100}},
     {0.1, 0.09997532801828658, 2.467198171342e-05, 0.1, 0.09999383162408304, 0.0691341716182545}},
    {{4,
      {R "initial_learning_rate", R "first_decay_steps", R "t_mul", R "m_mul"},
      {0.1, 100, 1, 0.5}},
     {0.1, 0.09997532801828658, 2.467198171342e-05, 0.05, 0.04998766400914329, 9.765625e-05}},
    {{5,
      {W "values.0", W "values.1", W "values.2", W "boundaries.0", W "boundaries.1"},
      {0.3, 0.2, 0.1, 1, 100}},
     {0.3, 0.3, 0.2, 0.2, 0.1, 0.1}},
};

static void schedules_are_those_of_keras(void **unused)
{
    static const uint64_t counts[] = {0, 1, 99, 100, 101, 1000};

    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        wf_err err = {0};
        wf_opt opt, again;
        const char *names[WF_MAX_SETTINGS];
        double values[WF_MAX_SETTINGS];
        uint32_t n;

        if (make(&cases[k].g, &opt, &err) != WF_OK)
            fail_msg("case %zu: %s", k, err.what);
        n = wf_opt_n_options(&opt);
        for (uint32_t i = 0; i < n; i++) {
            names[i] = wf_opt_option_name(&opt, i);
            values[i] = wf_opt_option_value(&opt, i);
        }
        assert_int_equal(wf_opt_init(&again, "sgd", n, names, values, &err), WF_OK);
        for (size_t i = 0; i < 6; i++) {
            double rate = wf_opt_rate(&opt, counts[i] + 1);

            if (fabs(rate - cases[k].rates[i]) > 1e-12)
                fail_msg("case %zu after %lu: %.17g, Keras has %.17g", k, (unsigned long)counts[i],
                         rate, cases[k].rates[i]);
            assert_true(rate == wf_opt_rate(&again, counts[i] + 1));
        }
    }
}

static void restarts_are_sound_far_along(void **unused)
{
    const given g = {
        3, {R "initial_learning_rate", R "first_decay_steps", R "t_mul"}, {0.1, 7, 1.3}};
    double at = 0, length = 7;
    wf_opt opt;

    (void)unused;
    assert_int_equal(make(&g, &opt, NULL), WF_OK);
    for (uint64_t s = 0; s < 300000; s++) {
        double rate = wf_opt_rate(&opt, s + 1), expected;

        while ((double)s >= at + length) {
            at += length;
            length *= 1.3;
        }
        expected = 0.05 * (1 + cos(3.14159265358979323846 * ((double)s - at) / length));
        if (fabs(rate - expected) > 1e-9)
            fail_msg("after %lu: %.17g, not %.17g", (unsigned long)s, rate, expected);
    }
}

static void a_warm_up_rises_to_the_rate(void **unused)
{
    const given g = {2, {"learning_rate", "warmup_steps"}, {0.5, 10}};
    wf_opt opt;

    (void)unused;
    assert_int_equal(make(&g, &opt, NULL), WF_OK);
    assert_true(fabs(wf_opt_rate(&opt, 1) - 0.05) < 1e-15);
    assert_true(fabs(wf_opt_rate(&opt, 5) - 0.25) < 1e-15);
    assert_true(wf_opt_rate(&opt, 10) == 0.5 && wf_opt_rate(&opt, 11) == 0.5);
}

static void an_update_takes_the_rate_of_its_count(void **unused)
{
    const given g = {3, {E "initial_learning_rate", E "decay_steps", E "decay_rate"}, {1, 1, 0.5}};
    float w = 0, gradient = -1;
    wf_opt opt;

    (void)unused;
    assert_int_equal(make(&g, &opt, NULL), WF_OK);
    for (uint64_t t = 1; t <= 3; t++)
        wf_opt_apply(&opt, t, 1, &w, &gradient, NULL);
    assert_true(w == 1.75f);
}

static void expect(const given *g, wf_status status, const char *part)
{
    wf_err err = {0};
    wf_opt opt;

    assert_int_equal(make(g, &opt, &err), status);
    if (!strstr(err.what, part) && !strstr(err.hint, part))
        fail_msg("\"%s; %s\" does not say \"%s\"", err.what, err.hint, part);
}

static void wrong_schedules_are_named(void **unused)
{
    static const struct {
        given g;
        const char *part;
    } bad[] = {
        {{1, {"learning_rate.cosine_decya.alpha"}, {0}}, "did you mean \"cosine_decay\""},
        {{1, {"learning_rate.zzz.alpha"}, {0}}, "unknown schedule \"zzz\""},
        {{1, {C "alhpa"}, {0}}, "did you mean \"alpha\""},
        {{1, {C "initial_learning_rate"}, {0.1}}, "decay_steps is missing"},
        {{2, {C "decay_steps", E "decay_steps"}, {1, 1}}, "two schedules"},
        {{1, {C "decay_steps"}, {0}}, "above 0"},
        {{3, {C "initial_learning_rate", C "decay_steps", C "warmup_steps"}, {0.1, 10, 5}},
         "no warmup_target"},
        {{3, {C "initial_learning_rate", C "decay_steps", "warmup_steps"}, {0.1, 10, 5}},
         "goes with a constant"},
        {{3, {W "values.0", W "values.1", W "values.2"}, {1, 2, 3}}, "boundaries.0 is missing"},
        {{5,
          {W "values.0", W "values.1", W "values.2", W "boundaries.0", W "boundaries.1"},
          {1, 2, 3, 5, 5}},
         "above the last"},
        {{2, {W "values.0", W "boundaries.0"}, {1, 2}}, "1 boundaries and 1 values"},
        {{1, {"momentum.cosine_decay.alpha"}, {0}}, "only learning_rate"},
        {{3, {R "initial_learning_rate", R "first_decay_steps", R "t_mul"}, {1, 2, 0.5}},
         "1 or above"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect(&bad[i].g, WF_USAGE, bad[i].part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_functions_agree_with_libm),
        cmocka_unit_test(schedules_are_those_of_keras),
        cmocka_unit_test(restarts_are_sound_far_along),
        cmocka_unit_test(a_warm_up_rises_to_the_rate),
        cmocka_unit_test(an_update_takes_the_rate_of_its_count),
        cmocka_unit_test(wrong_schedules_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
