/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote_pair.c - spreads every plan over two devices and the host, when WEFT_TEST_DEVICE
 * names two: "cpu-remote+cpu-remote-half". Linked with --wrap=wf_plan_new, it stands before that
 * function and marks the nodes of a copy in turn. */
#include "common/exec/exec.h"
#include "common/kernels/kernel.h"
#include "tests/kit/remote_device.h"

wf_status __wrap_wf_plan_new(const wf_graph *g, const wf_plan_options *options, wf_plan **out,
                             wf_err *err);
wf_status __real_wf_plan_new(const wf_graph *g, const wf_plan_options *options, wf_plan **out,
                             wf_err *err);

wf_status __wrap_wf_plan_new(const wf_graph *g, const wf_plan_options *options, wf_plan **out,
                             wf_err *err)
{
    const wf_device *second = test_second_device();
    wf_plan_options spread = *options;
    wf_graph *marked = NULL;
    wf_status rc;

    if (!second)
        return __real_wf_plan_new(g, options, out, err);
    spread.devices = &second;
    spread.n_devices = 1;
    WF_TRY(wf_graph_copy(g, &marked, err));
    for (size_t i = 0; i < marked->n_nodes; i++)
        marked->nodes[i]->device = i % 3 == 0 ? NULL : i % 3 == 1 ? second->name : wf_cpu.name;
    rc = __real_wf_plan_new(marked, &spread, out, err);
    wf_graph_free(&marked);
    return rc;
}
