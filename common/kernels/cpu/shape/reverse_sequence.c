/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/reverse_sequence.c - ReverseSequence: the first steps of each sequence
 * backwards. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <inttypes.h>

static wf_status reverse_sequence(const wf_run *run, const wf_tensor *const in[],
                                  wf_tensor *const out[], wf_err *err)
{
    bool time_first = wf_node_int(run->node, "time_axis", 0) == 0;
    int64_t steps = in[0]->dims[time_first ? 0 : 1], n = in[0]->dims[time_first ? 1 : 0];
    wf_around a = wf_around_axis(in[0], 1); /* inner: what follows the two axes */
    size_t bytes = (size_t)a.inner * wf_dtype_size(in[0]->dtype);

    for (int64_t b = 0; b < n; b++) {
        int64_t length = wf_int_at(in[1], b);

        if (length < 0 || length > steps)
            return wf_fail(err, WF_INVALID, NULL,
                           "sequence %" PRId64 " has length %" PRId64 ", of %" PRId64 " steps", b,
                           length, steps);
        for (int64_t t = 0; t < steps; t++) {
            int64_t from = t < length ? length - 1 - t : t;
            int64_t to_at = time_first ? t * n + b : b * steps + t;
            int64_t from_at = time_first ? from * n + b : b * steps + from;

            wf_copy((char *)out[0]->data + (size_t)to_at * bytes,
                    (const char *)in[0]->data + (size_t)from_at * bytes, bytes);
        }
    }
    return WF_OK;
}

const wf_kernel wf_kernels_reverse_sequence[] = {
    WF_ROW("ReverseSequence", WF_TYPES_ALL, reverse_sequence),
    {0},
};
