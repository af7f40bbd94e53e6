/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/source.c
 *
 * x0, x1, ... are the inputs and v0, v1, ... the results of steps. An input of one element is read
 * before the loop. T is the type that steps compute in, and E what a thread takes of it at once;
 * narrow elements are widened where they are used. */
#include "common/kernels/cuda/compile/source.h"

#include <inttypes.h>
#include <stdio.h>

static const char steps_text[] =
#include "common/kernels/cuda/compile/steps.inc"
    ;

/* The functions of steps.h. */
static const char *const names[WF_CHAIN_CODES] = {[WF_CHAIN_ABS] = "abs",
                                                  [WF_CHAIN_ADD] = "add",
                                                  [WF_CHAIN_DIV] = "div",
                                                  [WF_CHAIN_EXP] = "exp",
                                                  [WF_CHAIN_MUL] = "mul",
                                                  [WF_CHAIN_NEG] = "neg",
                                                  [WF_CHAIN_RECIPROCAL] = "reciprocal",
                                                  [WF_CHAIN_RELU] = "relu",
                                                  [WF_CHAIN_RELU_GRAD] = "relu_grad",
                                                  [WF_CHAIN_SIGMOID] = "sigmoid",
                                                  [WF_CHAIN_SIGMOID_GRAD] = "sigmoid_grad",
                                                  [WF_CHAIN_SQRT] = "sqrt",
                                                  [WF_CHAIN_SUB] = "sub",
                                                  [WF_CHAIN_TANH] = "tanh",
                                                  [WF_CHAIN_TANH_GRAD] = "tanh_grad"};

/* The element of a narrow type in steps.h; NULL: it has none. */
static const char *narrow_name(wf_dtype dtype)
{
    return dtype == WF_BF16 ? "wf_chain_bf16" : dtype == WF_F16 ? "wf_chain_f16" : NULL;
}

typedef struct text {
    const wf_chain_plan *p;
    const wf_cuda_chain_types *types;
    int64_t n;
    wf_cuda_chain_way way;
    wf_bytes *out;
} text;

static bool is_whole(const text *t, uint32_t i)
{
    return t->p->periods[i] == t->n && !t->p->spans[i];
}

/* One element, of more than one. */
static bool is_one(const text *t, uint32_t i)
{
    return t->p->periods[i] == 1 && !t->p->spans[i] && !is_whole(t, i);
}

wf_cuda_chain_way wf_cuda_chain_way_of(const wf_chain_plan *p, int64_t n)
{
    wf_cuda_chain_way way = {.fours = n % 4 == 0, .wide = n > INT32_MAX};

    for (uint32_t i = 0; i < p->n_in; i++)
        way.fours &= (p->periods[i] == 1 && !p->spans[i]) || p->periods[i] % 4 == 0;
    return way;
}

bool wf_cuda_chain_has_types(const wf_chain_plan *p, const wf_cuda_chain_types *types)
{
    for (uint32_t i = 0; i < p->n_in; i++)
        if (wf_dtype_size(types->in[i]) < sizeof(float) && !narrow_name(types->in[i]))
            return false;
    return wf_dtype_size(types->out) >= sizeof(float) || narrow_name(types->out);
}

/* ---- one statement each ---- */

/* The type of what a thread takes of an operand at once; `name` has NAME bytes of room. */
enum { NAME = 48 };
static const char *type_of(const text *t, wf_dtype dtype, char name[NAME])
{
    if (!narrow_name(dtype))
        return "E";
    snprintf(name, NAME, t->way.fours ? "wf_chain_four<%s>" : "%s", narrow_name(dtype));
    return name;
}

static void add_bounds(const text *t)
{
    const char *in_fours = t->way.fours ? " / 4" : "";

    wf_bytes_printf(t->out, "    const I n = (I)(a.n%s);\n", in_fours);
    for (uint32_t i = 0; i < t->p->n_in; i++) {
        const char *narrow = narrow_name(t->types->in[i]);

        if (is_one(t, i) && narrow)
            wf_bytes_printf(t->out,
                            "    const T x%" PRIu32 " = wf_chain_wide(((const %s *)a.in[%" PRIu32
                            "])[0]);\n",
                            i, narrow, i);
        else if (is_one(t, i))
            wf_bytes_printf(
                t->out, "    const T x%" PRIu32 " = ((const T *)a.in[%" PRIu32 "])[0];\n", i, i);
        else if (!is_whole(t, i))
            wf_bytes_printf(t->out, "    const I p%" PRIu32 " = (I)(a.periods[%" PRIu32 "]%s);\n",
                            i, i, in_fours);
        if (t->p->spans[i])
            wf_bytes_printf(t->out, "    const I s%" PRIu32 " = (I)(a.spans[%" PRIu32 "]%s);\n", i,
                            i, in_fours);
    }
    wf_bytes_printf(t->out, "\n"
                            "    for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
                            "         i += (I)gridDim.x * blockDim.x) {\n");
}

