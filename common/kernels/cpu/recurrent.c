/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent.c - LSTM, GRU, RNN and their gradients, one direction after the
 * other.
 *
 * The input's part of all gates is one product over the whole sequence; each step adds the last
 * state's part, a product over the batch, and the cells' arithmetic (recurrent_cells.h). The way
 * back knows every state from Y: it works all gates out again with products over the whole
 * sequence, goes through the steps in reverse for the gradients of the gates, and ends with
 * products over the whole sequence for those of x, W and R.
 *
 * A row takes part in a step while the step lies inside its sequence_lens: the reverse direction
 * begins at a row's last element, and what lies behind it is zero in Y.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/graph/op.h"
#include "common/kernels/cpu/blas.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/recurrent_cells.h"

#include <inttypes.h>
#include <string.h>

typedef enum kind { RNN, GRU, LSTM } kind;

/* Where the arrays of the workspace begin, in elements. */
typedef struct rooms {
    size_t x, dx;                               /* [steps batch, input]: batch-first files only */
    size_t gates, slope, recurrent, dgates, dr; /* [steps batch, gates hidden] */
    size_t before, reset, c_before, c;          /* [steps batch, hidden] */
    size_t h, cell, dh, dc, product, direct;    /* [batch, hidden] */
    size_t one;                                 /* [batch, gates hidden] */
    size_t lens;                                /* [batch] int64 */
    size_t end;
} rooms;

typedef struct recurrent {
    kind kind;
    wf_dtype dtype;
    size_t size; /* of an element */
    int64_t steps, batch, input, hidden, dirs, gates;
    bool batch_first, linear, relu[2], reverse[2];
    double clip;
    rooms at;
} recurrent;

/* A node's tensors, NULL when absent; back: what is made has a d in front. */
typedef struct args {
    const wf_tensor *x, *w, *r, *b, *lens, *h0, *c0, *p, *y, *dy, *dyh, *dyc;
} args;

typedef struct job {
    const recurrent *v;
    const args *a;
    wf_pool *pool;
    char *room; /* workspace */
    int64_t dir;
} job;

static char *at(const job *j, size_t room, int64_t elem)
{
    return j->room + (room + (size_t)elem) * j->v->size;
}

static int64_t *lens_of(const job *j)
{
    return (int64_t *)(void *)(j->room + j->v->at.lens * j->v->size);
}

/* Element `elem` of direction dir's part of a parameter; NULL when it is absent. */
static char *part(const job *j, const wf_tensor *t, int64_t per_dir, int64_t elem)
{
    return t ? (char *)t->data + (size_t)(j->dir * per_dir + elem) * j->v->size : NULL;
}

/* Row b of a state [dirs, batch, hidden], or batch first. */
static char *state_row(const job *j, const wf_tensor *t, int64_t b)
{
    const recurrent *v = j->v;
    int64_t row = v->batch_first ? b * v->dirs + j->dir : j->dir * v->batch + b;

    return (char *)t->data + (size_t)(row * v->hidden) * v->size;
}

/* Row (t, b) of Y [steps, dirs, batch, hidden], or [batch, steps, dirs, hidden]. */
static char *y_row(const job *j, const wf_tensor *y, int64_t t, int64_t b)
{
    const recurrent *v = j->v;
    int64_t row = v->batch_first ? (b * v->steps + t) * v->dirs + j->dir
                                 : (t * v->dirs + j->dir) * v->batch + b;

    return (char *)y->data + (size_t)(row * v->hidden) * v->size;
}

/* y += x, over n elements. */
static void add(wf_dtype dtype, const void *x, void *y, int64_t n)
{
    if (dtype == WF_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)y)[i] += ((const float *)x)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)y)[i] += ((const double *)x)[i];
}

/* y += a b. */
static void add_product(wf_dtype dtype, const void *a, const void *b, void *y, int64_t n)
{
    if (dtype == WF_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)y)[i] += ((const float *)a)[i] * ((const float *)b)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)y)[i] += ((const double *)a)[i] * ((const double *)b)[i];
}

