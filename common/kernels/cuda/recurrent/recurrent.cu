/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/recurrent/recurrent.cu - LSTM, GRU, RNN, their Keep forms and their
 * gradients.
 *
 * The input's part of all gates is one product over the whole sequence. Steps of a small layer are
 * one kernel (steps.h); else each step is a product of the last state by R and a kernel for the
 * cells (cells.h); of a GRU whose gate h comes after the others it is two of both. Back, the steps
 * give the gradients of the gates; those of the parameters are products and sums over the whole
 * sequence. What the forward did not keep is worked out again.
 */
#include "common/kernels/cuda/recurrent/steps.h"
#include "common/kernels/cuda/reduce/columns.h"
#include "common/kernels/cuda/shape/move.h"

#include <type_traits>

namespace
{

template <class T> struct job {
    const wf_layer_plan *v;
    const wf_run *run;
    wf_recurrent_args a;
    const T *x, *w, *r; /* x: time first; w and r of this direction */
    wf_layer<T> l;
};

template <class T> T *room(const wf_run *run, size_t at)
{
    return reinterpret_cast<T *>(static_cast<char *>(run->workspace) + at);
}

/* Direction dir's part of a parameter; NULL when it is absent. */
template <class T> T *part(const wf_tensor *t, int64_t dir, int64_t per_direction)
{
    return t ? static_cast<T *>(t->data) + dir * per_direction : nullptr;
}

template <class T> T *all(const wf_tensor *t)
{
    return part<T>(t, 0, 0);
}

template <class T>
wf_status multiply(const job<T> &j, wf_layer_product name, const T *a, const T *b, T *c,
                   wf_err *err)
{
    const wf_cuda_gemm_way *way = j.v->products[name];
    size_t zeros = j.v->zeros[name];

    if (way)
        return wf_cuda_gemm_go(way, j.run, a, b, nullptr, c, err);
    return zeros ? wf_stream_fill(j.run->stream, c, 0, zeros, err) : WF_OK;
}

template <class T, class... P, class... A>
wf_status launch_cells(const job<T> &j, void (*kernel)(P...), wf_err *err, A... args)
{
    int64_t n = j.l.batch * j.l.hidden;

    return n == 0 ? WF_OK
                  : wf_launch(j.run, j.run->node->op->name, kernel, wf_blocks(j.run, n), err, j.l,
                              args...);
}

/* A step of all cells. */
template <class T, class Cell> __global__ void cells(wf_layer<T> l, int64_t t, Cell cell)
{
    for (int64_t e = wf_first(); e < l.batch * l.hidden; e += wf_all())
        cell(l, t, e);
}

/* All steps, of cells of that kind. */
template <class Cell> wf_status all_cells(const job<float> &j, Cell cell, wf_err *err)
{
    const int64_t n = j.l.early * j.l.hidden;
    float *turned = room<float>(j.run, j.v->at.turned);

    if (j.l.batch == 0)
        return WF_OK;
    WF_TRY(wf_launch(j.run, "turn", wf_turn, wf_blocks(j.run, n * j.l.hidden), err, j.r, turned, n,
                     j.l.hidden));
    return wf_launch_meeting(j.run, j.run->node->op->name, wf_all_steps<Cell>,
                             (unsigned)wf_ceil_div(j.l.batch, (int64_t)WF_STEPS_ROWS),
                             WF_STEPS_THREADS, err, j.l, turned, room<float>(j.run, j.v->at.one),
                             cell);
}

template <class Cell> wf_status all_cells_back(const job<float> &j, Cell cell, wf_err *err)
{
    const float *d = j.l.drecurrent ? j.l.drecurrent : j.l.dearly;

    return j.l.batch == 0
               ? WF_OK
               : wf_launch_meeting(j.run, j.run->node->op->name, wf_all_steps_back<Cell>,
                                   (unsigned)wf_ceil_div(j.l.batch, (int64_t)WF_STEPS_ROWS),
                                   WF_STEPS_THREADS, err, j.l, j.r, d, cell);
}

wf_status at_once(const job<float> &j, wf_err *err)
{
    switch (j.v->of.kind) {
    case WF_RNN:
        return all_cells(j, wf_rnn_step(), err);
    case WF_LSTM:
        return all_cells(j, wf_lstm_step(), err);
    default:
        return all_cells(j, wf_gru_step(), err);
    }
}

wf_status at_once_back(const job<float> &j, wf_err *err)
{
    switch (j.v->of.kind) {
    case WF_RNN:
        return all_cells_back(j, wf_rnn_back(), err);
    case WF_LSTM:
        return all_cells_back(j, wf_lstm_back(), err);
    default:
        return all_cells_back(j, wf_gru_back(), err);
    }
}

/* x [rows, columns, input] -> [columns, rows, input]: time first to batch first, or back. */
template <class T>
wf_status swap_axes(const wf_run *run, const T *x, T *out, int64_t rows, int64_t columns,
                    int64_t input, wf_err *err)
{
    const int64_t dims[] = {columns, rows, input};
    const int64_t strides[1][WF_MAX_RANK] = {{input, columns * input, 1}};
    wf_walk w;

    if (rows * columns * input == 0)
        return WF_OK;
    wf_walk_strided(&w, 3, dims, 1, strides);
    return wf_launch(run, "swap axes", wf_gather_walk<T>, wf_blocks(run, w.elems), err, x, out, w);
}

template <class T>
wf_status begin(job<T> *j, const wf_run *run, const wf_recurrent_args &a, wf_err *err)
{
    const wf_layer_plan *v = static_cast<const wf_layer_plan *>(run->state);
    const wf_recurrent_sizes &s = v->of;

    *j = job<T>{};
    j->v = v;
    j->run = run;
    j->a = a;
    j->x = all<T>(a.x);
    if (a.lens && s.batch)
        WF_TRY(wf_launch_meeting(run, "sequence_lens", wf_look_at_lens, 1, wf_threads(s.batch), err,
                                 wf_numbers_of(a.lens), s.batch, s.steps, wf_complaints_of(run)));
    if (!s.batch_first)
        return WF_OK;
    j->x = room<T>(run, v->at.x);
    return swap_axes(run, all<T>(a.x), room<T>(run, v->at.x), s.batch, s.steps, s.input, err);
}

/* What both ways know of a direction. */
template <class T> void begin_direction(job<T> *j, int64_t dir)
{
    const wf_recurrent_sizes &s = j->v->of;
    const wf_layer_rooms &at = j->v->at;
    const wf_recurrent_args &a = j->a;
    int64_t h = s.hidden, n = s.gates * h;
    wf_layer<T> &l = j->l;

    l = wf_layer<T>{};
    l.steps = s.steps;
    l.batch = s.batch;
    l.hidden = h;
    l.gates = s.gates;
    l.early = wf_layer_early(&s);
    l.dirs = s.dirs;
    l.dir = dir;
    l.batch_first = s.batch_first;
    l.reverse = s.reverse[dir];
    l.relu = s.relu[dir];
    l.limit = s.clip > 0 ? (T)s.clip : T(INFINITY);
    l.lens = wf_numbers_of(a.lens);
    l.bias = part<T>(a.b, dir, 2 * n);
    l.peep = part<T>(a.p, dir, 3 * h);
    l.h0 = all<T>(a.h0);
    l.c0 = all<T>(a.c0);
    l.h = room<T>(j->run, at.h);
    l.cell = s.kind == WF_LSTM ? room<T>(j->run, at.cell) : nullptr;
    l.one = room<T>(j->run, at.one);
    l.late = room<T>(j->run, at.late);
    j->w = part<T>(a.w, dir, n * s.input);
    j->r = part<T>(a.r, dir, n * h);
}

int64_t time_of(const wf_layer_plan *v, int64_t dir, int64_t step)
{
    return v->of.reverse[dir] ? v->of.steps - 1 - step : step;
}

template <class T> wf_status step(const job<T> &j, int64_t t, wf_err *err)
{
    const wf_recurrent_sizes &s = j.v->of;
    const wf_layer<T> &l = j.l;

    WF_TRY(multiply(j, WF_LAYER_STATE, l.h, j.r, room<T>(j.run, j.v->at.one), err));
    if (s.kind == WF_RNN)
        return launch_cells(j, cells<T, wf_rnn_step>, err, t, wf_rnn_step());
    if (s.kind == WF_LSTM)
        return launch_cells(j, cells<T, wf_lstm_step>, err, t, wf_lstm_step());
    if (s.linear)
        return launch_cells(j, cells<T, wf_gru_step>, err, t, wf_gru_step());
    WF_TRY(launch_cells(j, cells<T, wf_gru_early_step>, err, t, wf_gru_early_step()));
    WF_TRY(multiply(j, WF_LAYER_STATE_LATE, l.beside + t * l.beside_step,
                    j.r + 2 * l.hidden * l.hidden, room<T>(j.run, j.v->at.late), err));
    return launch_cells(j, cells<T, wf_gru_late_step>, err, t, wf_gru_late_step());
}

/* All steps of one direction. */
template <class T> wf_status forward(const job<T> &j, wf_err *err)
{
    WF_TRY(launch_cells(j, wf_begin_states<T>, err));
    WF_TRY(multiply(j, WF_LAYER_INPUT, j.x, j.w, j.l.activations, err));
    if constexpr (std::is_same_v<T, float>)
        if (j.v->at_once)
            WF_TRY(at_once(j, err));
    for (int64_t i = 0; i < j.l.steps && !j.v->at_once; i++)
        WF_TRY(step(j, time_of(j.v, j.l.dir, i), err));
    return j.l.yh || j.l.yc ? launch_cells(j, wf_end_states<T>, err) : WF_OK;
}

template <class T>
wf_status run_forward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    const wf_layer_plan *v = static_cast<const wf_layer_plan *>(run->state);
    const wf_recurrent_sizes &s = v->of;
    bool lstm = s.kind == WF_LSTM, two = wf_recurrent_two(&s);
    int64_t in_step = s.batch * s.hidden;
    job<T> j;

