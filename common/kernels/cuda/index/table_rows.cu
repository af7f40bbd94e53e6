/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/table_rows.cu - TableRows: a block searches an id among those that have
 * a row, and copies it, or computes its first values. */
#include "common/kernels/cuda/code.h"

#include <cmath>

extern "C" {
#include "common/base/fold.h"
#include "common/base/normal.h"
#include "common/base/rising.h"
#include "common/kernels/shape/table_rows.h"
#include "common/tensor/half.h"
}

namespace
{

struct lookup {
    wf_first_rows first;
    const float *table;           /* [n + 1, width] */
    const int64_t *row_ids, *ids; /* [n]; one for each of rows */
    float *rows;                  /* [n_ids, width] */
    int64_t *places;              /* one for each of ids */
    int64_t n_ids, n, width;
    bool bags;
};

struct higher {
    WF_CODE uint32_t operator()(uint32_t x, uint32_t y) const
    {
        return x > y ? x : y;
    }
};

WF_CODE float number(const wf_first_rows &f, wf_rng_key key, int64_t i)
{
    float unit = 0;

    if (f.numbers.kind == WF_UNIFORM) {
        uint32_t words[4];

        wf_philox(key, (uint64_t)i / 4, words);
        unit = wf_philox_unit(words[i % 4]);
    }
    return wf_distribution_number(&f.numbers, key, (uint64_t)i, unit);
}

/* Infinity, which rounding to nearest may give, becomes the number before it. */
WF_CODE uint16_t finite(uint16_t h, uint16_t infinite)
{
    return (uint16_t)(h - ((h & 0x7FFFu) == infinite));
}

/* As it reads when a row of that type holds it (row_values.h); `scale` is for int8. */
WF_CODE float as_held(wf_dtype dtype, float x, float scale)
{
    switch (dtype) {
    case WF_BF16:
        return wf_bf16_to_f32_inline(finite(wf_f32_to_bf16_inline(x), 0x7F80));
    case WF_F16:
        return wf_f16_to_f32_inline(finite(wf_f32_to_f16_inline(x), 0x7C00));
    case WF_I8:
        if (!(scale > 0))
            return 0 * scale;
        return rintf(fminf(127, fmaxf(-127, x / scale))) * scale;
    default:
        return x;
    }
}

/* wf_int8_scale, of the row's largest magnitude as bits. */
WF_CODE float scale_of(uint32_t most)
{
    if (most == 0x7F800000u)
        most--;
    return most <= 0x0D800000u ? 0 : wf_half_float(most) / 127;
}

/* All threads of the block are here. */
WF_CODE void fill_first(const wf_first_rows &f, int64_t id, int64_t width, float *to)
{
    const wf_rng_key key = {f.seed, wf_fold(f.stream, (uint64_t)id)};
    float scale = 0;

    if (f.dtype == WF_I8) {
        uint32_t most = 0;

        for (int64_t k = threadIdx.x; k < width; k += blockDim.x)
            most = higher()(most, wf_half_bits(number(f, key, k)) & 0x7FFFFFFFu);
        scale = scale_of(wf_join_block(most, 0u, higher()));
    }
    for (int64_t k = threadIdx.x; k < width; k += blockDim.x)
        to[k] = as_held(f.dtype, number(f, key, k), scale);
}

__global__ void look_up(lookup l)
{
    for (int64_t i = blockIdx.x; i < l.n_ids; i += gridDim.x) {
        const int64_t id = l.ids[i];
        const bool named = !l.bags || id >= 0;
        const int64_t at = named ? wf_find_rising(l.row_ids, l.n, id) : -1;
        float *to = l.rows + i * l.width;

        if (threadIdx.x == 0)
            l.places[i] = named ? i : -1;
        if (named && at < 0) {
            fill_first(l.first, id, l.width, to);
            continue;
        }
        /* Nobody reads the row of an id that names none, and results have no undefined bytes. */
        for (int64_t k = threadIdx.x; k < l.width; k += blockDim.x)
            to[k] = named ? l.table[at * l.width + k] : 0;
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)out;
    return wf_table_rows_prepare(prep, in[WF_TABLE_ROWS_ROW_IDS], err);
}

wf_status table_rows(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                     wf_err *err)
{
    lookup l = {};

    l.first = *static_cast<const wf_first_rows *>(run->state);
    l.table = static_cast<const float *>(in[WF_TABLE_ROWS_TABLE]->data);
    l.row_ids = static_cast<const int64_t *>(in[WF_TABLE_ROWS_ROW_IDS]->data);
    l.ids = static_cast<const int64_t *>(in[WF_TABLE_ROWS_IDS]->data);
    l.rows = static_cast<float *>(out[WF_TABLE_ROWS_ROWS]->data);
    l.places = static_cast<int64_t *>(out[WF_TABLE_ROWS_PLACES]->data);
    l.n_ids = wf_elems(in[WF_TABLE_ROWS_IDS]);
    l.n = wf_elems(in[WF_TABLE_ROWS_ROW_IDS]);
    l.width = wf_dim(in[WF_TABLE_ROWS_TABLE], 1);
    l.bags = wf_node_int(run->node, "bags", 0) != 0;
    if (l.n_ids == 0)
        return WF_OK;
    return wf_launch_meeting(run, "TableRows", look_up, wf_blocks(run, l.n_ids * WF_BLOCK),
                             wf_threads(l.width), err, l);
}

} // namespace

WF_CUDA_ROWS(table_rows){
    {.op = "TableRows",
     .domain = WF_DOMAIN_WEFT,
     .dtypes = WF_TYPE(WF_F32),
     .prepare = prepare,
     .run = table_rows},
    {},
};