/* c [m, n] = a b + beta c, over the pool. */
static void multiply(const job *j, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
                     const void *a, const void *b, double beta, void *c)
{
    const wf_product p = {.dtype = j->v->dtype,
                          .trans_a = trans_a,
                          .trans_b = trans_b,
                          .m = m,
                          .n = n,
                          .k = k,
                          .alpha = 1,
                          .beta = beta,
                          .a = a,
                          .b = b,
                          .c = c};

    wf_product_run(&p, j->pool);
}

/* The t of step s, and the row before it, or -1 at a row's beginning. */
static int64_t time_of(const job *j, int64_t s)
{
    return j->v->reverse[j->dir] ? j->v->steps - 1 - s : s;
}

static int64_t time_before(const job *j, int64_t t, int64_t len)
{
    if (j->v->reverse[j->dir])
        return t + 1 < len ? t + 1 : -1;
    return t - 1;
}

/* x with time first, and with room for a gradient of the same form. */
static const char *input(const job *j)
{
    const recurrent *v = j->v;
    size_t row = (size_t)v->input * v->size;

    if (!v->batch_first)
        return j->a->x->data;
    for (int64_t t = 0; t < v->steps; t++)
        for (int64_t b = 0; b < v->batch; b++)
            wf_copy(at(j, v->at.x, (t * v->batch + b) * v->input),
                    (char *)j->a->x->data + (size_t)(b * v->steps + t) * row, row);
    return at(j, v->at.x, 0);
}

/* The input's part of all gates, with the biases that are only added. */
static void input_part(const job *j, const char *x)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden, rows = v->steps * v->batch;
    int64_t recurrent_too = v->kind == GRU && v->linear ? n - v->hidden : n;
    const char *b = part(j, j->a->b, 2 * n, 0);

    multiply(j, false, true, rows, n, v->input, x, part(j, j->a->w, n * v->input, 0), 0,
             at(j, v->at.gates, 0));
    for (int64_t i = 0; b && i < rows; i++) {
        add(v->dtype, b, at(j, v->at.gates, i * n), n);
        add(v->dtype, b + (size_t)n * v->size, at(j, v->at.gates, i * n), recurrent_too);
    }
}

/* What does not change from row to row. */
static wf_cell cell_of(const job *j)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden;
    wf_cell c = {.h = v->hidden, .clip = v->clip, .relu = v->relu[j->dir]};

    c.peephole = part(j, j->a->p, 3 * v->hidden, 0);
    if (v->kind == GRU && v->linear)
        c.bias_h = part(j, j->a->b, 2 * n, 2 * n - v->hidden);
    return c;
}

/* The product of states [rows, hidden] with R, into recurrent [rows, gates hidden]; of a GRU that
 * is not linear the gates z and r only, in their place. */
static void state_part(const job *j, int64_t rows, const void *states, char *to)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden;
    const char *r = part(j, j->a->r, n * v->hidden, 0);

    if (v->kind != GRU || v->linear) {
        multiply(j, false, true, rows, n, v->hidden, states, r, 0, to);
        return;
    }
    wf_product_strided(&(wf_strided_product){.dtype = v->dtype,
                                             .trans_b = true,
                                             .m = rows,
                                             .n = 2 * v->hidden,
                                             .k = v->hidden,
                                             .a = states,
                                             .b = r,
                                             .c = to,
                                             .lda = v->hidden,
                                             .ldb = v->hidden,
                                             .ldc = n});
}

/* GRU, not linear: gate h of recurrent, from reset. */
static void reset_part(const job *j, int64_t rows, const void *reset, char *to)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden, h = 2 * v->hidden;

    wf_product_strided(&(wf_strided_product){.dtype = v->dtype,
                                             .trans_b = true,
                                             .m = rows,
                                             .n = v->hidden,
                                             .k = v->hidden,
                                             .a = reset,
                                             .b = part(j, j->a->r, n * v->hidden, h * v->hidden),
                                             .c = to + (size_t)h * v->size,
                                             .lda = v->hidden,
                                             .ldb = v->hidden,
                                             .ldc = n});
}

