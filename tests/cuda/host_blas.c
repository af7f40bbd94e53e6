/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_blas.c */
#include "tests/cuda/host_blas.h"
#include "common/base/size.h"
#include "common/base/status.h"
#include "common/tensor/half.h"
#include "tests/cuda/host_memory.h"
#include "tests/cuda/host_work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUMS = WF_CUDA_THEN_SUMS_OF_A | WF_CUDA_THEN_SUMS_OF_B };
enum { INVALID = WF_CUDA_OF_BLAS + 7, NO_MEMORY = WF_CUDA_OF_BLAS + 3, WORKSPACE = 4096 };

/* What an algorithm was chosen for. */
typedef struct choice {
    int32_t magic, which;
    uint32_t aligned, then;
} choice;

enum { MAGIC = 0x5EED, ALGORITHMS = 3 };

struct wf_cuda_lt {
    int unused;
};

struct wf_cuda_product {
    int compute, scale;
    int32_t transposed[2];
    uint32_t then;
    const void *bias;
};

struct wf_cuda_layout {
    int type;
    uint64_t rows, columns;
    int64_t ld, stride;
    int32_t batch;
};

struct host_multiplication {
    wf_cuda_product p;
    wf_cuda_layout of_a, of_b, of_c;
    const void *a, *b;
    void *c;
    double alpha, beta;
    int32_t which; /* algorithm */
};

static size_t objects;
static int offered = ALGORITHMS;
static bool refuses_sums;

void cuda_host_algorithms(int n)
{
    offered = n;
}

void cuda_host_refuse_sums(bool refuse)
{
    refuses_sums = refuse;
}

size_t host_blas_objects(void)
{
    return objects;
}

/* ---- objects ---- */

static int new_object(void *out, size_t bytes)
{
    void *it = calloc(1, bytes);

    memcpy(out, &it, sizeof it);
    objects += it != NULL;
    return it ? 0 : NO_MEMORY;
}

static int free_object(void *it)
{
    objects--;
    free(it);
    return 0;
}

int host_lt_new(wf_cuda_lt **out)
{
    return new_object(out, sizeof **out);
}

int host_lt_free(wf_cuda_lt *lt)
{
    return free_object(lt);
}

int host_product_new(wf_cuda_product **out, int compute, int scale)
{
    bool is_f32 =
        (compute == WF_CUDA_COMPUTE_F32 || compute == WF_CUDA_COMPUTE_F32_OF_F16 ||
         compute == WF_CUDA_COMPUTE_F32_OF_BF16 || compute == WF_CUDA_COMPUTE_F32_OF_TF32) &&
        scale == WF_CUDA_F32;
    int error = is_f32 || (compute == WF_CUDA_COMPUTE_F64 && scale == WF_CUDA_F64)
                    ? new_object(out, sizeof **out)
                    : INVALID;

    if (error == 0)
        **out = (wf_cuda_product){.compute = compute, .scale = scale, .then = WF_CUDA_THEN_NOTHING};
    return error;
}

/* Copies a value of the size that an attribute has. */
static int set(void *to, size_t size, const void *value, size_t bytes)
{
    if (bytes != size)
        return INVALID;
    memcpy(to, value, size);
    return 0;
}

int host_product_set(wf_cuda_product *p, int attribute, const void *value, size_t bytes)
{
    switch (attribute) {
    case WF_CUDA_TRANSPOSE_A:
    case WF_CUDA_TRANSPOSE_B:
        return set(&p->transposed[attribute == WF_CUDA_TRANSPOSE_B], sizeof(int32_t), value, bytes);
    case WF_CUDA_EPILOGUE:
        return set(&p->then, sizeof p->then, value, bytes);
    case WF_CUDA_BIAS:
        return set(&p->bias, sizeof p->bias, value, bytes);
    default:
        return INVALID;
    }
}

int host_product_free(wf_cuda_product *p)
{
    return free_object(p);
}

