/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent_cells.c */
#include "common/kernels/cpu/recurrent/recurrent_cells.h"
#include "common/base/cc.h"
#include "common/kernels/cpu/vmath.h"

#include <math.h>

static WF_INLINE double sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* An activation and its derivative at what clip leaves of x. */
#define ACTIVATE(T, x, fn, derivative, y, slope)                                                   \
    do {                                                                                           \
        T cut_ = (x) > limit ? limit : (x) < -limit ? -limit : (x);                                \
                                                                                                   \
        (y) = fn(cut_);                                                                            \
        (slope) = cut_ == (x) ? (derivative) : 0;                                                  \
    } while (0)

/* The derivative of gate k's element i: kept because of clip, or told by the activation y. */
#define SLOPE_SIGMOID(k) (kept ? slope[(k)*n + i] : g[(k)*n + i] * (1 - g[(k)*n + i]))
#define SLOPE_TANH(k) (kept ? slope[(k)*n + i] : 1 - g[(k)*n + i] * g[(k)*n + i])

#define CELLS(T, sfx, sigmoid, tanh_fn)                                                            \
    WF_MULTIVERSION static void gate_sigmoid_##sfx(T *g, const T *add, const T *p, const T *c,     \
                                                   T *slope, T limit, int64_t n)                   \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = g[i] + add[i] + (p ? p[i] * c[i] : 0), y, d;                                     \
                                                                                                   \
            ACTIVATE(T, x, sigmoid, y *(1 - y), y, d);                                             \
            g[i] = y;                                                                              \
            if (slope)                                                                             \
                slope[i] = d;                                                                      \
        }                                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void gate_tanh_##sfx(T *g, const T *add, T *slope, T limit, int64_t n)  \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = g[i] + add[i], y, d;                                                             \
                                                                                                   \
            ACTIVATE(T, x, tanh_fn, 1 - y * y, y, d);                                              \
            g[i] = y;                                                                              \
            if (slope)                                                                             \
                slope[i] = d;                                                                      \
        }                                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void rnn_step_##sfx(const wf_cell *s, T limit)                          \
    {                                                                                              \
        T *g = s->gates, *slope = s->slope, *h = s->state;                                         \
                                                                                                   \
        if (!s->relu)                                                                              \
            gate_tanh_##sfx(g, s->recurrent, slope, limit, s->h);                                  \
        for (int64_t i = 0; i < s->h; i++) {                                                       \
            T x = g[i] + ((const T *)s->recurrent)[i];                                             \
                                                                                                   \
            if (s->relu) {                                                                         \
                g[i] = x > 0 ? (x < limit ? x : limit) : 0;                                        \
                if (slope)                                                                         \
                    slope[i] = x > 0 && x <= limit ? 1 : 0;                                        \
            }                                                                                      \
            if (h)                                                                                 \
                h[i] = g[i];                                                                       \
        }                                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void product_##sfx(const T *a, const T *b, T *out, int64_t n)           \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = a[i] * b[i];                                                                  \
    }                                                                                              \
    static WF_INLINE void rnn_back_row_##sfx(const wf_cell *s, const bool kept, const bool relu)   \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        const T *g = s->gates, *slope = s->slope, *dh = s->dstate;                                 \
        T *dg = s->dgates;                                                                         \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dg[i] = dh[i] * (relu && !kept ? (T)(g[i] > 0) : SLOPE_TANH(0));                       \
    }                                                                                              \
    WF_MULTIVERSION static void rnn_back_##sfx(const wf_cell *s)                                   \
    {                                                                                              \
        if (s->slope)                                                                              \
            rnn_back_row_##sfx(s, true, false);                                                    \
        else if (s->relu)                                                                          \
            rnn_back_row_##sfx(s, false, true);                                                    \
        else                                                                                       \
            rnn_back_row_##sfx(s, false, false);                                                   \
    }                                                                                              \
    WF_MULTIVERSION static void lstm_merge_##sfx(const wf_cell *s)                                 \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        const T *g = s->gates, *before = s->c_before;                                              \
        T *c = s->c;                                                                               \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            c[i] = g[2 * n + i] * before[i] + g[i] * g[3 * n + i];                                 \
    }                                                                                              \
    WF_MULTIVERSION static void lstm_out_##sfx(const wf_cell *s, T limit)                          \
    {                                                                                              \
        const T *o = (const T *)s->gates + s->h, *c = s->c;                                        \
        T *h = s->state;                                                                           \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < s->h; i++) {                                                       \
            T x = c[i] > limit ? limit : c[i] < -limit ? -limit : c[i];                            \
                                                                                                   \
            h[i] = o[i] * tanh_fn(x);                                                              \
        }                                                                                          \
    }                                                                                              \
    static void lstm_gates_##sfx(const wf_cell *s, T limit)                                        \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        T *g = s->gates, *slope = s->slope;                                                        \
        const T *r = s->recurrent, *p = s->peephole;                                               \
                                                                                                   \
        gate_sigmoid_##sfx(g, r, p, s->c_before, slope, limit, n);                                 \
        gate_sigmoid_##sfx(g + 2 * n, r + 2 * n, p ? p + 2 * n : NULL, s->c_before,                \
                           slope ? slope + 2 * n : NULL, limit, n);                                \
        gate_tanh_##sfx(g + 3 * n, r + 3 * n, slope ? slope + 3 * n : NULL, limit, n);             \
        lstm_merge_##sfx(s);                                                                       \
        gate_sigmoid_##sfx(g + n, r + n, p ? p + n : NULL, s->c, slope ? slope + n : NULL, limit,  \
                           n);                                                                     \
        lstm_out_##sfx(s, limit);                                                                  \
    }                                                                                              \
    WF_MULTIVERSION static void lstm_plain_##sfx(const wf_cell *s)                                 \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        T *g = s->gates, *c = s->c, *h = s->state;                                                 \
        const T *r = s->recurrent, *before = s->c_before;                                          \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T in = sigmoid(g[i] + r[i]), out = sigmoid(g[n + i] + r[n + i]);                       \
            T forget = sigmoid(g[2 * n + i] + r[2 * n + i]);                                       \
            T new = tanh_fn(g[3 * n + i] + r[3 * n + i]), cell = forget *before[i] + in *new;      \
                                                                                                   \
            g[i] = in;                                                                             \
            g[n + i] = out;                                                                        \
            g[2 * n + i] = forget;                                                                 \
            g[3 * n + i] = new;                                                                    \
            c[i] = cell;                                                                           \
            h[i] = out * tanh_fn(cell);                                                            \
        }                                                                                          \
    }                                                                                              \
    static void lstm_step_##sfx(const wf_cell *s, T limit)                                         \
    {                                                                                              \
        if (s->clip > 0 || s->peephole)                                                            \
            lstm_gates_##sfx(s, limit);                                                            \
        else                                                                                       \
            lstm_plain_##sfx(s);                                                                   \
    }                                                                                              \
    static WF_INLINE void lstm_back_row_##sfx(const wf_cell *s, T limit, const bool kept,          \
                                              const bool peeps)                                    \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        const T *g = s->gates, *slope = s->slope, *p = s->peephole, *dh = s->dstate;               \
        const T *c = s->c, *before = s->c_before;                                                  \
        T *dg = s->dgates, *dc = s->dc;                                                            \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T th, ts, d, in = g[i], out = g[n + i], forget = g[2 * n + i], new = g[3 * n + i];     \
            T di, dout, df;                                                                        \
                                                                                                   \
            ACTIVATE(T, c[i], tanh_fn, 1 - th * th, th, ts);                                       \
            dout = dh[i] * th * SLOPE_SIGMOID(1);                                                  \
            d = dc[i] + dh[i] * out * ts + (peeps ? dout * p[n + i] : 0);                          \
            di = d * new *SLOPE_SIGMOID(0);                                                        \
            df = d * before[i] * SLOPE_SIGMOID(2);                                                 \
            dg[i] = di;                                                                            \
            dg[n + i] = dout;                                                                      \
            dg[2 * n + i] = df;                                                                    \
            dg[3 * n + i] = d * in * SLOPE_TANH(3);                                                \
            dc[i] = d * forget + (peeps ? di * p[i] + df * p[2 * n + i] : 0);                      \
        }                                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void lstm_back_##sfx(const wf_cell *s, T limit)                         \
    {                                                                                              \
        if (s->slope && s->peephole)                                                               \
            lstm_back_row_##sfx(s, limit, true, true);                                             \
        else if (s->slope)                                                                         \
            lstm_back_row_##sfx(s, limit, true, false);                                            \
        else if (s->peephole)                                                                      \
            lstm_back_row_##sfx(s, limit, false, true);                                            \
        else                                                                                       \
            lstm_back_row_##sfx(s, limit, false, false);                                           \
    }                                                                                              \
    WF_MULTIVERSION static void gru_mix_##sfx(const wf_cell *s)                                    \
    {                                                                                              \
        const T *z = s->gates, *n = (const T *)s->gates + 2 * s->h, *before = s->before;           \
        T *h = s->state;                                                                           \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < s->h; i++)                                                         \
            h[i] = (1 - z[i]) * n[i] + z[i] * before[i];                                           \
    }                                                                                              \
    static void gru_early_##sfx(const wf_cell *s, T limit)                                         \
    {                                                                                              \
        gate_sigmoid_##sfx(s->gates, s->recurrent, NULL, NULL, s->slope, limit, 2 * s->h);         \
    }                                                                                              \
    static void gru_late_##sfx(const wf_cell *s, const T *add, T limit)                            \
    {                                                                                              \
        gate_tanh_##sfx((T *)s->gates + 2 * s->h, add, s->slope ? (T *)s->slope + 2 * s->h : NULL, \
                        limit, s->h);                                                              \
        if (s->state)                                                                              \
            gru_mix_##sfx(s);                                                                      \
    }                                                                                              \
    WF_MULTIVERSION static void gru_linear_##sfx(const wf_cell *s)                                 \
    {                                                                                              \
        const T *r = (const T *)s->gates + s->h, *bias = s->bias_h;                                \
        T *add = (T *)s->recurrent + 2 * s->h, *kept = s->reset;                                   \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < s->h; i++) {                                                       \
            kept[i] = add[i] + (bias ? bias[i] : 0);                                               \
            add[i] = r[i] * kept[i];                                                               \
        }                                                                                          \
    }                                                                                              \
    static void gru_step_##sfx(const wf_cell *s, T limit)                                          \
    {                                                                                              \
        gru_early_##sfx(s, limit);                                                                 \
        gru_linear_##sfx(s);                                                                       \
        gru_late_##sfx(s, (const T *)s->recurrent + 2 * s->h, limit);                              \
    }                                                                                              \
    static void gru_reset_step_##sfx(const wf_cell *s, T limit)                                    \
    {                                                                                              \
        gru_early_##sfx(s, limit);                                                                 \
        product_##sfx((const T *)s->gates + s->h, s->before, s->reset, s->h);                      \
    }                                                                                              \
    static WF_INLINE void gru_late_row_##sfx(const wf_cell *s, const bool kept)                    \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        const T *g = s->gates, *slope = s->slope, *dh = s->dstate, *before = s->before;            \
        T *dg = s->dgates, *direct = s->direct;                                                    \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            dg[2 * n + i] = dh[i] * (1 - g[i]) * SLOPE_TANH(2);                                    \
            dg[i] = dh[i] * (before[i] - g[2 * n + i]) * SLOPE_SIGMOID(0);                         \
            direct[i] = dh[i] * g[i];                                                              \
        }                                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void gru_late_back_##sfx(const wf_cell *s)                              \
    {                                                                                              \
        if (s->slope)                                                                              \
            gru_late_row_##sfx(s, true);                                                           \
        else                                                                                       \
            gru_late_row_##sfx(s, false);                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void gru_reset_back_##sfx(const wf_cell *s)                             \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        const T *g = s->gates, *slope = s->slope, *dreset = s->dreset, *before = s->before;        \
        T *dg = (T *)s->dgates + n, *direct = s->direct;                                           \
        const bool kept = slope != NULL;                                                           \
                                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            dg[i] = dreset[i] * before[i] * SLOPE_SIGMOID(1);                                      \
            direct[i] += dreset[i] * g[n + i];                                                     \
        }                                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void gru_back_##sfx(const wf_cell *s)                                   \
    {                                                                                              \
        int64_t n = s->h;                                                                          \
        const T *g = s->gates, *slope = s->slope, *add = s->reset;                                 \
        T *dg = s->dgates, *dr = s->drecurrent;                                                    \
        const bool kept = slope != NULL;                                                           \
                                                                                                   \
        gru_late_back_##sfx(s);                                                                    \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            dg[n + i] = dg[2 * n + i] * add[i] * SLOPE_SIGMOID(1);                                 \
            dr[i] = dg[i];                                                                         \
            dr[n + i] = dg[n + i];                                                                 \
            dr[2 * n + i] = dg[2 * n + i] * g[n + i];                                              \
        }                                                                                          \
    }
