/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/case.c */
#include "common/kernels/cuda/dnn/case.h"
#include "common/base/size.h"

/* cuDNN has engines for two and for three spatial axes: a first axis without extent is left out. */
static uint32_t first_axis(const wf_spatial *s)
{
    return s->in[0] == 1 && s->out[0] == 1 && s->w.kernel[0] == 1 && s->w.before[0] == 0;
}

/* cuDNN derives the outputs from the paddings, and rounds down: several paddings behind lead to the
 * same outputs. That in front is preferred, since most engines want both to be equal. False: the
 * outputs end before the input does by more than a stride. */
static bool set_axis(wf_dnn_case *c, const wf_spatial *s, uint32_t i, uint32_t to)
{
    int64_t before = s->w.before[i], reach = (s->w.kernel[i] - 1) * s->w.dilation[i] + 1;
    int64_t least = (s->out[i] - 1) * s->w.stride[i] + reach - s->in[i] - before;
    int64_t most = least + s->w.stride[i] - 1;

    c->in[to] = s->in[i];
    c->out[to] = s->out[i];
    c->kernel[to] = s->w.kernel[i];
    c->stride[to] = s->w.stride[i];
    c->dilation[to] = s->w.dilation[i];
    c->before[to] = before;
    c->after[to] = before >= least && before <= most ? before : WF_MAX(least, (int64_t)0);
    return before >= 0 && most >= 0;
}

bool wf_dnn_case_of(const wf_convolution *v, wf_conv_pass pass, wf_dtype dtype, bool bf16,
                    bool tf32, bool adds_bias, wf_dnn_case *out)
{
    const uint32_t first = first_axis(&v->s);

    *out = (wf_dnn_case){.pass = pass,
                         .dtype = dtype,
                         .bf16 = bf16 && dtype == WF_F32,
                         .tf32 = tf32 && dtype == WF_F32,
                         .adds_bias = adds_bias,
                         .batch = v->batch,
                         .groups = v->groups,
                         .c = v->c,
                         .m = v->m,
                         .axes = WF_WINDOW_AXES - first};
    if (v->batch == 0 || v->c == 0 || v->m == 0 || v->s.in_size == 0 || v->s.out_size == 0 ||
        v->s.taps == 0)
        return false;
    for (uint32_t i = first; i < WF_WINDOW_AXES; i++)
        if (!set_axis(out, &v->s, i, i - first))
            return false;
    return true;
}
