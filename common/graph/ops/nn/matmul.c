/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/matmul.c - MatMul and Product. */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* MatMul: as numpy.matmul, the axes before the last two broadcast. */

/* The contracted axes, and the two that stay; a vector has no axis that stays. */
static wf_status infer_matmul(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *a = n->in[0], *b = n->in[1];
    wf_axis axes[WF_MAX_RANK];
    char text_a[WF_VALUE_STR], text_b[WF_VALUE_STR];
    const wf_axis *k_a, *k_b;
    wf_value head_a = *a, head_b = *b;
    uint32_t rank = 0;

    (void)g;
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    wf_out_unknown(n, 0, a->dtype);
    if (a->rank < 0 || b->rank < 0)
        return WF_OK;
    wf_value_str(a, text_a, sizeof text_a);
    wf_value_str(b, text_b, sizeof text_b);
    if (a->rank == 0 || b->rank == 0)
        return wf_fail(err, WF_SHAPE, "use Mul for scalars",
                       "A is %s and B is %s, and neither may be "
                       "a scalar",
                       text_a, text_b);
    k_a = &a->axes[a->rank - 1];
    k_b = &b->axes[b->rank == 1 ? 0 : b->rank - 2];
    if (wf_axes_clash(k_a, k_b))
        return wf_fail(err, WF_SHAPE, NULL,
                       "A is %s, B is %s; A's last and B's %s axis must agree "
                       "(%lld, %lld)",
                       text_a, text_b, b->rank == 1 ? "only" : "last but one", (long long)k_a->size,
                       (long long)k_b->size);
    head_a.rank = WF_MAX(a->rank - 2, 0);
    head_b.rank = WF_MAX(b->rank - 2, 0);
    WF_TRY(wf_axes_broadcast(axes, &rank, &head_a, err));
    WF_TRY(wf_err_wrap(err, wf_axes_broadcast(axes, &rank, &head_b, err), "A is %s, B is %s",
                       text_a, text_b));
    if (a->rank > 1)
        axes[rank++] = a->axes[a->rank - 2];
    if (b->rank > 1)
        axes[rank++] = b->axes[b->rank - 1];
    wf_out_axes(n, 0, a->dtype, rank, axes);
    return WF_OK;
}

/* x with its last two axes exchanged. */
static wf_value *transposed(wf_emit *e, wf_value *x)
{
    int64_t perm[WF_MAX_RANK];

    if (!x)
        return NULL;
    for (int32_t i = 0; i < x->rank; i++)
        perm[i] = i;
    perm[x->rank - 1] = x->rank - 2;
    perm[x->rank - 2] = x->rank - 1;
    return wf_emit_transpose(e, x, perm);
}

/* B is a matrix of known size: a linear layer. All rows of A count alike, so both gradients are one
 * Gemm each, which transposes in place. */
static wf_status grad_of_linear(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *a = n->in[0], *b = n->in[1], *dy = wf_grads_upstream(g, n, 0);
    int64_t rows_a[2] = {-1, b->axes[0].size}, rows_dy[2] = {-1, b->axes[1].size};

    (void)err;
    if (a->rank != 2)
        dy = wf_emit_reshape(e, dy, 2, rows_dy);
    if (wf_grads_wanted(g, n, 0)) {
        wf_value *da = wf_emit_gemm(e, dy, b, NULL, 1, 1, false, true);

        WF_TRY(wf_grads_add(g, n, 0, wf_emit_reshape_like(e, da, a)));
    }
    if (!wf_grads_wanted(g, n, 1))
        return WF_OK;
    if (a->rank != 2)
        a = wf_emit_reshape(e, a, 2, rows_a);
    return wf_grads_add(g, n, 1, wf_emit_gemm(e, a, dy, NULL, 1, 1, true, false));
}

static bool is_linear(const wf_value *a, const wf_value *b)
{
    return b->rank == 2 && a->rank >= 2 &&
           (a->rank == 2 || (b->axes[0].size > 0 && b->axes[1].size > 0));
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *a = n->in[0], *b = n->in[1], *dy = wf_grads_upstream(g, n, 0);
    wf_value *matrix_a = a, *matrix_b = b;

    WF_TRY(wf_need_known_rank(n, 0, err));
    WF_TRY(wf_need_known_rank(n, 1, err));
    if (is_linear(a, b))
        return grad_of_linear(g, n, err);
    /* Vectors become matrices of one row or column, and back at the end. */
    if (a->rank == 1)
        matrix_a = wf_emit_unsqueeze(e, a, 1, (int64_t[]){0});
    if (b->rank == 1)
        matrix_b = wf_emit_unsqueeze(e, b, 1, (int64_t[]){1});
    if (a->rank == 1)
        dy = wf_emit_unsqueeze(e, dy, 1, (int64_t[]){b->rank == 1 ? -1 : -2});
    if (b->rank == 1)
        dy = wf_emit_unsqueeze(e, dy, 1, (int64_t[]){-1});
    if (wf_grads_wanted(g, n, 0)) {
        wf_value *da = wf_emit_matmul(e, dy, transposed(e, matrix_b));

        WF_TRY(wf_grads_add(g, n, 0, wf_emit_reshape_like(e, wf_emit_sum_to(e, da, matrix_a), a)));
    }
    if (wf_grads_wanted(g, n, 1)) {
        wf_value *db = wf_emit_matmul(e, transposed(e, matrix_a), dy);

        WF_TRY(wf_grads_add(g, n, 1, wf_emit_reshape_like(e, wf_emit_sum_to(e, db, matrix_b), b)));
    }
    return wf_emit_end(e);
}

