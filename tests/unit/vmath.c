/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/vmath.c - exp, tanh, sigmoid, log and the functions that work in double inside, of f32
 * against libm in double, over a lattice of all floats; the bounds are those that vmath.h states.
 */
#include "common/kernels/cpu/vmath.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STRIDE = 1009 }; /* prime: visits every pattern of low bits */

typedef double exact_fn(double x);
typedef float fast_fn(float x);

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The largest error in units of the last place of the exact result, where that is normal. */
static double worst_ulps(fast_fn *fast, exact_fn *exact)
{
    double worst = 0;

    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
        float x = wf_float_of((uint32_t)bits);
        double want = exact((double)x);
        float got = fast(x);
        int e;

        if (isnan(x)) {
            assert_true(isnan(got));
            continue;
        }
        if (fabs(want) > 3.4028235677973366e38) { /* rounds to infinity */
            assert_true(isinf(got));
            continue;
        }
        if (fabs(want) < 0x1p-125) {
            assert_true(fabs((double)got - want) <= 0x1p-125);
            continue;
        }
        frexp(want, &e);
        worst = fmax(worst, fabs((double)got - want) / ldexp(1, e - 24));
    }
    return worst;
}

static void at_most(const char *name, double ulps, double bound)
{
    print_message("%s: %.2f ulp at most\n", name, ulps);
    if (ulps > bound)
        fail_msg("%s is off by %.2f ulp; %.2f are stated", name, ulps, bound);
}

static float exp_fast(float x)
{
    return wf_exp_f32(x);
}

static float tanh_fast(float x)
{
    return wf_tanh_f32(x);
}

static float sigmoid_fast(float x)
{
    return wf_sigmoid_f32(x);
}

/* The _wide functions, rounded to f32 once, as kernels do. */
static float log_fast(float x)
{
    return wf_log_f32(x);
}

static float expm1_fast(float x)
{
    return (float)wf_expm1_wide((double)x);
}

static float softplus_fast(float x)
{
    return (float)wf_softplus_wide((double)x);
}

static float erf_fast(float x)
{
    return wf_erf_f32(x);
}

static float normal_fast(float x)
{
    float bell;

    return wf_normal_f32(x, &bell);
}

static float gelu_fast(float x)
{
    return x * normal_fast(x);
}

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double normal(double x)
{
    return 0.5 * erfc(-x * 0.7071067811865476);
}

static double gelu(double x)
{
    return x * normal(x);
}

static void errors_stay_within_what_is_stated(void **state)
{
    (void)state;
    at_most("exp", worst_ulps(exp_fast, exp), 1);
    at_most("tanh", worst_ulps(tanh_fast, tanh), 1.3);
    at_most("sigmoid", worst_ulps(sigmoid_fast, sigmoid), 2.2);
    at_most("log", worst_ulps(log_fast, log), 0.6);
    at_most("expm1", worst_ulps(expm1_fast, expm1), 0.6);
    at_most("softplus", worst_ulps(softplus_fast, softplus), 0.6);
    at_most("erf", worst_ulps(erf_fast, erf), 2.2);
    at_most("normal", worst_ulps(normal_fast, normal), 5);
    at_most("gelu", worst_ulps(gelu_fast, gelu), 6);
}

static void ends_are_exact(void **state)
{
    (void)state;
    assert_true(wf_exp_f32(0) == 1);
    assert_true(wf_exp_f32(-INFINITY) == 0 && isinf(wf_exp_f32(INFINITY)));
    assert_true(isnan(wf_exp_f32(NAN)) && isnan(wf_tanh_f32(NAN)) && isnan(wf_sigmoid_f32(NAN)));
    assert_true(wf_tanh_f32(INFINITY) == 1 && wf_tanh_f32(-INFINITY) == -1);
    assert_true(wf_tanh_f32(0) == 0 && signbit(wf_tanh_f32(-0.0f)));
    assert_true(wf_sigmoid_f32(INFINITY) == 1 && wf_sigmoid_f32(-INFINITY) == 0);
    assert_true(wf_sigmoid_f32(0) == 0.5f);
    assert_true(wf_exp_f32(-103) > 0); /* subnormal */
    assert_true(isinf(wf_log_f32(0)) && wf_log_f32(0) < 0 && isinf(wf_log_f32(INFINITY)));
    assert_true(isnan(wf_log_f32(-1)) && isnan(wf_log_f32(NAN)) && wf_log_f32(1) == 0);
    assert_true(wf_expm1_wide(0) == 0 && wf_erf_f32(0) == 0 && wf_erf_f32(30) == 1);
    assert_true(isnan(wf_erf_f32(NAN)) && isnan(wf_softplus_wide((double)NAN)));
    assert_true(wf_softplus_wide(1000) == 1000 && (float)wf_softplus_wide(-1000) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_within_what_is_stated),
        cmocka_unit_test(ends_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
