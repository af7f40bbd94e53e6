/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/group_norm_template.h - groups forward and backward, of one type. A
 * template for group_norm.c: T and SUFFIX are defined before it is included, and are not any more
 * behind it. */
#define moments WF_JOIN(moments, SUFFIX)
#define wf_moments WF_JOIN(wf_moments, SUFFIX)
#define forward WF_JOIN(forward, SUFFIX)
#define wf_affine WF_JOIN(wf_affine, SUFFIX)
#define backward WF_JOIN(backward, SUFFIX)
#define wf_grad_sums WF_JOIN(wf_grad_sums, SUFFIX)
#define wf_blend WF_JOIN(wf_blend, SUFFIX)
#define parameters WF_JOIN(parameters, SUFFIX)

static void moments(const wf_group_norm *v, const T *x, double *mean, double *inv)
{
    int64_t n = v->each * v->inner;
    double sums[2] = {0, 0}, d;

    wf_moments(x, n ? x[0] : 0, n, sums);
    d = sums[0] / (double)n;
    *mean = (n ? (double)x[0] : 0) + d;
    d = sums[1] / (double)n - d * d;
    *inv = 1 / sqrt((d < 0 ? 0 : d) + v->epsilon);
}

static void forward(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_group_norm *v = j->v;

    for (int64_t r = begin; r < end; r++) {
        int64_t g = r % v->groups;
        const T *x = (const T *)j->x + r * v->each * v->inner;
        T *y = (T *)j->y + r * v->each * v->inner;
        double mean, inv;

        moments(v, x, &mean, &inv);
        for (int64_t c = 0; c < v->each; c++) {
            int64_t at = v->per_group ? g : g * v->each + c;
            double a = (double)((const T *)j->scale)[at] * inv;
            double b = (double)((const T *)j->bias)[at] - mean * a;

            wf_affine(x + c * v->inner, (T)a, (T)b, y + c * v->inner, v->inner);
        }
    }
}

static void backward(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_group_norm *v = j->v;
    double n = (double)(v->each * v->inner);

    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * v->each * v->inner, g = r % v->groups;
        const T *x = (const T *)j->x + at, *dy = (const T *)j->dy + at;
        T *dx = (T *)j->y + at;
        double mean, inv, all[2] = {0, 0}, b;

        moments(v, x, &mean, &inv);
        for (int64_t c = 0; c < v->each; c++) {
            double *sums = j->sums[r * v->each + c];
            double scale = (double)((const T *)j->scale)[v->per_group ? g : g * v->each + c];

            sums[0] = sums[1] = 0;
            wf_grad_sums(dy + c * v->inner, x + c * v->inner, (T)mean, v->inner, sums);
            sums[1] *= inv;
            all[0] += scale * sums[0];
            all[1] += scale * sums[1];
        }
        b = -inv * inv * all[1] / n;
        for (int64_t c = 0; j->y && c < v->each; c++) {
            double scale = (double)((const T *)j->scale)[v->per_group ? g : g * v->each + c];

            wf_blend(dy + c * v->inner, x + c * v->inner, (T)(inv * scale), (T)b,
                     (T)(-inv * all[0] / n - b * mean), dx + c * v->inner, v->inner);
        }
    }
}

static void parameters(const job *j, T *dscale, T *dbias)
{
    const wf_group_norm *v = j->v;
    int64_t channels = v->groups * v->each, n = v->per_group ? v->groups : channels;
    int64_t many = v->per_group ? v->each : 1;

    for (int64_t p = 0; p < n; p++) {
        double sums[2] = {0, 0};

        for (int64_t i = 0; i < v->images; i++)
            for (int64_t c = p * many; c < (p + 1) * many; c++) {
                sums[0] += j->sums[i * channels + c][0];
                sums[1] += j->sums[i * channels + c][1];
            }
        if (dscale)
            dscale[p] = (T)sums[1];
        if (dbias)
            dbias[p] = (T)sums[0];
    }
}

#undef moments
#undef wf_moments
#undef forward
#undef wf_affine
#undef backward
#undef wf_grad_sums
#undef wf_blend
#undef parameters
#undef T
#undef SUFFIX
