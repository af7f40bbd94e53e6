/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/chain.cu - Chain: a thread takes an element through all steps, so
 * that what lies between them is never written to the GPU's memory.
 *
 * A plan compiles its chains (compile/). Where that is not possible an interpreter runs them: the
 * program is an argument of its kernel, and all threads take the same way through it. Both give the
 * same bits. */
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/cuda/compile/source.h"
#include "common/kernels/shape/chain.h"
}

#include <cmath>

#include "common/kernels/cuda/compile/steps.h"

static_assert(sizeof(wf_chain_operands::in) / sizeof(void *) == WF_CHAIN_INPUTS,
              "steps.h has room for the inputs of a chain");

namespace
{

struct step {
    uint8_t code, args[2]; /* of the values: inputs, then results */
};

struct program {
    uint32_t n_in, n_steps;
    int64_t periods[WF_CHAIN_INPUTS], spans[WF_CHAIN_INPUTS];
    step steps[WF_CHAIN_STEPS];
};

using compiled_chain = void(wf_chain_operands);

struct prepared {
    program interpreted;
    compiled_chain *compiled; /* NULL: interpret */
    bool fours;               /* compiled for tensors that are aligned to 16 bytes */
};

template <class T> struct operands {
    wf_from<T> in[WF_CHAIN_INPUTS];
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

/* Which element of input k is under element i of n. */
WF_CODE int64_t place(const program &p, uint32_t k, int64_t i, int64_t n)
{
    if (p.spans[k])
        return i / p.spans[k] * p.periods[k] + i % p.periods[k];
    return p.periods[k] == n ? i : i % p.periods[k];
}

/* What is indexed stays where arguments lie, which all threads read at once; other arguments would
 * be copied for each thread. */
template <class T>
__global__ void interpret(const __grid_constant__ program p,
                          const __grid_constant__ operands<T> from, wf_to<T> out, int64_t n)
{
    wf_number<T> values[WF_CHAIN_INPUTS + WF_CHAIN_STEPS];

    for (int64_t i = wf_first(); i < n; i += wf_all()) {
        for (uint32_t k = 0; k < p.n_in; k++)
            values[k] = from.in[k][place(p, k, i, n)];
        for (uint32_t k = 0; k < p.n_steps; k++)
            values[p.n_in + k] =
                result_of(p.steps[k].code, values[p.steps[k].args[0]], values[p.steps[k].args[1]]);
        out[i] = values[p.n_in + p.n_steps - 1];
    }
}

program program_of(const wf_chain_plan &plan)
{
    program p = {};

    p.n_in = plan.n_in;
    p.n_steps = plan.chain.n_steps;
    for (uint32_t i = 0; i < plan.n_in; i++) {
        p.periods[i] = plan.periods[i];
        p.spans[i] = plan.spans[i];
    }
    for (uint32_t i = 0; i < p.n_steps; i++) {
        const wf_chain_step *s = &plan.chain.steps[i];

        p.steps[i].code = (uint8_t)s->op->code;
        p.steps[i].args[0] = (uint8_t)s->args[0];
        p.steps[i].args[1] = (uint8_t)s->args[s->op->n_args - 1]; /* of one: the same again */
    }
    return p;
}

/* NULL where it cannot be compiled, or there is no memory for its source. */
compiled_chain *compile(const wf_prep *prep, const wf_chain_plan &plan, const wf_tensor *const in[],
                        const wf_tensor *out)
{
    wf_cuda_chain_types types = {};
    wf_bytes source = {};
    const void *kernel = nullptr;

    types.out = out->dtype;
    for (uint32_t i = 0; i < plan.n_in; i++)
        types.in[i] = in[i]->dtype;
    if (!wf_cuda_chain_has_types(&plan, &types))
        return nullptr;
    wf_cuda_chain_source(&plan, wf_elems(out), &types, &source);
    if (!source.failed)
        kernel = wf_cuda_compiled_kernel(wf_cuda_gpu_of(prep->device)->compiled,
                                         wf_bytes_str(&source), WF_CUDA_CHAIN_KERNEL);
    wf_bytes_close(&source);
    return reinterpret_cast<compiled_chain *>(const_cast<void *>(kernel));
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    prepared *p = static_cast<prepared *>(wf_arena_alloc(prep->arena, sizeof *p));
    wf_chain_plan plan;

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    WF_TRY(wf_chain_plan_of(prep->node, in, out[0], &plan, err));
    *p = prepared{program_of(plan), nullptr, false};
    if (wf_elems(out[0]) > 0) {
        p->fours = wf_cuda_chain_way_of(&plan, wf_elems(out[0])).fours;
        p->compiled = compile(prep, plan, in, out[0]);
    }
    prep->state = p;
    return WF_OK;
}

/* Whether the compiled chain can have these operands: tensors of a plan are aligned, and a view
 * into one need not be. */
bool may_run_compiled(const prepared *p, const wf_chain_operands &a)
{
    uintptr_t all = reinterpret_cast<uintptr_t>(a.out);

    for (uint32_t i = 0; i < p->interpreted.n_in; i++)
        if (p->interpreted.periods[i] != 1 || p->interpreted.spans[i])
            all |= reinterpret_cast<uintptr_t>(a.in[i]);
    return p->compiled && (!p->fours || all % 16 == 0);
}

wf_chain_operands operands_of(const program &p, const wf_tensor *const in[], const wf_tensor *out)
{
    wf_chain_operands a = {};

    for (uint32_t i = 0; i < p.n_in; i++) {
        a.in[i] = in[i]->data;
        a.periods[i] = p.periods[i];
        a.spans[i] = p.spans[i];
    }
    a.out = out->data;
    a.n = wf_elems(out);
    return a;
}

template <class T>
wf_status chain(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const prepared *p = static_cast<const prepared *>(run->state);
    wf_chain_operands a = operands_of(p->interpreted, in, out[0]);
    operands<T> from = {};

    if (a.n == 0)
        return WF_OK;
    if (may_run_compiled(p, a))
        return wf_launch(run, "Chain", p->compiled, wf_blocks(run, p->fours ? a.n / 4 : a.n), err,
                         a);
    for (uint32_t i = 0; i < p->interpreted.n_in; i++)
        from.in[i] = wf_read<T>(in[i]);
    return wf_launch(run, "Chain", interpret<T>, wf_blocks(run, a.n), err, p->interpreted, from,
                     wf_write<T>(out[0]), (int64_t)a.n);
}

} // namespace

#define ROW(dtype, narrow, ...)                                                                    \
    {                                                                                              \
        .op = "Chain", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .in_place = 0xFF,       \
        .is_narrow = narrow, .prepare = prepare, .run = __VA_ARGS__                                \
    }

WF_CUDA_ROWS(chain){
    ROW(WF_F32, true, wf_wide_or_narrow<chain<float>, chain<wf_narrow>>),
    ROW(WF_F64, false, chain<double>),
    {},
};
