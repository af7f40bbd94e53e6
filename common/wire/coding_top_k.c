/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/coding_top_k.c - the k numbers of largest magnitude, found by counting: magnitudes as
 * bits are in the order of the numbers, and 31 bits are three digits of 11, 10 and 10. Each pass
 * counts how many numbers have each next digit, among those that have the digits of the k-th so
 * far. */
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/wire/coding_kind.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_DIGITS = 1 << 11, LANES = 4 };

static const struct digit {
    uint32_t shift, bits;
} digits[] = {{20, 11}, {10, 10}, {0, 10}};

/* Of a part: n, then the indices [kept], then the numbers [kept]. */
static const uint32_t *indices_of(const wf_coded *c)
{
    return (const uint32_t *)c->data + 1;
}

static uint64_t kept_of(const wf_coded *c)
{
    return (c->bytes - sizeof(uint32_t)) / (sizeof(uint32_t) + sizeof(float));
}

static const float *numbers_of(const wf_coded *c)
{
    return (const float *)(indices_of(c) + kept_of(c));
}

static uint64_t bytes(uint64_t n, uint64_t kept)
{
    (void)n;
    return sizeof(uint32_t) + kept * (sizeof(uint32_t) + sizeof(float));
}

/* The n that they say. */
static uint64_t count_all(const wf_coded *c, uint64_t *kept)
{
    uint32_t n;

    if (c->bytes < sizeof n)
        return 0;
    memcpy(&n, c->data, sizeof n);
    *kept = kept_of(c);
    return n;
}

static inline uint32_t magnitude_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7FFFFFFFu;
}

/* Counts the digit d of those numbers whose higher digits are those of `found`. Neighbours are
 * counted apart: they often have one digit, and would wait for each other. */
static void count(const float x[], uint64_t n, const struct digit *d, uint32_t found,
                  uint32_t counts[MOST_DIGITS])
{
    uint32_t above = d->shift + d->bits, low = (1u << d->bits) - 1;
    uint32_t lanes[LANES][MOST_DIGITS] = {{0}};

    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(x[i]);

        if (bits >> above == found >> above)
            lanes[i % LANES][bits >> d->shift & low]++;
    }
    memset(counts, 0, MOST_DIGITS * sizeof *counts);
    for (uint32_t k = 0; k < LANES; k++)
        for (uint32_t i = 0; i <= low; i++)
            counts[i] += lanes[k][i];
}

/* The k-th largest magnitude, as bits; *ties: how many of that magnitude are among the k. */
static uint32_t kth_largest(const float x[], uint64_t n, uint64_t k, uint64_t *ties)
{
    uint32_t counts[MOST_DIGITS], found = 0;

    for (size_t p = 0; p < WF_COUNT(digits); p++) {
        uint32_t digit = (1u << digits[p].bits) - 1;

        count(x, n, &digits[p], found, counts);
        for (; counts[digit] < k; digit--)
            k -= counts[digit];
        found |= digit << digits[p].shift;
    }
    *ties = k;
    return found;
}

WF_MULTIVERSION
static void add(const float *x, uint64_t n, float *residual)
{
    for (uint64_t i = 0; i < n; i++)
        residual[i] = x[i] + residual[i];
}

/* The residual becomes the sums, of which those that are sent leave. */
static void write_all(const float x[], float residual[], uint64_t n, uint64_t kept, void *to)
{
    const float *from = residual ? residual : x;
    uint32_t *indices = (uint32_t *)to + 1;
    float *numbers = (float *)(indices + kept);
    uint64_t ties = 0, used = 0;
    uint32_t least;

    wf_assert(kept <= n && n <= UINT32_MAX);
    if (residual)
        add(x, n, residual);
    *(uint32_t *)to = (uint32_t)n;
    least = kept ? kth_largest(from, n, kept, &ties) : UINT32_MAX;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(from[i]);

        if (bits < least || (bits == least && ties == 0))
            continue;
        ties -= bits == least;
        indices[used] = (uint32_t)i;
        numbers[used++] = from[i];
        if (residual)
            residual[i] = 0;
    }
    wf_assert(used == kept);
}

static wf_status check(const wf_coded *c, wf_err *err)
{
    const uint32_t *at = indices_of(c);
    const float *numbers = numbers_of(c);

    for (uint64_t i = 0, n = kept_of(c); i < n; i++) {
        if (at[i] >= c->n || (i > 0 && at[i] <= at[i - 1]))
            return wf_fail(err, WF_PROTO, NULL,
                           "index %" PRIu32 " of %" PRIu64 " numbers does not rise, or is beyond",
                           at[i], c->n);
        if (magnitude_bits(numbers[i]) >= 0x7F800000u)
            return wf_fail(err, WF_PROTO, NULL, "number %" PRIu32 " of topk is not finite", at[i]);
    }
    return WF_OK;
}

/* The first place whose index is not below `index`. */
static uint64_t find(const uint32_t at[], uint64_t n, uint64_t index)
{
    uint64_t from = 0;

    while (from < n) {
        uint64_t middle = from + (n - from) / 2;

        if (at[middle] < index)
            from = middle + 1;
        else
            n = middle;
    }
    return from;
}

static void read(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    const uint32_t *at = indices_of(c);
    const float *numbers = numbers_of(c);
    uint64_t kept = kept_of(c);

    memset(out, 0, n * sizeof *out);
    for (uint64_t i = find(at, kept, begin); i < kept && at[i] < begin + n; i++)
        out[at[i] - begin] = numbers[i];
}

const wf_coding_kind wf_coding_top_k = {.name = "topk",
                                        .limit = 0x7F800000u, /* infinity */
                                        .bytes = bytes,
                                        .count = count_all,
                                        .check = check,
                                        .read = read,
                                        .write_all = write_all};
