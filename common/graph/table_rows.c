/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/table_rows.c */
#include "common/graph/table_rows.h"
#include "common/tensor/row_values.h"

#include <math.h>
#include <string.h>

enum { N_ATTRS = 6 };

wf_node *wf_emit_table_rows(wf_emit *e, wf_value *const in[3], const wf_first_rows *first,
                            bool bags, wf_value *out[2])
{
    const double numbers[] = {first->numbers.centre, first->numbers.spread};
    const int64_t dims[] = {2};
    wf_tensor *t = NULL;
    wf_node *n;

    if (e->rc == WF_OK)
        e->rc = wf_tensor_new(WF_F64, 1, dims, &t, e->err);
    if (t)
        memcpy(t->data, numbers, sizeof numbers);
    const wf_attr attrs[N_ATTRS] = {
        wf_attr_int("bags", bags),
        wf_attr_int("distribution", (int64_t)first->numbers.kind),
        wf_attr_int("dtype", (int64_t)first->dtype),
        {.name = "numbers", .kind = WF_ATTR_TENSOR, .t = t},
        wf_attr_int("seed", (int64_t)first->seed),
        wf_attr_int("stream", (int64_t)first->stream),
    };
    n = wf_emit_node(e, "TableRows", 3, in, N_ATTRS, attrs, 2, out);
    wf_tensor_free(&t);
    return n;
}

bool wf_is_table_rows(const wf_node *n)
{
    return strcmp(n->op->name, "TableRows") == 0 && strcmp(n->op->domain, WF_DOMAIN_WEFT) == 0;
}

wf_status wf_table_rows_first(const wf_node *n, wf_first_rows *out, wf_err *err)
{
    const wf_attr *a = wf_node_attr(n, "numbers");
    const wf_tensor *t = a ? a->t : NULL;
    int64_t kind = wf_node_int(n, "distribution", 0), dtype = wf_node_int(n, "dtype", WF_F32);
    const double *numbers = t ? t->data : NULL;

    if (!t || t->dtype != WF_F64 || wf_elems(t) != 2 || !isfinite(numbers[0]) ||
        !isfinite(numbers[1]))
        return wf_fail(err, WF_INVALID, NULL, "its attribute \"numbers\" must be two float64");
    if (kind < 0 || kind >= WF_N_DISTRIBUTIONS)
        return wf_fail(err, WF_INVALID, NULL, "there is no distribution %lld", (long long)kind);
    if (dtype < 0 || dtype > 64 || !wf_row_values_known((wf_dtype)dtype))
        return wf_fail(err, WF_INVALID, NULL, "rows of type %lld cannot be held", (long long)dtype);
    *out = (wf_first_rows){
        .numbers = {.kind = (wf_distribution_kind)kind, .centre = numbers[0], .spread = numbers[1]},
        .seed = (uint64_t)wf_node_int(n, "seed", 0),
        .stream = (uint64_t)wf_node_int(n, "stream", 0),
        .dtype = (wf_dtype)dtype};
    return WF_OK;
}
