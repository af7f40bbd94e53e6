/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/coding_halves.c - bfloat16 and float16. */
#include "common/base/cc.h"
#include "common/tensor/halves.h"
#include "common/wire/coding_kind.h"

static uint64_t bytes(uint64_t n, uint64_t kept)
{
    (void)kept;
    return n * sizeof(uint16_t);
}

static uint64_t count(const wf_coded *c, uint64_t *kept)
{
    (void)kept;
    return c->bytes / sizeof(uint16_t);
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

static wf_status check(const wf_coded *c, uint16_t exponent, wf_err *err)
{
    if (all_finite((const uint16_t *)c->data, c->n, exponent))
        return WF_OK;
    return wf_fail(err, WF_PROTO, NULL, "a number of %s is not finite", wf_coding_name(c->coding));
}

static wf_status check_bf16(const wf_coded *c, wf_err *err)
{
    return check(c, 0x7F80, err);
}

static wf_status check_f16(const wf_coded *c, wf_err *err)
{
    return check(c, 0x7C00, err);
}

static void read_bf16(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    wf_f32_of_bf16s((const uint16_t *)c->data + begin, n, out);
}

static void read_f16(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    wf_f32_of_f16s((const uint16_t *)c->data + begin, n, out);
}

static void write_bf16(const wf_coded *c, uint64_t begin, const float x[], uint64_t n)
{
    wf_bf16_of_f32s(x, n, (uint16_t *)c->data + begin);
}

static void write_f16(const wf_coded *c, uint64_t begin, const float x[], uint64_t n)
{
    wf_f16_of_f32s(x, n, (uint16_t *)c->data + begin);
}

/* Both limits are what rounds to infinity. */
const wf_coding_kind wf_coding_bf16 = {.name = "bf16",
                                       .limit = 0x7F7F8000u,
                                       .bytes = bytes,
                                       .count = count,
                                       .check = check_bf16,
                                       .read = read_bf16,
                                       .write = write_bf16};
const wf_coding_kind wf_coding_f16 = {.name = "f16",
                                      .limit = 0x477FF000u, /* 65520 */
                                      .bytes = bytes,
                                      .count = count,
                                      .check = check_f16,
                                      .read = read_f16,
                                      .write = write_f16};