int host_layout_new(wf_cuda_layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    int error = rows > 0 && columns > 0 && ld > 0 && (uint64_t)ld >= rows
                    ? new_object(out, sizeof **out)
                    : INVALID;

    if (error == 0)
        **out =
            (wf_cuda_layout){.type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
    return error;
}

int host_layout_set(wf_cuda_layout *l, int attribute, const void *value, size_t bytes)
{
    switch (attribute) {
    case WF_CUDA_BATCH:
        return set(&l->batch, sizeof l->batch, value, bytes);
    case WF_CUDA_BATCH_STRIDE:
        return set(&l->stride, sizeof l->stride, value, bytes);
    default:
        return INVALID;
    }
}

int host_layout_free(wf_cuda_layout *l)
{
    return free_object(l);
}

/* ---- checks ---- */

static bool is_narrow(int type)
{
    return type == WF_CUDA_BF16 || type == WF_CUDA_F16;
}

/* The table of types of cublasLtMatmul, as far as weft computes in them: what rounds factors takes
 * float32 alone. */
static bool have_types(const wf_cuda_product *p, int factors, int result)
{
    if (p->compute == WF_CUDA_COMPUTE_F64)
        return factors == WF_CUDA_F64 && result == WF_CUDA_F64;
    if (factors == WF_CUDA_F32)
        return result == WF_CUDA_F32;
    return p->compute == WF_CUDA_COMPUTE_F32 && is_narrow(factors) &&
           (result == factors || result == WF_CUDA_F32);
}

static bool fits(const wf_cuda_product *p, const wf_cuda_layout *a, const wf_cuda_layout *b,
                 const wf_cuda_layout *c)
{
    uint64_t m = p->transposed[0] ? a->columns : a->rows,
             k = p->transposed[0] ? a->rows : a->columns;
    uint64_t n = p->transposed[1] ? b->rows : b->columns,
             of_b = p->transposed[1] ? b->columns : b->rows;

    return m == c->rows && n == c->columns && k == of_b && a->type == b->type &&
           have_types(p, a->type, c->type) && a->batch == c->batch && b->batch == c->batch;
}

/* The values of cublasLtEpilogue_t that weft knows: sums of rows go with nothing else. */
static bool is_epilogue(uint32_t then)
{
    return then == WF_CUDA_THEN_NOTHING || then == WF_CUDA_THEN_SUMS_OF_A ||
           then == WF_CUDA_THEN_SUMS_OF_B ||
           (then != 0 && (then & ~(uint32_t)(WF_CUDA_THEN_BIAS | WF_CUDA_THEN_RELU)) == 0);
}

/* Whether there are algorithms with the epilogue. The vector of several products would need a
 * stride of its own (CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE). */
static bool has_sums(const wf_cuda_product *p, const wf_cuda_layout *c)
{
    if (!(p->then & SUMS))
        return true;
    return !refuses_sums && c->batch == 1 &&
           (p->then & WF_CUDA_THEN_SUMS_OF_A ? !p->transposed[0] : p->transposed[1] != 0);
}

int host_choose(wf_cuda_lt *lt, wf_cuda_product *p, wf_cuda_layout *a, wf_cuda_layout *b,
                wf_cuda_layout *c, size_t workspace, uint32_t aligned, int most,
                wf_cuda_algorithm out[], int *n)
{
    if (!lt || most < 1 || !fits(p, a, b, c) || !is_epilogue(p->then))
        return INVALID;
    *n = 0;
    if (!has_sums(p, c))
        return WF_CUDA_NO_ALGORITHM;
    for (*n = 0; *n < WF_MIN(most, offered); ++*n) {
        const choice chosen = {MAGIC, *n, aligned, p->then};

        out[*n] = (wf_cuda_algorithm){.workspace = WF_MIN(workspace, (size_t)WORKSPACE << *n)};
        memcpy(out[*n].of, &chosen, sizeof chosen);
    }
    return 0;
}

uint64_t host_lt_version(void)
{
    return 1;
}

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "a product of cuBLASLt was queued with %s\n", what);
    abort();
}

static size_t size_of(const wf_cuda_layout *l)
{
    if (is_narrow(l->type))
        return sizeof(uint16_t);
    return l->type == WF_CUDA_F32 ? sizeof(float) : sizeof(double);
}

static void check_matrix(const void *at, const wf_cuda_layout *l, uint32_t aligned, bool written)
{
    int64_t last = (l->batch - 1) * l->stride,
            one = (int64_t)(l->columns - 1) * l->ld + (int64_t)l->rows;

    need((uintptr_t)at % aligned == 0, "a matrix that is not aligned as the algorithm needs it");
    need(last >= 0 && host_memory_has(at, (size_t)(last + one) * size_of(l)),
         "a matrix that is not in memory of the device");
    need(!written || l->batch == 1 || l->stride >= one, "results that lie over each other");
}

/* The sums that an epilogue writes: as many as D has rows, for those of A, or columns, of D's type,
 * in memory that nothing else of the product is in. */
