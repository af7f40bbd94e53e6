/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/einsum.c - Einsum of one operand (transposes, diagonals, sums) or of two
 * (products, batched and summed). Its gradient is another Einsum. */
#include "common/graph/einsum.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* The equation, or false when a rank is unknown. */
static wf_status read(const wf_node *n, wf_einsum *e, bool *known, wf_err *err)
{
    uint32_t ranks[WF_EINSUM_OPERANDS] = {0};

    *known = true;
    for (uint32_t i = 0; i < n->n_in && i < WF_EINSUM_OPERANDS; i++) {
        *known = *known && n->in[i]->rank >= 0;
        ranks[i] = *known ? (uint32_t)n->in[i]->rank : 0;
    }
    return *known ? wf_einsum_parse(wf_node_string(n, "equation", ""), n->n_in, ranks, e, err)
                  : WF_OK;
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_axis sizes[WF_EINSUM_LABELS], axes[WF_MAX_RANK];
    bool seen[WF_EINSUM_LABELS] = {false}, known;
    wf_einsum e;

    (void)g;
    for (uint32_t i = 1; i < n->n_in; i++)
        WF_TRY(wf_need_same_dtype(n, 0, i, err));
    wf_out_unknown(n, 0, n->in[0]->dtype);
    WF_TRY(read(n, &e, &known, err));
    if (!known)
        return WF_OK;
    for (uint32_t i = 0; i < n->n_in; i++)
        for (uint32_t k = 0; k < e.in[i].rank; k++) {
            const wf_axis *axis = &n->in[i]->axes[k];
            wf_axis *size = &sizes[e.in[i].label[k]];

            if (!seen[e.in[i].label[k]] || size->size == 1)
                *size = *axis;
            else if (axis->size != 1 && wf_axes_clash(size, axis))
                return wf_fail(err, WF_SHAPE, NULL,
                               "axis %u of operand %u has %lld elements, and goes with one of %lld",
                               k, i, (long long)axis->size, (long long)size->size);
            else if (axis->size != 1)
                *size = wf_axis_merge(size, axis);
            seen[e.in[i].label[k]] = true;
        }
    for (uint32_t i = 0; i < e.out.rank; i++)
        axes[i] = seen[e.out.label[i]] ? sizes[e.out.label[i]] : wf_axis_of(1);
    wf_out_axes(n, 0, n->in[0]->dtype, e.out.rank, axes);
    return WF_OK;
}

static char letter_of(uint8_t label)
{
    return (char)('a' + label); /* WF_EINSUM_LABELS are no more than there are letters */
}

static size_t put_term(char *text, const wf_einsum_term *t)
{
    for (uint32_t i = 0; i < t->rank; i++)
        text[i] = letter_of(t->label[i]);
    return t->rank;
}

static bool has_label(const wf_einsum_term *t, uint8_t label)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->label[i] == label)
            return true;
    return false;
}

/* d loss / d operand i: dy times the other operand, summed over what operand i does not have. Axes
 * that only operand i has were summed over: each element there gets the same. */
static wf_status grad_of(wf_grads *g, const wf_node *n, const wf_einsum *e, uint32_t i, wf_err *err)
{
    wf_emit *emit = wf_grads_emit(g);
    const wf_einsum_term *own = &e->in[i], *other = e->n_in > 1 ? &e->in[1 - i] : NULL;
    wf_value *in[] = {wf_grads_upstream(g, n, 0), other ? n->in[1 - i] : NULL}, *dx;
    char equation[4 * WF_MAX_RANK + 8];
    int64_t missing[WF_MAX_RANK];
    uint32_t n_missing = 0;
    size_t at = put_term(equation, &e->out);
    wf_attr attr;

    if (other) {
        equation[at++] = ',';
        at += put_term(equation + at, other);
    }
    equation[at++] = '-';
    equation[at++] = '>';
    for (uint32_t k = 0; k < own->rank; k++) {
        for (uint32_t j = 0; j < k; j++)
            if (own->label[j] == own->label[k])
                return wf_fail(err, WF_UNSUPPORTED, NULL,
                               "there is no gradient of a diagonal (\"%.80s\")",
                               wf_node_string(n, "equation", ""));
        if (has_label(&e->out, own->label[k]) || (other && has_label(other, own->label[k])))
            equation[at++] = letter_of(own->label[k]);
        else
            missing[n_missing++] = k;
    }
    equation[at] = 0;
    attr = wf_attr_string("equation", equation);
    dx = wf_emit_op(emit, "Einsum", e->n_in, in, 1, &attr);
    if (n_missing) {
        dx = wf_emit_unsqueeze(emit, dx, n_missing, missing);
        dx = wf_emit_expand_like(emit, dx, n->in[i]);
    }
    return wf_grads_add(g, n, i, wf_emit_sum_to(emit, dx, n->in[i]));
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_einsum e;
    bool known;

    for (uint32_t i = 0; i < n->n_in; i++)
        WF_TRY(wf_need_known_rank(n, i, err));
    WF_TRY(read(n, &e, &known, err));
    wf_assert(known);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (wf_grads_wanted(g, n, i))
            WF_TRY(grad_of(g, n, &e, i, err));
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"equation", WF_ATTR_STRING, true}, {0}};

const wf_op wf_op_einsum = WF_FOLDABLE(WF_DOMAIN_ONNX, "Einsum", 12, 1, WF_ANY_NUMBER, infer,
                                       .note = "one or two operands; no gradient of a diagonal",
                                       .attrs = attrs, .grad = grad);
