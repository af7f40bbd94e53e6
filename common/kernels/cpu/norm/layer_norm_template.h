/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/layer_norm_template.h - rows forward and backward, of one type. A
 * template for layer_norm.c: T, SUFFIX and NARROW are defined before it is included, and are not
 * any more behind it. */
#define typed_moments WF_JOIN(moments, SUFFIX)
#define wf_moments WF_JOIN(wf_moments, SUFFIX)
#define row WF_JOIN(row, SUFFIX)
#define put_row WF_JOIN(put_row, SUFFIX)
#define forward WF_JOIN(forward, SUFFIX)
#define typed_sums WF_JOIN(sums, SUFFIX)
#define wf_lanes WF_JOIN(wf_lanes, SUFFIX)
#define wf_lanes_sum WF_JOIN(wf_lanes_sum, SUFFIX)
#define typed_dx WF_JOIN(dx, SUFFIX)
#define put_dx WF_JOIN(put_dx, SUFFIX)
#define backward WF_JOIN(backward, SUFFIX)
#define add WF_JOIN(add, SUFFIX)
#define plus WF_JOIN(plus, SUFFIX)
#define tile WF_JOIN(tile, SUFFIX)
#define typed_columns WF_JOIN(columns, SUFFIX)

static void typed_moments(const wf_layer_norm *v, const T *x, double *mean, double *inv)
{
    double sums[2] = {0, 0}, n = (double)v->n, d;
    T shift = v->rms || !v->n ? 0 : x[0];

    wf_moments(x, shift, v->n, sums);
    d = v->rms ? 0 : sums[0] / n;
    *mean = (double)shift + d;
    d = sums[1] / n - d * d;
    *inv = 1 / sqrt((d < 0 ? 0 : d) + v->epsilon);
}

WF_MULTIVERSION static void row(const T *x, const T *scale, const T *bias, T mean, T inv, T *y,
                                int64_t n)
{
    if (bias) {
        WF_NO_OVERLAP
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * inv * scale[i] + bias[i];
    } else {
        WF_NO_OVERLAP
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * inv * scale[i];
    }
}

/* Row r of y, a tile at a time if it is of bfloat16. */
static void put_row(const job *j, int64_t r, T mean, T inv)
{
    const T *x = (const T *)j->x + r * j->v->n, *scale = j->scale, *bias = j->bias;
    T room[WF_NARROW_TILE];

    if (!j->y_is_bf16) {
        row(x, scale, bias, mean, inv, (T *)j->y + r * j->v->n, j->v->n);
        return;
    }
    for (int64_t at = 0; at < j->v->n; at += WF_NARROW_TILE) {
        int64_t n = WF_MIN(j->v->n - at, (int64_t)WF_NARROW_TILE);

        row(x + at, scale + at, bias ? bias + at : NULL, mean, inv, room, n);
        NARROW(j->y, true, r * j->v->n + at, n, room);
    }
}

static void forward(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t r = begin; r < end; r++) {
        double mean, inv;

        typed_moments(j->v, (const T *)j->x + r * j->v->n, &mean, &inv);
        if (j->y)
            put_row(j, r, (T)mean, (T)inv);
        if (j->mean)
            j->mean[r] = (float)mean;
        if (j->inv)
            j->inv[r] = (float)inv;
    }
}

/* sums of dy scale, and of dy scale times the normalised x */
WF_MULTIVERSION static void typed_sums(const T *dy, const T *x, const T *scale, T mean, T inv,
                                       int64_t n, double sums[2])
{
    wf_lanes sum = {0}, with = {0}, g, v, s;
    T more = 0, more_with = 0;
    int64_t i = 0;

    for (; i + WF_LANES <= n; i += WF_LANES) {
        memcpy(&g, dy + i, sizeof g);
        memcpy(&v, x + i, sizeof v);
        memcpy(&s, scale + i, sizeof s);
        g *= s;
        sum += g;
        with += g * ((v - mean) * inv);
    }
    for (; i < n; i++) {
        more += dy[i] * scale[i];
        more_with += dy[i] * scale[i] * ((x[i] - mean) * inv);
    }
    sums[0] = (double)(wf_lanes_sum(&sum) + more);
    sums[1] = (double)(wf_lanes_sum(&with) + more_with);
}

