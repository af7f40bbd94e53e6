/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/onnx_images.c - AffineGrid, Col2Im and MaxUnpool, written out. */
#include "common/base/size.h"
#include "common/graph/onnx_function.h"

#include <inttypes.h>
#include <string.h>

/* Spatial axes, and the most elements of a side. */
enum { MOST_SPATIAL = 3, LONGEST_SIDE = 1 << 24 };

/* Coordinates of pixel centres along axis `i` of size's spatial ones, -1 to 1, as an axis of its
 * own among `n`. */
static wf_value *coordinates(wf_call *c, uint32_t i, uint32_t n)
{
    wf_dtype dtype = c->in[0]->dtype;
    wf_value *count = wf_call_slice(c, c->in[1], 0, 2 + i, 3 + i, 1), *x;
    int64_t axes[MOST_SPATIAL];
    uint32_t n_axes = 0;

    x = wf_emit_cast(c->e, wf_call_count(c, count), dtype);
    count = wf_emit_cast(c->e, count, dtype);
    if (wf_onnx_int(c->p, "align_corners", 0)) {
        count = wf_emit_sub(c->e, count, wf_emit_scalar(c->e, dtype, 1));
        /* One pixel lies at -1, whatever it is divided by. */
        count = wf_emit_binary(c->e, "Max", count, wf_emit_scalar(c->e, dtype, 1));
        x = wf_emit_div(c->e, wf_emit_scale(c->e, x, 2), count);
    } else {
        x = wf_emit_add(c->e, wf_emit_scale(c->e, x, 2), wf_emit_scalar(c->e, dtype, 1));
        x = wf_emit_div(c->e, x, count);
    }
    x = wf_emit_sub(c->e, x, wf_emit_scalar(c->e, dtype, 1));
    for (uint32_t k = 0; k < n; k++)
        if (k != i)
            axes[n_axes++] = k;
    return x ? wf_emit_unsqueeze(c->e, x, n_axes, axes) : NULL;
}

/* theta[:, row, column] as [batch, 1, ...] for n spatial axes. */
static wf_value *coefficient(wf_call *c, int64_t row, int64_t column, uint32_t n)
{
    wf_value *v = wf_call_slice(c, c->in[0], 1, row, row + 1, 1);
    int64_t dims[1 + MOST_SPATIAL] = {0, 1, 1, 1};

    v = wf_call_slice(c, v, 2, column, column + 1, 1);
    return wf_emit_reshape(c->e, v, 1 + n, dims);
}

/* Element r of each place is theta[r] (x, y, (z), 1): broadcast over the places. */
wf_status wf_function_affine_grid(wf_call *c, wf_err *err)
{
    wf_value *at[MOST_SPATIAL], *grid = NULL;
    int64_t last = -1;
    uint32_t n;

    WF_TRY(wf_call_need_rank(c, 0, 3, 3, err));
    WF_TRY(wf_call_need_rank(c, 1, 1, 1, err));
    if (c->in[0]->axes[1].size != 2 && c->in[0]->axes[1].size != 3)
        return wf_fail(err, WF_SHAPE, NULL, "theta has %" PRId64 " rows, and must have 2 or 3",
                       c->in[0]->axes[1].size);
    n = (uint32_t)c->in[0]->axes[1].size;
    for (uint32_t i = 0; i < n; i++)
        at[i] = coordinates(c, i, n);
    for (uint32_t r = 0; r < n; r++) {
        wf_value *sum = coefficient(c, r, n, n);

        /* x goes along the last spatial axis. */
        for (uint32_t k = 0; k < n; k++)
            sum = wf_emit_add(c->e, sum, wf_emit_mul(c->e, coefficient(c, r, k, n), at[n - 1 - k]));
        sum = sum ? wf_emit_unsqueeze(c->e, sum, 1, &last) : NULL;
        grid = r ? wf_call_concat(c, grid, sum, -1) : sum;
    }
    c->out[0] = grid;
    return WF_OK;
}

/* A side that a file names. */
static wf_status check_side(int64_t v, int64_t least, const char *what, wf_err *err)
{
    if (v >= least && v <= LONGEST_SIDE)
        return WF_OK;
    return wf_fail(err, WF_INVALID, NULL, "%s %" PRId64 "; it must be %" PRId64 " to %d", what, v,
                   least, LONGEST_SIDE);
}

/* Along one spatial axis. */
typedef struct side {
    int64_t image, block, stride, dilation, begin, end;
    int64_t blocks; /* how many lie in the image */
} side;

