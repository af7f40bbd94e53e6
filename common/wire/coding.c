/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/coding.c */
#include "common/wire/coding.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/tensor/halves.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

enum {
    CHUNK = 8 * WF_CODING_BLOCK, /* numbers written at once: they stay in the nearest cache */
    LARGEST_STEP = 127           /* of int8; -128 is not used, so that steps are symmetric */
};

static const char *const names[] = {"f32", "bf16", "f16", "int8", "topk"};

const char *wf_coding_name(uint32_t coding)
{
    return coding < WF_N_CODINGS ? names[coding] : "?";
}

wf_coding wf_coding_find(const char *name)
{
    uint32_t i = 0;

    while (i < WF_N_CODINGS && strcmp(names[i], name) != 0)
        i++;
    return (wf_coding)i;
}

/* ---- sizes ---- */

static uint64_t blocks_of(uint64_t n)
{
    return n / WF_CODING_BLOCK + (n % WF_CODING_BLOCK > 0);
}

uint64_t wf_coding_kept(uint64_t n, double ratio)
{
    double kept = ratio * (double)n;

    if (kept >= (double)n)
        return n;
    return WF_MIN(n, WF_MAX((uint64_t)kept, UINT64_C(1)));
}

uint64_t wf_coding_bytes(wf_coding coding, uint64_t n, uint64_t kept)
{
    switch (coding) {
    case WF_CODING_BF16:
    case WF_CODING_F16:
        return n * sizeof(uint16_t);
    case WF_CODING_INT8:
        return blocks_of(n) * sizeof(float) + n;
    case WF_CODING_TOPK:
        return sizeof(uint32_t) + kept * (sizeof(uint32_t) + sizeof(float));
    default:
        return n * sizeof(float);
    }
}

/* The only n whose bytes may be so many: each block of int8 adds its scale. */
static uint64_t count_int8(uint64_t bytes)
{
    enum { WHOLE = WF_CODING_BLOCK + sizeof(float) };
    uint64_t scales = (bytes / WHOLE + (bytes % WHOLE > 0)) * sizeof(float);

    return bytes > scales ? bytes - scales : 0;
}

bool wf_coded_count(wf_coded *c)
{
    uint64_t kept = 0;
    uint32_t n;

    switch (c->coding) {
    case WF_CODING_BF16:
    case WF_CODING_F16:
        c->n = c->bytes / sizeof(uint16_t);
        break;
    case WF_CODING_INT8:
        c->n = count_int8(c->bytes);
        break;
    case WF_CODING_TOPK:
        if (c->bytes < sizeof n)
            return false;
        memcpy(&n, c->data, sizeof n);
        c->n = n;
        kept = (c->bytes - sizeof n) / (sizeof n + sizeof(float));
        break;
    default:
        c->n = c->bytes / sizeof(float);
    }
    return kept <= c->n && wf_coding_bytes(c->coding, c->n, kept) == c->bytes;
}

/* ---- reading ---- */

static const float *scales_of(const wf_coded *c)
{
    return (const float *)c->data;
}

static const int8_t *steps_of(const wf_coded *c)
{
    return (const int8_t *)c->data + blocks_of(c->n) * sizeof(float);
}

/* A half whose exponent bits are all set is not finite. */
WF_MULTIVERSION
static bool all_finite(const uint16_t *x, uint64_t n, uint16_t exponent)
{
    uint32_t bad = 0;

    for (uint64_t i = 0; i < n; i++)
        bad |= (x[i] & exponent) == exponent;
    return !bad;
}

/* A scale so large that its largest step is no float32 would make infinite numbers. */
static bool all_scales(const float *scales, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!(scales[i] >= 0 && scales[i] < 0x1p120f))
            return false;
    return true;
}

wf_status wf_coded_check(const wf_coded *c, wf_err *err)
{
    bool sound = true;

    if (c->coding == WF_CODING_TOPK)
        return wf_top_k_check(c, err);
    if (c->coding == WF_CODING_BF16)
        sound = all_finite((const uint16_t *)c->data, c->n, 0x7F80);
    if (c->coding == WF_CODING_F16)
        sound = all_finite((const uint16_t *)c->data, c->n, 0x7C00);
    if (c->coding == WF_CODING_INT8)
        sound = all_scales(scales_of(c), blocks_of(c->n));
    return sound ? WF_OK
                 : wf_fail(err, WF_PROTO, NULL, "a number that %s cannot have",
                           wf_coding_name(c->coding));
}

WF_MULTIVERSION
static void read_steps(const int8_t *steps, uint64_t n, float scale, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)steps[i] * scale;
}

