/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/col2im.c - Col2Im. */
#include "common/base/size.h"
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/expand/side.h"
#include "common/onnx/proto.h"

#include <inttypes.h>
#include <string.h>

/* Spatial axes at most. */
enum { MOST_SPATIAL = 3 };

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
    WF_TRY(wf_check_side(s->image, 1, "an image's side is", err));
    WF_TRY(wf_check_side(s->block, 1, "a block's side is", err));
    WF_TRY(wf_check_side(s->stride, 1, "a stride is", err));
    WF_TRY(wf_check_side(s->dilation, 1, "a dilation is", err));
    WF_TRY(wf_check_side(s->begin, 0, "a pad is", err));
    WF_TRY(wf_check_side(s->end, 0, "a pad is", err));
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
static wf_status col2im(wf_call *c, wf_err *err)
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
        if (__builtin_mul_overflow(all, block[i], &all) || all > WF_LONGEST_SIDE)
            return wf_fail(err, WF_UNSUPPORTED, NULL, "a block of more than %d", WF_LONGEST_SIDE);
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
    if (channels > WF_LONGEST_SIDE / all)
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

static const wf_attr_row attrs[] = {{"dilations", WF_ATTR_INTS, false},
                                    {"pads", WF_ATTR_INTS, false},
                                    {"strides", WF_ATTR_INTS, false},
                                    {0}};

const wf_expansion wf_expansion_col2im = WF_EXPANDS(
    WF_DOMAIN_ONNX, "Col2Im", 18, 3, 3, 1, 1, col2im,
    .note = WF_EXPANDED "; shapes known when it is read, up to three axes", .attrs = attrs);
