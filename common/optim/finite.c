/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/finite.c - NaN and infinity have all exponent bits set, so without its sign such a
 * number is at least 0x7f800000 as an integer. The largest of a block is found without a branch. */
#include "common/optim/finite.h"
#include "common/base/cc.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 4096 }; /* elements: 16 KiB, so that a bad array is left early */

static const uint32_t infinite = 0x7f800000u;

static uint32_t size_bits(const float *x)
{
    uint32_t bits;

    memcpy(&bits, x, sizeof bits);
    return bits & 0x7fffffffu;
}

WF_MULTIVERSION
static uint32_t largest(const float *x, size_t n)
{
    uint32_t most = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = size_bits(&x[i]);

        most = bits > most ? bits : most;
    }
    return most;
}

bool wf_all_finite(const float *x, size_t n)
{
    while (n) {
        size_t now = n < BLOCK ? n : BLOCK;

        if (largest(x, now) >= infinite)
            return false;
        x += now;
        n -= now;
    }
    return true;
}