static void read_int8(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    uint64_t end = begin + n;

    for (uint64_t i = begin, next; i < end; i = next) {
        next = WF_MIN(end, (i / WF_CODING_BLOCK + 1) * WF_CODING_BLOCK);
        read_steps(steps_of(c) + i, next - i, scales_of(c)[i / WF_CODING_BLOCK], out + i - begin);
    }
}

void wf_coded_read(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    wf_assert(begin <= c->n && n <= c->n - begin);
    switch (c->coding) {
    case WF_CODING_BF16:
        wf_f32_of_bf16s((const uint16_t *)c->data + begin, n, out);
        return;
    case WF_CODING_F16:
        wf_f32_of_f16s((const uint16_t *)c->data + begin, n, out);
        return;
    case WF_CODING_INT8:
        read_int8(c, begin, n, out);
        return;
    case WF_CODING_TOPK:
        wf_top_k_read(c, begin, n, out);
        return;
    default:
        memcpy(out, (const float *)c->data + begin, n * sizeof *out);
    }
}

/* ---- writing ---- */

static WF_INLINE uint32_t magnitude_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7FFFFFFFu;
}

/* The largest magnitude of x + r, as bits: they are in the order of the numbers. */
WF_MULTIVERSION
static uint32_t largest_sum(const float *x, const float *r, uint64_t n)
{
    uint32_t most = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(x[i] + r[i]);

        most = bits > most ? bits : most;
    }
    return most;
}

WF_MULTIVERSION
static uint32_t largest(const float *x, uint64_t n)
{
    uint32_t most = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = magnitude_bits(x[i]);

        most = bits > most ? bits : most;
    }
    return most;
}

/* The first magnitude that a coding cannot say, as bits. */
static uint32_t limit_of(wf_coding coding)
{
    switch (coding) {
    case WF_CODING_BF16:
        return 0x7F7F8000u; /* it rounds to infinity */
    case WF_CODING_F16:
        return 0x477FF000u; /* 65520, as well */
    case WF_CODING_INT8:
        return 0x7E800000u; /* 2^126: 127 times its scale is finite */
    default:
        return 0x7F800000u;
    }
}

WF_MULTIVERSION
static void add(const float *x, const float *r, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = x[i] + r[i];
}

WF_MULTIVERSION
static void subtract(const float *x, const float *said, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        out[i] = x[i] - said[i];
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
    uint32_t bits = largest(x, n);
    float most, scale;

    memcpy(&most, &bits, sizeof most);
    scale = most / LARGEST_STEP;
    if (scale < FLT_MIN) {
        memset(steps, 0, n);
        return 0;
    }
    write_steps(x, n, 1 / scale, steps);
    return scale;
}

/* Numbers [begin, begin + n) of c, which is being written; begin is a multiple of CHUNK. */
static void write_chunk(const wf_coded *c, uint64_t begin, const float *x, uint64_t n)
{
    uint8_t *to = (uint8_t *)c->data;

    if (c->coding == WF_CODING_BF16)
        wf_bf16_of_f32s(x, n, (uint16_t *)to + begin);
    if (c->coding == WF_CODING_F16)
        wf_f16_of_f32s(x, n, (uint16_t *)to + begin);
    for (uint64_t i = 0; c->coding == WF_CODING_INT8 && i < n; i += WF_CODING_BLOCK)
        ((float *)to)[(begin + i) / WF_CODING_BLOCK] = write_block(
            x + i, WF_MIN(n - i, (uint64_t)WF_CODING_BLOCK), (int8_t *)steps_of(c) + begin + i);
}

static void write_with_residual(const wf_coded *c, const float *x, float *residual)
{
    float sum[CHUNK], said[CHUNK];

    for (uint64_t i = 0; i < c->n; i += CHUNK) {
        uint64_t n = WF_MIN(c->n - i, (uint64_t)CHUNK);

        add(x + i, residual + i, n, sum);
        write_chunk(c, i, sum, n);
        wf_coded_read(c, i, n, said);
        subtract(sum, said, n, residual + i);
    }
}

bool wf_coding_write(wf_coding coding, uint64_t kept, const float x[], float residual[], uint64_t n,
                     void *to)
{
    wf_coded c = {.coding = coding, .data = to, .n = n};

    wf_assert(coding != WF_CODING_F32 && coding < WF_N_CODINGS);
    if ((residual ? largest_sum(x, residual, n) : largest(x, n)) >= limit_of(coding))
        return false;
    if (coding == WF_CODING_TOPK)
        wf_top_k_write(x, residual, n, kept, to);
    else if (residual)
        write_with_residual(&c, x, residual);
    else
        for (uint64_t i = 0; i < n; i += CHUNK)
            write_chunk(&c, i, x + i, WF_MIN(n - i, (uint64_t)CHUNK));
    return true;
}
