/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/chain.cu - Chain: a thread takes an element through all steps, so
 * that what lies between them is never written to the GPU's memory. The program is an argument of
 * the kernel; all threads take the same way through it. */
#include "common/kernels/cuda/code.h"
extern "C" {
#include "common/kernels/shape/chain.h"
}

#include <cmath>

#include "common/kernels/cuda/compile/steps.h"

namespace
{

struct step {
    uint8_t code, args[2]; /* of the values: inputs, then results */
};

struct program {
    uint32_t n_in, n_steps;
    int64_t periods[WF_CHAIN_INPUTS];
    step steps[WF_CHAIN_STEPS];
};

template <class T> struct operands {
    const T *in[WF_CHAIN_INPUTS];
};

/* The formula of the operation's own kernel. */
template <class T> WF_CODE T result_of(uint8_t code, T x, T y)
{
    switch (code) {
    case WF_CHAIN_ABS:
        return wf_step_abs(x);
    case WF_CHAIN_ADD:
        return wf_step_add(x, y);
    case WF_CHAIN_DIV:
        return wf_step_div(x, y);
    case WF_CHAIN_EXP:
        return wf_step_exp(x);
    case WF_CHAIN_MUL:
        return wf_step_mul(x, y);
    case WF_CHAIN_NEG:
        return wf_step_neg(x);
    case WF_CHAIN_RECIPROCAL:
        return wf_step_reciprocal(x);
    case WF_CHAIN_RELU:
        return wf_step_relu(x);
    case WF_CHAIN_RELU_GRAD:
        return wf_step_relu_grad(x, y);
    case WF_CHAIN_SIGMOID:
        return wf_step_sigmoid(x);
    case WF_CHAIN_SIGMOID_GRAD:
        return wf_step_sigmoid_grad(x, y);
    case WF_CHAIN_SQRT:
        return wf_step_sqrt(x);
    case WF_CHAIN_SUB:
        return wf_step_sub(x, y);
    case WF_CHAIN_TANH:
        return wf_step_tanh(x);
    default: /* WF_CHAIN_TANH_GRAD */
        return wf_step_tanh_grad(x, y);
    }
}

/* What is indexed stays where arguments lie, which all threads read at once; other arguments would
 * be copied for each thread. */
template <class T>
__global__ void interpret(const __grid_constant__ program p,
                          const __grid_constant__ operands<T> from, T *out, int64_t n)
{
    T values[WF_CHAIN_INPUTS + WF_CHAIN_STEPS];

    for (int64_t i = wf_first(); i < n; i += wf_all()) {
        for (uint32_t k = 0; k < p.n_in; k++)
            values[k] = from.in[k][p.periods[k] == n ? i : i % p.periods[k]];
        for (uint32_t k = 0; k < p.n_steps; k++)
            values[p.n_in + k] =
                result_of(p.steps[k].code, values[p.steps[k].args[0]], values[p.steps[k].args[1]]);
        out[i] = values[p.n_in + p.n_steps - 1];
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    program *p = static_cast<program *>(wf_arena_alloc(prep->arena, sizeof *p));
    wf_chain_plan plan;

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    WF_TRY(wf_chain_plan_of(prep->node, in, out[0], &plan, err));
    *p = program{};
    p->n_in = plan.n_in;
    p->n_steps = plan.chain.n_steps;
    for (uint32_t i = 0; i < plan.n_in; i++)
        p->periods[i] = plan.periods[i];
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const wf_chain_step *s = &plan.chain.steps[i];

        p->steps[i].code = (uint8_t)s->op->code;
        p->steps[i].args[0] = (uint8_t)s->args[0];
        p->steps[i].args[1] = (uint8_t)s->args[s->op->n_args - 1]; /* of one: the same again */
    }
    prep->state = p;
    return WF_OK;
}

template <class T>
wf_status chain(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const program *p = static_cast<const program *>(run->state);
    int64_t n = wf_elems(out[0]);
    operands<T> from = {};

    if (n == 0)
        return WF_OK;
    for (uint32_t i = 0; i < p->n_in; i++)
        from.in[i] = static_cast<const T *>(in[i]->data);
    return wf_launch(run, "Chain", interpret<T>, wf_blocks(run, n), err, *p, from,
                     static_cast<T *>(out[0]->data), n);
}

} // namespace

#define ROW(dtype, T)                                                                              \
    {                                                                                              \
        .op = "Chain", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .in_place = 0xFF,       \
        .prepare = prepare, .run = chain<T>                                                        \
    }

WF_CUDA_ROWS(chain){ROW(WF_F32, float), ROW(WF_F64, double), {}};
