/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/finite.c - an exponent of all ones is a NaN or an Inf; integer compares vectorise
 * where float ones would have to keep exceptions in order. */
#include "common/tensor/finite.h"
#include "common/base/cc.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 4096 }; /* elements looked at between two chances to stop early */

WF_MULTIVERSION static uint32_t bad_f32(const float *x, size_t n)
{
    uint32_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    return bad;
}

WF_MULTIVERSION static uint64_t bad_f64(const double *x, size_t n)
{
    uint64_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits;

        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7FF0000000000000u) == 0x7FF0000000000000u;
    }
    return bad;
}

bool wf_all_finite(const float x[], size_t n)
{
    for (size_t at = 0; at < n; at += BLOCK)
        if (bad_f32(x + at, n - at < BLOCK ? n - at : BLOCK))
            return false;
    return true;
}

bool wf_all_finite_f64(const double x[], size_t n)
{
    for (size_t at = 0; at < n; at += BLOCK)
        if (bad_f64(x + at, n - at < BLOCK ? n - at : BLOCK))
            return false;
    return true;
}
