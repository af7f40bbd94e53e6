/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/recurrent/recurrent.c - LSTM, GRU, RNN and their gradients: the rows of the
 * table, what is prepared, and where things lie. recurrent_forward.c and recurrent_backward.c do
 * the work. */
#include "common/kernels/cpu/recurrent/recurrent.h"
#include "common/base/size.h"
#include "common/graph/op.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/device.h"

#include <inttypes.h>
#include <string.h>

/* Multiply-adds of R over all steps that are worth a part of their own: about 5 us. */
#define PART_WORK INT64_C(500000)
/* Rows of a part from which on products of a step are as fast as those of the whole sequence. */
enum { THIN_ROWS = 8 };

char *wf_recurrent_part(const wf_recurrent_job *j, const wf_tensor *t, int64_t per_dir,
                        int64_t elem)
{
    return t ? (char *)t->data + (size_t)(j->dir * per_dir + elem) * j->v->size : NULL;
}

char *wf_recurrent_state_row(const wf_recurrent_job *j, const wf_tensor *t, int64_t b)
{
    const wf_recurrent *v = j->v;
    int64_t row = v->batch_first ? b * v->dirs + j->dir : j->dir * v->batch + b;

    return (char *)t->data + (size_t)(row * v->hidden) * v->size;
}

char *wf_recurrent_y_row(const wf_recurrent_job *j, const wf_tensor *y, int64_t t, int64_t b)
{
    const wf_recurrent *v = j->v;
    int64_t row = v->batch_first ? (b * v->steps + t) * v->dirs + j->dir
                                 : (t * v->dirs + j->dir) * v->batch + b;

    return (char *)y->data + (size_t)(row * v->hidden) * v->size;
}

int64_t wf_recurrent_time(const wf_recurrent_job *j, int64_t s)
{
    return j->v->reverse[j->dir] ? j->v->steps - 1 - s : s;
}

int64_t wf_recurrent_before(const wf_recurrent_job *j, int64_t t, int64_t len)
{
    if (j->v->reverse[j->dir])
        return t + 1 < len ? t + 1 : -1;
    return t - 1;
}

wf_cell wf_recurrent_cell(const wf_recurrent_job *j, int64_t t, int64_t b)
{
    const wf_recurrent *v = j->v;
    int64_t row = t * v->batch + b, n = v->gates * v->hidden;
    wf_cell c = {.h = v->hidden, .clip = v->clip, .relu = v->relu[j->dir]};

    c.peephole = wf_recurrent_part(j, j->a->p, 3 * v->hidden, 0);
    if (v->kind == WF_GRU && v->linear)
        c.bias_h = wf_recurrent_part(j, j->a->b, 2 * n, 2 * n - v->hidden);
    if (j->gates)
        c.gates = j->gates + (size_t)(row * n) * v->size;
    if (j->slope)
        c.slope = j->slope + (size_t)(row * n) * v->size;
    if (j->beside)
        c.c = c.reset = j->beside + (size_t)(row * v->hidden) * v->size;
    return c;
}

/* A tensor has these dims; an absent one does. */
static bool fits(const wf_tensor *t, uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t dims[] = {a, b, c, d};

    return !t || (t->rank == rank && memcmp(t->dims, dims, rank * sizeof dims[0]) == 0);
}

static bool state_fits(const wf_recurrent *v, const wf_tensor *t)
{
    return v->batch_first ? fits(t, 3, v->batch, v->dirs, v->hidden, 0)
                          : fits(t, 3, v->dirs, v->batch, v->hidden, 0);
}

static bool y_fits(const wf_recurrent *v, const wf_tensor *t)
{
    return v->batch_first ? fits(t, 4, v->batch, v->steps, v->dirs, v->hidden)
                          : fits(t, 4, v->steps, v->dirs, v->batch, v->hidden);
}

static wf_status check(wf_recurrent *v, const wf_recurrent_args *a, wf_err *err)
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
        !y_fits(v, a->y) || !y_fits(v, a->dy) ||
        !fits(a->gates, 4, v->dirs, v->steps, v->batch, n) ||
        !fits(a->beside, 4, v->dirs, v->steps, v->batch, v->hidden))
        return wf_fail(err, WF_SHAPE, NULL,
                       "X, W, R, B, sequence_lens and the states do not fit each other");
    if (v->steps > INT32_MAX || v->batch > INT32_MAX || v->steps * v->batch > INT32_MAX ||
        n > INT32_MAX || v->input > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "steps times batch, gates and inputs must each stay below 2^31");
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