static wf_status read_lens(const job *j, wf_err *err)
{
    const recurrent *v = j->v;
    int64_t *lens = lens_of(j);

    for (int64_t b = 0; b < v->batch; b++) {
        lens[b] = j->a->lens ? wf_int_at(j->a->lens, b) : v->steps;
        if (lens[b] < 0 || lens[b] > v->steps)
            return wf_fail(err, WF_INVALID, NULL,
                           "sequence_lens[%" PRId64 "] is %" PRId64 ", and X has %" PRId64 " steps",
                           b, lens[b], v->steps);
    }
    return WF_OK;
}

/* The initial states into h and cell. */
static void begin_states(const job *j)
{
    const recurrent *v = j->v;
    size_t row = (size_t)v->hidden * v->size;

    for (int64_t b = 0; b < v->batch; b++) {
        char *h = at(j, v->at.h, b * v->hidden), *c = at(j, v->at.cell, b * v->hidden);

        if (j->a->h0)
            wf_copy(h, state_row(j, j->a->h0, b), row);
        else
            memset(h, 0, row);
        if (j->a->c0)
            wf_copy(c, state_row(j, j->a->c0, b), row);
        else
            memset(c, 0, row);
    }
}

static void forward_step(const job *j, int64_t t, wf_tensor *y)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden;
    const int64_t *lens = lens_of(j);
    wf_cell c = cell_of(j);

    state_part(j, v->batch, at(j, v->at.h, 0), at(j, v->at.one, 0));
    for (int pass = 0; pass < 2; pass++) {
        bool late = pass == 1, two = v->kind == GRU && !v->linear;

        if (late && two)
            reset_part(j, v->batch, at(j, v->at.reset, 0), at(j, v->at.one, 0));
        for (int64_t b = 0; b < v->batch && (!late || two); b++) {
            c.gates = at(j, v->at.gates, (t * v->batch + b) * n);
            c.recurrent = at(j, v->at.one, b * n);
            c.before = c.state = at(j, v->at.h, b * v->hidden);
            c.c_before = c.c = at(j, v->at.cell, b * v->hidden);
            c.reset = at(j, v->at.reset, b * v->hidden);
            if (t >= lens[b])
                memset(c.reset, 0, (size_t)v->hidden * v->size);
            else if (two)
                (late ? wf_gru_late_step : wf_gru_reset_step)(v->dtype, &c);
            else
                (v->kind == RNN   ? wf_rnn_step
                 : v->kind == GRU ? wf_gru_step
                                  : wf_lstm_step)(v->dtype, &c);
        }
    }
    for (int64_t b = 0; y && b < v->batch; b++) {
        if (t < lens[b])
            wf_copy(y_row(j, y, t, b), at(j, v->at.h, b * v->hidden), (size_t)v->hidden * v->size);
        else
            memset(y_row(j, y, t, b), 0, (size_t)v->hidden * v->size);
    }
}

static void end_states(const job *j, wf_tensor *yh, wf_tensor *yc)
{
    const recurrent *v = j->v;
    size_t row = (size_t)v->hidden * v->size;

    for (int64_t b = 0; b < v->batch; b++) {
        if (yh)
            wf_copy(state_row(j, yh, b), at(j, v->at.h, b * v->hidden), row);
        if (yc)
            wf_copy(state_row(j, yc, b), at(j, v->at.cell, b * v->hidden), row);
    }
}

static wf_status forward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    const recurrent *v = run->state;
    const args a = {.x = in[0],
                    .w = in[1],
                    .r = in[2],
                    .b = in[3],
                    .lens = in[4],
                    .h0 = in[5],
                    .c0 = v->kind == LSTM ? in[6] : NULL,
                    .p = v->kind == LSTM ? in[7] : NULL};
    job j = {.v = v, .a = &a, .pool = run->pool, .room = run->workspace};
    const char *x;

    WF_TRY(read_lens(&j, err));
    x = input(&j);
    for (; j.dir < v->dirs; j.dir++) {
        input_part(&j, x);
        begin_states(&j);
        for (int64_t s = 0; s < v->steps; s++)
            forward_step(&j, time_of(&j, s), out[0]);
        end_states(&j, out[1], v->kind == LSTM ? out[2] : NULL);
    }
    return WF_OK;
}