    WF_TRY(begin(&j, run, wf_recurrent_args_of(s.kind, in), err));
    for (int64_t dir = 0; dir < s.dirs; dir++) {
        begin_direction(&j, dir);
        j.l.y = all<T>(out[0]);
        j.l.yh = all<T>(out[1]);
        j.l.yc = lstm ? all<T>(out[2]) : nullptr;
        j.l.stores = s.keeps || two; /* two: the second kernel of a step wants z */
        j.l.activations = room<T>(run, v->at.activations);
        if (s.keeps) {
            j.l.activations =
                part<T>(out[lstm ? 3 : 2], dir, s.steps * s.batch * s.gates * s.hidden);
            j.l.beside = part<T>(out[lstm ? 4 : 3], dir, s.steps * s.batch * s.hidden);
            j.l.beside_step = in_step;
        } else if (two) {
            j.l.beside = room<T>(run, v->at.beside);
        }
        WF_TRY(forward(j, err));
    }
    return WF_OK;
}

/* The activations of this direction, from where they are or worked out again. An RNN without a
 * limit has them in Y. */
template <class T> wf_status find_activations(job<T> *j, wf_err *err)
{
    const wf_layer_plan *v = j->v;
    const wf_recurrent_sizes &s = v->of;
    wf_layer<T> &l = j->l;

    l.beside_step = s.batch * s.hidden;
    if (!s.again) {
        l.activations = part<T>(j->a.gates, l.dir, s.steps * s.batch * s.gates * s.hidden);
        l.beside = part<T>(j->a.beside, l.dir, s.steps * s.batch * s.hidden);
        return WF_OK;
    }
    l.stores = true;
    l.activations = room<T>(j->run, v->at.activations);
    l.slope = s.clip > 0 ? room<T>(j->run, v->at.slope) : nullptr;
    l.beside = s.kind == WF_RNN ? nullptr : room<T>(j->run, v->at.beside);
    return forward(*j, err);
}

