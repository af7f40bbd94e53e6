/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent.c - LSTM, GRU, RNN and their gradients: the rows of the
 * table, what is prepared, and where things lie. recurrent_forward.c and recurrent_backward.c do
 * the work. */
#include "common/kernels/cpu/recurrent/recurrent.h"
#include "common/base/size.h"
#include "common/graph/op.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/device.h"

/* Multiply-adds of R over all steps that are worth a part of their own: about 5 us. */
#define PART_WORK INT64_C(500000)
/* Rows of a part from which on products of a step are as fast as those of the whole sequence. */
enum { THIN_ROWS = 8 };

char *wf_recurrent_part(const wf_recurrent_job *j, const wf_tensor *t, int64_t per_dir,
                        int64_t elem)
{
    return t ? (char *)t->data + (size_t)(j->dir * per_dir + elem) * j->v->of.size : NULL;
}

char *wf_recurrent_state_row(const wf_recurrent_job *j, const wf_tensor *t, int64_t b)
{
    const wf_recurrent *v = j->v;
    int64_t row = v->of.batch_first ? b * v->of.dirs + j->dir : j->dir * v->of.batch + b;

    return (char *)t->data + (size_t)(row * v->of.hidden) * v->of.size;
}

char *wf_recurrent_y_row(const wf_recurrent_job *j, const wf_tensor *y, int64_t t, int64_t b)
{
    const wf_recurrent *v = j->v;
    int64_t row = v->of.batch_first ? (b * v->of.steps + t) * v->of.dirs + j->dir
                                    : (t * v->of.dirs + j->dir) * v->of.batch + b;

    return (char *)y->data + (size_t)(row * v->of.hidden) * v->of.size;
}

int64_t wf_recurrent_time(const wf_recurrent_job *j, int64_t s)
{
    return j->v->of.reverse[j->dir] ? j->v->of.steps - 1 - s : s;
}

int64_t wf_recurrent_before(const wf_recurrent_job *j, int64_t t, int64_t len)
{
    return wf_recurrent_earlier(j->v->of.reverse[j->dir], t, len);
}