/* The states before every step, as Y and the initial state have them. */
static void states_before(const job *j)
{
    const recurrent *v = j->v;
    size_t row = (size_t)v->hidden * v->size;

    for (int64_t t = 0; t < v->steps; t++)
        for (int64_t b = 0; b < v->batch; b++) {
            char *to = at(j, v->at.before, (t * v->batch + b) * v->hidden);
            int64_t len = lens_of(j)[b], from = time_before(j, t, len);

            if (t >= len)
                memset(to, 0, row);
            else
                wf_copy(to, from >= 0 ? y_row(j, j->a->y, from, b) : at(j, v->at.h, b * v->hidden),
                        row);
        }
}

/* One row of the arrays over all steps, for the cells. */
static wf_cell row_of(const job *j, int64_t t, int64_t b)
{
    const recurrent *v = j->v;
    int64_t row = t * v->batch + b, n = v->gates * v->hidden;
    wf_cell c = cell_of(j);

    c.gates = at(j, v->at.gates, row * n);
    c.slope = at(j, v->at.slope, row * n);
    c.recurrent = at(j, v->at.recurrent, row * n);
    c.dgates = at(j, v->at.dgates, row * n);
    c.drecurrent = at(j, v->at.dr, row * n);
    c.before = at(j, v->at.before, row * v->hidden);
    c.reset = at(j, v->at.reset, row * v->hidden);
    c.c_before = at(j, v->at.c_before, row * v->hidden);
    c.c = at(j, v->at.c, row * v->hidden);
    c.dstate = at(j, v->at.dh, b * v->hidden);
    c.dc = at(j, v->at.dc, b * v->hidden);
    c.direct = at(j, v->at.direct, b * v->hidden);
    c.dreset = at(j, v->at.product, b * v->hidden);
    return c;
}

/* All activations again, with their slopes. */
static void gates_again(const job *j, const char *x)
{
    const recurrent *v = j->v;
    int64_t rows = v->steps * v->batch;
    bool two = v->kind == GRU && !v->linear;

    input_part(j, x);
    state_part(j, rows, at(j, v->at.before, 0), at(j, v->at.recurrent, 0));
    for (int64_t s = 0; s < v->steps; s++)
        for (int64_t b = 0; b < v->batch; b++) {
            int64_t t = time_of(j, s);
            wf_cell c = row_of(j, t, b);

            wf_copy((void *)(uintptr_t)c.c_before, at(j, v->at.cell, b * v->hidden),
                    (size_t)v->hidden * v->size);
            (v->kind == RNN    ? wf_rnn_step
             : v->kind == LSTM ? wf_lstm_step
             : two             ? wf_gru_reset_step
                               : wf_gru_step)(v->dtype, &c);
            if (t < lens_of(j)[b])
                wf_copy(at(j, v->at.cell, b * v->hidden), c.c, (size_t)v->hidden * v->size);
        }
    if (!two)
        return;
    reset_part(j, rows, at(j, v->at.reset, 0), at(j, v->at.recurrent, 0));
    for (int64_t t = 0; t < v->steps; t++)
        for (int64_t b = 0; b < v->batch; b++) {
            wf_cell c = row_of(j, t, b);

            wf_gru_late_step(v->dtype, &c);
        }
}

