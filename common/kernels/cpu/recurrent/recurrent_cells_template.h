/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent_cells_template.h - the cells of a step and their
 * gradients, of one type. A template for recurrent_cells.c: T, SUFFIX, SIGMOID and TANH are defined
 * before it is included, and are not any more behind it. */
#define gate_sigmoid WF_JOIN(gate_sigmoid, SUFFIX)
#define gate_tanh WF_JOIN(gate_tanh, SUFFIX)
#define rnn_step WF_JOIN(rnn_step, SUFFIX)
#define product WF_JOIN(product, SUFFIX)
#define rnn_back_row WF_JOIN(rnn_back_row, SUFFIX)
#define rnn_back WF_JOIN(rnn_back, SUFFIX)
#define lstm_merge WF_JOIN(lstm_merge, SUFFIX)
#define lstm_out WF_JOIN(lstm_out, SUFFIX)
#define lstm_gates WF_JOIN(lstm_gates, SUFFIX)
#define lstm_plain WF_JOIN(lstm_plain, SUFFIX)
#define lstm_step WF_JOIN(lstm_step, SUFFIX)
#define lstm_back_row WF_JOIN(lstm_back_row, SUFFIX)
#define lstm_back WF_JOIN(lstm_back, SUFFIX)
#define gru_mix WF_JOIN(gru_mix, SUFFIX)
#define gru_early WF_JOIN(gru_early, SUFFIX)
#define gru_late WF_JOIN(gru_late, SUFFIX)
#define gru_linear WF_JOIN(gru_linear, SUFFIX)
#define gru_step WF_JOIN(gru_step, SUFFIX)
#define gru_reset_step WF_JOIN(gru_reset_step, SUFFIX)
#define gru_late_row WF_JOIN(gru_late_row, SUFFIX)
#define gru_late_back WF_JOIN(gru_late_back, SUFFIX)
#define gru_reset_back WF_JOIN(gru_reset_back, SUFFIX)
#define gru_back WF_JOIN(gru_back, SUFFIX)

WF_MULTIVERSION static void gate_sigmoid(T *g, const T *add, const T *p, const T *c, T *slope,
                                         T limit, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        T x = g[i] + add[i] + (p ? p[i] * c[i] : 0), y, d;

        ACTIVATE(T, x, SIGMOID, y * (1 - y), y, d);
        g[i] = y;
        if (slope)
            slope[i] = d;
    }
}

WF_MULTIVERSION static void gate_tanh(T *g, const T *add, T *slope, T limit, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        T x = g[i] + add[i], y, d;

        ACTIVATE(T, x, TANH, 1 - y * y, y, d);
        g[i] = y;
        if (slope)
            slope[i] = d;
    }
}

WF_MULTIVERSION static void rnn_step(const wf_cell *s, T limit)
{
    T *g = s->gates, *slope = s->slope, *h = s->state;

    if (!s->relu)
        gate_tanh(g, s->recurrent, slope, limit, s->h);
    for (int64_t i = 0; i < s->h; i++) {
        T x = g[i] + ((const T *)s->recurrent)[i];

        if (s->relu) {
            g[i] = x > 0 ? (x < limit ? x : limit) : 0;
            if (slope)
                slope[i] = x > 0 && x <= limit ? 1 : 0;
        }
        if (h)
            h[i] = g[i];
    }
}

WF_MULTIVERSION static void product(const T *a, const T *b, T *out, int64_t n)
{
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] * b[i];
}

static WF_INLINE void rnn_back_row(const wf_cell *s, const bool kept, const bool relu)
{
    int64_t n = s->h;
    const T *g = s->gates, *slope = s->slope, *dh = s->dstate;
    T *dg = s->dgates;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        dg[i] = dh[i] * (relu && !kept ? (T)(g[i] > 0) : SLOPE_TANH(0));
}

WF_MULTIVERSION static void rnn_back(const wf_cell *s)
{
    if (s->slope)
        rnn_back_row(s, true, false);
    else if (s->relu)
        rnn_back_row(s, false, true);
    else
        rnn_back_row(s, false, false);
}

