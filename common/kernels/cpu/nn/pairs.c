/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/pairs.c */
#include "common/kernels/cpu/nn/pairs.h"
#include "common/base/cc.h"
#include "common/base/size.h"

#include "common/tensor/half.h"

#include <string.h>

/* Rows shorter than this are worked on several at a time, laid side by side: a loop over 7 or 14
 * pairs would hardly enter its vectors. */
enum { SHORT = 64, BLOCK = 1024 };

/* Rows of y at a time. */
static int64_t rows_at_once(const wf_pairs *p)
{
    return p->w < 1 || p->w >= SHORT ? 1 : BLOCK / (2 * p->w);
}

/* Rows of pairs back to x, `step` elements from one to the next. */
static void scatter(const float *from, int64_t rows, int64_t n, float *x, int64_t step)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(x + r * step, from + r * n, (size_t)n * sizeof(float));
}

static inline float larger(float a, float b)
{
    float most = b > a ? b : a;

    return b != b ? b : most;
}

/* Of a float that was bfloat16. */
static inline uint16_t bf16_of(float x)
{
    return (uint16_t)(wf_half_bits(x) >> 16);
}

/* What lies behind the pairs of a row, and below them. */
static void clear_rest(const wf_pairs *p, float *dx)
{
    size_t rest = (size_t)(p->width - 2 * p->w) * sizeof(float);

    for (int64_t r = 0; rest && r < 2 * p->h; r++)
        memset(dx + r * p->width + 2 * p->w, 0, rest);
    memset(dx + 2 * p->h * p->width, 0,
           (size_t)((p->height - 2 * p->h) * p->width) * sizeof(float));
}

#define T float
#define SUFFIX f32
#define WIDE(x) (x)
#define AS_T(x) (x)
#include "common/kernels/cpu/nn/pairs_template.h"

#define T uint16_t
#define SUFFIX bf16
#define WIDE(x) wf_bf16_to_f32_inline(x)
#define AS_T(x) bf16_of(x)
#include "common/kernels/cpu/nn/pairs_template.h"