CELLS(float, f32, wf_sigmoid_f32, wf_tanh_f32)
CELLS(double, f64, sigmoid_f64, tanh)

/* The bound of inputs; infinite when there is none, so that nothing is cut. */
static double limit_of(const wf_cell *c)
{
    return c->clip > 0 ? c->clip : (double)INFINITY;
}

#define CELL(name, call_f32, call_f64)                                                             \
    void wf_##name(wf_dtype dtype, const wf_cell *c)                                               \
    {                                                                                              \
        if (dtype == WF_F32)                                                                       \
            call_f32;                                                                              \
        else                                                                                       \
            call_f64;                                                                              \
    }
CELL(rnn_step, rnn_step_f32(c, (float)limit_of(c)), rnn_step_f64(c, limit_of(c)))
CELL(rnn_back, rnn_back_f32(c), rnn_back_f64(c))
CELL(lstm_step, lstm_step_f32(c, (float)limit_of(c)), lstm_step_f64(c, limit_of(c)))
CELL(lstm_back, lstm_back_f32(c, (float)limit_of(c)), lstm_back_f64(c, limit_of(c)))
CELL(gru_step, gru_step_f32(c, (float)limit_of(c)), gru_step_f64(c, limit_of(c)))
CELL(gru_back, gru_back_f32(c), gru_back_f64(c))
CELL(gru_reset_step, gru_reset_step_f32(c, (float)limit_of(c)), gru_reset_step_f64(c, limit_of(c)))
CELL(gru_late_step, gru_late_f32(c, (const float *)c->recurrent + 2 * c->h, (float)limit_of(c)),
     gru_late_f64(c, (const double *)c->recurrent + 2 * c->h, limit_of(c)))
CELL(gru_late_back, gru_late_back_f32(c), gru_late_back_f64(c))
CELL(gru_reset_back, gru_reset_back_f32(c), gru_reset_back_f64(c))
