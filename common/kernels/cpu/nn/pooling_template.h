/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/pooling_template.h - pooling and its gradients, of one type. A template for
 * pooling.c: T, SUFFIX, POWER and ABSOLUTE are defined before it is included, and are not any more
 * behind it. */
#define match WF_JOIN(match, SUFFIX)
#define match_one WF_JOIN(match_one, SUFFIX)
#define match_loop WF_JOIN(match_loop, SUFFIX)
#define match_tap WF_JOIN(match_tap, SUFFIX)
#define max_grad_rows WF_JOIN(max_grad_rows, SUFFIX)
#define max_grad_plane WF_JOIN(max_grad_plane, SUFFIX)
#define sum_loop WF_JOIN(sum_loop, SUFFIX)
#define sum_tap WF_JOIN(sum_tap, SUFFIX)
#define sum_all WF_JOIN(sum_all, SUFFIX)
#define average_plane WF_JOIN(average_plane, SUFFIX)
#define share_tap WF_JOIN(share_tap, SUFFIX)
#define average_grad_plane WF_JOIN(average_grad_plane, SUFFIX)
#define power_tap WF_JOIN(power_tap, SUFFIX)
#define lp_plane WF_JOIN(lp_plane, SUFFIX)
#define power_grad_tap WF_JOIN(power_grad_tap, SUFFIX)
#define lp_grad_plane WF_JOIN(lp_grad_plane, SUFFIX)

typedef struct match {
    const T *x;
    T *dx, y, dy;
} match;
static bool match_one(int64_t at, void *arg)
{
    match *m = arg;

    if (m->x[at] != m->y)
        return false;
    m->dx[at] += m->dy;
    return true;
}

/* What is left of dy goes to the first tap that equals y. */
WF_MULTIVERSION static void match_loop(const T *x, int64_t step, const T *y, T *left, T *dx,
                                       int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        bool hit = x[i * step] == y[i];

        dx[i * step] += hit ? left[i] : 0;
        left[i] = hit ? 0 : left[i];
    }
}

static void match_tap(const tap *t, void *arg)
{
    const strip *s = arg;

    match_loop((const T *)s->x + t->at, t->step, (const T *)s->out + t->lo, (T *)s->left + t->lo,
               (T *)s->y + t->at, t->hi - t->lo);
}

static void max_grad_rows(const job *j, int64_t p, T *dx)
{
    const wf_spatial *g = &j->v->g.s;
    T left[MOST_LEFT];

    for (int64_t r = 0; r < g->out[0] * g->out[1]; r++) {
        int64_t at = p * g->out_size + r * g->out[2];
        strip s = {.x = (const T *)j->in[1] + p * g->in_size,
                   .y = dx,
                   .left = left,
                   .out = (const T *)j->in[2] + at};

        memcpy(left, (const T *)j->in[0] + at, (size_t)g->out[2] * sizeof(T));
        row_taps(j->v, r, match_tap, &s);
    }
}

static void max_grad_plane(const job *j, int64_t p)
{
    const wf_spatial *g = &j->v->g.s;
    match m = {.x = (const T *)j->in[1] + p * g->in_size, .dx = (T *)j->out + p * g->in_size};

    memset(m.dx, 0, (size_t)g->in_size * sizeof(T));
    if (g->out[2] <= MOST_LEFT && !j->v->g.whole) {
        max_grad_rows(j, p, m.dx);
        return;
    }
    for (int64_t o = 0; o < g->out_size; o++) {
        m.dy = ((const T *)j->in[0])[p * g->out_size + o];
        m.y = ((const T *)j->in[2])[p * g->out_size + o];
        output_taps(g, o, match_one, &m);
    }
}

WF_MULTIVERSION static void sum_loop(const T *x, int64_t step, T *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i * step];
}

static void sum_tap(const tap *t, void *arg)
{
    const strip *s = arg;

    sum_loop((const T *)s->x + t->at, t->step, (T *)s->y + t->lo, t->hi - t->lo);
}

WF_MULTIVERSION static T sum_all(const T *x, int64_t n)
{
    T lane[16] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            lane[k] += x[i + k];
    for (; i < n; i++)
        sum += x[i];
    for (int k = 0; k < 16; k++)
        sum += lane[k];
    return sum;
}