/* Gradients of step t's gates; dh and dc go from after to before the step. */
static void back_step(const job *j, int64_t t)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden, at_t = t * v->batch * n;
    const int64_t *lens = lens_of(j);
    bool two = v->kind == GRU && !v->linear;
    size_t row = (size_t)v->hidden * v->size;
    const char *r = part(j, j->a->r, n * v->hidden, 0);

    for (int64_t b = 0; b < v->batch; b++) {
        wf_cell c = row_of(j, t, b);

        if (t >= lens[b]) {
            memset(c.dgates, 0, (size_t)n * v->size);
            if (v->kind == GRU)
                memset(c.drecurrent, 0, (size_t)n * v->size);
            continue;
        }
        if (j->a->dy)
            add(v->dtype, y_row(j, j->a->dy, t, b), (void *)(uintptr_t)c.dstate, v->hidden);
        (v->kind == RNN    ? wf_rnn_back
         : v->kind == LSTM ? wf_lstm_back
         : two             ? wf_gru_late_back
                           : wf_gru_back)(v->dtype, &c);
    }
    if (two) {
        wf_product_strided(&(wf_strided_product){.dtype = v->dtype,
                                                 .m = v->batch,
                                                 .n = v->hidden,
                                                 .k = v->hidden,
                                                 .a = at(j, v->at.dgates, at_t + 2 * v->hidden),
                                                 .b = r + 2 * (size_t)v->hidden * row,
                                                 .c = at(j, v->at.product, 0),
                                                 .lda = n,
                                                 .ldb = v->hidden,
                                                 .ldc = v->hidden});
        for (int64_t b = 0; b < v->batch; b++) {
            wf_cell c = row_of(j, t, b);

            if (t < lens[b])
                wf_gru_reset_back(v->dtype, &c);
        }
    }
    wf_product_strided(&(wf_strided_product){
        .dtype = v->dtype,
        .m = v->batch,
        .n = v->hidden,
        .k = two ? 2 * v->hidden : n,
        .a = at(j, v->kind == GRU && v->linear ? v->at.dr : v->at.dgates, at_t),
        .b = r,
        .c = at(j, v->at.product, 0),
        .lda = n,
        .ldb = v->hidden,
        .ldc = v->hidden});
    for (int64_t b = 0; b < v->batch; b++) {
        char *dh = at(j, v->at.dh, b * v->hidden);

        if (t >= lens[b])
            continue;
        wf_copy(dh, at(j, v->at.product, b * v->hidden), row);
        if (v->kind == GRU)
            add(v->dtype, at(j, v->at.direct, b * v->hidden), dh, v->hidden);
    }
}

/* The gradients of the last states into dh and dc. */
static void begin_back(const job *j)
{
    const recurrent *v = j->v;
    size_t row = (size_t)v->hidden * v->size;

    for (int64_t b = 0; b < v->batch; b++) {
        char *dh = at(j, v->at.dh, b * v->hidden), *dc = at(j, v->at.dc, b * v->hidden);

        memset(dh, 0, row);
        memset(dc, 0, row);
        if (j->a->dyh)
            wf_copy(dh, state_row(j, j->a->dyh, b), row);
        if (j->a->dyc)
            wf_copy(dc, state_row(j, j->a->dyc, b), row);
    }
}

static void put_dx(const job *j, wf_tensor *dx)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden;
    size_t row = (size_t)v->input * v->size;
    char *to = v->batch_first ? at(j, v->at.dx, 0) : dx->data;

    multiply(j, false, false, v->steps * v->batch, v->input, n, at(j, v->at.dgates, 0),
             part(j, j->a->w, n * v->input, 0), j->dir ? 1 : 0, to);
    for (int64_t t = 0; v->batch_first && t < v->steps; t++)
        for (int64_t b = 0; b < v->batch; b++)
            wf_copy((char *)dx->data + (size_t)(b * v->steps + t) * row,
                    to + (size_t)(t * v->batch + b) * row, row);
}