template <class T> wf_status step_back(const job<T> &j, int64_t t, wf_err *err)
{
    const wf_recurrent_sizes &s = j.v->of;
    const wf_layer<T> &l = j.l;
    int64_t h = l.hidden, at = t * l.batch * h;
    const T *d = (l.drecurrent ? l.drecurrent : l.dearly) + at * l.early;

    if (s.kind == WF_RNN) {
        WF_TRY(launch_cells(j, cells<T, wf_rnn_back>, err, t, wf_rnn_back()));
    } else if (s.kind == WF_LSTM) {
        WF_TRY(launch_cells(j, cells<T, wf_lstm_back>, err, t, wf_lstm_back()));
    } else if (s.linear) {
        WF_TRY(launch_cells(j, cells<T, wf_gru_back>, err, t, wf_gru_back()));
    } else {
        WF_TRY(launch_cells(j, cells<T, wf_gru_late_back>, err, t, wf_gru_late_back()));
        WF_TRY(multiply(j, WF_LAYER_STATE_BACK_LATE, l.dlate + at, j.r + 2 * h * h,
                        room<T>(j.run, j.v->at.dreset), err));
        WF_TRY(launch_cells(j, cells<T, wf_gru_early_back>, err, t, wf_gru_early_back()));
    }
    return multiply(j, WF_LAYER_STATE_BACK, d, j.r, l.dh, err);
}

