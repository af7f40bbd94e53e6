/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/bags.c - for other programs: EmbeddingBag, which ONNX does not have, as its
 * operations.
 *
 *     has = ids >= 0, rows = Gather(table, Max(ids, 0))
 *     sum: ReduceSum(Where(has, rows, 0) * weights)
 *     max: ReduceMax(Where(has, rows, -inf)), and 0 where a bag has no ids
 */
#include "common/compile/rules/rules.h"
#include <math.h>
#include <string.h>

static const int64_t LAST = -1, OF_IDS = -2;

static wf_value *reduce_max(wf_emit *e, wf_value *x)
{
    wf_attr keep = wf_attr_int("keepdims", 0);
    wf_value *in[2] = {x, wf_emit_ints(e, 1, &OF_IDS)};

    return wf_emit_op(e, "ReduceMax", 2, in, 1, &keep);
}

static wf_value *largest(wf_emit *e, wf_value *has, wf_value *rows)
{
    wf_value *zero = wf_emit_scalar(e, rows->dtype, 0);
    wf_value *any =
        wf_emit_binary(e, "Greater", reduce_max(e, wf_emit_cast(e, has, rows->dtype)), zero);

    rows = wf_emit_where(e, has, rows, wf_emit_scalar(e, rows->dtype, -INFINITY));
    return wf_emit_where(e, any, reduce_max(e, rows), zero);
}

static wf_status write_out(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_value *ids = r->n->in[1], *none = wf_emit_scalar(&e, ids->dtype, 0);
    wf_value *has = wf_emit_binary(&e, "GreaterOrEqual", ids, none), *rows;

    has = wf_emit_unsqueeze(&e, has, 1, &LAST);
    rows = wf_emit_binary(&e, "Gather", r->n->in[0], wf_emit_binary(&e, "Max", ids, none));
    if (!has || !rows)
        return wf_emit_end(&e);
    if (strcmp(wf_node_string(r->n, "mode", "sum"), "max") == 0) {
        r->instead = largest(&e, has, rows);
        return wf_emit_end(&e);
    }
    rows = wf_emit_where(&e, has, rows, wf_emit_scalar(&e, rows->dtype, 0));
    if (wf_node_has_in(r->n, 2))
        rows = wf_emit_mul(&e, rows, wf_emit_unsqueeze(&e, r->n->in[2], 1, &LAST));
    r->instead = wf_emit_reduce_sum(&e, rows, 1, &OF_IDS, false);
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_bags[] = {
    {WF_DOMAIN_WEFT, "EmbeddingBag", write_out},
    {0},
};
