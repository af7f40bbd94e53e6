/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent_forward.c - the way there: the input's part of all gates
 * is one product over the whole sequence; each step adds the last state's part, a product over the
 * rows of a part, and the cells' arithmetic (recurrent_cells.h). */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/recurrent/recurrent.h"

#include <inttypes.h>
#include <string.h>

static wf_status read_lens(const wf_recurrent_job *j, wf_err *err)
{
    const wf_recurrent *v = j->v;
    int64_t *lens = wf_recurrent_lens(j);

    for (int64_t b = 0; b < v->of.batch; b++) {
        lens[b] = j->a->lens ? wf_int_at(j->a->lens, b) : v->of.steps;
        if (lens[b] < 0 || lens[b] > v->of.steps)
            return wf_fail(err, WF_INVALID, NULL,
                           "sequence_lens[%" PRId64 "] is %" PRId64 ", and X has %" PRId64 " steps",
                           b, lens[b], v->of.steps);
    }
    return WF_OK;
}

static void turn_range(void *arg, int64_t begin, int64_t end)
{
    const wf_recurrent_job *j = arg;
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.input * v->of.size;

    for (int64_t t = begin; t < end; t++)
        for (int64_t b = 0; b < v->of.batch; b++)
            wf_copy(wf_recurrent_at(j, v->at.x, (t * v->of.batch + b) * v->of.input),
                    (char *)j->a->x->data + (size_t)(b * v->of.steps + t) * row, row);
}

wf_status wf_recurrent_begin(wf_recurrent_job *j, wf_err *err)
{
    const wf_recurrent *v = j->v;

    WF_TRY(read_lens(j, err));
    j->x = v->of.batch_first ? wf_recurrent_at(j, v->at.x, 0) : j->a->x->data;
    if (v->of.batch_first)
        wf_pool_for(j->run->pool, v->of.steps,
                    WF_GRAIN / WF_MAX(v->of.batch * v->of.input, INT64_C(1)) + 1, turn_range, j);
    return WF_OK;
}

void wf_recurrent_begin_states(const wf_recurrent_job *j, int64_t begin, int64_t end)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;

    for (int64_t b = begin; b < end; b++) {
        char *h = wf_recurrent_at(j, v->at.h, b * v->of.hidden);
        char *c = wf_recurrent_at(j, v->at.cell, b * v->of.hidden);

        if (j->a->h0)
            wf_copy(h, wf_recurrent_state_row(j, j->a->h0, b), row);
        else
            memset(h, 0, row);
        if (j->a->c0)
            wf_copy(c, wf_recurrent_state_row(j, j->a->c0, b), row);
        else
            memset(c, 0, row);
    }
}

/* The biases that are only added, as one row; NULL when there are none. */
static const char *bias_row(const wf_recurrent_job *j)
{
    const wf_recurrent *v = j->v;
    int64_t n = v->of.gates * v->of.hidden;
    int64_t recurrent_too = v->of.kind == WF_GRU && v->of.linear ? n - v->of.hidden : n;
    const char *b = wf_recurrent_part(j, j->a->b, 2 * n, 0);
    char *sum = wf_recurrent_at(j, v->at.bias, 0);

    if (!b)
        return NULL;
    wf_copy(sum, b, (size_t)n * v->of.size);
    wf_add(v->of.dtype, b + (size_t)n * v->of.size, sum, recurrent_too);
    return sum;
}

/* The arrays of a row's step; a cell that is kept does not lie where the last one does. */
static wf_cell cell_of(const wf_recurrent_job *j, int64_t t, int64_t b)
{
    const wf_recurrent *v = j->v;
    wf_cell c = wf_recurrent_cell(j, t, b);

    c.recurrent = wf_recurrent_at(j, v->at.one, b * v->of.gates * v->of.hidden);
    c.before = c.state = wf_recurrent_at(j, v->at.h, b * v->of.hidden);
    c.c_before = wf_recurrent_at(j, v->at.cell, b * v->of.hidden);
    if (!j->beside) {
        c.c = wf_recurrent_at(j, v->at.cell, b * v->of.hidden);
        c.reset = wf_recurrent_at(j, v->at.beside, b * v->of.hidden);
    }
    return c;
}

static wf_cell_fn *step_of(const wf_recurrent *v)
{
    if (wf_recurrent_two(&v->of))
        return wf_gru_reset_step;
    return v->of.kind == WF_RNN ? wf_rnn_step : v->of.kind == WF_GRU ? wf_gru_step : wf_lstm_step;
}

/* Behind a row's end: zeros in what others read. */
static void skip(const wf_recurrent_job *j, const wf_cell *c)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;

    memset(c->gates, 0, (size_t)v->of.gates * row);
    if (v->of.kind == WF_GRU)
        memset(c->reset, 0, row);
    if (v->of.kind == WF_LSTM && j->beside)
        memset(c->c, 0, row);
}

static void first_cells(const wf_recurrent_job *j, int64_t t, int64_t begin, int64_t end)
{
    const wf_recurrent *v = j->v;
    wf_cell_fn *step = step_of(v);
    const int64_t *lens = wf_recurrent_lens(j);

    for (int64_t b = begin; b < end; b++) {
        wf_cell c = cell_of(j, t, b);

        if (t >= lens[b]) {
            skip(j, &c);
            continue;
        }
        step(v->of.dtype, &c);
        if (v->of.kind == WF_LSTM && j->beside)
            wf_copy((void *)(uintptr_t)c.c_before, c.c, (size_t)v->of.hidden * v->of.size);
    }
}

