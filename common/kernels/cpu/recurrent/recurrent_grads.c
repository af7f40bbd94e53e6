/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent_grads.c - from the gradients of all gates to those of x,
 * W, R, biases and peepholes: products and sums over the whole sequence, split by what they give.
 */
#include "common/base/cc.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/recurrent/recurrent.h"

#include <string.h>

typedef struct output {
    const wf_recurrent_job *j;
    char *to;
} output;

static void turn_range(void *arg, int64_t begin, int64_t end)
{
    const output *o = arg;
    const wf_recurrent *v = o->j->v;
    size_t row = (size_t)v->of.input * v->of.size;

    for (int64_t b = begin; b < end; b++)
        for (int64_t t = 0; t < v->of.steps; t++)
            wf_copy(o->to + (size_t)(b * v->of.steps + t) * row,
                    wf_recurrent_at(o->j, v->at.dx, (t * v->of.batch + b) * v->of.input), row);
}

static void put_dx(const wf_recurrent_job *j, wf_tensor *dx)
{
    const wf_recurrent *v = j->v;
    output o = {j, dx->data};

    if (!v->dx_step)
        wf_product_go(
            j->dir ? v->dx_more : v->dx, j->run,
            &(wf_product_operands){
                .a = wf_recurrent_at(j, v->at.dgates, 0),
                .b = wf_recurrent_part(j, j->a->w, v->of.gates * v->of.hidden * v->of.input, 0),
                .c = j->dx});
    if (v->of.batch_first)
        wf_pool_for(j->run->pool, v->of.batch,
                    WF_GRAIN / WF_MAX(v->of.steps * v->of.input, INT64_C(1)) + 1, turn_range, &o);
}

enum { DR_ROWS = 64 };

/* Rows [begin, end) of dR of a GRU that is not linear: gate h took reset. */
static void dr_rows(const output *o, int64_t begin, int64_t end)
{
    const wf_recurrent *v = o->j->v;
    int64_t split = WF_MIN(WF_MAX(2 * v->of.hidden, begin), end);
    const int64_t from[] = {begin, split}, until[] = {split, end};
    const char *factor[] = {wf_recurrent_at(o->j, v->at.before, 0), o->j->beside};

    for (size_t i = 0; i < 2; i++)
        wf_product_strided(
            &(wf_strided_product){.dtype = v->of.dtype,
                                  .trans_a = true,
                                  .m = until[i] - from[i],
                                  .n = v->of.hidden,
                                  .k = v->of.steps * v->of.batch,
                                  .a = wf_recurrent_at(o->j, v->at.dgates, from[i]),
                                  .b = factor[i],
                                  .c = o->to + (size_t)(from[i] * v->of.hidden) * v->of.size,
                                  .lda = v->of.gates * v->of.hidden,
                                  .ldb = v->of.hidden,
                                  .ldc = v->of.hidden});
}

/* Blocks of DR_ROWS rows, the same with any number of threads: how OpenBLAS rounds a row may depend
 * on those beside it. */
static void dr_range(void *arg, int64_t begin, int64_t end)
{
    const output *o = arg;
    const wf_recurrent *v = o->j->v;

    for (int64_t b = begin; b < end; b++)
        dr_rows(o, b * DR_ROWS, WF_MIN((b + 1) * DR_ROWS, v->of.gates * v->of.hidden));
}

static void put_dr(const wf_recurrent_job *j, wf_tensor *dr)
{
    const wf_recurrent *v = j->v;
    int64_t n = v->of.gates * v->of.hidden;
    output o = {j, wf_recurrent_part(j, dr, n * v->of.hidden, 0)};

    if (wf_recurrent_two(&v->of))
        wf_pool_for(j->run->pool, (n + DR_ROWS - 1) / DR_ROWS, 1, dr_range, &o);
    else
        wf_product_go(
            v->dr, j->run,
            &(wf_product_operands){
                .a = wf_recurrent_at(j, v->of.kind == WF_GRU ? v->at.dr : v->at.dgates, 0),
                .b = wf_recurrent_at(j, v->at.before, 0),
                .c = o.to});
}

#define SUM(T)                                                                                     \
    WF_MULTIVERSION static void sum_##T(const T *x, T *y, int64_t rows, int64_t ld, int64_t n)     \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] += x[r * ld + i];                                                             \
    }
