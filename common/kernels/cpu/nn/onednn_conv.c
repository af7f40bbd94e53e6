/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/onednn_conv.c */
#include "common/kernels/cpu/nn/onednn_conv.h"
#include "common/base/size.h"
#include "common/base/status.h"
#include "common/kernels/cpu/device.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

enum { ALIGN = 64 };

/* One of x, w and y: plain as the caller has it, and as the convolution wants it. */
typedef struct side {
    dnnl_memory_t plain, packed; /* packed NULL: the convolution takes the plain one */
    dnnl_primitive_t in, out;    /* reorders; NULL where none is wanted */
    size_t bytes;                /* of packed */
    size_t at;                   /* in the workspace */
} side;

wf_onednn_conv_shape wf_onednn_conv_shape_of(const wf_conv *v, int64_t images)
{
    wf_onednn_conv_shape s = {.pass = v->pass, .images = images, .c = v->c, .m = v->m};

    for (int i = 0; i < 2; i++) {
        s.in[i] = v->s.in[i + 1];
        s.out[i] = v->s.out[i + 1];
        s.kernel[i] = v->s.w.kernel[i + 1];
        s.stride[i] = v->s.w.stride[i + 1];
        s.dilation[i] = v->s.w.dilation[i + 1];
        s.before[i] = v->s.w.before[i + 1];
    }
    return s;
}

struct wf_onednn_conv {
    wf_conv_pass pass;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratch;
    side x, w, y;
    size_t scratch_at, workspace;
};

static bool init_desc(const wf_onednn_conv_shape *s, const dnnl_memory_desc_t *x,
                      const dnnl_memory_desc_t *w, const dnnl_memory_desc_t *y, wf_conv_pass pass,
                      dnnl_convolution_desc_t *d)
{
    dnnl_dims_t stride, dilates, before, after;

    for (int i = 0; i < 2; i++) {
        stride[i] = s->stride[i];
        dilates[i] = s->dilation[i] - 1;
        before[i] = s->before[i];
        /* What of the padding behind is needed: the caller's may reach further. */
        after[i] = (s->out[i] - 1) * s->stride[i] + (s->kernel[i] - 1) * s->dilation[i] + 1 -
                   s->in[i] - s->before[i];
    }
    if (pass == WF_CONV_FORWARD)
        return dnnl_dilated_convolution_forward_desc_init(
                   d, dnnl_forward_training, dnnl_convolution_direct, x, w, NULL, y, stride,
                   dilates, before, after) == dnnl_success;
    if (pass == WF_CONV_DATA)
        return dnnl_dilated_convolution_backward_data_desc_init(d, dnnl_convolution_direct, x, w, y,
                                                                stride, dilates, before,
                                                                after) == dnnl_success;
    return dnnl_dilated_convolution_backward_weights_desc_init(d, dnnl_convolution_direct, x, w,
                                                               NULL, y, stride, dilates, before,
                                                               after) == dnnl_success;
}

/* The primitive, with the layouts that it chose; NULL when there is none. */
static dnnl_primitive_desc_t describe(const wf_onednn_conv_shape *s, const dnnl_memory_desc_t *x,
                                      const dnnl_memory_desc_t *w, const dnnl_memory_desc_t *y)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_convolution_desc_t d;
    bool ok;

    ok = dnnl_primitive_attr_create(&attr) == dnnl_success &&
         dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
         init_desc(s, x, w, y, WF_CONV_FORWARD, &d) &&
         dnnl_primitive_desc_create(&hint, &d, attr, wf_onednn_engine(), NULL) == dnnl_success;

    if (ok && s->pass == WF_CONV_FORWARD) {
        pd = hint;
        hint = NULL;
    } else if (ok && init_desc(s, x, w, y, s->pass, &d) &&
               dnnl_primitive_desc_create(&pd, &d, attr, wf_onednn_engine(), hint) !=
                   dnnl_success) {
        pd = NULL;
    }
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return pd;
}

