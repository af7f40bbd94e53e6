/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/table.c - the devices that are known, and their kernels. */
#include "common/base/cc.h"
#include "common/graph/narrow.h"
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

wf_status wf_kernel_find(const wf_node *node, const wf_device *device, const wf_kernel **out,
                         wf_err *err)
{
    const wf_device_rows *rows = rows_of(device);

    wf_assert(rows);
    WF_TRY(wf_kernel_in(rows, node, out, err));
    if (wf_node_narrow(node) == WF_NONE)
        return WF_OK;
    if (!rows->widened)
        return wf_fail(err, WF_UNSUPPORTED, "leave its attribute narrow out",
                       "%s \"%s\": %s keeps no values in %s", node->op->name, node->name,
                       device->name, wf_dtype_name(wf_node_narrow(node)));
    *out = rows->widened;
    return WF_OK;
}

bool wf_kernels_keep_narrow(const wf_device *device, wf_dtype type)
{
    return (rows_of(device)->narrow & WF_TYPE(type)) &&
           (!device->is_host || wf_kernels_have_bf16());
}

bool wf_kernels_keep_convolved(const wf_device *device)
{
    return rows_of(device)->keeps_convolved;
}
