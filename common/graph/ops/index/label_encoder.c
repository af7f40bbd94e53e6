/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/label_encoder.c - LabelEncoder of ai.onnx.ml, from int64 to int64: y =
 * values_int64s[i] where x is keys_int64s[i], and default_int64 where it is no key. In a graph keys
 * rise; in a file they have any order (common/onnx/expand/label_encoder.c). */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <inttypes.h>

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    size_t n_keys, n_values;
    const int64_t *keys = wf_node_ints(n, "keys_int64s", &n_keys);

    (void)g;
    wf_node_ints(n, "values_int64s", &n_values);
    WF_TRY(wf_need_dtype(n, 0, WF_I64, "X", err));
    if (n_keys != n_values)
        return wf_fail(err, WF_INVALID, "give each key a value", "it has %zu keys and %zu values",
                       n_keys, n_values);
    for (size_t i = 1; i < n_keys; i++)
        if (keys[i] <= keys[i - 1])
            return wf_fail(err, WF_INVALID, "give each key once",
                           "its key %" PRId64 " comes after %" PRId64, keys[i], keys[i - 1]);
    wf_out_like(n, 0, WF_I64, n->in[0]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"default_int64", WF_ATTR_INT, false},
                                    {"keys_int64s", WF_ATTR_INTS, true},
                                    {"values_int64s", WF_ATTR_INTS, true},
                                    {0}};

const wf_op wf_op_label_encoder =
    WF_FOLDABLE(WF_DOMAIN_ML, "LabelEncoder", 2, 1, 1, infer,
                .note = "from int64 to int64; no key may be there twice", .no_grad_in = 1u << 0,
                .attrs = attrs);