static bool new_reorder(dnnl_primitive_t *out, const dnnl_memory_desc_t *from,
                        const dnnl_memory_desc_t *to)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    bool ok = dnnl_primitive_attr_create(&attr) == dnnl_success &&
              dnnl_reorder_primitive_desc_create(&pd, from, wf_onednn_engine(), to,
                                                 wf_onednn_engine(), attr) == dnnl_success &&
              dnnl_primitive_create(out, pd) == dnnl_success;

    if (pd)
        dnnl_primitive_desc_destroy(pd);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return ok;
}

/* `in` and `out`: which reorders are wanted. Weights are packed even where they lie plain, so that
 * their caller need not know. */
static bool make_side(wf_onednn_conv *v, side *s, const dnnl_memory_desc_t *plain,
                      const dnnl_memory_desc_t *packed, bool in, bool out)
{
    bool always = s == &v->w;

    s->bytes = dnnl_memory_desc_get_size(packed);
    if (dnnl_memory_create(&s->plain, plain, wf_onednn_engine(), DNNL_MEMORY_NONE) != dnnl_success)
        return false;
    if (!always && dnnl_memory_desc_equal(plain, packed))
        return true;
    if (!always) {
        s->at = v->workspace;
        v->workspace += wf_align_up(s->bytes, ALIGN);
    }
    return dnnl_memory_create(&s->packed, packed, wf_onednn_engine(), DNNL_MEMORY_NONE) ==
               dnnl_success &&
           (!in || new_reorder(&s->in, plain, packed)) &&
           (!out || new_reorder(&s->out, packed, plain));
}

