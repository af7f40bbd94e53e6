/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/attention.c - Attention of opset 23, as exporters wrote it before they had it;
 * compile/rules/attention.c finds the pattern again. */
#include "common/base/size.h"
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

#include <inttypes.h>
#include <math.h>

enum { MOST_HEADS = 1 << 16 };

/* [batch, tokens, heads * size] as [batch, heads, tokens, size]. */
static wf_value *split_heads(wf_call *c, wf_value *x, int64_t heads)
{
    x = wf_emit_reshape(c->e, x, 4, (int64_t[]){0, 0, heads, -1});
    return x ? wf_emit_transpose(c->e, x, (int64_t[]){0, 2, 1, 3}) : NULL;
}

/* Each head of x `times` times. */
static wf_value *repeat_heads(wf_call *c, wf_value *x, int64_t heads, int64_t times)
{
    wf_attr axis = wf_attr_int("axis", 1);
    int64_t dims[] = {heads * times};
    wf_tensor *t = NULL;
    wf_value *ids;

    if (times == 1 || c->e->rc != WF_OK)
        return x;
    c->e->rc = wf_tensor_new(WF_I64, 1, dims, &t, c->e->err);
    if (c->e->rc != WF_OK)
        return NULL;
    for (int64_t i = 0; i < dims[0]; i++)
        ((int64_t *)t->data)[i] = i / times;
    ids = wf_emit_constant(c->e, "heads", &t);
    return ids ? wf_emit_op(c->e, "Gather", 2, (wf_value *[]){x, ids}, 1, &axis) : NULL;
}

/* How many heads queries and keys have: by attributes, or as their axis says. */
static wf_status count_heads(const wf_call *c, int64_t heads[2], wf_err *err)
{
    static const char *const names[] = {"q_num_heads", "kv_num_heads"};

    for (uint32_t i = 0; i < 2; i++) {
        heads[i] = c->in[i]->rank == 4 ? c->in[i]->axes[1].size : wf_onnx_int(c->p, names[i], 0);
        if (heads[i] < 1 || heads[i] > MOST_HEADS)
            return wf_fail(err, WF_UNSUPPORTED, NULL, "%s is %" PRId64 "; weft has 1 to %d",
                           names[i], heads[i], MOST_HEADS);
    }
    if (heads[0] % heads[1])
        return wf_fail(err, WF_SHAPE, NULL,
                       "%" PRId64 " heads of queries share %" PRId64 " of keys", heads[0],
                       heads[1]);
    return WF_OK;
}

/* What came before, of keys or values, and then x. */
static wf_value *after_past(wf_call *c, wf_value *past, wf_value *x)
{
    return past ? wf_call_concat(c, past, x, 2) : x;
}

/* bool [queries, keys]: query i sees keys 0 to i. */
static wf_value *causal(wf_call *c, wf_value *q, wf_value *k)
{
    int64_t last = 1;
    wf_value *of_q = wf_call_count(c, wf_emit_dim_of(c->e, q, 2));
    wf_value *of_k = wf_call_count(c, wf_emit_dim_of(c->e, k, 2));

    of_q = of_q ? wf_emit_unsqueeze(c->e, of_q, 1, &last) : NULL;
    return wf_emit_binary(c->e, "LessOrEqual", of_k, of_q);
}

static wf_value *masked(wf_call *c, wf_value *scores, wf_value *q, wf_value *k)
{
    wf_value *mask = c->in[3], *seen = NULL;

    if (wf_onnx_int(c->p, "is_causal", 0))
        seen = causal(c, q, k);
    if (mask && mask->dtype == WF_BOOL)
        seen = seen ? wf_emit_binary(c->e, "And", mask, seen) : mask;
    else if (mask && scores)
        scores = wf_emit_add(c->e, scores, wf_emit_cast(c->e, mask, scores->dtype));
    if (!seen || !scores)
        return scores;
    return wf_emit_where(c->e, seen, scores,
                         wf_emit_scalar(c->e, scores->dtype, -(double)INFINITY));
}

