/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote_worker.c - makes weft-worker compute on the devices that WEFT_TEST_DEVICE names,
 * one or "one+another", whatever cluster.yaml says: linked with --wrap=wf_trainer_new, it stands
 * before that function. */
#include "tests/kit/remote_device.h"
#include "worker/trainer.h"

#include <stdlib.h>

wf_status __wrap_wf_trainer_new(const wf_trainer_conf *conf, wf_trainer **out, wf_err *err);
wf_status __real_wf_trainer_new(const wf_trainer_conf *conf, wf_trainer **out, wf_err *err);

wf_status __wrap_wf_trainer_new(const wf_trainer_conf *conf, wf_trainer **out, wf_err *err)
{
    const wf_device *second = test_second_device();
    const char *const names[] = {test_device()->name, second ? second->name : NULL};
    wf_trainer_conf other = *conf;

    if (!getenv("WEFT_TEST_DEVICE"))
        return __real_wf_trainer_new(conf, out, err);
    other.devices = names;
    other.n_devices = second ? 2 : 1;
    return __real_wf_trainer_new(&other, out, err);
}
