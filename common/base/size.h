/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/size.h - arithmetic on sizes that says when it overflows. */
#ifndef WF_BASE_SIZE_H
#define WF_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False when the product (or sum) does not fit; *out is then unchanged. */
static inline bool wf_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool wf_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;

    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

static inline bool wf_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

/* The next multiple of `align`, a power of two. */
static inline size_t wf_align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

#define WF_MIN(a, b) ((a) < (b) ? (a) : (b))
#define WF_MAX(a, b) ((a) > (b) ? (a) : (b))

/* n / unit, rounded up, of numbers that are not negative. */
static inline int64_t wf_ceil_div(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

#endif