static void average_plane(const job *j, int64_t p)
{
    const wf_spatial *g = &j->v->g.s;
    const T *x = (const T *)j->in[0] + p * g->in_size;

    if (j->v->g.whole) {
        ((T *)j->out)[p] = sum_all(x, g->in_size) / (T)g->in_size;
        return;
    }
    for (int64_t r = 0; r < g->out[0] * g->out[1]; r++) {
        T *y = (T *)j->out + p * g->out_size + r * g->out[2];
        strip s = {.x = x, .y = y};
        double share = j->v->share[0][r / g->out[1]] * j->v->share[1][r % g->out[1]];

        memset(y, 0, (size_t)g->out[2] * sizeof(T));
        row_taps(j->v, r, sum_tap, &s);
        for (int64_t i = 0; i < g->out[2]; i++)
            y[i] *= (T)(share * j->v->share[2][i]);
    }
}

static void share_tap(const tap *t, void *arg)
{
    const strip *s = arg;
    const T *dy = (const T *)s->dy + t->lo;
    T *dx = (T *)s->y + t->at;

    for (int64_t i = 0; i < t->hi - t->lo; i++)
        dx[i * t->step] += dy[i] * (T)(s->weight * s->share[t->lo + i]);
}

static void average_grad_plane(const job *j, int64_t p)
{
    const wf_spatial *g = &j->v->g.s;
    T *dx = (T *)j->out + p * g->in_size;
    const T *dy = (const T *)j->in[0] + p * g->out_size;

    if (j->v->g.whole) {
        for (int64_t i = 0; i < g->in_size; i++)
            dx[i] = dy[0] / (T)g->in_size;
        return;
    }
    memset(dx, 0, (size_t)g->in_size * sizeof(T));
    for (int64_t r = 0; r < g->out[0] * g->out[1]; r++) {
        strip s = {.y = dx, .dy = dy + r * g->out[2], .share = j->v->share[2]};

        s.weight = j->v->share[0][r / g->out[1]] * j->v->share[1][r % g->out[1]];
        row_taps(j->v, r, share_tap, &s);
    }
}

static void power_tap(const tap *t, void *arg)
{
    const strip *s = arg;
    const T *x = (const T *)s->x + t->at;
    T *y = (T *)s->y + t->lo;

    for (int64_t i = 0; i < t->hi - t->lo; i++)
        y[i] += POWER(ABSOLUTE(x[i * t->step]), (T)s->p);
}

static void lp_plane(const job *j, int64_t p)
{
    const wf_spatial *g = &j->v->g.s;

    for (int64_t r = 0; r < g->out[0] * g->out[1]; r++) {
        T *y = (T *)j->out + p * g->out_size + r * g->out[2];
        strip s = {.x = (const T *)j->in[0] + p * g->in_size, .y = y, .p = j->v->g.p};

        memset(y, 0, (size_t)g->out[2] * sizeof(T));
        row_taps(j->v, r, power_tap, &s);
        for (int64_t i = 0; i < g->out[2]; i++)
            y[i] = POWER(y[i], (T)(1.0 / j->v->g.p));
    }
}

/* dx = dy sign(x) (|x| / y)^(p - 1); 0 where y is. */
static void power_grad_tap(const tap *t, void *arg)
{
    const strip *s = arg;
    const T *x = (const T *)s->x + t->at, *y = (const T *)s->out + t->lo;
    const T *dy = (const T *)s->dy + t->lo;
    T *dx = (T *)s->y + t->at;

    for (int64_t i = 0; i < t->hi - t->lo; i++) {
        T v = x[i * t->step];

        if (y[i] != 0 && v != 0)
            dx[i * t->step] += (v < 0 ? -dy[i] : dy[i]) * POWER(ABSOLUTE(v) / y[i], (T)(s->p - 1));
    }
}

static void lp_grad_plane(const job *j, int64_t p)
{
    const wf_spatial *g = &j->v->g.s;
    T *dx = (T *)j->out + p * g->in_size;

    memset(dx, 0, (size_t)g->in_size * sizeof(T));
    for (int64_t r = 0; r < g->out[0] * g->out[1]; r++) {
        int64_t at = p * g->out_size + r * g->out[2];
        strip s = {.x = (const T *)j->in[1] + p * g->in_size,
                   .y = dx,
                   .dy = (const T *)j->in[0] + at,
                   .out = (const T *)j->in[2] + at,
                   .p = j->v->g.p};

        row_taps(j->v, r, power_grad_tap, &s);
    }
}

#undef match
#undef match_one
#undef match_loop
#undef match_tap
#undef max_grad_rows
#undef max_grad_plane
#undef sum_loop
#undef sum_tap
#undef sum_all
#undef average_plane
#undef share_tap
#undef average_grad_plane
#undef power_tap
#undef lp_plane
#undef power_grad_tap
#undef lp_grad_plane
#undef T
#undef SUFFIX
#undef POWER
#undef ABSOLUTE
