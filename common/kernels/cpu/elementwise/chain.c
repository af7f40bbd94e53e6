/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/chain.c - Chain: a tile of the output at a time goes through all
 * steps while it lies in the first cache. Each step is a loop of its own with the formula of its
 * operation's own kernel, so that the result has the same bits as the operations one by one.
 *
 * Tiles of operands of bfloat16 are widened first, and a result of bfloat16 is rounded last.
 */
#include "common/kernels/shape/chain.h"
#include "common/base/size.h"
#include "common/kernels/cpu/elementwise/broadcast.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/vmath.h"

#include <math.h>
#include <string.h>

/* Bytes of a tile. With 2 inputs, a result and the output that is 16 KiB of 32. */
enum { TILE = 4096 };

typedef void step_fn(const void *a, int64_t step_a, const void *b, int64_t step_b, void *out,
                     int64_t n);

typedef struct plan {
    wf_chain_plan of;
    uint8_t slots[WF_CHAIN_STEPS]; /* the scratch tile of each result but the last */
} plan;

#define LOOPS(name, T, expr)                                                                       \
    WF_MULTIVERSION static void name(const void *va, int64_t step_a, const void *vb,               \
                                     int64_t step_b, void *vout, int64_t n)                        \
    {                                                                                              \
        const T *a = va, *b = vb;                                                                  \
        T *out = vout;                                                                             \
                                                                                                   \
        WF_BINARY_LOOPS(T, T, expr)                                                                \
    }
#define STEP(name, f32, f64)                                                                       \
    LOOPS(name##_f32, float, f32)                                                                  \
    LOOPS(name##_f64, double, f64)
#define SAME(name, expr) STEP(name, expr, expr)

STEP(abs_step, fabsf(x), fabs(x))
SAME(add, x + y)
SAME(quotient, x / y)
STEP(exp_step, wf_exp_f32(x), exp(x))
SAME(mul, x *y)
SAME(neg, -x)
SAME(reciprocal, 1 / x)
SAME(relu, x < 0 ? 0 : x)
SAME(relu_grad, y > 0 ? x : 0)
STEP(sigmoid, wf_sigmoid_f32(x), 1 / (1 + exp(-x)))
SAME(sigmoid_grad, x *y *(1 - y))
STEP(sqrt_step, sqrtf(x), sqrt(x))
SAME(sub, x - y)
STEP(tanh_step, wf_tanh_f32(x), tanh(x))
SAME(tanh_grad, x *(1 - y * y))

#define CODE(code, name) [code] = {name##_f32, name##_f64}
static step_fn *const step_fns[WF_CHAIN_CODES][2] = {
    CODE(WF_CHAIN_ABS, abs_step),
    CODE(WF_CHAIN_ADD, add),
    CODE(WF_CHAIN_DIV, quotient),
    CODE(WF_CHAIN_EXP, exp_step),
    CODE(WF_CHAIN_MUL, mul),
    CODE(WF_CHAIN_NEG, neg),
    CODE(WF_CHAIN_RECIPROCAL, reciprocal),
    CODE(WF_CHAIN_RELU, relu),
    CODE(WF_CHAIN_RELU_GRAD, relu_grad),
    CODE(WF_CHAIN_SIGMOID, sigmoid),
    CODE(WF_CHAIN_SIGMOID_GRAD, sigmoid_grad),
    CODE(WF_CHAIN_SQRT, sqrt_step),
    CODE(WF_CHAIN_SUB, sub),
    CODE(WF_CHAIN_TANH, tanh_step),
    CODE(WF_CHAIN_TANH_GRAD, tanh_grad),
};

/* A result's tile is free again after the last step that reads it. */
static void choose_slots(plan *p)
{
    uint32_t until[WF_CHAIN_STEPS] = {0}, n = p->of.chain.n_steps;
    bool taken[WF_CHAIN_STEPS] = {false};

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 2; k++)
            if (p->of.chain.steps[i].args[k] >= (int32_t)p->of.n_in)
                until[p->of.chain.steps[i].args[k] - (int32_t)p->of.n_in] = i;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t slot = 0;

        for (uint32_t k = 0; k < i; k++)
            if (until[k] == i)
                taken[p->slots[k]] = false; /* a step may write where it reads */
        while (taken[slot])
            slot++;
        taken[slot] = until[i] > i;
        p->slots[i] = slot;
    }
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    plan *p = wf_arena_alloc(prep->arena, sizeof *p);

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    WF_TRY(wf_chain_plan_of(prep->node, in, out[0], &p->of, err));
    choose_slots(p);
    prep->state = p;
    return WF_OK;
}

typedef struct job {
    const plan *plan;
    const char *in[WF_CHAIN_INPUTS];
    char *out;
    size_t size; /* of an element, in steps */
    bool in_is_bf16[WF_CHAIN_INPUTS], out_is_bf16;
} job;

typedef struct operand {
    const void *at;
    int64_t step;
} operand;