/* From the last step to the first, for the gradients of the gates and of the initial states. */
template <class T>
wf_status all_steps_back(job<T> *j, const wf_tensor *dh0, const wf_tensor *dc0, wf_err *err)
{
    const wf_layer_plan *v = j->v;
    const wf_recurrent_sizes &s = v->of;
    const wf_layer_rooms &at = v->at;
    wf_layer<T> &l = j->l;

    l.dy = all<T>(j->a.dy);
    l.dyh = all<T>(j->a.dyh);
    l.dyc = all<T>(j->a.dyc);
    l.of_y = all<T>(j->a.y);
    l.before = room<T>(j->run, at.before);
    l.dearly = room<T>(j->run, at.dearly);
    l.dlate = wf_recurrent_two(&s) ? room<T>(j->run, at.dlate) : nullptr;
    l.drecurrent = s.kind == WF_GRU && s.linear ? room<T>(j->run, at.drecurrent) : nullptr;
    l.dh = room<T>(j->run, at.dh);
    l.dc = s.kind == WF_LSTM ? room<T>(j->run, at.dc) : nullptr;
    l.dreset = room<T>(j->run, at.dreset);
    l.dh0 = all<T>(dh0);
    l.dc0 = all<T>(dc0);
    WF_TRY(launch_cells(*j, wf_begin_states<T>, err));
    WF_TRY(launch_cells(*j, wf_begin_back<T>, err));
    if constexpr (std::is_same_v<T, float>)
        if (v->at_once)
            WF_TRY(at_once_back(*j, err));
    for (int64_t i = s.steps; i-- > 0 && !v->at_once;)
        WF_TRY(step_back(*j, time_of(v, l.dir, i), err));
    return l.dh0 || l.dc0 ? launch_cells(*j, wf_end_back<T>, err) : WF_OK;
}

template <class T> wf_status put_dx(const job<T> &j, T *dx, wf_err *err)
{
    WF_TRY(multiply(j, j.l.dir ? WF_LAYER_DX_MORE : WF_LAYER_DX, j.l.dearly, j.w, dx, err));
    return j.l.dlate ? multiply(j, WF_LAYER_DX_LATE, j.l.dlate,
                                j.w + 2 * j.l.hidden * j.v->of.input, dx, err)
                     : WF_OK;
}

template <class T> wf_status put_dw(const job<T> &j, T *dw, wf_err *err)
{
    WF_TRY(multiply(j, WF_LAYER_DW, j.l.dearly, j.x, dw, err));
    return j.l.dlate ? multiply(j, WF_LAYER_DW_LATE, j.l.dlate, j.x,
                                dw + 2 * j.l.hidden * j.v->of.input, err)
                     : WF_OK;
}

template <class T> wf_status put_dr(const job<T> &j, T *dr, wf_err *err)
{
    const wf_layer<T> &l = j.l;

    WF_TRY(multiply(j, WF_LAYER_DR, static_cast<const T *>(l.drecurrent ? l.drecurrent : l.dearly),
                    l.before, dr, err));
    return l.dlate
               ? multiply(j, WF_LAYER_DR_LATE, l.dlate, l.beside, dr + 2 * l.hidden * l.hidden, err)
               : WF_OK;
}

template <class T> struct element {
    const T *of;
    int64_t columns;

    WF_CODE T operator()(int64_t row, int64_t column) const
    {
        return of[row * columns + column];
    }
};

/* [gates hidden] from the gradients of the early gates' inputs, or their recurrent part, and gate
 * h's. */
template <class T> wf_status put_bias(const job<T> &j, const T *dearly, T *db, wf_err *err)
{
    const wf_layer<T> &l = j.l;
    int64_t h = l.hidden, early = l.early * h, rows = l.steps * l.batch;

    WF_TRY(wf_sum_columns(j.run, element<T>{dearly, early}, rows, early, db, err));
    return l.dlate ? wf_sum_columns(j.run, element<T>{l.dlate, h}, rows, h, db + early, err)
                   : WF_OK;
}

/* Biases of the input and of the state: [2 gates hidden]. They are the same, but where gate r takes
 * the second one of gate h too. */
