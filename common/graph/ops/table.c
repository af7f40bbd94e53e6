/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/table.c - the registry: rows in the order of their names, found by bisection. */
#include "common/base/cc.h"
#include "common/base/nearest.h"
#include "common/graph/op.h"
#include "common/graph/ops/ops.h"

#include <string.h>

#define WF_OP(name, file) &wf_op_##name,
static const wf_op *const table[] = {
#include "common/graph/ops/rows.def"
};
#undef WF_OP

const wf_op *wf_op_at(size_t i)
{
    return i < WF_COUNT(table) ? table[i] : NULL;
}

const wf_op *wf_op_find(const char *domain, const char *name)
{
    size_t low = 0, high = WF_COUNT(table);

    if (strcmp(domain, "ai.onnx") == 0)
        domain = WF_DOMAIN_ONNX;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, table[middle]->name);

        if (order == 0)
            return strcmp(domain, table[middle]->domain) == 0 ? table[middle] : NULL;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *wf_op_nearest(const char *name)
{
    const char *names[WF_COUNT(table)];

    for (size_t i = 0; i < WF_COUNT(table); i++)
        names[i] = table[i]->name;
    return wf_nearest(name, names, WF_COUNT(table));
}
