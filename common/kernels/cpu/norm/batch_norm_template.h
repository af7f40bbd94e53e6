/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/batch_norm_template.h - channels forward and backward, of one type. A
 * template for batch_norm.c: T, SUFFIX, IS_F64 and NARROW are defined before it is included, and
 * are not any more behind it. */
#define batch_moments WF_JOIN(batch_moments, SUFFIX)
#define wf_moments WF_JOIN(wf_moments, SUFFIX)
#define given WF_JOIN(given, SUFFIX)
#define put_plane WF_JOIN(put_plane, SUFFIX)
#define forward_block WF_JOIN(forward_block, SUFFIX)
#define wf_affine WF_JOIN(wf_affine, SUFFIX)
#define backward_block WF_JOIN(backward_block, SUFFIX)
#define wf_grad_sums WF_JOIN(wf_grad_sums, SUFFIX)
#define wf_blend WF_JOIN(wf_blend, SUFFIX)
#define forward WF_JOIN(forward, SUFFIX)
#define backward WF_JOIN(backward, SUFFIX)

/* Mean and variance of channels [c0, c1), at most TOGETHER. */
static void batch_moments(const job *j, int64_t c0, int64_t c1, double mean[], double var[])
{
    double count = (double)(j->v.batch * j->v.inner), sums[TOGETHER][2] = {{0}};
    const T *x = j->x;

    for (int64_t n = 0; n < j->v.batch; n++)
        for (int64_t c = c0; c < c1; c++)
            wf_moments(x + plane(j, n, c), j->v.inner ? x[plane(j, 0, c)] : 0, j->v.inner,
                       sums[c - c0]);
    for (int64_t c = c0; c < c1; c++) {
        double d = sums[c - c0][0] / count, v = sums[c - c0][1] / count - d * d;

        mean[c - c0] = (double)(count > 0 ? x[plane(j, 0, c)] : 0) + d;
        var[c - c0] = v < 0 ? 0 : v; /* by rounding; NaN stays */
    }
}

static void given(const job *j, int64_t c0, int64_t c1, double mean[], double var[])
{
    for (int64_t c = c0; c < c1; c++) {
        mean[c - c0] = number(j->mean, c, IS_F64);
        var[c - c0] = number(j->var, c, IS_F64);
    }
}

/* a dy + b x + c of a plane, or without dy; a tile at a time if that is of bfloat16. */
static void put_plane(const job *j, int64_t at, bool has_dy, T a, T b, T c)
{
    int64_t most = j->y_is_bf16 ? WF_NARROW_TILE : j->v.inner;
    T room[WF_NARROW_TILE];

    for (int64_t end = at + j->v.inner; at < end; at += most) {
        const T *x = (const T *)j->x + at;
        int64_t n = WF_MIN(end - at, most);
        T *y = j->y_is_bf16 ? room : (T *)j->y + at;

        if (has_dy)
            wf_blend((const T *)j->dy + at, x, a, b, c, y, n);
        else
            wf_affine(x, b, c, y, n);
        if (j->y_is_bf16)
            NARROW(j->y, true, at, n, room);
    }
}

static void forward_block(const job *j, int64_t c0, int64_t c1)
{
    double mean[TOGETHER], var[TOGETHER];
    T a[TOGETHER], b[TOGETHER];

    (j->v.training ? batch_moments : given)(j, c0, c1, mean, var);
    for (int64_t c = c0; c < c1; c++) {
        double slope = number(j->scale, c, IS_F64) / sqrt(var[c - c0] + j->v.epsilon);

        if (j->v.training) {
            put(j->means, c, moved(j, j->mean, c, mean[c - c0], IS_F64), IS_F64);
            put(j->vars, c, moved(j, j->var, c, var[c - c0], IS_F64), IS_F64);
        }
        a[c - c0] = (T)slope;
        b[c - c0] = (T)(number(j->bias, c, IS_F64) - mean[c - c0] * slope);
    }
    for (int64_t n = 0; j->y && n < j->v.batch; n++)
        for (int64_t c = c0; c < c1; c++)
            put_plane(j, plane(j, n, c), false, 0, a[c - c0], b[c - c0]);
}

static void backward_block(const job *j, int64_t c0, int64_t c1)
{
    double count = (double)(j->v.batch * j->v.inner), mean[TOGETHER], var[TOGETHER];
    double sums[TOGETHER][2] = {{0}};
    T a[TOGETHER], b[TOGETHER], shift[TOGETHER];

    (j->mean ? given : batch_moments)(j, c0, c1, mean, var);
    for (int64_t n = 0; n < j->v.batch; n++)
        for (int64_t c = c0; c < c1; c++)
            wf_grad_sums((const T *)j->dy + plane(j, n, c), (const T *)j->x + plane(j, n, c),
                         (T)mean[c - c0], j->v.inner, sums[c - c0]);
    for (int64_t c = c0; c < c1; c++) {
        double *s = sums[c - c0], inv = 1 / sqrt(var[c - c0] + j->v.epsilon);
        double slope = number(j->scale, c, IS_F64) * inv;
        double back = j->v.training ? -slope * inv * inv * s[1] / count : 0;

        put(j->dscale, c, s[1] * inv, IS_F64);
        put(j->dbias, c, s[0], IS_F64);
        a[c - c0] = (T)slope;
        b[c - c0] = (T)back;
        shift[c - c0] = (T)(j->v.training ? -slope * s[0] / count - back * mean[c - c0] : 0);
    }
    for (int64_t n = 0; j->y && n < j->v.batch; n++)
        for (int64_t c = c0; c < c1; c++)
            put_plane(j, plane(j, n, c), true, a[c - c0], b[c - c0], shift[c - c0]);
}

static void forward(void *arg, int64_t begin, int64_t end)
{
    int64_t some = channels_at_once(arg);

    for (int64_t c = begin; c < end; c += some)
        forward_block(arg, c, WF_MIN(c + some, end));
}

static void backward(void *arg, int64_t begin, int64_t end)
{
    int64_t some = channels_at_once(arg);

    for (int64_t c = begin; c < end; c += some)
        backward_block(arg, c, WF_MIN(c + some, end));
}

#undef batch_moments
#undef wf_moments
#undef given
#undef put_plane
#undef forward_block
#undef wf_affine
#undef backward_block
#undef wf_grad_sums
#undef wf_blend
#undef forward
#undef backward
#undef T
#undef SUFFIX
#undef IS_F64
#undef NARROW