template <class T> wf_status put_db(const job<T> &j, T *db, wf_err *err)
{
    const wf_layer<T> &l = j.l;
    int64_t n = l.gates * l.hidden;

    WF_TRY(put_bias<T>(j, l.dearly, db, err));
    if (l.drecurrent)
        return put_bias<T>(j, l.drecurrent, db + n, err);
    return wf_stream_copy(j.run->stream, WF_COPY_WITHIN, db + n, db, (size_t)n * sizeof(T), err);
}

/* Peepholes of i, o and f; o looks at the cell after. */
template <class T> struct peephole {
    wf_layer<T> l;

    WF_CODE T operator()(int64_t row, int64_t column) const
    {
        const int gate = (int)(column / l.hidden);
        const int64_t b = row % l.batch;
        const wf_spot at = {b, column % l.hidden, row / l.batch, row, wf_length(l, b)};

        if (!wf_is_inside(at))
            return T(0);
        return l.dearly[wf_early_at(l, at, gate)] *
               (gate == 1 ? l.beside[wf_beside_at(l, at, at.t)] : wf_cell_before(l, at));
    }
};

/* The gradients of one direction's parameters from those of its gates; out as in the node. */
template <class T> wf_status put_grads(const job<T> &j, wf_tensor *const out[], T *dx, wf_err *err)
{
    const wf_layer<T> &l = j.l;
    int64_t n = l.gates * l.hidden, rows = l.steps * l.batch;

    if (out[0])
        WF_TRY(put_dx(j, dx, err));
    if (out[1])
        WF_TRY(put_dw(j, part<T>(out[1], l.dir, n * j.v->of.input), err));
    if (out[2])
        WF_TRY(put_dr(j, part<T>(out[2], l.dir, n * l.hidden), err));
    if (out[3])
        WF_TRY(put_db(j, part<T>(out[3], l.dir, 2 * n), err));
    if (j.v->of.kind != WF_LSTM || !out[6])
        return WF_OK;
    return wf_sum_columns(j.run, peephole<T>{l}, rows, 3 * l.hidden,
                          part<T>(out[6], l.dir, 3 * l.hidden), err);
}

template <class T>
wf_status run_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    const wf_layer_plan *v = static_cast<const wf_layer_plan *>(run->state);
    const wf_recurrent_sizes &s = v->of;
    T *dx = s.batch_first ? room<T>(run, v->at.dx) : all<T>(out[0]);
    job<T> j;

    WF_TRY(begin(&j, run, wf_recurrent_grad_args(s.kind, run->node->n_in, in), err));
    for (int64_t dir = 0; dir < s.dirs; dir++) {
        begin_direction(&j, dir);
        WF_TRY(find_activations(&j, err));
        WF_TRY(all_steps_back(&j, out[4], s.kind == WF_LSTM ? out[5] : nullptr, err));
        WF_TRY(put_grads(j, out, dx, err));
    }
    if (!s.batch_first || !out[0])
        return WF_OK;
    return swap_axes(run, static_cast<const T *>(dx), all<T>(out[0]), s.steps, s.batch, s.input,
                     err);
}

} // namespace

#define ROW(name, domain_, dtype, prepares, fn, i)                                                 \
    {                                                                                              \
        .op = name, .domain = domain_, .typed_by = i, .dtypes = WF_TYPE(dtype),                    \
        .prepare = prepares, .run = fn                                                             \
    }
#define FORWARD(name, domain)                                                                      \
    ROW(name, domain, WF_F32, wf_layer_prepare, run_forward<float>, 0),                            \
        ROW(name, domain, WF_F64, wf_layer_prepare, run_forward<double>, 0)
#define GRAD(name, i)                                                                              \
    ROW(name, WF_DOMAIN_WEFT, WF_F32, wf_layer_prepare_grad, run_grad<float>, i),                  \
        ROW(name, WF_DOMAIN_WEFT, WF_F64, wf_layer_prepare_grad, run_grad<double>, i)

WF_CUDA_ROWS(recurrent){
    FORWARD("GRU", nullptr),  GRAD("GRUGrad", 2),  FORWARD("GRUKeep", WF_DOMAIN_WEFT),
    FORWARD("LSTM", nullptr), GRAD("LSTMGrad", 3), FORWARD("LSTMKeep", WF_DOMAIN_WEFT),
    FORWARD("RNN", nullptr),  GRAD("RNNGrad", 2),  {},
};