static wf_status read_side(const wf_call *c, uint32_t i, uint32_t n, int64_t image, int64_t block,
                           side *s, wf_err *err)
{
    int64_t room;

    *s = (side){.image = image,
                .block = block,
                .stride = wf_call_entry(c, "strides", i, 1),
                .dilation = wf_call_entry(c, "dilations", i, 1),
                .begin = wf_call_entry(c, "pads", i, 0),
                .end = wf_call_entry(c, "pads", n + i, 0)};
    WF_TRY(check_side(s->image, 1, "an image's side is", err));
    WF_TRY(check_side(s->block, 1, "a block's side is", err));
    WF_TRY(check_side(s->stride, 1, "a stride is", err));
    WF_TRY(check_side(s->dilation, 1, "a dilation is", err));
    WF_TRY(check_side(s->begin, 0, "a pad is", err));
    WF_TRY(check_side(s->end, 0, "a pad is", err));
    room = s->image + s->begin + s->end - s->dilation * (s->block - 1) - 1;
    if (room < 0)
        return wf_fail(err, WF_SHAPE, NULL, "a block of %" PRId64 " is larger than the image",
                       s->block);
    s->blocks = room / s->stride + 1;
    return WF_OK;
}

/* [channels * block, 1, block...]: input k of a channel adds to place k of its block. */
static wf_value *placing(wf_call *c, int64_t channels, uint32_t n, const side sides[],
                         int64_t block)
{
    int64_t dims[2 + MOST_SPATIAL] = {channels * block, 1};
    wf_dtype dtype = c->in[0]->dtype;
    wf_tensor *t = NULL;

    for (uint32_t i = 0; i < n; i++)
        dims[2 + i] = sides[i].block;
    if (c->e->rc == WF_OK)
        c->e->rc = wf_tensor_new(dtype, 2 + n, dims, &t, c->e->err);
    if (c->e->rc != WF_OK)
        return NULL;
    memset(t->data, 0, wf_tensor_bytes(t));
    for (int64_t i = 0; i < channels * block; i++) {
        int64_t at = i * block + i % block;

        if (dtype == WF_F64)
            ((double *)t->data)[at] = 1;
        else
            ((float *)t->data)[at] = 1;
    }
    return wf_emit_constant(c->e, "blocks", &t);
}

/* The transpose of cutting an image into blocks: a ConvTranspose that puts each block in its place.
 */
wf_status wf_function_col2im(wf_call *c, wf_err *err)
{
    int64_t image[MOST_SPATIAL], block[MOST_SPATIAL], dims[2 + MOST_SPATIAL] = {0, 0};
    int64_t lists[4][2 * MOST_SPATIAL], all = 1, channels;
    side sides[MOST_SPATIAL];
    uint32_t n, n_block;
    wf_attr attrs[5];
    wf_value *x, *w;

    WF_TRY(wf_call_need_rank(c, 0, 3, 3, err));
    channels = c->in[0]->axes[1].size;
    WF_TRY(wf_call_need_ints(c, 1, 1, MOST_SPATIAL, image, &n, err));
    WF_TRY(wf_call_need_ints(c, 2, n, n, block, &n_block, err));
    if (c->in[0]->dtype != WF_F32 && c->in[0]->dtype != WF_F64)
        return wf_fail(err, WF_UNSUPPORTED, "Cast it to float32 first", "it is of %s",
                       wf_dtype_name(c->in[0]->dtype));
    for (uint32_t i = 0; i < n; i++) {
        WF_TRY(read_side(c, i, n, image[i], block[i], &sides[i], err));
        if (__builtin_mul_overflow(all, block[i], &all) || all > LONGEST_SIDE)
            return wf_fail(err, WF_UNSUPPORTED, NULL, "a block of more than %d", LONGEST_SIDE);
        dims[2 + i] = sides[i].blocks;
        lists[0][i] = sides[i].stride;
        lists[1][i] = sides[i].dilation;
        lists[2][i] = sides[i].begin;
        lists[2][n + i] = sides[i].end;
        lists[3][i] = (sides[i].image + sides[i].begin + sides[i].end -
                       sides[i].dilation * (sides[i].block - 1) - 1) %
                      sides[i].stride;
    }
    if (channels < 1 || channels % all)
        return wf_fail(err, channels < 0 ? WF_UNSUPPORTED : WF_SHAPE, NULL,
                       "its input has %" PRId64 " rows, and a block %" PRId64, channels, all);
    if (channels > LONGEST_SIDE / all)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "blocks of %" PRId64 " in %" PRId64 " rows", all,
                       channels);
    x = wf_emit_reshape(c->e, c->in[0], 2 + n, dims);
    w = placing(c, channels / all, n, sides, all);
    attrs[0] = wf_attr_int("group", channels / all);
    attrs[1] = wf_attr_ints("strides", n, lists[0]);
    attrs[2] = wf_attr_ints("dilations", n, lists[1]);
    attrs[3] = wf_attr_ints("pads", 2 * (size_t)n, lists[2]);
    attrs[4] = wf_attr_ints("output_padding", n, lists[3]);
    if (x && w)
        c->out[0] = wf_emit_op(c->e, "ConvTranspose", 2, (wf_value *[]){x, w}, 5, attrs);
    return WF_OK;
}