static void check_sums(const wf_cuda_product *p, const void *a, const void *b, const void *c,
                       const wf_cuda_layout *of_c)
{
    uint64_t n = p->then & WF_CUDA_THEN_SUMS_OF_A ? of_c->rows : of_c->columns;

    if (!(p->then & SUMS))
        return;
    need(has_sums(p, of_c), "sums of rows that it does not have");
    need(p->bias && host_memory_has(p->bias, n * size_of(of_c)), "no place for its sums");
    need((uintptr_t)p->bias % size_of(of_c) == 0, "sums at an odd place");
    need(p->bias != a && p->bias != b && p->bias != c, "sums where a matrix lies");
}

static double scale_of(const wf_cuda_product *p, const void *value)
{
    float f;
    double d;

    memcpy(&f, value, sizeof f);
    if (p->scale == WF_CUDA_F32)
        return (double)f;
    memcpy(&d, value, sizeof d);
    return d;
}

host_multiplication *host_multiplication_new(const wf_cuda_product *p, const void *alpha,
                                             const void *a, const wf_cuda_layout *of_a,
                                             const void *b, const wf_cuda_layout *of_b,
                                             const void *beta, void *c, const wf_cuda_layout *of_c,
                                             const wf_cuda_algorithm *algorithm, void *workspace)
{
    host_multiplication *m = calloc(1, sizeof *m);
    choice chosen;

    memcpy(&chosen, algorithm->of, sizeof chosen);
    need(chosen.magic == MAGIC, "no algorithm");
    need(fits(p, of_a, of_b, of_c), "layouts that do not fit");
    need(is_epilogue(p->then), "an epilogue that there is not");
    need(chosen.then == p->then, "an algorithm that was chosen for another epilogue");
    check_sums(p, a, b, c, of_c);
    check_matrix(a, of_a, chosen.aligned, false);
    check_matrix(b, of_b, chosen.aligned, false);
    check_matrix(c, of_c, chosen.aligned, true);
    need(!(p->then & WF_CUDA_THEN_BIAS) || host_memory_has(p->bias, of_c->rows * size_of(of_c)),
         "no bias for its epilogue");
    need(algorithm->workspace >= (size_t)WORKSPACE << chosen.which &&
             host_memory_has(workspace, algorithm->workspace),
         "a workspace that is too small");
    if (m)
        *m = (host_multiplication){.p = *p,
                                   .of_a = *of_a,
                                   .of_b = *of_b,
                                   .of_c = *of_c,
                                   .a = a,
                                   .b = b,
                                   .c = c,
                                   .alpha = scale_of(p, alpha),
                                   .beta = scale_of(p, beta),
                                   .which = chosen.which};
    return m;
}

double host_multiplication_ms(const host_multiplication *m)
{
    return host_time_of((uint64_t)m->which + m->of_c.rows * 31 + m->of_c.columns * 1009 +
                        (m->p.then & SUMS) * 7919);
}

/* ---- the product ---- */

static double get(const void *base, const wf_cuda_layout *l, int64_t i)
{
    switch (l->type) {
    case WF_CUDA_F32:
        return (double)((const float *)base)[i];
    case WF_CUDA_BF16:
        return (double)wf_bf16_to_f32_inline(((const uint16_t *)base)[i]);
    case WF_CUDA_F16:
        return (double)wf_f16_to_f32_inline(((const uint16_t *)base)[i]);
    default:
        return ((const double *)base)[i];
    }
}

static void put(void *base, const wf_cuda_layout *l, int64_t i, double value)
{
    switch (l->type) {
    case WF_CUDA_F32:
        ((float *)base)[i] = (float)value;
        break;
    case WF_CUDA_BF16:
        ((uint16_t *)base)[i] = wf_f32_to_bf16_inline((float)value);
        break;
    case WF_CUDA_F16:
        ((uint16_t *)base)[i] = wf_f32_to_f16_inline((float)value);
        break;
    default:
        ((double *)base)[i] = value;
    }
}

static double operand(const void *base, const wf_cuda_layout *l, int64_t first, bool transposed,
                      uint64_t row, uint64_t column)
{
    return get(base, l,
               first + (int64_t)(transposed ? column : row) +
                   (int64_t)(transposed ? row : column) * l->ld);
}