static void put_dr(const job *j, wf_tensor *dr)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden, rows = v->steps * v->batch;
    char *to = part(j, dr, n * v->hidden, 0);
    bool linear = v->kind == GRU && v->linear;

    if (v->kind != GRU || linear) {
        multiply(j, true, false, n, v->hidden, rows, at(j, linear ? v->at.dr : v->at.dgates, 0),
                 at(j, v->at.before, 0), 0, to);
        return;
    }
    for (int64_t gate = 0; gate < 3; gate++)
        wf_product_strided(
            &(wf_strided_product){.dtype = v->dtype,
                                  .trans_a = true,
                                  .m = v->hidden,
                                  .n = v->hidden,
                                  .k = rows,
                                  .a = at(j, v->at.dgates, gate * v->hidden),
                                  .b = at(j, gate == 2 ? v->at.reset : v->at.before, 0),
                                  .c = to + (size_t)(gate * v->hidden * v->hidden) * v->size,
                                  .lda = n,
                                  .ldb = v->hidden,
                                  .ldc = v->hidden});
}

/* Biases of the input and of the state: [2 gates hidden]. */
static void put_db(const job *j, wf_tensor *db)
{
    const recurrent *v = j->v;
    int64_t n = v->gates * v->hidden;
    bool linear = v->kind == GRU && v->linear;
    char *to = part(j, db, 2 * n, 0);

    memset(to, 0, 2 * (size_t)n * v->size);
    for (int64_t i = 0; i < v->steps * v->batch; i++) {
        add(v->dtype, at(j, v->at.dgates, i * n), to, n);
        add(v->dtype, at(j, linear ? v->at.dr : v->at.dgates, i * n), to + (size_t)n * v->size, n);
    }
}

/* Peepholes of i, o and f; o looks at the cell after. */
static void put_dp(const job *j, wf_tensor *dp)
{
    const recurrent *v = j->v;
    int64_t h = v->hidden;
    char *to = part(j, dp, 3 * h, 0);

    memset(to, 0, 3 * (size_t)h * v->size);
    for (int64_t i = 0; i < v->steps * v->batch; i++)
        for (int64_t gate = 0; gate < 3; gate++)
            add_product(v->dtype, at(j, v->at.dgates, (4 * i + gate) * h),
                        at(j, gate == 1 ? v->at.c : v->at.c_before, i * h),
                        to + (size_t)(gate * h) * v->size, h);
}

static void put_states(const job *j, wf_tensor *dh0, wf_tensor *dc0)
{
    const recurrent *v = j->v;
    size_t row = (size_t)v->hidden * v->size;

    for (int64_t b = 0; b < v->batch; b++) {
        if (dh0)
            wf_copy(state_row(j, dh0, b), at(j, v->at.dh, b * v->hidden), row);
        if (dc0)
            wf_copy(state_row(j, dc0, b), at(j, v->at.dc, b * v->hidden), row);
    }
}

/* LSTM: dY, dY_h, dY_c, X, W, R, B, lens, h0, c0, P, Y -> dX, dW, dR, dB, dh0, dc0, dP.
 * GRU, RNN: dY, dY_h, X, W, R, B, lens, h0, Y -> dX, dW, dR, dB, dh0. */
static args grad_args(const recurrent *v, const wf_tensor *const in[])
{
    if (v->kind == LSTM)
        return (args){.dy = in[0],
                      .dyh = in[1],
                      .dyc = in[2],
                      .x = in[3],
                      .w = in[4],
                      .r = in[5],
                      .b = in[6],
                      .lens = in[7],
                      .h0 = in[8],
                      .c0 = in[9],
                      .p = in[10],
                      .y = in[11]};
    return (args){.dy = in[0],
                  .dyh = in[1],
                  .x = in[2],
                  .w = in[3],
                  .r = in[4],
                  .b = in[5],
                  .lens = in[6],
                  .h0 = in[7],
                  .y = in[8]};
}