static bool make(wf_onednn_conv *v, const wf_onednn_conv_shape *s)
{
    dnnl_dims_t xd = {s->images, s->c, s->in[0], s->in[1]};
    dnnl_dims_t wd = {s->m, s->c, s->kernel[0], s->kernel[1]};
    dnnl_dims_t yd = {s->images, s->m, s->out[0], s->out[1]};
    const int64_t *dims[] = {xd, wd, yd};
    dnnl_memory_desc_t plain[3], any[3];
    bool forward = s->pass == WF_CONV_FORWARD, data = s->pass == WF_CONV_DATA;
    bool weights = s->pass == WF_CONV_WEIGHTS, ok = true;
    const dnnl_memory_desc_t *x, *w, *y, *scratch;
    dnnl_primitive_desc_t pd;

    for (int i = 0; i < 3; i++)
        ok = ok &&
             dnnl_memory_desc_init_by_tag(&plain[i], 4, dims[i], dnnl_f32, dnnl_nchw) ==
                 dnnl_success &&
             dnnl_memory_desc_init_by_tag(&any[i], 4, dims[i], dnnl_f32, dnnl_format_tag_any) ==
                 dnnl_success;
    pd = ok ? describe(s, &any[0], &any[1], &any[2]) : NULL;
    if (!pd)
        return false;
    x = dnnl_primitive_desc_query_md(pd, data ? dnnl_query_diff_src_md : dnnl_query_src_md, 0);
    w = dnnl_primitive_desc_query_md(
        pd, weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    y = dnnl_primitive_desc_query_md(pd, forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md, 0);
    scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    ok = dnnl_stream_create(&v->stream, wf_onednn_engine(), dnnl_stream_default_flags) ==
             dnnl_success &&
         dnnl_primitive_create(&v->primitive, pd) == dnnl_success &&
         make_side(v, &v->x, &plain[0], x, !data, data) &&
         make_side(v, &v->w, &plain[1], w, !weights, weights) &&
         make_side(v, &v->y, &plain[2], y, !forward, forward) &&
         dnnl_memory_create(&v->scratch, scratch, wf_onednn_engine(), DNNL_MEMORY_NONE) ==
             dnnl_success;
    v->scratch_at = v->workspace;
    v->workspace += wf_align_up(dnnl_memory_desc_get_size(scratch), ALIGN);
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

wf_onednn_conv *wf_onednn_conv_new(const wf_onednn_conv_shape *s)
{
    wf_onednn_conv *v = wf_onednn_engine() ? calloc(1, sizeof *v) : NULL;
    int threads;

    if (!v)
        return NULL;
    v->pass = s->pass;
    threads = wf_onednn_stay();
    if (!make(v, s)) {
        wf_onednn_conv_free(v);
        v = NULL;
    }
    wf_onednn_leave(threads);
    return v;
}

static void close_side(side *s)
{
    if (s->plain)
        dnnl_memory_destroy(s->plain);
    if (s->packed)
        dnnl_memory_destroy(s->packed);
    if (s->in)
        dnnl_primitive_destroy(s->in);
    if (s->out)
        dnnl_primitive_destroy(s->out);
}

void wf_onednn_conv_free(wf_onednn_conv *v)
{
    if (!v)
        return;
    close_side(&v->x);
    close_side(&v->w);
    close_side(&v->y);
    if (v->scratch)
        dnnl_memory_destroy(v->scratch);
    if (v->primitive)
        dnnl_primitive_destroy(v->primitive);
    if (v->stream)
        dnnl_stream_destroy(v->stream);
    free(v);
}

size_t wf_onednn_conv_workspace(const wf_onednn_conv *v)
{
    return v->workspace;
}

size_t wf_onednn_conv_packed(const wf_onednn_conv *v)
{
    return v->w.bytes;
}

static void execute(wf_onednn_conv *v, dnnl_primitive_t p, int n, const dnnl_exec_arg_t args[])
{
    /* Its arguments were checked when it was made: it fails for want of memory alone. */
    wf_assert(dnnl_primitive_execute(p, v->stream, n, args) == dnnl_success);
}

static void reorder(wf_onednn_conv *v, dnnl_primitive_t p, dnnl_memory_t from, dnnl_memory_t to)
{
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};

    execute(v, p, 2, args);
}

void wf_onednn_conv_pack(wf_onednn_conv *v, const float *weights, void *packed)
{
    int threads = wf_onednn_stay();

    dnnl_memory_set_data_handle(v->w.plain, (void *)(uintptr_t)weights);
    dnnl_memory_set_data_handle(v->w.packed, packed);
    reorder(v, v->w.in, v->w.plain, v->w.packed);
    wf_onednn_leave(threads);
}

void wf_onednn_conv_unpack(wf_onednn_conv *v, const void *packed, float *weights)
{
    int threads = wf_onednn_stay();

    dnnl_memory_set_data_handle(v->w.plain, weights);
    dnnl_memory_set_data_handle(v->w.packed, (void *)(uintptr_t)packed);
    reorder(v, v->w.out, v->w.packed, v->w.plain);
    wf_onednn_leave(threads);
}

/* The memory that the convolution sees, filled where it is read. */
static dnnl_memory_t begin_side(wf_onednn_conv *v, side *s, float *plain, char *workspace)
{
    dnnl_memory_set_data_handle(s->plain, plain);
    if (!s->packed)
        return s->plain;
    dnnl_memory_set_data_handle(s->packed, workspace + s->at);
    if (s->in)
        reorder(v, s->in, s->plain, s->packed);
    return s->packed;
}

void wf_onednn_conv_run(wf_onednn_conv *v, float *x, void *packed, float *y, void *workspace)
{
    bool forward = v->pass == WF_CONV_FORWARD, data = v->pass == WF_CONV_DATA;
    dnnl_exec_arg_t args[] = {
        {data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, NULL},
        {v->pass == WF_CONV_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, v->w.packed},
        {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, NULL},
        {DNNL_ARG_SCRATCHPAD, v->scratch}};
    int threads = wf_onednn_stay();

    dnnl_memory_set_data_handle(v->w.packed, packed);
    dnnl_memory_set_data_handle(v->scratch, (char *)workspace + v->scratch_at);
    args[0].memory = begin_side(v, &v->x, x, workspace);
    args[2].memory = begin_side(v, &v->y, y, workspace);
    execute(v, v->primitive, 4, args);
    if (v->x.out)
        reorder(v, v->x.out, v->x.packed, v->x.plain);
    if (v->y.out)
        reorder(v, v->y.out, v->y.packed, v->y.plain);
    wf_onednn_leave(threads);
}
