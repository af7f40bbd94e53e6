/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/exact.c - the argument is brought near 0, where a short series is enough. */
#include "common/optim/exact.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const double pi = 3.14159265358979323846, root_half = 0.70710678118654752440;
/* ln 2 in two parts: the first has zeros at its end, so that a whole multiple of it is exact. */
static const double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;

static double from_bits(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), and log m = 2 (s + s^3 / 3 + s^5 / 5 + ...) with
 * s = (m - 1) / (m + 1), |s| < 0.172. */
double wf_exact_log(double x)
{
    uint64_t bits;
    double m, s, square, sum = 0;
    int64_t e;

    memcpy(&bits, &x, sizeof bits);
    e = (int64_t)(bits >> 52) - 1022;
    m = from_bits((bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3fe0000000000000));
    if (m < root_half) {
        m *= 2;
        e--;
    }
    s = (m - 1) / (m + 1);
    square = s * s;
    for (int k = 25; k >= 3; k -= 2)
        sum = sum * square + 1.0 / k;
    sum = 2 * s + 2 * s * (sum * square);
    return (double)e * ln2_high + (sum + (double)e * ln2_low);
}

double wf_exact_exp(double x)
{
    double whole, r, sum = 1;

    if (x < -700)
        return 0;
    x = x > 700 ? 700 : x;
    whole = floor(x / (ln2_high + ln2_low) + 0.5);
    r = (x - whole * ln2_high) - whole * ln2_low;
    for (int k = 16; k >= 1; k--)
        sum = 1 + r / k * sum;
    return sum * from_bits((uint64_t)((int64_t)whole + 1023) << 52);
}

double wf_exact_power(double x, double y)
{
    if (y == 0)
        return 1;
    if (x <= 0)
        return 0;
    return y == 1 ? x : wf_exact_exp(y * wf_exact_log(x));
}

/* Both series for |t| <= pi / 4. */
static double small_cos(double t)
{
    double square = t * t, sum = 1;

    for (int k = 18; k >= 2; k -= 2)
        sum = 1 - square / (k * (k - 1)) * sum;
    return sum;
}

static double small_sin(double t)
{
    double square = t * t, sum = 1;

    for (int k = 19; k >= 3; k -= 2)
        sum = 1 - square / (k * (k - 1)) * sum;
    return t * sum;
}

double wf_exact_cos_pi(double x)
{
    if (x > 0.5)
        return -wf_exact_cos_pi(1 - x);
    return x <= 0.25 ? small_cos(pi * x) : small_sin(pi * (0.5 - x));
}
