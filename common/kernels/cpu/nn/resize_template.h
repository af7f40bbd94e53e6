/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/resize_template.h - a pass along one axis, of one type. A template for
 * resize.c: T and SUFFIX are defined before it is included, and are not any more behind it. */
#define axpy WF_JOIN(axpy, SUFFIX)
#define weigh WF_JOIN(weigh, SUFFIX)
#define weigh_back WF_JOIN(weigh_back, SUFFIX)
#define typed_outside WF_JOIN(outside, SUFFIX)

WF_MULTIVERSION static void axpy(T w, const T *x, T *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += w * x[i];
}

static void weigh(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const pass *p = j->p;

    for (int64_t r = begin; r < end; r++) {
        int64_t o = r % p->out;
        T *y = (T *)(void *)j->to + r * p->inner;

        memset(y, 0, (size_t)p->inner * sizeof(T));
        for (uint32_t k = 0; k < p->taps; k++)
            axpy((T)p->weight[o * p->taps + k],
                 (const T *)(const void *)j->from +
                     (r / p->out * p->in + p->from[o * p->taps + k]) * p->inner,
                 y, p->inner);
    }
}

static void weigh_back(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const pass *p = j->p;

    for (int64_t r = begin; r < end; r++) {
        T *x = (T *)(void *)j->to + r * p->in * p->inner;

        memset(x, 0, (size_t)(p->in * p->inner) * sizeof(T));
        for (int64_t o = 0; o < p->out; o++)
            for (uint32_t k = 0; k < p->taps; k++)
                axpy((T)p->weight[o * p->taps + k],
                     (const T *)(const void *)j->from + (r * p->out + o) * p->inner,
                     x + p->from[o * p->taps + k] * p->inner, p->inner);
    }
}

/* Puts value where any axis lies outside: along this pass's axis. */
static void typed_outside(const pass *p, double value, T *y)
{
    for (int64_t r = 0; r < p->outer * p->out; r++)
        for (int64_t i = 0; p->outside[r % p->out] && i < p->inner; i++)
            y[r * p->inner + i] = (T)value;
}

#undef axpy
#undef weigh
#undef weigh_back
#undef typed_outside
#undef T
#undef SUFFIX
