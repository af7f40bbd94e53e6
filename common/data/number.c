/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/number.c - a number of up to 19 digits is a product or quotient of two doubles that
 * hold their values exactly, and so is rounded once (Clinger 1990, "How to read floating point
 * numbers accurately", section 4); the few others go to strtod. */
#include "common/data/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 512, EXACT_TENS = 22 };

static const double tens[EXACT_TENS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                            1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                            1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static locale_t plain_locale;

static void make_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A text that has the form of a number. */
static bool by_strtod(const char *text, size_t n, double *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char copy[LONGEST + 1], *end;

    pthread_once(&once, make_locale);
    if (n > LONGEST || !plain_locale)
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    *out = strtod_l(copy, &end, plain_locale);
    return end == copy + n && isfinite(*out);
}

/* Digits, of which all count that fit; false when there is none. */
static bool read_digits(const char **at, const char *end, uint64_t *value, int *n_digits)
{
    const char *begin = *at, *c = begin;
    uint64_t v = *value;

    if (v == 0)
        while (c < end && *c == '0')
            c++;
    for (const char *first = c - *n_digits; c < end && is_digit(*c);
         c++, *n_digits = (int)(c - first))
        if (c - first < 19)
            v = v * 10 + (uint64_t)(*c - '0');
    *value = v;
    *at = c;
    return c > begin;
}

static bool read_exponent(const char **at, const char *end, int *exponent)
{
    uint64_t value = 0;
    bool negative;
    int n = 0;

    ++*at;
    negative = *at < end && **at == '-';
    if (*at < end && (**at == '-' || **at == '+'))
        ++*at;
    if (!read_digits(at, end, &value, &n))
        return false;
    value = value > 100000 ? 100000 : value;
    *exponent += negative ? -(int)value : (int)value;
    return true;
}

static const char *read_any(const char *text, const char *end, double *out)
{
    const char *at = text, *point;
    uint64_t value = 0;
    int n_digits = 0, exponent = 0;
    bool negative, any;

    negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    any = read_digits(&at, end, &value, &n_digits);
    if (at < end && *at == '.') {
        point = ++at;
        any |= read_digits(&at, end, &value, &n_digits);
        exponent = -(int)(at - point);
    }
    if (!any || (at < end && (*at == 'e' || *at == 'E') && !read_exponent(&at, end, &exponent)))
        return NULL;
    if (n_digits > 19 || value > UINT64_C(1) << 53 || exponent > EXACT_TENS ||
        exponent < -EXACT_TENS)
        return by_strtod(text, (size_t)(at - text), out) ? at : NULL;
    *out = exponent < 0 ? (double)value / tens[-exponent] : (double)value * tens[exponent];
    *out = negative ? -*out : *out;
    return at;
}

/* The usual form, of up to 19 digits and without an exponent. NULL: it is another, or no number. */
static const char *read_plain(const char *text, const char *end, double *out)
{
    const char *at = text + (text < end && (*text == '-' || *text == '+')), *begin = at, *point;
    uint64_t value = 0;
    long places = 0;

    for (; at < end && is_digit(*at); at++)
        value = value * 10 + (uint64_t)(*at - '0');
    point = at;
    if (at < end && *at == '.') {
        for (at++; at < end && is_digit(*at); at++)
            value = value * 10 + (uint64_t)(*at - '0');
        places = at - point - 1;
    }
    if (at - begin > 19 || at - begin == (point < at) || value > UINT64_C(1) << 53 ||
        (at < end && (*at == 'e' || *at == 'E')))
        return NULL;
    *out = places ? (double)value / tens[places] : (double)value;
    *out = *text == '-' ? -*out : *out;
    return at;
}

const char *wf_number_read(const char *text, const char *end, double *out)
{
    const char *after = read_plain(text, end, out);

    return after ? after : read_any(text, end, out);
}

bool wf_number_f64(const char *text, size_t n, double *out)
{
    return wf_number_read(text, text + n, out) == text + n;
}

bool wf_number_i64(const char *text, size_t n, int64_t *out)
{
    const char *at = text, *end = text + n;
    bool negative = n > 0 && *at == '-';
    int64_t value = 0;

    if (n > 0 && (*at == '-' || *at == '+'))
        at++;
    if (at == end)
        return false;
    for (; at < end; at++)
        if (!is_digit(*at) || __builtin_mul_overflow(value, 10, &value) ||
            (negative ? __builtin_sub_overflow(value, *at - '0', &value)
                      : __builtin_add_overflow(value, *at - '0', &value)))
            return false;
    *out = value;
    return true;
}
