/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/ids.h - reading ids, and finding the first that names no place.
 *
 * The first is looked for before one is used, so that the same id is told of in every run. What is
 * looked at is a type with the members
 *
 *   is_wrong(i)                  whether number i cannot be used
 *   tell(i, wf_complaints)       says so
 */
#ifndef WF_KERNELS_CUDA_IDS_H
#define WF_KERNELS_CUDA_IDS_H

#include "common/kernels/cuda/code.h"

/* Whole numbers in memory of the device. */
typedef struct wf_ids {
    const void *data;
    bool wide; /* i64, and not i32 */
} wf_ids;

static inline wf_ids wf_ids_of(const wf_tensor *t)
{
    return {t->data, t->dtype == WF_I64};
}

WF_CODE int64_t wf_id_at(const wf_ids &ids, int64_t i)
{
    return ids.wide ? static_cast<const int64_t *>(ids.data)[i]
                    : static_cast<const int32_t *>(ids.data)[i];
}

/* The place in an axis that id number i names, where negative ones count from the end; -1: none. */
WF_CODE int64_t wf_place_at(const wf_ids &ids, int64_t i, int64_t axis)
{
    int64_t id = wf_id_at(ids, i), place = id < 0 ? id + axis : id;

    return place < 0 || place >= axis ? -1 : place;
}

/* Ids that name places in an axis. */
struct wf_ids_in_axis {
    wf_ids ids;
    int64_t axis;

    WF_CODE bool is_wrong(int64_t i) const
    {
        return wf_place_at(ids, i, axis) < 0;
    }
    WF_CODE void tell(int64_t i, wf_complaints c) const
    {
        wf_complain(c, WF_CUDA_BAD_INDEX, wf_id_at(ids, i), i, axis);
    }
};

/* Elements that a block looks at, unless there are too many for so many blocks. */
enum { WF_LOOK_SHARE = 16 * WF_BLOCK, WF_LOOK_BLOCKS = 256 };

static inline int64_t wf_look_blocks(int64_t n)
{
    return WF_MIN(wf_ceil_div(n, WF_LOOK_SHARE), (int64_t)WF_LOOK_BLOCKS);
}

/* Workspace for looking at n. */
static inline size_t wf_look_bytes(int64_t n)
{
    return wf_align_up((size_t)wf_look_blocks(n) * sizeof(int64_t), WF_ALIGNED);
}

/* firsts NULL: the block looks at all of them. */
template <class F>
__global__ void wf_look_block(F f, int64_t n, int64_t share, int64_t *firsts, wf_complaints c)
{
    const int64_t begin = blockIdx.x * share, end = begin + share < n ? begin + share : n;
    int64_t bad = n;

    for (int64_t i = begin + threadIdx.x; i < end && bad == n; i += blockDim.x)
        if (f.is_wrong(i))
            bad = i;
    bad = wf_join_block(bad, n, wf_lower());
    if (threadIdx.x == 0 && firsts)
        firsts[blockIdx.x] = bad;
    else if (threadIdx.x == 0 && bad < n)
        f.tell(bad, c);
}

template <class F>
__global__ void wf_look_at_firsts(F f, int64_t n, const int64_t *firsts, int64_t blocks,
                                  wf_complaints c)
{
    int64_t bad = threadIdx.x < blocks ? firsts[threadIdx.x] : n;

    bad = wf_join_block(bad, n, wf_lower());
    if (threadIdx.x == 0 && bad < n)
        f.tell(bad, c);
}

/* Tells of the first of n that is wrong; `workspace` has wf_look_bytes(n). */
template <class F>
wf_status wf_look(const wf_run *run, F f, int64_t n, void *workspace, wf_err *err)
{
    int64_t blocks = wf_look_blocks(n), *firsts = static_cast<int64_t *>(workspace);

    if (n == 0)
        return WF_OK;
    if (blocks == 1)
        return wf_launch_meeting(run, "ids", wf_look_block<F>, 1, wf_threads(n), err, f, n, n,
                                 nullptr, wf_complaints_of(run));
    WF_TRY(wf_launch_meeting(run, "ids", wf_look_block<F>, (unsigned)blocks, WF_BLOCK, err, f, n,
                             wf_ceil_div(n, blocks), firsts, wf_complaints_of(run)));
    return wf_launch_meeting(run, "first of ids", wf_look_at_firsts<F>, 1, wf_threads(blocks), err,
                             f, n, firsts, blocks, wf_complaints_of(run));
}

#endif