static void carve_all(wf_recurrent *v, bool back)
{
    size_t batch = (size_t)v->batch, h = (size_t)v->hidden, i = (size_t)v->input;
    size_t n = (size_t)(v->gates * v->hidden), *e = &v->at.end, rows = (size_t)v->steps * batch;
    bool gru = v->kind == WF_GRU, there = !back || v->again;

    v->at.x = carve(e, v->batch_first ? rows : 0, i);
    v->at.dx = carve(e, v->batch_first && back ? rows : 0, i);
    v->at.gates = carve(e, there && !v->keeps ? rows : 0, n);
    v->at.slope = carve(e, v->again && v->clip > 0 ? rows : 0, n);
    v->at.dgates = carve(e, back ? rows : 0, n);
    v->at.dr = carve(e, back && gru && v->linear ? rows : 0, n);
    v->at.before = carve(e, back ? rows : 0, h);
    v->at.beside = carve(e, v->kind == WF_RNN || !there ? 0 : v->again ? rows : batch, h);
    v->at.h = carve(e, batch, h);
    v->at.cell = carve(e, batch, h);
    v->at.dh = carve(e, back ? batch : 0, h);
    v->at.dc = carve(e, back ? batch : 0, h);
    v->at.product = carve(e, back ? batch : 0, h);
    v->at.direct = carve(e, back && gru ? batch : 0, h);
    v->at.one = carve(e, there ? batch : 0, n);
    v->at.bias = carve(e, there ? 1 : 0, n);
    v->at.lens = carve(e, batch, 8 / v->size + 1);
}

static void read_attributes(const wf_node *n, wf_recurrent *v)
{
    const wf_attr *activations = wf_node_attr(n, "activations");
    const char *direction = wf_node_string(n, "direction", "forward");

    v->batch_first = wf_node_int(n, "layout", 0) != 0;
    v->linear = wf_node_int(n, "linear_before_reset", 0) != 0;
    v->clip = (double)wf_node_float(n, "clip", 0);
    v->reverse[0] = strcmp(direction, "reverse") == 0;
    v->reverse[1] = true;
    for (size_t i = 0; v->kind == WF_RNN && activations && i < activations->n && i < 2; i++)
        v->relu[i] = activations->strings[i][0] == 'R' || activations->strings[i][0] == 'r';
}

static wf_status sequence_product(wf_prep *prep, const wf_recurrent *v, wf_product p, uint32_t then,
                                  wf_product_way **out, wf_err *err)
{
    p.dtype = v->dtype;
    p.alpha = 1;
    return wf_product_prepare(prep, &p, then, out, err);
}

/* The products over the whole sequence: they share workspace with each other. */
static wf_status sequence_products(wf_prep *prep, wf_recurrent *v, bool bias,
                                   const wf_tensor *const grads[], wf_err *err)
{
    int64_t n = v->gates * v->hidden, rows = v->steps * v->batch;

    if ((!grads || v->again) && !v->thin)
        WF_TRY(sequence_product(prep, v,
                                (wf_product){.trans_b = true, .m = rows, .n = n, .k = v->input},
                                bias ? WF_PRODUCT_BIAS : 0, &v->input_way, err));
    if (!grads)
        return WF_OK;
    if (grads[0] && (!v->thin || v->dirs > 1))
        WF_TRY(sequence_product(prep, v, (wf_product){.m = rows, .n = v->input, .k = n}, 0, &v->dx,
                                err));
    if (grads[0] && v->dirs > 1)
        WF_TRY(sequence_product(prep, v, (wf_product){.m = rows, .n = v->input, .k = n, .beta = 1},
                                0, &v->dx_more, err));
    if (grads[1])
        WF_TRY(sequence_product(prep, v,
                                (wf_product){.trans_a = true, .m = n, .n = v->input, .k = rows}, 0,
                                &v->dw, err));
    if (grads[2] && !wf_recurrent_two(v))
        WF_TRY(sequence_product(prep, v,
                                (wf_product){.trans_a = true, .m = n, .n = v->hidden, .k = rows}, 0,
                                &v->dr, err));
    return WF_OK;
}