/* limit * tanh(scores / limit). */
static wf_value *soft_limited(wf_call *c, wf_value *scores)
{
    double limit = (double)wf_onnx_float(c->p, "softcap", 0);

    if (!(limit > 0))
        return scores;
    scores = wf_emit_unary(c->e, "Tanh", wf_emit_scale(c->e, scores, 1 / limit));
    return wf_emit_scale(c->e, scores, limit);
}

static wf_status check(const wf_call *c, wf_err *err)
{
    for (uint32_t i = 0; i < 3; i++)
        WF_TRY(wf_call_need_rank(c, i, 3, 4, err));
    if (c->in[0]->rank != c->in[1]->rank || c->in[0]->rank != c->in[2]->rank)
        return wf_fail(err, WF_SHAPE, NULL, "its inputs have %d, %d and %d axes", c->in[0]->rank,
                       c->in[1]->rank, c->in[2]->rank);
    if (!c->in[4] != !c->in[5])
        return wf_fail(err, WF_INVALID, NULL, "it has past keys or past values, and not both");
    if (c->in[4] && wf_onnx_int(c->p, "is_causal", 0))
        return wf_fail(err, WF_UNSUPPORTED, "give the mask as an input",
                       "is_causal is set, and there are past keys");
    return WF_OK;
}

static wf_status attention(wf_call *c, wf_err *err)
{
    wf_value *q = c->in[0], *k = c->in[1], *v = c->in[2], *scores;
    int64_t mode = wf_onnx_int(c->p, "qk_matmul_output_mode", 0), heads[2] = {1, 1};
    bool flat = q->rank == 3;
    double scale;

    WF_TRY(check(c, err));
    WF_TRY(count_heads(c, heads, err));
    q = flat ? split_heads(c, q, heads[0]) : q;
    k = flat ? split_heads(c, k, heads[1]) : k;
    v = flat ? split_heads(c, v, heads[1]) : v;
    WF_TRY(wf_emit_end(c->e));
    scale = (double)wf_onnx_float(c->p, "scale", 0);
    if (scale == 0 && q->axes[3].size < 1)
        return wf_fail(err, WF_UNSUPPORTED, "give its scale",
                       "the size of a head is known only during the run");
    scale = scale == 0 ? 1 / sqrt((double)q->axes[3].size) : scale;
    c->out[1] = k = after_past(c, c->in[4], k);
    c->out[2] = v = after_past(c, c->in[5], v);
    k = repeat_heads(c, k, heads[1], heads[0] / heads[1]);
    v = repeat_heads(c, v, heads[1], heads[0] / heads[1]);
    WF_TRY(wf_emit_end(c->e));
    scores = wf_emit_matmul(c->e, q, wf_emit_transpose(c->e, k, (int64_t[]){0, 1, 3, 2}));
    scores = wf_emit_scale(c->e, scores, scale);
    c->out[3] = mode == 0 ? scores : NULL;
    scores = masked(c, soft_limited(c, scores), q, k);
    scores = wf_emit_unary(c->e, "Softmax", scores);
    c->out[3] = mode == 3 ? scores : c->out[3];
    c->out[0] = wf_emit_matmul(c->e, scores, v);
    WF_TRY(wf_emit_end(c->e));
    if (flat)
        c->out[0] =
            wf_emit_reshape(c->e, wf_emit_transpose(c->e, c->out[0], (int64_t[]){0, 2, 1, 3}), 3,
                            (int64_t[]){0, 0, -1});
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"is_causal", WF_ATTR_INT, false},         {"kv_num_heads", WF_ATTR_INT, false},
    {"q_num_heads", WF_ATTR_INT, false},       {"qk_matmul_output_mode", WF_ATTR_INT, false},
    {"scale", WF_ATTR_FLOAT, false},           {"softcap", WF_ATTR_FLOAT, false},
    {"softmax_precision", WF_ATTR_INT, false}, {0}};

const wf_expansion wf_expansion_attention =
    WF_EXPANDS(WF_DOMAIN_ONNX, "Attention", 23, 3, 6, 1, 4, attention,
               .note = WF_EXPANDED "; softcap before the mask", .attrs = attrs);
