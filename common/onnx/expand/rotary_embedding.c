/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/rotary_embedding.c - RotaryEmbedding of opset 23. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

#include <inttypes.h>

/* Cosines or sines [batch, tokens, half], with an axis for the heads. */
static wf_value *angles(wf_call *c, wf_value *cache, int64_t of_heads)
{
    if (c->in[3])
        cache = wf_emit_binary(c->e, "Gather", cache, c->in[3]);
    return cache ? wf_emit_unsqueeze(c->e, cache, 1, &of_heads) : NULL;
}

/* The pairs (a, b) of x rotated by their angles, put back where they came from. */
static wf_value *rotated(wf_call *c, wf_value *x, int64_t size, int64_t of_heads, bool interleaved)
{
    wf_value *cosine = angles(c, c->in[1], of_heads), *sine = angles(c, c->in[2], of_heads);
    wf_value *a = wf_call_slice(c, x, -1, 0, interleaved ? size : size / 2, interleaved ? 2 : 1);
    wf_value *b = wf_call_slice(c, x, -1, interleaved ? 1 : size / 2, size, interleaved ? 2 : 1);
    wf_value *re = wf_emit_sub(c->e, wf_emit_mul(c->e, cosine, a), wf_emit_mul(c->e, sine, b));
    wf_value *im = wf_emit_add(c->e, wf_emit_mul(c->e, sine, a), wf_emit_mul(c->e, cosine, b));
    int64_t last = -1;

    if (!interleaved || !re || !im)
        return wf_call_concat(c, re, im, -1);
    re = wf_emit_unsqueeze(c->e, re, 1, &last);
    im = wf_emit_unsqueeze(c->e, im, 1, &last);
    return wf_emit_reshape(c->e, wf_call_concat(c, re, im, -1), 4, (int64_t[]){0, 0, 0, size});
}

static wf_status rotary_embedding(wf_call *c, wf_err *err)
{
    wf_value *x = c->in[0], *y;
    int64_t heads = wf_onnx_int(c->p, "num_heads", 0), whole;
    int64_t size = wf_onnx_int(c->p, "rotary_embedding_dim", 0);
    bool flat = x->rank == 3;

    WF_TRY(wf_call_need_rank(c, 0, 3, 4, err));
    if (flat && heads < 1)
        return wf_fail(err, WF_INVALID, NULL, "num_heads is missing, and its input has three axes");
    if (flat)
        x = wf_emit_reshape(c->e, x, 4, (int64_t[]){0, 0, heads, -1});
    WF_TRY(wf_emit_end(c->e));
    whole = x->axes[3].size;
    size = size ? size : whole;
    if (whole < 0)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "the size of a head is known only during the run");
    if (size < 2 || size % 2 || size > whole)
        return wf_fail(err, WF_SHAPE, NULL, "%" PRId64 " of %" PRId64 " elements cannot be rotated",
                       size, whole);
    y = rotated(c, x, size, flat ? 2 : 1, wf_onnx_int(c->p, "interleaved", 0) != 0);
    if (size < whole)
        y = wf_call_concat(c, y, wf_call_slice(c, x, -1, size, whole, 1), -1);
    c->out[0] = flat ? wf_emit_reshape(c->e, y, 3, (int64_t[]){0, 0, -1}) : y;
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"interleaved", WF_ATTR_INT, false},
                                    {"num_heads", WF_ATTR_INT, false},
                                    {"rotary_embedding_dim", WF_ATTR_INT, false},
                                    {0}};

const wf_expansion wf_expansion_rotary_embedding =
    WF_EXPANDS(WF_DOMAIN_ONNX, "RotaryEmbedding", 23, 3, 4, 1, 1, rotary_embedding,
               .note = WF_EXPANDED, .attrs = attrs);