WF_MULTIVERSION static void lstm_merge(const wf_cell *s)
{
    int64_t n = s->h;
    const T *g = s->gates, *before = s->c_before;
    T *c = s->c;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++)
        c[i] = g[2 * n + i] * before[i] + g[i] * g[3 * n + i];
}

WF_MULTIVERSION static void lstm_out(const wf_cell *s, T limit)
{
    const T *o = (const T *)s->gates + s->h, *c = s->c;
    T *h = s->state;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < s->h; i++) {
        T x = c[i] > limit ? limit : c[i] < -limit ? -limit : c[i];

        h[i] = o[i] * TANH(x);
    }
}

static void lstm_gates(const wf_cell *s, T limit)
{
    int64_t n = s->h;
    T *g = s->gates, *slope = s->slope;
    const T *r = s->recurrent, *p = s->peephole;

    gate_sigmoid(g, r, p, s->c_before, slope, limit, n);
    gate_sigmoid(g + 2 * n, r + 2 * n, p ? p + 2 * n : NULL, s->c_before,
                 slope ? slope + 2 * n : NULL, limit, n);
    gate_tanh(g + 3 * n, r + 3 * n, slope ? slope + 3 * n : NULL, limit, n);
    lstm_merge(s);
    gate_sigmoid(g + n, r + n, p ? p + n : NULL, s->c, slope ? slope + n : NULL, limit, n);
    lstm_out(s, limit);
}

WF_MULTIVERSION static void lstm_plain(const wf_cell *s)
{
    int64_t n = s->h;
    T *g = s->gates, *c = s->c, *h = s->state;
    const T *r = s->recurrent, *before = s->c_before;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        T in = SIGMOID(g[i] + r[i]), out = SIGMOID(g[n + i] + r[n + i]);
        T forget = SIGMOID(g[2 * n + i] + r[2 * n + i]);
        T new = TANH(g[3 * n + i] + r[3 * n + i]), cell = forget *before[i] + in *new;

        g[i] = in;
        g[n + i] = out;
        g[2 * n + i] = forget;
        g[3 * n + i] = new;
        c[i] = cell;
        h[i] = out * TANH(cell);
    }
}

static void lstm_step(const wf_cell *s, T limit)
{
    if (s->clip > 0 || s->peephole)
        lstm_gates(s, limit);
    else
        lstm_plain(s);
}

static WF_INLINE void lstm_back_row(const wf_cell *s, T limit, const bool kept, const bool peeps)
{
    int64_t n = s->h;
    const T *g = s->gates, *slope = s->slope, *p = s->peephole, *dh = s->dstate;
    const T *c = s->c, *before = s->c_before;
    T *dg = s->dgates, *dc = s->dc;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        T th, ts, d, in = g[i], out = g[n + i], forget = g[2 * n + i], new = g[3 * n + i];
        T di, dout, df;

        ACTIVATE(T, c[i], TANH, 1 - th * th, th, ts);
        dout = dh[i] * th * SLOPE_SIGMOID(1);
        d = dc[i] + dh[i] * out * ts + (peeps ? dout * p[n + i] : 0);
        di = d * new *SLOPE_SIGMOID(0);
        df = d * before[i] * SLOPE_SIGMOID(2);
        dg[i] = di;
        dg[n + i] = dout;
        dg[2 * n + i] = df;
        dg[3 * n + i] = d * in * SLOPE_TANH(3);
        dc[i] = d * forget + (peeps ? di * p[i] + df * p[2 * n + i] : 0);
    }
}

WF_MULTIVERSION static void lstm_back(const wf_cell *s, T limit)
{
    if (s->slope && s->peephole)
        lstm_back_row(s, limit, true, true);
    else if (s->slope)
        lstm_back_row(s, limit, true, false);
    else if (s->peephole)
        lstm_back_row(s, limit, false, true);
    else
        lstm_back_row(s, limit, false, false);
}