wf_cell wf_recurrent_cell(const wf_recurrent_job *j, int64_t t, int64_t b)
{
    const wf_recurrent *v = j->v;
    int64_t row = t * v->of.batch + b, n = v->of.gates * v->of.hidden;
    wf_cell c = {.h = v->of.hidden, .clip = v->of.clip, .relu = v->of.relu[j->dir]};

    c.peephole = wf_recurrent_part(j, j->a->p, 3 * v->of.hidden, 0);
    if (v->of.kind == WF_GRU && v->of.linear)
        c.bias_h = wf_recurrent_part(j, j->a->b, 2 * n, 2 * n - v->of.hidden);
    if (j->gates)
        c.gates = j->gates + (size_t)(row * n) * v->of.size;
    if (j->slope)
        c.slope = j->slope + (size_t)(row * n) * v->of.size;
    if (j->beside)
        c.c = c.reset = j->beside + (size_t)(row * v->of.hidden) * v->of.size;
    return c;
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

static void carve_all(wf_recurrent *v, bool back)
{
    size_t batch = (size_t)v->of.batch, h = (size_t)v->of.hidden, i = (size_t)v->of.input;
    size_t n = (size_t)(v->of.gates * v->of.hidden), *e = &v->at.end,
           rows = (size_t)v->of.steps * batch;
    bool gru = v->of.kind == WF_GRU, there = !back || v->of.again;

    v->at.x = carve(e, v->of.batch_first ? rows : 0, i);
    v->at.dx = carve(e, v->of.batch_first && back ? rows : 0, i);
    v->at.gates = carve(e, there && !v->of.keeps ? rows : 0, n);
    v->at.slope = carve(e, v->of.again && v->of.clip > 0 ? rows : 0, n);
    v->at.dgates = carve(e, back ? rows : 0, n);
    v->at.dr = carve(e, back && gru && v->of.linear ? rows : 0, n);
    v->at.before = carve(e, back ? rows : 0, h);
    v->at.beside = carve(e, v->of.kind == WF_RNN || !there ? 0 : v->of.again ? rows : batch, h);
    v->at.h = carve(e, batch, h);
    v->at.cell = carve(e, batch, h);
    v->at.dh = carve(e, back ? batch : 0, h);
    v->at.dc = carve(e, back ? batch : 0, h);
    v->at.product = carve(e, back ? batch : 0, h);
    v->at.direct = carve(e, back && gru ? batch : 0, h);
    v->at.one = carve(e, there ? batch : 0, n);
    v->at.bias = carve(e, there ? 1 : 0, n);
    v->at.lens = carve(e, batch, 8 / v->of.size + 1);
}

static wf_status sequence_product(wf_prep *prep, const wf_recurrent *v, wf_product p, uint32_t then,
                                  wf_product_way **out, wf_err *err)
{
    p.dtype = v->of.dtype;
    p.alpha = 1;
    return wf_product_prepare(prep, &p, then, out, err);
}

/* The products over the whole sequence: they share workspace with each other. */
static wf_status sequence_products(wf_prep *prep, wf_recurrent *v, bool bias,
                                   const wf_tensor *const grads[], wf_err *err)
{
    int64_t n = v->of.gates * v->of.hidden, rows = v->of.steps * v->of.batch;

    if ((!grads || v->of.again) && !v->thin)
        WF_TRY(sequence_product(prep, v,
                                (wf_product){.trans_b = true, .m = rows, .n = n, .k = v->of.input},
                                bias ? WF_PRODUCT_BIAS : 0, &v->input_way, err));
    if (!grads)
        return WF_OK;
    if (grads[0] && (!v->thin || v->of.dirs > 1))
        WF_TRY(sequence_product(prep, v, (wf_product){.m = rows, .n = v->of.input, .k = n}, 0,
                                &v->dx, err));
    if (grads[0] && v->of.dirs > 1)
        WF_TRY(sequence_product(prep, v,
                                (wf_product){.m = rows, .n = v->of.input, .k = n, .beta = 1}, 0,
                                &v->dx_more, err));
    if (grads[1])
        WF_TRY(sequence_product(prep, v,
                                (wf_product){.trans_a = true, .m = n, .n = v->of.input, .k = rows},
                                0, &v->dw, err));
    if (grads[2] && !wf_recurrent_two(&v->of))
        WF_TRY(sequence_product(prep, v,
                                (wf_product){.trans_a = true, .m = n, .n = v->of.hidden, .k = rows},
                                0, &v->dr, err));
    return WF_OK;
}

/* A product of each step: from [batch, from] to `gates` of a row of all gates, or back. */
static wf_status step_product(wf_prep *prep, const wf_recurrent *v, int64_t gates, int64_t from,
                              bool back, bool bias, wf_packed **out, wf_err *err)
{
    int64_t n = v->of.gates * v->of.hidden, some = gates * v->of.hidden;
    wf_strided_product p = {.dtype = v->of.dtype,
                            .trans_b = !back,
                            .m = v->of.batch,
                            .n = back ? from : some,
                            .k = back ? some : from,
                            .lda = back ? n : from,
                            .ldb = from,
                            .ldc = back ? from : n};

    return wf_packed_prepare(prep, &p, v->share, bias, out, err);
}

static wf_status step_products(wf_prep *prep, wf_recurrent *v, bool bias,
                               const wf_tensor *const grads[], wf_err *err)
{
    bool two = wf_recurrent_two(&v->of), there = !grads || v->of.again;
    int64_t first = two ? 2 : v->of.gates, h = v->of.hidden;

    if (there && v->thin)
        WF_TRY(step_product(prep, v, v->of.gates, v->of.input, false, bias, &v->input_step, err));
    if (there)
        WF_TRY(step_product(prep, v, first, h, false, false, &v->state, err));
    if (there && two)
        WF_TRY(step_product(prep, v, 1, h, false, false, &v->reset, err));
    if (!grads)
        return WF_OK;
    WF_TRY(step_product(prep, v, first, h, true, false, &v->state_back, err));
    if (two)
        WF_TRY(step_product(prep, v, 1, h, true, false, &v->reset_back, err));
    if (grads[0] && v->thin && v->of.dirs == 1)
        WF_TRY(step_product(prep, v, v->of.gates, v->of.input, true, false, &v->dx_step, err));
    return WF_OK;
}

/* A thread takes a part of the batch through all steps. */
static void cut_batch(wf_recurrent *v, uint32_t threads)
{
    double work = (double)v->of.gates * (double)v->of.hidden * (double)v->of.hidden *
                  (double)v->of.steps * (double)v->of.batch / (double)PART_WORK;
    int64_t parts = WF_MIN((int64_t)threads, v->of.batch);

    if (work < (double)parts)
        parts = (int64_t)work;
    parts = WF_MAX(parts, INT64_C(1));
    v->share = WF_MAX((v->of.batch + parts - 1) / parts, INT64_C(1));
    v->parts = (v->of.batch + v->share - 1) / v->share;
}

static wf_status make(wf_prep *prep, bool bias, const wf_tensor *const grads[], wf_recurrent *v,
                      wf_err *err)
{
    size_t bytes;

    carve_all(v, grads);
    if (v->at.end == SIZE_MAX || !wf_mul_size(v->at.end, v->of.size, &bytes) ||
        v->at.end > (size_t)INT64_MAX / 64)
        return wf_fail_nomem(err, SIZE_MAX);
    cut_batch(v, prep->threads);
    v->thin = v->of.dtype == WF_F32 && prep->compute != WF_COMPUTE_BF16 && wf_cpu_has()->avx512 &&
              v->share >= THIN_ROWS;
    WF_TRY(sequence_products(prep, v, bias, grads, err));
    WF_TRY(step_products(prep, v, bias, grads, err));
    v->rooms_at = wf_align_up(prep->workspace_bytes, 64);
    if (!wf_add_size(v->rooms_at, bytes, &prep->workspace_bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    return WF_OK;
}

static wf_status new_state(wf_prep *prep, wf_recurrent **out, wf_err *err)
{
    wf_recurrent *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    *v = (wf_recurrent){0};
    prep->state = v;
    *out = v;
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_recurrent *v = NULL;

    WF_TRY(new_state(prep, &v, err));
    WF_TRY(wf_recurrent_sizes_of(prep->node, in, out, &v->of, err));
    return make(prep, wf_recurrent_args_of(v->of.kind, in).b != NULL, NULL, v, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    wf_recurrent *v = NULL;

    WF_TRY(new_state(prep, &v, err));
    WF_TRY(wf_recurrent_grad_sizes_of(prep->node, in, &v->of, err));
    return make(prep, wf_recurrent_grad_args(v->of.kind, prep->node->n_in, in).b != NULL, out, v,
                err);
}

#define ROW(op) WF_ROW(op, WF_TYPES_FLOAT, wf_recurrent_run, .prepare = prepare)
#define KEEP(op)                                                                                   \
    WF_ROW(op, WF_TYPES_FLOAT, wf_recurrent_run, .prepare = prepare, .domain = WF_DOMAIN_WEFT)
#define GRAD(op, i)                                                                                \
    WF_ROW(op, WF_TYPES_FLOAT, wf_recurrent_run_grad, .prepare = prepare_grad,                     \
           .domain = WF_DOMAIN_WEFT, .typed_by = i)

const wf_kernel wf_kernels_recurrent[] = {
    ROW("GRU"),       GRAD("GRUGrad", 2), KEEP("GRUKeep"),    ROW("LSTM"), GRAD("LSTMGrad", 3),
    KEEP("LSTMKeep"), ROW("RNN"),         GRAD("RNNGrad", 2), {0},
};
