/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/find.c - the row of a table for a node; without the list of devices, so that a
 * plug-in can look in its own table. */
#include "common/graph/narrow.h"
#include "common/graph/op.h"
#include "common/kernels/kernel.h"

#include <string.h>

/* The dtype that chooses a row; WF_NONE when the node lacks that value. What a narrow node reads
 * and gives in a narrow type is float32 to its kernel. */
static wf_dtype dtype_for(const wf_kernel *k, const wf_node *n, wf_dtype narrow)
{
    wf_dtype dtype;

    if (k->typed_by == WF_TYPED_BY_OUTPUT)
        dtype = wf_node_has_out(n, 0) ? n->out[0]->dtype : WF_NONE;
    else
        dtype = wf_node_has_in(n, k->typed_by) ? n->in[k->typed_by]->dtype : WF_NONE;
    return dtype != WF_NONE && dtype == narrow ? WF_F32 : dtype;
}

wf_status wf_kernel_in(const wf_device_rows *rows, const wf_node *node, const wf_kernel **out,
                       wf_err *err)
{
    wf_dtype refused = WF_NONE, narrow = wf_node_narrow(node);
    bool known = false;

    for (size_t f = 0; f < rows->n_files; f++)
        for (const wf_kernel *k = rows->files[f]; k->op; k++) {
            const char *domain = k->domain ? k->domain : WF_DOMAIN_ONNX;

            if (strcmp(k->op, node->op->name) != 0 || strcmp(domain, node->op->domain) != 0)
                continue;
            known = true;
            refused = dtype_for(k, node, narrow);
            if (refused != WF_NONE && (k->dtypes & WF_TYPE(refused))) {
                *out = k;
                return WF_OK;
            }
        }
    if (!known)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "%s \"%s\": weft cannot compute this operation yet", node->op->name,
                       node->name);
    return wf_fail(err, WF_UNSUPPORTED, "put a Cast before it",
                   "%s \"%s\": weft does not compute it in %s", node->op->name, node->name,
                   wf_dtype_name(refused));
}