/* To the 10 bits behind the first that TF32 has, to nearest even. Of numbers that are finite. */
static double tf32_of(double x)
{
    enum { DROPPED = 13 };
    float f = (float)x;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    bits += (1u << (DROPPED - 1)) - 1 + (bits >> DROPPED & 1);
    bits &= ~((1u << DROPPED) - 1);
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double rounded(const wf_cuda_product *p, double x)
{
    switch (p->compute) {
    case WF_CUDA_COMPUTE_F32_OF_TF32:
        return isfinite(x) ? tf32_of(x) : x;
    case WF_CUDA_COMPUTE_F32_OF_BF16:
        return (double)wf_bf16_to_f32_inline(wf_f32_to_bf16_inline((float)x));
    case WF_CUDA_COMPUTE_F32_OF_F16:
        return (double)wf_f16_to_f32_inline(wf_f32_to_f16_inline((float)x));
    default:
        return x;
    }
}

enum { TILE = 64 };

/* Rows [first, first + n) of A', or columns of B', at [from, to) of the k that are added up, as the
 * product takes them. */
static void unpack(const host_multiplication *m, int32_t which, bool of_a, uint64_t first,
                   uint64_t n, uint64_t from, uint64_t to, double out[TILE][TILE])
{
    const wf_cuda_product *p = &m->p;

    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = from; i < to; i++)
            out[j][i - from] = rounded(p, of_a ? operand(m->a, &m->of_a, which * m->of_a.stride,
                                                         p->transposed[0], first + j, i)
                                               : operand(m->b, &m->of_b, which * m->of_b.stride,
                                                         p->transposed[1], i, first + j));
}

/* One element of C, of its sum. */
static void finish(const host_multiplication *m, int32_t which, uint64_t row, uint64_t column,
                   double sum)
{
    const wf_cuda_product *p = &m->p;
    int64_t at = which * m->of_c.stride + (int64_t)row + (int64_t)column * m->of_c.ld;

    sum *= m->alpha;
    if (m->beta != 0) /* otherwise C need not hold numbers */
        sum += m->beta * get(m->c, &m->of_c, at);
    if (p->then & WF_CUDA_THEN_BIAS)
        sum += get(p->bias, &m->of_c, (int64_t)row);
    if (p->then & WF_CUDA_THEN_RELU && sum < 0)
        sum = 0;
    put(m->c, &m->of_c, at, sum);
}

/* Sums are in the order of k, whatever the tiles are. */
static void do_tile(const host_multiplication *m, int32_t which, uint64_t row, uint64_t column)
{
    uint64_t rows = WF_MIN(m->of_c.rows - row, (uint64_t)TILE);
    uint64_t columns = WF_MIN(m->of_c.columns - column, (uint64_t)TILE);
    uint64_t k = m->p.transposed[0] ? m->of_a.rows : m->of_a.columns;
    double a[TILE][TILE], b[TILE][TILE], sums[TILE][TILE] = {{0}};

    for (uint64_t from = 0; from < k; from += TILE) {
        uint64_t to = WF_MIN(from + TILE, k);

        unpack(m, which, true, row, rows, from, to, a);
        unpack(m, which, false, column, columns, from, to, b);
        for (uint64_t c = 0; c < columns; c++)
            for (uint64_t r = 0; r < rows; r++)
                for (uint64_t i = 0; i < to - from; i++)
                    sums[c][r] += a[r][i] * b[c][i];
    }
    for (uint64_t c = 0; c < columns; c++)
        for (uint64_t r = 0; r < rows; r++)
            finish(m, which, row + r, column + c, sums[c][r]);
}

/* One of the sums: of a row of A' or a column of B', which alpha does not scale. */
static void sum_one(const host_multiplication *m, uint64_t i)
{
    const wf_cuda_product *p = &m->p;
    bool of_a = (p->then & WF_CUDA_THEN_SUMS_OF_A) != 0;
    uint64_t k = p->transposed[0] ? m->of_a.rows : m->of_a.columns;
    double sum = 0;

    for (uint64_t j = 0; j < k; j++)
        sum += of_a ? operand(m->a, &m->of_a, 0, p->transposed[0], i, j)
                    : operand(m->b, &m->of_b, 0, p->transposed[1], j, i);
    put((void *)(uintptr_t)p->bias, &m->of_c, (int64_t)i, sum);
}

void host_multiplication_do(const host_multiplication *m)
{
    uint64_t sums = m->p.then & WF_CUDA_THEN_SUMS_OF_A   ? m->of_c.rows
                    : m->p.then & WF_CUDA_THEN_SUMS_OF_B ? m->of_c.columns
                                                         : 0;

    for (int32_t which = 0; which < m->of_c.batch; which++)
        for (uint64_t column = 0; column < m->of_c.columns; column += TILE)
            for (uint64_t row = 0; row < m->of_c.rows; row += TILE)
                do_tile(m, which, row, column);
    for (uint64_t i = 0; i < sums; i++)
        sum_one(m, i);
}
