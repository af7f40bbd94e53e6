/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent_backward.c - the way back: through the steps in reverse
 * for the gradients of the gates; recurrent_grads.c makes those of the parameters of them.
 *
 * It knows every state from Y, and the activations from what the forward kept; where nobody kept
 * them, the way there is gone once more in front. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/recurrent/recurrent.h"

#include <string.h>

wf_cell wf_recurrent_back_row(const wf_recurrent_job *j, int64_t t, int64_t b)
{
    const wf_recurrent *v = j->v;
    int64_t row = t * v->of.batch + b, n = v->of.gates * v->of.hidden;
    int64_t from = wf_recurrent_before(j, t, wf_recurrent_lens(j)[b]);
    wf_cell c = wf_recurrent_cell(j, t, b);

    c.dgates = wf_recurrent_at(j, v->at.dgates, row * n);
    c.drecurrent = wf_recurrent_at(j, v->at.dr, row * n);
    c.before = wf_recurrent_at(j, v->at.before, row * v->of.hidden);
    if (v->of.kind == WF_LSTM)
        c.c_before = from >= 0 ? wf_recurrent_cell(j, from, b).c
                               : wf_recurrent_at(j, v->at.cell, b * v->of.hidden);
    if (!j->gates)
        c.gates = wf_recurrent_y_row(j, j->a->y, t, b);
    c.dstate = wf_recurrent_at(j, v->at.dh, b * v->of.hidden);
    c.dc = wf_recurrent_at(j, v->at.dc, b * v->of.hidden);
    c.direct = wf_recurrent_at(j, v->at.direct, b * v->of.hidden);
    c.dreset = wf_recurrent_at(j, v->at.product, b * v->of.hidden);
    return c;
}

/* The state before a row's step into `before`; zeros behind the row's end. */
static void put_before(const wf_recurrent_job *j, int64_t t, int64_t b)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;
    int64_t len = wf_recurrent_lens(j)[b], from = wf_recurrent_before(j, t, len);
    char *to = wf_recurrent_at(j, v->at.before, (t * v->of.batch + b) * v->of.hidden);

    if (t >= len)
        memset(to, 0, row);
    else
        wf_copy(to,
                from >= 0 ? wf_recurrent_y_row(j, j->a->y, from, b)
                          : wf_recurrent_at(j, v->at.h, b * v->of.hidden),
                row);
}

static wf_cell_fn *back_of(const wf_recurrent *v)
{
    if (wf_recurrent_two(&v->of))
        return wf_gru_late_back;
    return v->of.kind == WF_RNN ? wf_rnn_back : v->of.kind == WF_GRU ? wf_gru_back : wf_lstm_back;
}

static void back_cells(const wf_recurrent_job *j, int64_t t, int64_t begin, int64_t end)
{
    const wf_recurrent *v = j->v;
    wf_cell_fn *back = back_of(v);
    size_t gates = (size_t)(v->of.gates * v->of.hidden) * v->of.size;

    for (int64_t b = begin; b < end; b++) {
        wf_cell c = wf_recurrent_back_row(j, t, b);

        put_before(j, t, b);
        if (t >= wf_recurrent_lens(j)[b]) {
            memset(c.dgates, 0, gates);
            if (v->of.kind == WF_GRU && v->of.linear)
                memset(c.drecurrent, 0, gates);
            continue;
        }
        if (j->a->dy)
            wf_add(v->of.dtype, wf_recurrent_y_row(j, j->a->dy, t, b), (void *)(uintptr_t)c.dstate,
                   v->of.hidden);
        back(v->of.dtype, &c);
    }
}

/* GRU, not linear: gate r, from what came through R to reset. */
static void reset_cells(const wf_recurrent_job *j, int64_t t, int64_t begin, int64_t end)
{
    for (int64_t b = begin; b < end; b++) {
        wf_cell c = wf_recurrent_back_row(j, t, b);

        if (t < wf_recurrent_lens(j)[b])
            wf_gru_reset_back(j->v->of.dtype, &c);
    }
}

/* What came through R, and what went past it, is the gradient of the state before. */
static void put_dh(const wf_recurrent_job *j, int64_t t, int64_t begin, int64_t end)
{
    const wf_recurrent *v = j->v;

    for (int64_t b = begin; b < end; b++) {
        char *dh = wf_recurrent_at(j, v->at.dh, b * v->of.hidden);

        if (t >= wf_recurrent_lens(j)[b])
            continue;
        wf_copy(dh, wf_recurrent_at(j, v->at.product, b * v->of.hidden),
                (size_t)v->of.hidden * v->of.size);
        if (v->of.kind == WF_GRU)
            wf_add(v->of.dtype, wf_recurrent_at(j, v->at.direct, b * v->of.hidden), dh,
                   v->of.hidden);
    }
}

