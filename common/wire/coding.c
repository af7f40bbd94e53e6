/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/coding.c - the table of codings, and what is the same for all. */
#include "common/wire/coding.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/wire/coding_kind.h"

#include <string.h>

enum { CHUNK = 8 * WF_CODING_BLOCK /* numbers written at once: they stay in the nearest cache */ };

/* ---- float32 ---- */

static uint64_t plain_bytes(uint64_t n, uint64_t kept)
{
    (void)kept;
    return n * sizeof(float);
}

static uint64_t plain_count(const wf_coded *c, uint64_t *kept)
{
    (void)kept;
    return c->bytes / sizeof(float);
}

static void plain_read(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    memcpy(out, (const float *)c->data + begin, n * sizeof *out);
}

static const wf_coding_kind plain = {
    .name = "f32", .bytes = plain_bytes, .count = plain_count, .read = plain_read};

/* ---- all ---- */

static const wf_coding_kind *const kinds[WF_N_CODINGS] = {
    [WF_CODING_F32] = &plain,
    [WF_CODING_BF16] = &wf_coding_bf16,
    [WF_CODING_F16] = &wf_coding_f16,
    [WF_CODING_INT8] = &wf_coding_int8,
    [WF_CODING_TOPK] = &wf_coding_top_k,
};

const char *wf_coding_name(uint32_t coding)
{
    return coding < WF_N_CODINGS ? kinds[coding]->name : "?";
}

wf_coding wf_coding_find(const char *name)
{
    uint32_t i = 0;

    while (i < WF_N_CODINGS && strcmp(kinds[i]->name, name) != 0)
        i++;
    return (wf_coding)i;
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
    return kinds[coding]->bytes(n, kept);
}

bool wf_coded_count(wf_coded *c)
{
    uint64_t kept = 0;

    c->n = kinds[c->coding]->count(c, &kept);
    return kept <= c->n && wf_coding_bytes(c->coding, c->n, kept) == c->bytes;
}

wf_status wf_coded_check(const wf_coded *c, wf_err *err)
{
    return kinds[c->coding]->check ? kinds[c->coding]->check(c, err) : WF_OK;
}

void wf_coded_read(const wf_coded *c, uint64_t begin, uint64_t n, float out[])
{
    wf_assert(begin <= c->n && n <= c->n - begin);
    kinds[c->coding]->read(c, begin, n, out);
}

/* ---- writing ---- */

static WF_INLINE uint32_t magnitude_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7FFFFFFFu;
}

/* The largest magnitude, as bits: they are in the order of the numbers. */
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

/* Numbers [begin, begin + n) of c, n at most CHUNK. */
static void write_chunk(const wf_coded *c, uint64_t begin, const float *x, float *residual,
                        uint64_t n)
{
    const wf_coding_kind *kind = kinds[c->coding];
    float sum[CHUNK], said[CHUNK];

    if (!residual) {
        kind->write(c, begin, x, n);
        return;
    }
    add(x, residual, n, sum);
    kind->write(c, begin, sum, n);
    kind->read(c, begin, n, said);
    subtract(sum, said, n, residual);
}

bool wf_coding_write(wf_coding coding, uint64_t kept, const float x[], float residual[], uint64_t n,
                     void *to)
{
    wf_coded c = {.coding = coding, .data = to, .n = n};
    uint32_t most = residual ? largest_sum(x, residual, n) : largest(x, n);

    wf_assert(coding != WF_CODING_F32 && coding < WF_N_CODINGS);
    if (most >= kinds[coding]->limit)
        return false;
    if (kinds[coding]->write_all) {
        kinds[coding]->write_all(x, residual, n, kept, to);
        return true;
    }
    for (uint64_t i = 0; i < n; i += CHUNK)
        write_chunk(&c, i, x + i, residual ? residual + i : NULL, WF_MIN(n - i, (uint64_t)CHUNK));
    return true;
}
