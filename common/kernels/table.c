/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/table.c - the rows of all files named in cpu/meson.build. */
#include "common/base/cc.h"
#include "common/graph/op.h"
#include "common/kernels/kernel.h"

#include <string.h>

#define WF_KERNELS(name) extern const wf_kernel wf_kernels_##name[];
#include "common/kernels/cpu/rows.def"
#undef WF_KERNELS

static const wf_kernel *const files[] = {
#define WF_KERNELS(name) wf_kernels_##name,
#include "common/kernels/cpu/rows.def"
#undef WF_KERNELS
};

const wf_kernel *wf_kernel_at(size_t i)
{
    for (size_t f = 0; f < WF_COUNT(files); f++)
        for (const wf_kernel *k = files[f]; k->op; k++)
            if (i-- == 0)
                return k;
    return NULL;
}

/* The dtype that chooses a row; WF_NONE when the node lacks that value. */
static wf_dtype dtype_for(const wf_kernel *k, const wf_node *n)
{
    if (k->typed_by == WF_TYPED_BY_OUTPUT)
        return wf_node_has_out(n, 0) ? n->out[0]->dtype : WF_NONE;
    return wf_node_has_in(n, k->typed_by) ? n->in[k->typed_by]->dtype : WF_NONE;
}

wf_status wf_kernel_find(const wf_node *node, wf_device device, const wf_kernel **out, wf_err *err)
{
    wf_dtype refused = WF_NONE;
    bool known = false;

    for (size_t f = 0; f < WF_COUNT(files); f++)
        for (const wf_kernel *k = files[f]; k->op; k++) {
            const char *domain = k->domain ? k->domain : WF_DOMAIN_ONNX;

            if (k->device != device || strcmp(k->op, node->op->name) != 0 ||
                strcmp(domain, node->op->domain) != 0)
                continue;
            known = true;
            refused = dtype_for(k, node);
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
