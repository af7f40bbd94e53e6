/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote_worker.c - makes weft-worker compute on the device that WEFT_TEST_DEVICE names,
 * whatever cluster.yaml says: linked with --wrap=wf_device_find, it stands before that function. */
#include "common/kernels/kernel.h"
#include "tests/kit/remote_device.h"

#include <stdlib.h>

wf_status __wrap_wf_device_find(const char *name, const wf_device **out, wf_err *err);
wf_status __real_wf_device_find(const char *name, const wf_device **out, wf_err *err);

/* The worker calls it once. */
wf_status __wrap_wf_device_find(const char *name, const wf_device **out, wf_err *err)
{
    const char *wanted = getenv("WEFT_TEST_DEVICE");

    remote_devices_add();
    return __real_wf_device_find(wanted ? wanted : name, out, err);
}
