/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/rows_template.h - the passes of rows.h, of one type. A template for
 * rows.c: T and SUFFIX are defined before it is included, and are not any more behind it. */
#define moments WF_JOIN(moments, SUFFIX)
#define wf_lanes WF_JOIN(wf_lanes, SUFFIX)
#define wf_lanes_sum WF_JOIN(wf_lanes_sum, SUFFIX)
#define wf_moments WF_JOIN(wf_moments, SUFFIX)
#define grad WF_JOIN(grad, SUFFIX)
#define wf_grad_sums WF_JOIN(wf_grad_sums, SUFFIX)
#define affine WF_JOIN(affine, SUFFIX)
#define wf_affine WF_JOIN(wf_affine, SUFFIX)
#define blend WF_JOIN(blend, SUFFIX)
#define wf_blend WF_JOIN(wf_blend, SUFFIX)

WF_MULTIVERSION static void moments(const T *x, T shift, int64_t n, double sums[2])
{
    wf_lanes sum = {0}, square = {0}, v;
    T more = 0, squares = 0;
    int64_t i = 0;

    for (; i + WF_LANES <= n; i += WF_LANES) {
        memcpy(&v, x + i, sizeof v);
        v -= shift;
        sum += v;
        square += v * v;
    }
    for (; i < n; i++) {
        T one = x[i] - shift;

        more += one;
        squares += one * one;
    }
    sums[0] += (double)(wf_lanes_sum(&sum) + more);
    sums[1] += (double)(wf_lanes_sum(&square) + squares);
}

void wf_moments(const T *x, T shift, int64_t n, double sums[2])
{
    for (int64_t at = 0; at < n; at += BLOCK)
        moments(x + at, shift, WF_MIN(n - at, (int64_t)BLOCK), sums);
}

WF_MULTIVERSION static void grad(const T *dy, const T *x, T shift, int64_t n, double sums[2])
{
    wf_lanes sum = {0}, with = {0}, g, v;
    T more = 0, more_with = 0;
    int64_t i = 0;

    for (; i + WF_LANES <= n; i += WF_LANES) {
        memcpy(&g, dy + i, sizeof g);
        memcpy(&v, x + i, sizeof v);
        sum += g;
        with += g * (v - shift);
    }
    for (; i < n; i++) {
        more += dy[i];
        more_with += dy[i] * (x[i] - shift);
    }
    sums[0] += (double)(wf_lanes_sum(&sum) + more);
    sums[1] += (double)(wf_lanes_sum(&with) + more_with);
}

void wf_grad_sums(const T *dy, const T *x, T shift, int64_t n, double sums[2])
{
    for (int64_t at = 0; at < n; at += BLOCK)
        grad(dy + at, x + at, shift, WF_MIN(n - at, (int64_t)BLOCK), sums);
}

WF_MULTIVERSION static void affine(const T *x, T a, T b, T *y, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        y[i] = a * x[i] + b;
}

void wf_affine(const T *x, T a, T b, T *y, int64_t n)
{
    affine(x, a, b, y, n);
}

WF_MULTIVERSION static void blend(const T *dy, const T *x, T a, T b, T c, T *dx, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        dx[i] = a * dy[i] + b * x[i] + c;
}

void wf_blend(const T *dy, const T *x, T a, T b, T c, T *dx, int64_t n)
{
    blend(dy, x, a, b, c, dx, n);
}

#undef moments
#undef wf_lanes
#undef wf_lanes_sum
#undef wf_moments
#undef grad
#undef wf_grad_sums
#undef affine
#undef wf_affine
#undef blend
#undef wf_blend
#undef T
#undef SUFFIX
