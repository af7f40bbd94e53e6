/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/chain_case.c */
#include "tests/cuda/chain_case.h"
#include "common/base/size.h"

#include <assert.h>

typedef struct step {
    const char *op;
    int32_t a, b; /* b: -1 where there is one operand */
} step;

static chain_case case_of(wf_dtype dtype, int64_t n, uint32_t n_in, const int64_t periods[],
                          uint32_t n_steps, const step steps[])
{
    chain_case c = {.dtype = dtype, .n = n, .plan = {.n_in = n_in, .chain = {.n_steps = n_steps}}};

    for (uint32_t i = 0; i < n_in; i++)
        c.plan.periods[i] = periods[i];
    for (uint32_t i = 0; i < n_in; i++)
        c.types.in[i] = dtype;
    c.types.out = dtype;
    for (uint32_t i = 0; i < n_steps; i++) {
        c.plan.chain.steps[i] =
            (wf_chain_step){wf_chain_find(steps[i].op), {steps[i].a, steps[i].b}};
        assert(c.plan.chain.steps[i].op);
    }
    return c;
}

chain_case chain_case_at(int i)
{
    static const step scaled_relu[] = {{"Mul", 0, 1}, {"Add", 2, 0}, {"Relu", 3, -1}};
    static const step biased_sigmoid[] = {{"Add", 0, 1}, {"Mul", 3, 2}, {"Sigmoid", 4, -1}};
    static const step root_of_sum[] = {{"Add", 0, 1}, {"Sqrt", 2, -1}};
    const int64_t huge = (int64_t)1 << 33;
    chain_case c;

    switch (i) {
    case 0:
        return case_of(WF_F32, 1024, 2, (int64_t[]){1024, 1024}, WF_COUNT(scaled_relu),
                       scaled_relu);
    case 1:
        return case_of(WF_F64, 30, 3, (int64_t[]){30, 10, 1}, WF_COUNT(biased_sigmoid),
                       biased_sigmoid);
    case 2:
        return case_of(WF_F32, huge, 2, (int64_t[]){huge, 64}, WF_COUNT(root_of_sum), root_of_sum);
    default:
        c = case_of(WF_F32, 1040, 2, (int64_t[]){1040, 8}, WF_COUNT(root_of_sum), root_of_sum);
        c.plan.spans[1] = 208;
        return c;
    }
}

chain_case chain_case_of_all(wf_dtype dtype, int64_t n, int64_t period)
{
    static const step all[] = {{"Mul", 0, 1},       {"Add", 2, 0},          {"Neg", 3, -1},
                               {"Abs", 4, -1},      {"Sqrt", 5, -1},        {"Tanh", 6, -1},
                               {"Sigmoid", 3, -1},  {"Sub", 7, 8},          {"Relu", 9, -1},
                               {"ReluGrad", 3, 10}, {"SigmoidGrad", 11, 8}, {"TanhGrad", 12, 7},
                               {"Exp", 13, -1},     {"Div", 14, 1},         {"Reciprocal", 15, -1}};

    _Static_assert(WF_COUNT(all) == WF_CHAIN_CODES, "each operation is a step");
    return case_of(dtype, n, 2, (int64_t[]){n, period}, WF_COUNT(all), all);
}

chain_case chain_case_of_halves(wf_dtype type)
{
    static const step scaled[] = {{"Mul", 0, 1}};
    chain_case c = case_of(WF_F32, 1 << 16, 2, (int64_t[]){1 << 16, 8}, WF_COUNT(scaled), scaled);

    c.types.in[0] = c.types.out = type;
    return c;
}

chain_case chain_case_narrow(wf_dtype type, uint32_t narrow, int64_t n, int64_t period)
{
    chain_case c = chain_case_of_all(WF_F32, n, period);

    for (uint32_t i = 0; i < c.plan.n_in; i++)
        if (narrow >> i & 1)
            c.types.in[i] = type;
    if (narrow >> c.plan.n_in & 1)
        c.types.out = type;
    return c;
}