/* A product of each step: from [batch, from] to `gates` of a row of all gates, or back. */
static wf_status step_product(wf_prep *prep, const wf_recurrent *v, int64_t gates, int64_t from,
                              bool back, bool bias, wf_packed **out, wf_err *err)
{
    int64_t n = v->gates * v->hidden, some = gates * v->hidden;
    wf_strided_product p = {.dtype = v->dtype,
                            .trans_b = !back,
                            .m = v->batch,
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
    bool two = wf_recurrent_two(v), there = !grads || v->again;
    int64_t first = two ? 2 : v->gates, h = v->hidden;

    if (there && v->thin)
        WF_TRY(step_product(prep, v, v->gates, v->input, false, bias, &v->input_step, err));
    if (there)
        WF_TRY(step_product(prep, v, first, h, false, false, &v->state, err));
    if (there && two)
        WF_TRY(step_product(prep, v, 1, h, false, false, &v->reset, err));
    if (!grads)
        return WF_OK;
    WF_TRY(step_product(prep, v, first, h, true, false, &v->state_back, err));
    if (two)
        WF_TRY(step_product(prep, v, 1, h, true, false, &v->reset_back, err));
    if (grads[0] && v->thin && v->dirs == 1)
        WF_TRY(step_product(prep, v, v->gates, v->input, true, false, &v->dx_step, err));
    return WF_OK;
}

/* A thread takes a part of the batch through all steps. */
static void cut_batch(wf_recurrent *v, uint32_t threads)
{
    double work = (double)v->gates * (double)v->hidden * (double)v->hidden * (double)v->steps *
                  (double)v->batch / (double)PART_WORK;
    int64_t parts = WF_MIN((int64_t)threads, v->batch);

    if (work < (double)parts)
        parts = (int64_t)work;
    parts = WF_MAX(parts, INT64_C(1));
    v->share = WF_MAX((v->batch + parts - 1) / parts, INT64_C(1));
    v->parts = (v->batch + v->share - 1) / v->share;
}

static wf_status make(wf_prep *prep, const wf_recurrent_args *a, const wf_tensor *const grads[],
                      wf_recurrent *v, wf_err *err)
{
    size_t bytes;

    v->dtype = a->x->dtype;
    v->size = wf_dtype_size(v->dtype);
    WF_TRY(check(v, a, err));
    if (v->dirs !=
        (strcmp(wf_node_string(prep->node, "direction", "forward"), "bidirectional") ? 1 : 2))
        return wf_fail(err, WF_SHAPE, NULL, "W has %" PRId64 " directions", v->dirs);
    /* What an RNN without bounds gives tells its slope, and so do gates that were kept. */
    v->again = grads && !a->gates && (v->kind != WF_RNN || v->clip > 0);
    carve_all(v, grads);
    if (v->at.end == SIZE_MAX || !wf_mul_size(v->at.end, v->size, &bytes) ||
        v->at.end > (size_t)INT64_MAX / 64)
        return wf_fail_nomem(err, SIZE_MAX);
    cut_batch(v, prep->threads);
    v->thin = v->dtype == WF_F32 && !prep->bf16 && wf_cpu_has()->avx512 && v->share >= THIN_ROWS;
    WF_TRY(sequence_products(prep, v, a->b != NULL, grads, err));
    WF_TRY(step_products(prep, v, a->b != NULL, grads, err));
    v->rooms_at = wf_align_up(prep->workspace_bytes, 64);
    if (!wf_add_size(v->rooms_at, bytes, &prep->workspace_bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    return WF_OK;
}

static wf_status new_state(wf_prep *prep, wf_recurrent **out, wf_err *err)
{
    wf_recurrent *v = wf_arena_alloc(prep->arena, sizeof *v);
    char first = prep->node->op->name[0];

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    *v = (wf_recurrent){.kind = first == 'L' ? WF_LSTM : first == 'G' ? WF_GRU : WF_RNN};
    v->gates = v->kind == WF_LSTM ? 4 : v->kind == WF_GRU ? 3 : 1;
    read_attributes(prep->node, v);
    prep->state = v;
    *out = v;
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_recurrent *v;
    wf_recurrent_args a;

    WF_TRY(new_state(prep, &v, err));
    a = wf_recurrent_args_of(v->kind, in);
    v->keeps = strcmp(prep->node->op->domain, WF_DOMAIN_WEFT) == 0;
    if (v->keeps) {
        a.gates = out[v->kind == WF_LSTM ? 3 : 2];
        a.beside = out[v->kind == WF_LSTM ? 4 : 3];
        if (!a.gates || !a.beside)
            return wf_fail(err, WF_UNSUPPORTED, NULL, "both outputs that are kept must be taken");
    }
    return make(prep, &a, NULL, v, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    wf_recurrent *v;
    wf_recurrent_args a;

    WF_TRY(new_state(prep, &v, err));
    a = wf_recurrent_grad_args(v->kind, prep->node->n_in, in);
    return make(prep, &a, out, v, err);
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