static wf_status backward(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    const recurrent *v = run->state;
    const args a = grad_args(v, in);
    job j = {.v = v, .a = &a, .pool = run->pool, .room = run->workspace};
    const char *x;

    WF_TRY(read_lens(&j, err));
    x = input(&j);
    for (; j.dir < v->dirs; j.dir++) {
        int64_t n = v->gates * v->hidden;

        begin_states(&j);
        states_before(&j);
        gates_again(&j, x);
        begin_back(&j);
        for (int64_t s = v->steps; s-- > 0;)
            back_step(&j, time_of(&j, s));
        if (out[0])
            put_dx(&j, out[0]);
        if (out[1])
            multiply(&j, true, false, n, v->input, v->steps * v->batch, at(&j, v->at.dgates, 0), x,
                     0, part(&j, out[1], n * v->input, 0));
        if (out[2])
            put_dr(&j, out[2]);
        if (out[3])
            put_db(&j, out[3]);
        put_states(&j, out[4], v->kind == LSTM ? out[5] : NULL);
        if (v->kind == LSTM && out[6])
            put_dp(&j, out[6]);
    }
    return WF_OK;
}

/* A tensor has these dims; an absent one does. */
static bool fits(const wf_tensor *t, uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t dims[] = {a, b, c, d};

    return !t || (t->rank == rank && memcmp(t->dims, dims, rank * sizeof dims[0]) == 0);
}

static bool state_fits(const recurrent *v, const wf_tensor *t)
{
    return v->batch_first ? fits(t, 3, v->batch, v->dirs, v->hidden, 0)
                          : fits(t, 3, v->dirs, v->batch, v->hidden, 0);
}

static bool y_fits(const recurrent *v, const wf_tensor *t)
{
    return v->batch_first ? fits(t, 4, v->batch, v->steps, v->dirs, v->hidden)
                          : fits(t, 4, v->steps, v->dirs, v->batch, v->hidden);
}

static wf_status check(recurrent *v, const args *a, wf_err *err)
{
    int64_t n;

    if (a->x->rank != 3 || a->w->rank != 3 || a->r->rank != 3)
        return wf_fail(err, WF_SHAPE, NULL, "X, W and R must have three axes");
    v->steps = a->x->dims[v->batch_first ? 1 : 0];
    v->batch = a->x->dims[v->batch_first ? 0 : 1];
    v->input = a->x->dims[2];
    v->dirs = a->w->dims[0];
    v->hidden = a->r->dims[2];
    n = v->gates * v->hidden;
    if (!fits(a->w, 3, v->dirs, n, v->input, 0) || !fits(a->r, 3, v->dirs, n, v->hidden, 0) ||
        !fits(a->b, 2, v->dirs, 2 * n, 0, 0) || !fits(a->lens, 1, v->batch, 0, 0, 0) ||
        !fits(a->p, 2, v->dirs, 3 * v->hidden, 0, 0) || !state_fits(v, a->h0) ||
        !state_fits(v, a->c0) || !state_fits(v, a->dyh) || !state_fits(v, a->dyc) ||
        !y_fits(v, a->y) || !y_fits(v, a->dy))
        return wf_fail(err, WF_SHAPE, NULL,
                       "X, W, R, B, sequence_lens and the states do not fit each other");
    return WF_OK;
}

/* Room for count elements, in whole cache lines; SIZE_MAX in *end stays. */
static size_t carve(size_t *end, size_t rows, size_t columns)
{
    size_t begin = *end, elems;

    if (*end == SIZE_MAX || !wf_mul_size(rows, columns, &elems) ||
        !wf_add_size(elems, 16 + *end, &elems))
        *end = SIZE_MAX;
    else
        *end = elems / 16 * 16;
    return begin;
}