WF_MULTIVERSION static void gru_mix(const wf_cell *s)
{
    const T *z = s->gates, *n = (const T *)s->gates + 2 * s->h, *before = s->before;
    T *h = s->state;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < s->h; i++)
        h[i] = (1 - z[i]) * n[i] + z[i] * before[i];
}

static void gru_early(const wf_cell *s, T limit)
{
    gate_sigmoid(s->gates, s->recurrent, NULL, NULL, s->slope, limit, 2 * s->h);
}

static void gru_late(const wf_cell *s, const T *add, T limit)
{
    gate_tanh((T *)s->gates + 2 * s->h, add, s->slope ? (T *)s->slope + 2 * s->h : NULL, limit,
              s->h);
    if (s->state)
        gru_mix(s);
}

WF_MULTIVERSION static void gru_linear(const wf_cell *s)
{
    const T *r = (const T *)s->gates + s->h, *bias = s->bias_h;
    T *add = (T *)s->recurrent + 2 * s->h, *kept = s->reset;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < s->h; i++) {
        kept[i] = add[i] + (bias ? bias[i] : 0);
        add[i] = r[i] * kept[i];
    }
}

static void gru_step(const wf_cell *s, T limit)
{
    gru_early(s, limit);
    gru_linear(s);
    gru_late(s, (const T *)s->recurrent + 2 * s->h, limit);
}

static void gru_reset_step(const wf_cell *s, T limit)
{
    gru_early(s, limit);
    product((const T *)s->gates + s->h, s->before, s->reset, s->h);
}

static WF_INLINE void gru_late_row(const wf_cell *s, const bool kept)
{
    int64_t n = s->h;
    const T *g = s->gates, *slope = s->slope, *dh = s->dstate, *before = s->before;
    T *dg = s->dgates, *direct = s->direct;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        dg[2 * n + i] = dh[i] * (1 - g[i]) * SLOPE_TANH(2);
        dg[i] = dh[i] * (before[i] - g[2 * n + i]) * SLOPE_SIGMOID(0);
        direct[i] = dh[i] * g[i];
    }
}

WF_MULTIVERSION static void gru_late_back(const wf_cell *s)
{
    if (s->slope)
        gru_late_row(s, true);
    else
        gru_late_row(s, false);
}

WF_MULTIVERSION static void gru_reset_back(const wf_cell *s)
{
    int64_t n = s->h;
    const T *g = s->gates, *slope = s->slope, *dreset = s->dreset, *before = s->before;
    T *dg = (T *)s->dgates + n, *direct = s->direct;
    const bool kept = slope != NULL;

    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        dg[i] = dreset[i] * before[i] * SLOPE_SIGMOID(1);
        direct[i] += dreset[i] * g[n + i];
    }
}

WF_MULTIVERSION static void gru_back(const wf_cell *s)
{
    int64_t n = s->h;
    const T *g = s->gates, *slope = s->slope, *add = s->reset;
    T *dg = s->dgates, *dr = s->drecurrent;
    const bool kept = slope != NULL;

    gru_late_back(s);
    WF_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) {
        dg[n + i] = dg[2 * n + i] * add[i] * SLOPE_SIGMOID(1);
        dr[i] = dg[i];
        dr[n + i] = dg[n + i];
        dr[2 * n + i] = dg[2 * n + i] * g[n + i];
    }
}

#undef gate_sigmoid
#undef gate_tanh
#undef rnn_step
#undef product
#undef rnn_back_row
#undef rnn_back
#undef lstm_merge
#undef lstm_out
#undef lstm_gates
#undef lstm_plain
#undef lstm_step
#undef lstm_back_row
#undef lstm_back
#undef gru_mix
#undef gru_early
#undef gru_late
#undef gru_linear
#undef gru_step
#undef gru_reset_step
#undef gru_late_row
#undef gru_late_back
#undef gru_reset_back
#undef gru_back
#undef T
#undef SUFFIX
#undef SIGMOID
#undef TANH