SUM(float)
SUM(double)

/* Columns [begin, end) of both biases' gradients. */
static void db_range(void *arg, int64_t begin, int64_t end)
{
    const output *o = arg;
    const wf_recurrent *v = o->j->v;
    int64_t n = v->of.gates * v->of.hidden, rows = v->of.steps * v->of.batch;

    for (int64_t i = 0; i < 2; i++) {
        size_t room = i && v->of.kind == WF_GRU && v->of.linear ? v->at.dr : v->at.dgates;
        char *x = wf_recurrent_at(o->j, room, begin),
             *y = o->to + (size_t)(i * n + begin) * v->of.size;

        if (i && room == v->at.dgates) {
            wf_copy(y, o->to + (size_t)begin * v->of.size, (size_t)(end - begin) * v->of.size);
            continue;
        }
        memset(y, 0, (size_t)(end - begin) * v->of.size);
        if (v->of.dtype == WF_F32)
            sum_float((const float *)(void *)x, (float *)(void *)y, rows, n, end - begin);
        else
            sum_double((const double *)(void *)x, (double *)(void *)y, rows, n, end - begin);
    }
}

/* Biases of the input and of the state: [2 gates hidden]. */
static void put_db(const wf_recurrent_job *j, wf_tensor *db)
{
    const wf_recurrent *v = j->v;
    int64_t n = v->of.gates * v->of.hidden;
    output o = {j, wf_recurrent_part(j, db, 2 * n, 0)};

    wf_pool_for(j->run->pool, n, WF_GRAIN / WF_MAX(v->of.steps * v->of.batch, INT64_C(1)) + 1,
                db_range, &o);
}

/* y += a b, over n elements. */
static void add_product(wf_dtype dtype, const void *a, const void *b, void *y, int64_t n)
{
    if (dtype == WF_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)y)[i] += ((const float *)a)[i] * ((const float *)b)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)y)[i] += ((const double *)a)[i] * ((const double *)b)[i];
}

/* Peepholes of i, o and f; o looks at the cell after. */
static void put_dp(const wf_recurrent_job *j, wf_tensor *dp)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;
    char *to = wf_recurrent_part(j, dp, 3 * v->of.hidden, 0);

    memset(to, 0, 3 * row);
    for (int64_t t = 0; t < v->of.steps; t++)
        for (int64_t b = 0; b < v->of.batch; b++) {
            wf_cell c = wf_recurrent_back_row(j, t, b);

            for (size_t gate = 0; gate < 3 && t < wf_recurrent_lens(j)[b]; gate++)
                add_product(v->of.dtype, (char *)c.dgates + gate * row,
                            gate == 1 ? c.c : c.c_before, to + gate * row, v->of.hidden);
        }
}

static void put_states(const wf_recurrent_job *j, wf_tensor *dh0, wf_tensor *dc0)
{
    const wf_recurrent *v = j->v;
    size_t row = (size_t)v->of.hidden * v->of.size;

    for (int64_t b = 0; b < v->of.batch; b++) {
        if (dh0)
            wf_copy(wf_recurrent_state_row(j, dh0, b),
                    wf_recurrent_at(j, v->at.dh, b * v->of.hidden), row);
        if (dc0)
            wf_copy(wf_recurrent_state_row(j, dc0, b),
                    wf_recurrent_at(j, v->at.dc, b * v->of.hidden), row);
    }
}

void wf_recurrent_put_grads(const wf_recurrent_job *j, wf_tensor *const out[])
{
    const wf_recurrent *v = j->v;
    bool lstm = v->of.kind == WF_LSTM;

    if (out[0])
        put_dx(j, out[0]);
    if (out[1])
        wf_product_go(
            v->dw, j->run,
            &(wf_product_operands){
                .a = wf_recurrent_at(j, v->at.dgates, 0),
                .b = j->x,
                .c = wf_recurrent_part(j, out[1], v->of.gates * v->of.hidden * v->of.input, 0)});
    if (out[2])
        put_dr(j, out[2]);
    if (out[3])
        put_db(j, out[3]);
    put_states(j, out[4], lstm ? out[5] : NULL);
    if (lstm && out[6])
        put_dp(j, out[6]);
}
