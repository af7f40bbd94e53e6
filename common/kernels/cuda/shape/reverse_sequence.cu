/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/reverse_sequence.cu - ReverseSequence: the first steps of each sequence
 * backwards. A sequence whose length cannot be is told of, and stays as it is. */
#include "common/kernels/cuda/index/ids.h"
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

namespace
{

/* Elements are [steps, n, inner], or [n, steps, inner]. */
struct sequences {
    wf_ids lengths; /* [n] */
    int64_t n, steps, inner;
    bool time_first;

    WF_CODE bool is_wrong(int64_t i) const
    {
        int64_t length = wf_id_at(lengths, i);

        return length < 0 || length > steps;
    }
    WF_CODE void tell(int64_t i, wf_complaints c) const
    {
        wf_complain(c, WF_CUDA_BAD_SEQUENCE, i, wf_id_at(lengths, i), steps);
    }
};

template <class T> __global__ void reverse(const T *x, T *out, sequences s)
{
    for (int64_t e = wf_first(); e < s.n * s.steps * s.inner; e += wf_all()) {
        const int64_t row = e / s.inner, i = s.time_first ? row % s.n : row / s.steps;
        const int64_t t = s.time_first ? row / s.n : row % s.steps;
        const int64_t length = s.is_wrong(i) ? 0 : wf_id_at(s.lengths, i);
        const int64_t from = t < length ? length - 1 - t : t;

        out[e] = x[e + (from - t) * (s.time_first ? s.n : 1) * s.inner];
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)out, (void)err;
    prep->workspace_bytes = wf_look_bytes(wf_elems(in[1]));
    return WF_OK;
}

wf_status reverse_sequence(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                           wf_err *err)
{
    bool time_first = wf_node_int(run->node, "time_axis", 0) == 0;
    sequences s = {wf_ids_of(in[1]), in[0]->dims[time_first ? 1 : 0],
                   in[0]->dims[time_first ? 0 : 1], wf_around_axis(in[0], 1).inner, time_first};

    WF_TRY(wf_look(run, s, s.n, run->workspace, err));
    if (wf_elems(out[0]) == 0)
        return WF_OK;
    return WF_BY_SIZE(out[0]->dtype, wf_launch(run, "ReverseSequence", reverse<T>,
                                               wf_blocks(run, wf_elems(out[0])), err,
                                               static_cast<const T *>(in[0]->data),
                                               static_cast<T *>(out[0]->data), s));
}

} // namespace

WF_CUDA_ROWS(reverse_sequence){
    {.op = "ReverseSequence", .dtypes = WF_TYPES_ALL, .prepare = prepare, .run = reverse_sequence},
    {},
};
