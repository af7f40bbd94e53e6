/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/shape/reshape.c - Reshape: 0 copies an axis (unless allowzero), one -1 takes the
 * rest.
 *
 * With a symbolic batch the target is often [batch, -1] computed from Shape. So the size of -1 is
 * found by cancelling: symbols of the input against symbols of the target, then numbers. One symbol
 * that is left keeps its factor: [batch, 12, 32] to [-1, 32] is ["12*batch", 32], and back again.
 */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include <string.h>

/* A product of sizes: number times symbols, or nothing sure at all. */
typedef struct product {
    int64_t number;
    const char *symbols[WF_MAX_RANK]; /* without factors */
    uint32_t n;
    int64_t bound; /* -1: none */
    bool unsure;   /* an axis without a symbol is in it, or it overflows */
} product;

static void times(product *p, const wf_axis *axis)
{
    int64_t factor = axis->size;

    if (axis->size < 0 && !axis->symbol) {
        p->unsure = true;
        return;
    }
    if (axis->size < 0)
        factor = wf_symbol_factor(axis->symbol, &p->symbols[p->n++]);
    p->unsure = p->unsure || __builtin_mul_overflow(p->number, factor, &p->number);
    if (p->bound >= 0 && (axis->bound < 0 || !wf_mul_i64(p->bound, axis->bound, &p->bound)))
        p->bound = -1;
}

static void cancel(product *p, product *q)
{
    for (uint32_t i = 0; i < p->n;) {
        uint32_t k = 0;

        while (k < q->n && strcmp(p->symbols[i], q->symbols[k]) != 0)
            k++;
        if (k == q->n) {
            i++;
            continue;
        }
        q->symbols[k] = q->symbols[--q->n];
        p->symbols[i] = p->symbols[--p->n];
    }
}

/* The axis that -1 stands for, so that all == rest x axis. */
static wf_status solve(wf_graph *g, product *all, product *rest, wf_axis *axis, wf_err *err)
{
    int64_t bound =
        rest->n == 0 && rest->number > 0 && all->bound >= 0 ? all->bound / rest->number : -1;

    *axis = wf_axis_unknown(-1);
    if (all->unsure || rest->unsure)
        return WF_OK;
    cancel(all, rest);
    if (rest->n == 0 && all->n == 1 && rest->number > 0 && all->number > 0 &&
        all->number % rest->number == 0)
        return wf_axis_multiple(g, all->number / rest->number, all->symbols[0], bound, axis, err);
    if (rest->n || all->n || (rest->number == 0 && all->number == 0))
        return WF_OK;
    if (rest->number == 0 || all->number % rest->number)
        return wf_fail(err, WF_SHAPE, NULL, "%lld elements do not divide into %lld",
                       (long long)all->number, (long long)rest->number);
    *axis = wf_axis_of(all->number / rest->number);
    return WF_OK;
}

/* The axes that the elements ask for; *hole is the place of -1, or the rank. */
static wf_status target(const wf_node *n, const wf_elem shape[], uint32_t rank, wf_axis axes[],
                        bool copied[], uint32_t *hole, wf_err *err)
{
    const wf_value *x = n->in[0];
    bool allow_zero = wf_node_int(n, "allowzero", 0) != 0;

    *hole = rank;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size = shape[i].value;

        copied[i] = false;
        axes[i] = wf_axis_of_elem(&shape[i]);
        if (!shape[i].is_known)
            continue;
        if (size < -1 || (size == -1 && *hole < rank))
            return wf_fail(err, WF_SHAPE, NULL, "%s",
                           size == -1 ? "the new shape has two -1"
                                      : "the new shape has a negative "
                                        "size");
        if (size == -1)
            *hole = i;
        if (size != 0 || allow_zero)
            continue;
        if (i >= (uint32_t)x->rank)
            return wf_fail(err, WF_SHAPE, "set allowzero for an axis without elements",
                           "0 copies axis %u, which the input does not have", i);
        axes[i] = x->axes[i];
        copied[i] = true;
    }
    return WF_OK;
}

static wf_status reshape(wf_graph *g, const wf_node *n, const wf_elem shape[], uint32_t rank,
                         wf_axis axes[], wf_err *err)
{
    const wf_value *x = n->in[0];
    product all = {.number = 1, .bound = 1}, rest = {.number = 1, .bound = 1};
    bool copied[WF_MAX_RANK] = {0};
    uint32_t hole;

    WF_TRY(target(n, shape, rank, axes, copied, &hole, err));
    for (uint32_t i = 0; i < (uint32_t)x->rank; i++)
        if (i >= rank || !copied[i])
            times(&all, &x->axes[i]);
    for (uint32_t i = 0; i < rank; i++)
        if (i != hole && !copied[i])
            times(&rest, &axes[i]);
    if (hole < rank)
        return solve(g, &all, &rest, &axes[hole], err);
    if (all.unsure || rest.unsure || all.n || rest.n || all.number == rest.number)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "%lld elements do not fit into %lld", (long long)all.number,
                   (long long)rest.number);
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *shape = n->in[1];
    wf_elem elems[WF_MAX_CARRIED];
    wf_axis axes[WF_MAX_RANK];
    char text[WF_VALUE_STR];
    uint32_t rank;

    WF_TRY(wf_need_int(n, 1, "the new shape", err));
    wf_out_unknown(n, 0, x->dtype);
    if (!wf_value_elems(shape, elems, &rank)) {
        rank = shape->rank == 1 && shape->axes[0].size >= 0
                   ? (uint32_t)WF_MIN(shape->axes[0].size, 99)
                   : 99;
        for (uint32_t i = 0; rank <= WF_MAX_RANK && i < rank; i++)
            axes[i] = wf_axis_unknown(-1);
        if (rank <= WF_MAX_RANK)
            wf_out_axes(n, 0, x->dtype, rank, axes);
        return WF_OK;
    }
    WF_TRY(wf_need_rank(rank, err));
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_err_wrap(err, reshape(g, n, elems, rank, axes, err), "the input is %s",
                       wf_value_str(x, text, sizeof text)));
    wf_out_axes(n, 0, x->dtype, rank, axes);
    return wf_carry_input(g, n, err);
}

wf_status wf_grad_reshape_back(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grads_add(
        g, n, 0, wf_emit_reshape_like(wf_grads_emit(g), wf_grads_upstream(g, n, 0), n->in[0]));
}

static const wf_attr_row attrs[] = {{"allowzero", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_reshape =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Reshape", 14, 2, 2, infer, .keeps_order = true,
                .no_grad_in = 1u << 1, .attrs = attrs, .grad = wf_grad_reshape_back);