static void add_load(const text *t, uint32_t i)
{
    char at[64] = "i", name[NAME];
    const char *type = type_of(t, t->types->in[i], name);

    if (is_one(t, i))
        return;
    if (t->p->spans[i])
        snprintf(at, sizeof at, "i / s%" PRIu32 " * p%" PRIu32 " + i %% p%" PRIu32, i, i, i);
    else if (!is_whole(t, i))
        snprintf(at, sizeof at, "i %% p%" PRIu32, i);
    wf_bytes_printf(t->out,
                    "        const %s x%" PRIu32 " = ((const %s *)a.in[%" PRIu32 "])[%s];\n", type,
                    i, type, i, at);
}

static void add_value(const text *t, int32_t value)
{
    uint32_t i = (uint32_t)value;

    if (i >= t->p->n_in)
        wf_bytes_printf(t->out, "v%" PRIu32, i - t->p->n_in);
    else if (is_one(t, i))
        wf_bytes_printf(t->out, "x%" PRIu32, i);
    else
        wf_bytes_printf(t->out,
                        narrow_name(t->types->in[i]) ? "wf_chain_wide(x%" PRIu32 "%s)"
                                                     : "x%" PRIu32 "%s",
                        i, t->way.fours ? ".v[k]" : "");
}

static void add_step(const text *t, const char *indent, uint32_t k)
{
    const wf_chain_step *s = &t->p->chain.steps[k];

    wf_bytes_printf(t->out, "%sconst T v%" PRIu32 " = wf_step_%s(", indent, k, names[s->op->code]);
    for (uint32_t i = 0; i < s->op->n_args; i++) {
        wf_bytes_puts(t->out, i ? ", " : "");
        add_value(t, s->args[i]);
    }
    wf_bytes_puts(t->out, ");\n");
}

/* Puts the last step's value to its place in the output. */
static void add_store(const text *t, const char *indent)
{
    const char *narrow = narrow_name(t->types->out);

    wf_bytes_puts(t->out, indent);
    if (t->way.fours)
        wf_bytes_puts(t->out, "all.v[k]");
    else
        wf_bytes_printf(t->out, "((%s *)a.out)[i]", narrow ? narrow : "T");
    if (narrow)
        wf_bytes_printf(t->out, " = wf_chain_rounded(v%" PRIu32 ", %s());\n",
                        t->p->chain.n_steps - 1, narrow);
    else
        wf_bytes_printf(t->out, " = v%" PRIu32 ";\n", t->p->chain.n_steps - 1);
}

static void add_body(const text *t)
{
    char name[NAME];
    const char *type = type_of(t, t->types->out, name);
    const char *indent = t->way.fours ? "            " : "        ";
    uint32_t n_steps = t->p->chain.n_steps;

    for (uint32_t i = 0; i < t->p->n_in; i++)
        add_load(t, i);
    if (t->way.fours)
        wf_bytes_printf(t->out,
                        "        %s all;\n"
                        "\n"
                        "#pragma unroll\n"
                        "        for (int k = 0; k < 4; k++) {\n",
                        type);
    for (uint32_t k = 0; k < n_steps; k++)
        add_step(t, indent, k);
    add_store(t, indent);
    if (t->way.fours)
        wf_bytes_printf(t->out,
                        "        }\n"
                        "        ((%s *)a.out)[i] = all;\n",
                        type);
}

void wf_cuda_chain_source(const wf_chain_plan *p, int64_t n, const wf_cuda_chain_types *types,
                          wf_bytes *out)
{
    const text t = {p, types, n, wf_cuda_chain_way_of(p, n), out};

    wf_bytes_printf(out,
                    "#define WF_CODE __device__ __forceinline__\n"
                    "%s\n"
                    "typedef %s T;\n"
                    "typedef %s E;\n"
                    "typedef %s I;\n"
                    "\n"
                    "extern \"C\" __global__ void " WF_CUDA_CHAIN_KERNEL
                    "(const __grid_constant__ wf_chain_operands a)\n"
                    "{\n",
                    steps_text, types->out == WF_F64 ? "double" : "float",
                    t.way.fours ? "wf_chain_four<T>" : "T", t.way.wide ? "long long" : "unsigned");
    add_bounds(&t);
    add_body(&t);
    wf_bytes_puts(out, "    }\n"
                       "}\n");
}
