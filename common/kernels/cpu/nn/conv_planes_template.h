/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/conv_planes_template.h - convolutions of planes, of one type. A template
 * for conv_planes.c: T and SUFFIX are defined before it is included, and are not any more behind
 * it. */
#define sum_taps WF_JOIN(sum_taps, SUFFIX)
#define wf_lanes WF_JOIN(wf_lanes, SUFFIX)
#define dot WF_JOIN(dot, SUFFIX)
#define wf_lanes_sum WF_JOIN(wf_lanes_sum, SUFFIX)
#define step WF_JOIN(step, SUFFIX)
#define pad WF_JOIN(pad, SUFFIX)
#define unpad WF_JOIN(unpad, SUFFIX)
#define typed_spread WF_JOIN(spread, SUFFIX)
#define forward WF_JOIN(forward, SUFFIX)
#define data WF_JOIN(data, SUFFIX)
#define weights WF_JOIN(weights, SUFFIX)
#define plane WF_JOIN(plane, SUFFIX)

/* y[i] = sum over k of w[k] x[at[k] + i]; reads and writes up to BLOCK elements behind n. */
WF_MULTIVERSION static void sum_taps(const T *x, const int64_t *at, const T *w, int64_t taps, T *y,
                                     int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK) {
        wf_lanes sum = {0}, more = {0}, some;

        for (int64_t k = 0; k < taps; k++) {
            memcpy(&some, x + at[k] + i, sizeof some);
            sum += w[k] * some;
            memcpy(&some, x + at[k] + i + WF_LANES, sizeof some);
            more += w[k] * some;
        }
        memcpy(y + i, &sum, sizeof sum);
        memcpy(y + i + WF_LANES, &more, sizeof more);
    }
}

WF_MULTIVERSION static T dot(const T *x, const T *y, int64_t n)
{
    wf_lanes sums = {0}, a, b;
    T sum = 0;
    int64_t i = 0;

    for (; i + WF_LANES <= n; i += WF_LANES) {
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, y + i, sizeof b);
        sums += a * b;
    }
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum + wf_lanes_sum(&sums);
}

static void step(const T *x, int64_t from, T *y, int64_t to, int64_t n)
{
    if (from == 1 && to == 1)
        memcpy(y, x, (size_t)n * sizeof(T));
    else
        for (int64_t i = 0; i < n; i++)
            y[i * to] = x[i * from];
}

static void pad(const job *j, const T *x, T *padded)
{
    const wf_conv *v = j->v;
    const planes *p = j->p;

    memset(padded, 0, (size_t)p->elems * sizeof(T));
    for (int64_t r = 0; r < v->s.in[0] * v->s.in[1]; r++) {
        if (p->in_at[r] >= 0)
            memcpy(padded + p->in_at[r], x + r * v->s.in[2] + p->in_from,
                   (size_t)p->in_n * sizeof(T));
    }
}

static void unpad(const job *j, const T *padded, T *x)
{
    const wf_conv *v = j->v;
    const planes *p = j->p;

    memset(x, 0, (size_t)v->s.in_size * sizeof(T));
    for (int64_t r = 0; r < v->s.in[0] * v->s.in[1]; r++) {
        if (p->in_at[r] >= 0)
            memcpy(x + r * v->s.in[2] + p->in_from, padded + p->in_at[r],
                   (size_t)p->in_n * sizeof(T));
    }
}

/* Outputs to their places among zeros. */
static void typed_spread(const job *j, const T *y, T *to)
{
    const wf_conv *v = j->v;
    const planes *p = j->p;

    memset(to, 0, (size_t)p->outs * sizeof(T));
    for (int64_t r = 0; r < v->s.out[0] * v->s.out[1]; r++)
        step(y + r * v->s.out[2], 1, to + p->out_at[r], v->s.w.stride[2], v->s.out[2]);
}

static void forward(const job *j, const T *x, const T *w, T *y, T *work)
{
    const wf_conv *v = j->v;
    const planes *p = j->p;
    T *sums = work + p->elems + BLOCK;

    pad(j, x, work);
    if (p->dense)
        sum_taps(work, p->at, w, v->s.taps, sums, p->outs);
    for (int64_t r = 0; r < v->s.out[0] * v->s.out[1]; r++) {
        int64_t at = p->out_at[r];

        if (!p->dense)
            sum_taps(work + at, p->at, w, v->s.taps, sums + at, row_size(v));
        step(sums + at, v->s.w.stride[2], y + r * v->s.out[2], 1, v->s.out[2]);
    }
}

static void data(const job *j, T *x, const T *w, const T *y, T *work)
{
    const planes *p = j->p;
    T *spread = work + p->elems + BLOCK; /* with zeros of `reach` on both sides */

    memset(spread, 0, (size_t)p->reach * sizeof(T));
    typed_spread(j, y, spread + p->reach);
    memset(spread + p->elems, 0, (size_t)p->reach * sizeof(T));
    sum_taps(spread, p->back, w, j->v->s.taps, work, p->elems);
    unpad(j, work, x);
}

static void weights(const job *j, const T *x, T *w, const T *y, T *work)
{
    const wf_conv *v = j->v;
    const planes *p = j->p;
    T *spread = work + p->elems + BLOCK;
    int64_t rows = p->dense ? 1 : v->s.out[0] * v->s.out[1];

    pad(j, x, work);
    typed_spread(j, y, spread);
    for (int64_t k = 0; k < v->s.taps; k++)
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = p->dense ? 0 : p->out_at[r];

            w[k] += dot(work + at + p->at[k], spread + at, p->dense ? p->outs : row_size(v));
        }
}

static void plane(const job *j, T *x, T *w, T *y, T *work)
{
    if (j->v->pass == WF_CONV_FORWARD)
        forward(j, x, w, y, work);
    else if (j->v->pass == WF_CONV_DATA)
        data(j, x, w, y, work);
    else
        weights(j, x, w, y, work);
}

#undef sum_taps
#undef wf_lanes
#undef dot
#undef wf_lanes_sum
#undef step
#undef pad
#undef unpad
#undef typed_spread
#undef forward
#undef data
#undef weights
#undef plane
#undef T
#undef SUFFIX