/* Shape of what was pooled: the smallest that gives x. */
static wf_status unpooled(const wf_call *c, int64_t dims[WF_MAX_RANK], wf_err *err)
{
    const wf_value *x = c->in[0];
    uint32_t n = (uint32_t)x->rank - 2;

    for (int32_t i = 0; i < x->rank; i++)
        if (x->axes[i].size < 0)
            return wf_fail(err, WF_UNSUPPORTED, "export it with fixed sizes",
                           "axis %d has a size that is known only during the run, and the indices "
                           "are of the whole tensor",
                           i);
    dims[0] = x->axes[0].size;
    dims[1] = x->axes[1].size;
    for (uint32_t i = 0; i < n; i++) {
        int64_t kernel = wf_call_entry(c, "kernel_shape", i, 0);
        int64_t stride = wf_call_entry(c, "strides", i, 1);
        int64_t begin = wf_call_entry(c, "pads", i, 0), end = wf_call_entry(c, "pads", n + i, 0);

        WF_TRY(check_side(kernel, 1, "a kernel's side is", err));
        WF_TRY(check_side(stride, 1, "a stride is", err));
        WF_TRY(check_side(begin, 0, "a pad is", err));
        WF_TRY(check_side(end, 0, "a pad is", err));
        WF_TRY(check_side(x->axes[2 + i].size, 1, "a side of its input is", err));
        dims[2 + i] = (x->axes[2 + i].size - 1) * stride + kernel - begin - end;
        WF_TRY(check_side(dims[2 + i], 1, "a side of its output would be", err));
    }
    return WF_OK;
}

/* Each element of x at its index, in zeros; more zeros behind them where a larger shape is asked
 * for. */
wf_status wf_function_max_unpool(wf_call *c, wf_err *err)
{
    int64_t dims[WF_MAX_RANK], want[WF_MAX_RANK], pads[2 * WF_MAX_RANK] = {0}, all = 1, flat = -1;
    uint32_t rank, n_want;
    bool larger = false;
    wf_value *zeros, *y;

    WF_TRY(wf_call_need_rank(c, 0, 3, WF_MAX_RANK, err));
    rank = (uint32_t)c->in[0]->rank;
    WF_TRY(unpooled(c, dims, err));
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(all, dims[i], &all))
            return wf_fail_nomem(err, SIZE_MAX);
    if (c->in[2]) {
        WF_TRY(wf_call_need_ints(c, 2, rank, rank, want, &n_want, err));
        for (uint32_t i = 0; i < rank; i++) {
            if (want[i] < dims[i] || want[i] > LONGEST_SIDE)
                return wf_fail(err, WF_SHAPE, NULL,
                               "axis %u has %" PRId64 ", and shall have %" PRId64, i, dims[i],
                               want[i]);
            pads[rank + i] = want[i] - dims[i];
            larger = larger || pads[rank + i];
        }
    }
    zeros = wf_emit_binary(c->e, "Expand", wf_emit_scalar(c->e, c->in[0]->dtype, 0),
                           wf_emit_ints(c->e, 1, &all));
    y = wf_emit_reshape(c->e, c->in[0], 1, &flat);
    if (zeros && y)
        y = wf_emit_op(c->e, "ScatterElements", 3,
                       (wf_value *[]){zeros, wf_emit_reshape(c->e, c->in[1], 1, &flat), y}, 0,
                       NULL);
    y = wf_emit_reshape(c->e, y, rank, dims);
    c->out[0] = larger ? wf_emit_binary(c->e, "Pad", y, wf_emit_ints(c->e, 2 * rank, pads)) : y;
    return WF_OK;
}
