/* SPDX-License-Identifier: Apache-2.0 */
/* common/metrics/coding.c - sums by key as bytes.
 *
 *   1 byte   1: values are counts, varints; 0: they are f64, little-endian
 *   varint   n
 *   n times  varint: the key, after the first one less the key before; then the value
 *
 * A histogram of a hundred thousand bins takes two or three bytes a bin, and so does a small one.
 */
#include "common/metrics/measure.h"

#include <math.h>
#include <string.h>

typedef struct input {
    const uint8_t *at, *end;
} input;

static void put_varint(wf_bytes *out, uint64_t x)
{
    uint8_t bytes[10];
    size_t n = 0;

    for (; x >= 0x80; x >>= 7)
        bytes[n++] = (uint8_t)(x | 0x80);
    bytes[n++] = (uint8_t)x;
    wf_bytes_add(out, bytes, n);
}

static bool get_varint(input *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
        uint8_t byte = *in->at++;

        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool are_counts(const wf_sums *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!(s->at[i].value >= 0 && s->at[i].value < 0x1p53) ||
            s->at[i].value != floor(s->at[i].value))
            return false;
    return true;
}

void wf_sums_encode(wf_sums *s, wf_bytes *out)
{
    uint8_t counts;
    uint64_t before = 0;

    wf_sums_settle(s);
    counts = are_counts(s);
    wf_bytes_add(out, &counts, 1);
    put_varint(out, s->n);
    for (size_t i = 0; i < s->n; i++) {
        put_varint(out, s->at[i].key - before);
        before = s->at[i].key;
        if (counts)
            put_varint(out, (uint64_t)s->at[i].value);
        else
            wf_bytes_add(out, &s->at[i].value, sizeof s->at[i].value);
    }
}

static bool get_value(input *in, bool counts, double *out)
{
    uint64_t count;

    if (counts) {
        bool there = get_varint(in, &count);

        *out = there ? (double)count : 0.0;
        return there;
    }
    if ((size_t)(in->end - in->at) < sizeof *out)
        return false;
    memcpy(out, in->at, sizeof *out);
    in->at += sizeof *out;
    return isfinite(*out);
}

static bool get_sum(input *in, bool counts, bool first, wf_keyed_sum *sum)
{
    uint64_t step;

    if (!get_varint(in, &step) || (!first && step == 0) || sum->key + step < sum->key)
        return false;
    sum->key += step;
    return get_value(in, counts, &sum->value);
}

wf_status wf_sums_decode(wf_sums *s, const void *data, size_t size, wf_err *err)
{
    input in = {data, (const uint8_t *)data + size};
    bool counts = size > 0 && *in.at++ == 1;
    wf_keyed_sum sum = {0, 0};
    uint64_t n = 0;

    if (size == 0 || !get_varint(&in, &n) || n > WF_MEASURE_MOST)
        return wf_fail(err, WF_PROTO, NULL, "the sums of a metric are cut short, or too many");
    for (uint64_t i = 0; i < n; i++) {
        if (!get_sum(&in, counts, i == 0, &sum))
            return wf_fail(err, WF_PROTO, NULL,
                           "the sums of a metric end or go wrong at the %lluth",
                           (unsigned long long)i);
        WF_TRY(wf_sums_add(s, sum.key, sum.value, err));
    }
    return WF_OK;
}