/* The gradients of the last states into dh and dc. */
static void begin_back(const wf_recurrent_job *j, int64_t begin, int64_t end)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;

    for (int64_t b = begin; b < end; b++) {
        char *dh = wf_recurrent_at(j, v->at.dh, b * v->of.hidden);
        char *dc = wf_recurrent_at(j, v->at.dc, b * v->of.hidden);

        memset(dh, 0, row);
        memset(dc, 0, row);
        if (j->a->dyh)
            wf_copy(dh, wf_recurrent_state_row(j, j->a->dyh, b), row);
        if (j->a->dyc)
            wf_copy(dc, wf_recurrent_state_row(j, j->a->dyc, b), row);
    }
}

/* All steps of a part of the batch, the last one first. */
static void back_part(const wf_recurrent_job *j, int64_t part)
{
    const wf_recurrent *v = j->v;
    int64_t n = v->of.gates * v->of.hidden;
    int64_t begin = part * v->share, end = WF_MIN(begin + v->share, v->of.batch);
    const char *r = wf_recurrent_part(j, j->a->r, n * v->of.hidden, 0);
    const char *w = wf_recurrent_part(j, j->a->w, n * v->of.input, 0);
    char *product = wf_recurrent_at(j, v->at.product, begin * v->of.hidden);
    size_t h = 2 * (size_t)v->of.hidden * v->of.size; /* to gate h */

    wf_recurrent_begin_states(j, begin, end);
    begin_back(j, begin, end);
    for (int64_t s = v->of.steps; s-- > 0;) {
        int64_t t = wf_recurrent_time(j, s), row = t * v->of.batch + begin;
        const char *d = wf_recurrent_at(
            j, v->of.kind == WF_GRU && v->of.linear ? v->at.dr : v->at.dgates, row * n);

        back_cells(j, t, begin, end);
        if (wf_recurrent_two(&v->of)) {
            wf_packed_go(v->reset_back, j->run, part, d + h, r + h * (size_t)v->of.hidden, NULL,
                         product);
            reset_cells(j, t, begin, end);
        }
        wf_packed_go(v->state_back, j->run, part, d, r, NULL, product);
        put_dh(j, t, begin, end);
        if (v->dx_step)
            wf_packed_go(v->dx_step, j->run, part, wf_recurrent_at(j, v->at.dgates, row * n), w,
                         NULL, j->dx + (size_t)(row * v->of.input) * v->of.size);
    }
}

static void back_range(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        back_part(arg, i);
}

static void all_steps(const wf_recurrent_job *j)
{
    const wf_recurrent *v = j->v;
    const char *r = wf_recurrent_part(j, j->a->r, v->of.gates * v->of.hidden * v->of.hidden, 0);

    wf_packed_load(v->state_back, j->run, r);
    if (v->dx_step)
        wf_packed_load(v->dx_step, j->run,
                       wf_recurrent_part(j, j->a->w, v->of.gates * v->of.hidden * v->of.input, 0));
    if (wf_recurrent_two(&v->of))
        wf_packed_load(v->reset_back, j->run,
                       r + (size_t)(2 * v->of.hidden * v->of.hidden) * v->of.size);
    wf_pool_for(j->run->pool, v->parts, 1, back_range, (void *)(uintptr_t)j);
}

/* The activations of this direction, from where they are or worked out again. */
static void find_gates(wf_recurrent_job *j)
{
    const wf_recurrent *v = j->v;
    int64_t rows = v->of.steps * v->of.batch;

    if (!v->of.again) {
        j->gates = wf_recurrent_part(j, j->a->gates, rows * v->of.gates * v->of.hidden, 0);
        j->beside = wf_recurrent_part(j, j->a->beside, rows * v->of.hidden, 0);
        return;
    }
    j->gates = wf_recurrent_at(j, v->at.gates, 0);
    j->beside = wf_recurrent_at(j, v->at.beside, 0);
    j->slope = v->of.clip > 0 ? wf_recurrent_at(j, v->at.slope, 0) : NULL;
    wf_recurrent_forward(j);
}

wf_status wf_recurrent_run_grad(const wf_run *run, const wf_tensor *const in[],
                                wf_tensor *const out[], wf_err *err)
{
    const wf_recurrent *v = run->state;
    const wf_recurrent_args a = wf_recurrent_grad_args(v->of.kind, run->node->n_in, in);
    wf_recurrent_job j = {.v = v, .a = &a, .run = run};

    WF_TRY(wf_recurrent_begin(&j, err));
    if (out[0])
        j.dx = v->of.batch_first ? wf_recurrent_at(&j, v->at.dx, 0) : out[0]->data;
    for (; j.dir < v->of.dirs; j.dir++) {
        find_gates(&j);
        all_steps(&j);
        wf_recurrent_put_grads(&j, out);
    }
    return WF_OK;
}
