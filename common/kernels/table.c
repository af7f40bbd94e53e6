/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/table.c - the devices that are known, and their kernels. */
#include "common/base/cc.h"
#include "common/graph/op.h"
#include "common/kernels/kernel.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DEVICES = 16 };

#define WF_DEVICE(name) extern const wf_device_rows wf_##name##_rows;
#include "common/tensor/devices.def"
#undef WF_DEVICE
/* weft's own, and those that are added. */
static const wf_device_rows *devices[MOST_DEVICES] = {
#define WF_DEVICE(name) &wf_##name##_rows,
#include "common/tensor/devices.def"
#undef WF_DEVICE
};
static _Atomic size_t n_devices = 0
#define WF_DEVICE(name) +1
#include "common/tensor/devices.def"
#undef WF_DEVICE
    ;

static const wf_device_rows *rows_of(const wf_device *device)
{
    for (size_t i = 0; i < n_devices; i++)
        if (devices[i]->device == device)
            return devices[i];
    return NULL;
}

const wf_device_updates *wf_updates_of(const wf_device *device)
{
    const wf_device_rows *rows = rows_of(device);

    return rows ? rows->updates : NULL;
}

const wf_device_groups *wf_groups_of(const wf_device *device)
{
    const wf_device_rows *rows = rows_of(device);

    return rows ? rows->groups : NULL;
}

wf_status wf_device_add(const wf_device_rows *rows, wf_err *err)
{
    for (size_t i = 0; i < n_devices; i++)
        if (strcmp(devices[i]->device->name, rows->device->name) == 0)
            return wf_fail(err, WF_EXISTS, NULL, "there is a device \"%s\" already",
                           rows->device->name);
    if (n_devices == MOST_DEVICES)
        return wf_fail(err, WF_FULL, NULL, "more than %d devices", (int)MOST_DEVICES);
    devices[n_devices] = rows;
    n_devices++; /* who sees the number sees the row */
    return WF_OK;
}

wf_status wf_device_find(const char *name, const wf_device **out, wf_err *err)
{
    char known[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < n_devices; i++) {
        const wf_device *d = devices[i]->device;

        if (strcmp(d->name, name) == 0) {
            *out = d;
            return WF_OK;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                     i ? ", " : "known: ", d->name);
    }
    return wf_fail(err, WF_NOTFOUND, known, "no device \"%.64s\" here", name);
}

const wf_kernel *wf_kernel_at(const wf_device *device, size_t i)
{
    const wf_device_rows *rows = rows_of(device);

    for (size_t f = 0; rows && f < rows->n_files; f++)
        for (const wf_kernel *k = rows->files[f]; k->op; k++)
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

wf_status wf_kernel_find(const wf_node *node, const wf_device *device, const wf_kernel **out,
                         wf_err *err)
{
    const wf_device_rows *rows = rows_of(device);
    wf_dtype refused = WF_NONE;
    bool known = false;

    wf_assert(rows);
    for (size_t f = 0; f < rows->n_files; f++)
        for (const wf_kernel *k = rows->files[f]; k->op; k++) {
            const char *domain = k->domain ? k->domain : WF_DOMAIN_ONNX;

            if (strcmp(k->op, node->op->name) != 0 || strcmp(domain, node->op->domain) != 0)
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