/* GRU, not linear: what is left when reset went through R. */
static void late_cells(const wf_recurrent_job *j, int64_t t, int64_t begin, int64_t end)
{
    const int64_t *lens = wf_recurrent_lens(j);

    for (int64_t b = begin; b < end; b++) {
        wf_cell c = cell_of(j, t, b);

        if (t < lens[b])
            wf_gru_late_step(j->v->of.dtype, &c);
    }
}

static void put_y(const wf_recurrent_job *j, int64_t t, int64_t begin, int64_t end)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;
    const int64_t *lens = wf_recurrent_lens(j);

    for (int64_t b = begin; b < end; b++)
        if (t < lens[b])
            wf_copy(wf_recurrent_y_row(j, j->y, t, b),
                    wf_recurrent_at(j, v->at.h, b * v->of.hidden), row);
        else
            memset(wf_recurrent_y_row(j, j->y, t, b), 0, row);
}

static void end_states(const wf_recurrent_job *j, int64_t begin, int64_t end)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;

    for (int64_t b = begin; b < end; b++) {
        if (j->yh)
            wf_copy(wf_recurrent_state_row(j, j->yh, b),
                    wf_recurrent_at(j, v->at.h, b * v->of.hidden), row);
        if (j->yc)
            wf_copy(wf_recurrent_state_row(j, j->yc, b),
                    wf_recurrent_at(j, v->at.cell, b * v->of.hidden), row);
    }
}

/* All steps of a part of the batch. */
static void forward_part(const wf_recurrent_job *j, int64_t part)
{
    const wf_recurrent *v = j->v;
    int64_t n = v->of.gates * v->of.hidden;
    int64_t begin = part * v->share, end = WF_MIN(begin + v->share, v->of.batch);
    const char *r = wf_recurrent_part(j, j->a->r, n * v->of.hidden, 0);
    const char *w = wf_recurrent_part(j, j->a->w, n * v->of.input, 0);
    char *one = wf_recurrent_at(j, v->at.one, begin * n);
    size_t h = 2 * (size_t)v->of.hidden * v->of.size; /* to gate h */

    wf_recurrent_begin_states(j, begin, end);
    for (int64_t s = 0; s < v->of.steps; s++) {
        int64_t t = wf_recurrent_time(j, s), row = t * v->of.batch + begin;

        if (v->input_step)
            wf_packed_go(v->input_step, j->run, part,
                         j->x + (size_t)(row * v->of.input) * v->of.size, w, j->bias,
                         j->gates + (size_t)(row * n) * v->of.size);
        wf_packed_go(v->state, j->run, part, wf_recurrent_at(j, v->at.h, begin * v->of.hidden), r,
                     NULL, one);
        first_cells(j, t, begin, end);
        if (wf_recurrent_two(&v->of)) {
            wf_packed_go(v->reset, j->run, part, cell_of(j, t, begin).reset,
                         r + h * (size_t)v->of.hidden, NULL, one + h);
            late_cells(j, t, begin, end);
        }
        if (j->y)
            put_y(j, t, begin, end);
    }
    end_states(j, begin, end);
}

static void forward_range(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        forward_part(arg, i);
}

void wf_recurrent_forward(wf_recurrent_job *j)
{
    const wf_recurrent *v = j->v;
    int64_t n = v->of.gates * v->of.hidden;
    const char *r = wf_recurrent_part(j, j->a->r, n * v->of.hidden, 0);
    const char *w = wf_recurrent_part(j, j->a->w, n * v->of.input, 0);

    j->bias = bias_row(j);
    if (v->input_step)
        wf_packed_load(v->input_step, j->run, w);
    else
        wf_product_go(v->input_way, j->run,
                      &(wf_product_operands){j->x, w, j->bias, NULL, j->gates});
    wf_packed_load(v->state, j->run, r);
    if (wf_recurrent_two(&v->of))
        wf_packed_load(v->reset, j->run,
                       r + (size_t)(2 * v->of.hidden * v->of.hidden) * v->of.size);
    wf_pool_for(j->run->pool, v->parts, 1, forward_range, j);
}

wf_status wf_recurrent_run(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    const wf_recurrent *v = run->state;
    bool lstm = v->of.kind == WF_LSTM;
    const wf_recurrent_args a = wf_recurrent_args_of(v->of.kind, in);
    wf_recurrent_job j = {
        .v = v, .a = &a, .run = run, .y = out[0], .yh = out[1], .yc = lstm ? out[2] : NULL};
    int64_t rows = v->of.steps * v->of.batch;

    WF_TRY(wf_recurrent_begin(&j, err));
    for (; j.dir < v->of.dirs; j.dir++) {
        j.gates = wf_recurrent_at(&j, v->at.gates, 0);
        if (v->of.keeps) {
            j.gates =
                wf_recurrent_part(&j, out[lstm ? 3 : 2], rows * v->of.gates * v->of.hidden, 0);
            j.beside = wf_recurrent_part(&j, out[lstm ? 4 : 3], rows * v->of.hidden, 0);
        }
        wf_recurrent_forward(&j);
    }
    return WF_OK;
}
