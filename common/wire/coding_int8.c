/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/coding_int8.c - whole steps of a scale that each block of numbers has. */
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/wire/coding_kind.h"

#include <float.h>
#include <string.h>

enum { LARGEST_STEP = 127 /* -128 is not used, so that steps are symmetric */ };

static uint64_t blocks_of(uint64_t n)
{
    return n / WF_CODING_BLOCK + (n % WF_CODING_BLOCK > 0);
}

static uint64_t bytes(uint64_t n, uint64_t kept)
{
    (void)kept;
    return blocks_of(n) * sizeof(float) + n;
}

/* The only n whose bytes may be so many: each block adds its scale. */
static uint64_t count(const wf_coded *c, uint64_t *kept)
{
    enum { WHOLE = WF_CODING_BLOCK + sizeof(float) };
    uint64_t scales = (c->bytes / WHOLE + (c->bytes % WHOLE > 0)) * sizeof(float);

    (void)kept;
    return c->bytes > scales ? c->bytes - scales : 0;
}

static float *scales_of(const wf_coded *c)
{
    return (float *)c->data;
}

static int8_t *steps_of(const wf_coded *c)
{
    return (int8_t *)c->data + blocks_of(c->n) * sizeof(float);
}

/* A scale so large that its largest step is no float32 would make infinite numbers. */
static wf_status check(const wf_coded *c, wf_err *err)
{
    for (uint64_t i = 0; i < blocks_of(c->n); i++)
        if (!(scales_of(c)[i] >= 0 && scales_of(c)[i] < 0x1p120f))
            return wf_fail(err, WF_PROTO, NULL, "a scale of int8 is %g", (double)scales_of(c)[i]);
    return WF_OK;
}

WF_MULTIVERSION
static void read_steps(const int8_t *steps, uint64_t n, float scale, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)steps[i] * scale;
}

static void read(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    uint64_t end = begin + n;

    for (uint64_t i = begin, next; i < end; i = next) {
        next = WF_MIN(end, (i / WF_CODING_BLOCK + 1) * WF_CODING_BLOCK);
        read_steps(steps_of(c) + i, next - i, scales_of(c)[i / WF_CODING_BLOCK], out + i - begin);
    }
}

WF_MULTIVERSION
static float largest(const float *x, uint64_t n)
{
    uint32_t most = 0;
    float out;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7FFFFFFFu;
        most = bits > most ? bits : most;
    }
    memcpy(&out, &most, sizeof out);
    return out;
}

/* Adding 1.5 * 2^23 leaves the nearest whole number, even of two, in the lowest bits. */
WF_MULTIVERSION
static void write_steps(const float *x, uint64_t n, float inverse, int8_t *steps)
{
    const float shift = 0x1.8p23f;

    for (uint64_t i = 0; i < n; i++) {
        float shifted = x[i] * inverse + shift;
        int32_t bits;

        memcpy(&bits, &shifted, sizeof bits);
        steps[i] = (int8_t)(bits - 0x4B400000);
    }
}

/* A block whose scale would be subnormal is written as zeros: its inverse might be infinite. */
static float write_block(const float *x, uint64_t n, int8_t *steps)
{
    float scale = largest(x, n) / LARGEST_STEP;

    if (scale < FLT_MIN) {
        memset(steps, 0, n);
        return 0;
    }
    write_steps(x, n, 1 / scale, steps);
    return scale;
}

static void write(const wf_coded *c, uint64_t begin, const float x[], uint64_t n)
{
    for (uint64_t i = 0; i < n; i += WF_CODING_BLOCK)
        scales_of(c)[(begin + i) / WF_CODING_BLOCK] =
            write_block(x + i, WF_MIN(n - i, (uint64_t)WF_CODING_BLOCK), steps_of(c) + begin + i);
}

const wf_coding_kind wf_coding_int8 = {.name = "int8",
                                       .limit = 0x7E800000u, /* 2^126: 127 scales are finite */
                                       .bytes = bytes,
                                       .count = count,
                                       .check = check,
                                       .read = read,
                                       .write = write};
