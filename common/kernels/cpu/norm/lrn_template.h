/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/lrn_template.h - local response normalization, of one type. A template
 * for lrn.c: T, SUFFIX and POWER are defined before it is included, and are not any more behind it.
 */
#define sum_at WF_JOIN(sum_at, SUFFIX)
#define forward WF_JOIN(forward, SUFFIX)
#define first WF_JOIN(first, SUFFIX)
#define second WF_JOIN(second, SUFFIX)

static T sum_at(const job *j, const T *image, int64_t c, int64_t i)
{
    int64_t from = WF_MAX(c - (j->v.size - 1) / 2, (int64_t)0);
    int64_t to = WF_MIN(c + j->v.size / 2 + 1, j->v.channels);
    T sum = 0;

    for (int64_t k = from; k < to; k++)
        sum += image[k * j->v.inner + i] * image[k * j->v.inner + i];
    return (T)j->v.bias + (T)(j->v.alpha / (double)j->v.size) * sum;
}

static void forward(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t p = begin; p < end; p++) {
        int64_t c = p % j->v.channels;
        const T *image = (const T *)j->x + (p - c) * j->v.inner;

        for (int64_t i = 0; i < j->v.inner; i++)
            ((T *)j->out)[p * j->v.inner + i] =
                image[c * j->v.inner + i] * POWER(sum_at(j, image, c, i), (T)-j->v.beta);
    }
}

static void first(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t p = begin; p < end; p++) {
        int64_t c = p % j->v.channels;
        const T *image = (const T *)j->x + (p - c) * j->v.inner;

        for (int64_t i = 0; i < j->v.inner; i++) {
            int64_t at = p * j->v.inner + i;
            T s = sum_at(j, image, c, i), y = POWER(s, (T)-j->v.beta);

            ((T *)j->s)[at] = y;
            ((T *)j->t)[at] = ((const T *)j->dy)[at] * ((const T *)j->x)[at] * y / s;
        }
    }
}

/* Channel c lies in the windows of those from c - size / 2 on. */
static void second(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    T factor = (T)(2 * j->v.alpha * j->v.beta / (double)j->v.size);

    for (int64_t p = begin; p < end; p++) {
        int64_t c = p % j->v.channels, from = WF_MAX(c - j->v.size / 2, (int64_t)0);
        int64_t to = WF_MIN(c + (j->v.size - 1) / 2 + 1, j->v.channels);
        const T *t = (const T *)j->t + (p - c) * j->v.inner;

        for (int64_t i = 0; i < j->v.inner; i++) {
            int64_t at = p * j->v.inner + i;
            T sum = 0;

            for (int64_t k = from; k < to; k++)
                sum += t[k * j->v.inner + i];
            ((T *)j->out)[at] = ((const T *)j->dy)[at] * ((const T *)j->s)[at] -
                                factor * ((const T *)j->x)[at] * sum;
        }
    }
}

#undef sum_at
#undef forward
#undef first
#undef second
#undef T
#undef SUFFIX
#undef POWER