WF_MULTIVERSION static void typed_dx(const T *dy, const T *x, const T *scale, T mean, T inv,
                                     T first, T second, T *dx, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        dx[i] = inv * (dy[i] * scale[i] - first - (x[i] - mean) * inv * second);
}

/* Row r of dx; sums: divided by n. */
static void put_dx(const job *j, int64_t r, const T *dy, const T *x, const double sums[2])
{
    int64_t n = j->v->n;
    T mean = (T)j->moments[r][0], inv = (T)j->moments[r][1], room[WF_NARROW_TILE];
    const T *scale = j->scale;

    if (!j->y_is_bf16) {
        typed_dx(dy, x, scale, mean, inv, (T)sums[0], (T)sums[1], (T *)j->y + r * n, n);
        return;
    }
    for (int64_t at = 0; at < n; at += WF_NARROW_TILE) {
        int64_t some = WF_MIN(n - at, (int64_t)WF_NARROW_TILE);

        typed_dx(dy + at, x + at, scale + at, mean, inv, (T)sums[0], (T)sums[1], room, some);
        NARROW(j->y, true, r * n + at, some, room);
    }
}

static void backward(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t n = j->v->n;

    for (int64_t r = begin; r < end; r++) {
        const T *dy = (const T *)j->dy + r * n, *x = (const T *)j->x + r * n;
        double sums[2], *m = j->moments[r];

        typed_moments(j->v, x, &m[0], &m[1]);
        if (!j->y)
            continue;
        typed_sums(dy, x, j->scale, (T)m[0], (T)m[1], n, sums);
        sums[0] = j->v->rms ? 0 : sums[0] / (double)n;
        sums[1] /= (double)n;
        put_dx(j, r, dy, x, sums);
    }
}

WF_MULTIVERSION static void add(const T *dy, const T *x, T mean, T inv, T *dscale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dscale[i] += dy[i] * ((x[i] - mean) * inv);
}

WF_MULTIVERSION static void plus(const T *dy, T *dbias, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dbias[i] += dy[i];
}

/* Rows [from, to) of columns [at, at + n), n at most TILE. */
static void tile(const job *j, int64_t from, int64_t to, int64_t at, int64_t n)
{
    T scale[TILE] = {0}, bias[TILE] = {0};
    T *dscale = j->dscale, *dbias = j->dbias;

    for (int64_t r = from; r < to; r++) {
        const T *dy = (const T *)j->dy + r * j->v->n + at;
        const T *x = (const T *)j->x + r * j->v->n + at;

        if (dscale)
            add(dy, x, (T)j->moments[r][0], (T)j->moments[r][1], scale, n);
        if (dbias)
            plus(dy, bias, n);
    }
    if (dscale)
        plus(scale, dscale + at, n);
    if (dbias)
        plus(bias, dbias + at, n);
}

static void typed_columns(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    if (j->dscale)
        memset((T *)j->dscale + begin, 0, (size_t)(end - begin) * sizeof(T));
    if (j->dbias)
        memset((T *)j->dbias + begin, 0, (size_t)(end - begin) * sizeof(T));
    for (int64_t r = 0; r < j->v->rows; r += BLOCK)
        for (int64_t at = begin; at < end; at += TILE)
            tile(j, r, WF_MIN(r + BLOCK, j->v->rows), at, WF_MIN(end - at, (int64_t)TILE));
}

#undef typed_moments
#undef wf_moments
#undef row
#undef put_row
#undef forward
#undef typed_sums
#undef wf_lanes
#undef wf_lanes_sum
#undef typed_dx
#undef put_dx
#undef backward
#undef add
#undef plus
#undef tile
#undef typed_columns
#undef T
#undef SUFFIX
#undef NARROW