const wf_op wf_op_matmul =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "MatMul", 13, 2, 2, infer_matmul, .grad = grad);

/* ai.weft Product(a, b): MatMul that reads a, b or both with their last two axes exchanged. Of two
 * matrices it may give a second result: the sum of the rows of a or b as it lies, where the product
 * adds up over these rows too. That is a bias's gradient beside its weight's. The compiler makes it
 * of MatMul, Gemm, Transpose and ReduceSum, once gradients are built; so it needs none of its own.
 */

/* v as the product reads it. */
static wf_value as_read(const wf_value *v, bool transposed)
{
    wf_value turned = *v;

    if (transposed) {
        turned.axes[v->rank - 1] = v->axes[v->rank - 2];
        turned.axes[v->rank - 2] = v->axes[v->rank - 1];
    }
    return turned;
}

/* The second result. */
static wf_status infer_sums(wf_node *n, wf_err *err)
{
    const char *sums = wf_node_string(n, "sums", "");
    bool of_a = strcmp(sums, "a") == 0, of_b = strcmp(sums, "b") == 0;
    const wf_value *of = n->in[of_a ? 0 : 1];
    char text[WF_VALUE_STR];

    if (!of_a && !of_b)
        return wf_fail(err, WF_UNSUPPORTED, "set sums to a or b",
                       "it has a second result, the sums of the rows of \"%.40s\"", sums);
    if (of_a ? !wf_node_int(n, "transA", 0) : wf_node_int(n, "transB", 0) != 0)
        return wf_fail(err, WF_UNSUPPORTED, of_a ? "set transA=1" : "leave transB out",
                       "it does not add up over the rows of %s, whose sums are asked for", sums);
    wf_out_unknown(n, 1, of->dtype);
    if (n->in[0]->rank < 0 || n->in[1]->rank < 0)
        return WF_OK;
    for (uint32_t i = 0; i < 2; i++)
        if (n->in[i]->rank != 2)
            return wf_fail(err, WF_SHAPE, NULL,
                           "%c is %s, and must be a matrix where rows are summed", 'A' + (int)i,
                           wf_value_str(n->in[i], text, sizeof text));
    wf_out_axes(n, 1, of->dtype, 1, &of->axes[1]);
    return WF_OK;
}

static wf_status infer_product(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *a = n->in[0], *b = n->in[1];
    char text_a[WF_VALUE_STR], text_b[WF_VALUE_STR];
    wf_axis axes[WF_MAX_RANK];
    wf_value rows, columns;
    uint32_t rank = 0;

    (void)g;
    WF_TRY(wf_need_float(n, 0, "A", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    wf_out_unknown(n, 0, a->dtype);
    if (wf_node_has_out(n, 1))
        WF_TRY(infer_sums(n, err));
    if (a->rank < 0 || b->rank < 0)
        return WF_OK;
    wf_value_str(a, text_a, sizeof text_a);
    wf_value_str(b, text_b, sizeof text_b);
    if (a->rank < 2 || b->rank < 2)
        return wf_fail(err, WF_SHAPE, NULL, "A is %s and B is %s, and both must be matrices",
                       text_a, text_b);
    rows = as_read(a, wf_node_int(n, "transA", 0) != 0);
    columns = as_read(b, wf_node_int(n, "transB", 0) != 0);
    if (wf_axes_clash(&rows.axes[a->rank - 1], &columns.axes[b->rank - 2]))
        return wf_fail(err, WF_SHAPE, NULL, "A is %s, B is %s, which do not fit each other", text_a,
                       text_b);
    rows.rank -= 2;
    columns.rank -= 2;
    WF_TRY(wf_axes_broadcast(axes, &rank, &rows, err));
    WF_TRY(wf_err_wrap(err, wf_axes_broadcast(axes, &rank, &columns, err), "A is %s, B is %s",
                       text_a, text_b));
    axes[rank++] = rows.axes[a->rank - 2];
    axes[rank++] = columns.axes[b->rank - 1];
    wf_out_axes(n, 0, a->dtype, rank, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"sums", WF_ATTR_STRING, false},
                                    {"transA", WF_ATTR_INT, false},
                                    {"transB", WF_ATTR_INT, false},
                                    {0}};

const wf_op wf_op_product = WF_OPERATION(
    WF_DOMAIN_WEFT, "Product", 1, 2, 2, 1, 2, WF_OP_FOLDABLE, infer_product,
    .means = "(a, b) -> y, (sums); attrs sums = \"\", transA = 0, transB = 0; MatMul of "
             "matrices, with their last two axes exchanged; sums: of the rows of a "
             "(with sums = \"a\", transA = 1) or b (sums = \"b\", transB = 0), of which "
             "the product is a sum too",
    .attrs = attrs);