/* Elements [at, at + n) of an input, as steps have them. */
static void fetch(const job *j, uint32_t i, int64_t at, int64_t n, char *to)
{
    if (j->in_is_bf16[i])
        wf_f32_of_bf16s((const uint16_t *)(const void *)j->in[i] + at, (size_t)n,
                        (float *)(void *)to);
    else
        memcpy(to, j->in[i] + (size_t)at * j->size, (size_t)n * j->size);
}

/* A call of memcpy costs as much as a cache line. */
static WF_INLINE void copy_piece(char *to, const char *from, size_t bytes)
{
    enum { LINE = 64 };

    if (bytes % LINE)
        memcpy(to, from, bytes);
    else
        for (size_t i = 0; i < bytes; i += LINE)
            memcpy(to + i, from + i, LINE);
}

/* The elements of an input that is repeated over spans. */
static void repeat_tile(const job *j, uint32_t i, int64_t from, int64_t n, char *room)
{
    const int64_t period = j->plan->of.periods[i], span = j->plan->of.spans[i];
    int64_t first = from / span * period, in_span = from % span, at = from % period;

    for (int64_t done = 0, some; done < n; done += some) {
        char *to = room + (size_t)done * j->size;

        some = WF_MIN(period - at, n - done);
        if (j->in_is_bf16[i])
            fetch(j, i, first + at, some, to);
        else
            copy_piece(to, j->in[i] + (size_t)(first + at) * j->size, (size_t)some * j->size);
        at = 0;
        in_span += some;
        first += in_span == span ? period : 0;
        in_span = in_span == span ? 0 : in_span;
    }
}

/* The elements of an input under output elements [from, from + n): where they lie, or repeated or
 * widened in `room`. */
static operand input_tile(const job *j, uint32_t i, int64_t from, int64_t n, char *room)
{
    int64_t period = j->plan->of.periods[i], span = j->plan->of.spans[i], at = from % period;
    bool lies = !j->in_is_bf16[i];

    if (span) {
        repeat_tile(j, i, from, n, room);
        return (operand){room, 1};
    }
    if (period == 1 && !lies)
        fetch(j, i, 0, 1, room);
    if (period == 1)
        return (operand){lies ? j->in[i] : room, 0};
    if (lies && at + n <= period)
        return (operand){j->in[i] + (size_t)at * j->size, 1};
    for (int64_t done = 0; done < n;) {
        int64_t some = WF_MIN(period - at, n - done);

        fetch(j, i, at, some, room + (size_t)done * j->size);
        done += some;
        at = 0;
    }
    return (operand){room, 1};
}

static void tile(const job *j, int64_t from, int64_t n, char *rooms, char *scratch)
{
    const plan *p = j->plan;
    operand operands[WF_CHAIN_INPUTS + WF_CHAIN_STEPS];

    for (uint32_t i = 0; i < p->of.n_in; i++)
        operands[i] = input_tile(j, i, from, n, rooms + i * (size_t)TILE);
    for (uint32_t i = 0; i < p->of.chain.n_steps; i++) {
        const wf_chain_step *s = &p->of.chain.steps[i];
        operand a = operands[s->args[0]], b = s->op->n_args == 2 ? operands[s->args[1]] : a;
        bool lands = i + 1 == p->of.chain.n_steps && !j->out_is_bf16;
        char *out = lands ? j->out + (size_t)from * j->size : scratch + p->slots[i] * (size_t)TILE;

        step_fns[s->op->code][j->size == sizeof(double)](a.at, a.step, b.at, b.step, out, n);
        operands[p->of.n_in + i] = (operand){out, 1};
    }
    wf_narrow(j->out, j->out_is_bf16, from, n, operands[p->of.n_in + p->of.chain.n_steps - 1].at);
}

static void range(void *arg, int64_t begin, int64_t end)
{
    char rooms[WF_CHAIN_INPUTS * TILE] WF_ALIGNED(64),
        scratch[WF_CHAIN_STEPS * TILE] WF_ALIGNED(64);
    const job *j = arg;
    int64_t most = TILE / (int64_t)j->size;

    for (int64_t at = begin; at < end; at += most)
        tile(j, at, WF_MIN(most, end - at), rooms, scratch);
}

static wf_status chain(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    const plan *p = run->state;
    job j = {.plan = p,
             .out = out[0]->data,
             .size = out[0]->dtype == WF_F64 ? sizeof(double) : sizeof(float),
             .out_is_bf16 = wf_is_bf16(out[0])};

    (void)err;
    for (uint32_t i = 0; i < p->of.n_in; i++) {
        j.in[i] = in[i]->data;
        j.in_is_bf16[i] = wf_is_bf16(in[i]);
    }
    wf_pool_for(run->pool, wf_elems(out[0]), WF_GRAIN / p->of.chain.n_steps, range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_chain[] = {
    WF_ROW("Chain", WF_TYPES_FLOAT, chain, .domain = WF_DOMAIN_WEFT, .prepare = prepare,
           .in_place = 0xFF, .is_narrow = true),
    {0},
};