static void carve_all(recurrent *v, bool back)
{
    size_t rows = 0, batch = (size_t)v->batch, h = (size_t)v->hidden, i = (size_t)v->input;
    size_t n = (size_t)(v->gates * v->hidden), *e = &v->at.end;
    bool lstm = v->kind == LSTM, gru = v->kind == GRU;

    if (!wf_mul_size((size_t)v->steps, batch, &rows))
        *e = SIZE_MAX;
    v->at.x = carve(e, v->batch_first ? rows : 0, i);
    v->at.dx = carve(e, v->batch_first && back ? rows : 0, i);
    v->at.gates = carve(e, rows, n);
    v->at.slope = carve(e, back ? rows : 0, n);
    v->at.recurrent = carve(e, back ? rows : 0, n);
    v->at.dgates = carve(e, back ? rows : 0, n);
    v->at.dr = carve(e, back && gru ? rows : 0, n);
    v->at.before = carve(e, back ? rows : 0, h);
    v->at.reset = carve(e, back ? rows : batch, h);
    v->at.c_before = carve(e, back ? rows : 0, h);
    v->at.c = carve(e, back && lstm ? rows : 0, h);
    v->at.h = carve(e, batch, h);
    v->at.cell = carve(e, batch, h);
    v->at.dh = carve(e, back ? batch : 0, h);
    v->at.dc = carve(e, back ? batch : 0, h);
    v->at.product = carve(e, back ? batch : 0, h);
    v->at.direct = carve(e, back && gru ? batch : 0, h);
    v->at.one = carve(e, back ? 0 : batch, n);
    v->at.lens = carve(e, batch, 8 / v->size + 1);
}

static void read_attributes(const wf_node *n, recurrent *v)
{
    const wf_attr *activations = wf_node_attr(n, "activations");
    const char *direction = wf_node_string(n, "direction", "forward");

    v->batch_first = wf_node_int(n, "layout", 0) != 0;
    v->linear = wf_node_int(n, "linear_before_reset", 0) != 0;
    v->clip = (double)wf_node_float(n, "clip", 0);
    v->reverse[0] = strcmp(direction, "reverse") == 0;
    v->reverse[1] = true;
    for (size_t i = 0; v->kind == RNN && activations && i < activations->n && i < 2; i++)
        v->relu[i] = activations->strings[i][0] == 'R' || activations->strings[i][0] == 'r';
}

static wf_status make(wf_prep *prep, const wf_tensor *const in[], bool back, wf_err *err)
{
    recurrent *v = wf_arena_alloc(prep->arena, sizeof *v);
    char first = prep->node->op->name[0];
    args a;

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    memset(v, 0, sizeof *v);
    v->kind = first == 'L' ? LSTM : first == 'G' ? GRU : RNN;
    v->gates = v->kind == LSTM ? 4 : v->kind == GRU ? 3 : 1;
    read_attributes(prep->node, v);
    if (back)
        a = grad_args(v, in);
    else
        a = (args){.x = in[0],
                   .w = in[1],
                   .r = in[2],
                   .b = in[3],
                   .lens = in[4],
                   .h0 = in[5],
                   .c0 = v->kind == LSTM ? in[6] : NULL,
                   .p = v->kind == LSTM ? in[7] : NULL};
    v->dtype = a.x->dtype;
    v->size = wf_dtype_size(v->dtype);
    WF_TRY(check(v, &a, err));
    if (v->dirs !=
        (strcmp(wf_node_string(prep->node, "direction", "forward"), "bidirectional") ? 1 : 2))
        return wf_fail(err, WF_SHAPE, NULL, "W has %" PRId64 " directions", v->dirs);
    carve_all(v, back);
    if (v->at.end == SIZE_MAX || !wf_mul_size(v->at.end, v->size, &prep->workspace_bytes) ||
        v->at.end > (size_t)INT64_MAX / 64)
        return wf_fail_nomem(err, SIZE_MAX);
    prep->state = v;
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    (void)out;
    return make(prep, in, false, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    (void)out;
    return make(prep, in, true, err);
}

#define ROW(op) WF_ROW(op, WF_TYPES_FLOAT, forward, .prepare = prepare)
#define GRAD(op, i)                                                                                \
    WF_ROW(op, WF_TYPES_FLOAT, backward, .prepare = prepare_grad, .domain = WF_DOMAIN_WEFT,        \
           .typed_by = i)

const wf_kernel wf_kernels_recurrent[] = {
    ROW("GRU"), GRAD("GRUGrad", 2), ROW("LSTM"), GRAD("LSTMGrad", 3),
    ROW("RNN"), GRAD("RNNGrad", 2), {0},
};
