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

#define T float
#define SUFFIX f32
#define SIGMOID wf_sigmoid_f32
#define TANH wf_tanh_f32
#include "common/kernels/cpu/recurrent/recurrent_cells_template.h"

#define T double
#define SUFFIX f64
#define SIGMOID sigmoid_f64
#define TANH tanh
#include "common/kernels/cpu/recurrent/recurrent_cells_template.h"

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
