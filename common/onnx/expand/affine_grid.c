/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/affine_grid.c - AffineGrid. */
#include "common/onnx/call.h"
#include "common/onnx/expand.h"
#include "common/onnx/proto.h"

#include <inttypes.h>

/* Spatial axes at most. */
enum { MOST_SPATIAL = 3 };

/* Coordinates of pixel centres along axis `i` of size's spatial ones, -1 to 1, as an axis of its
 * own among `n`. */
static wf_value *coordinates(wf_call *c, uint32_t i, uint32_t n)
{
    wf_dtype dtype = c->in[0]->dtype;
    wf_value *count = wf_call_slice(c, c->in[1], 0, 2 + i, 3 + i, 1), *x;
    int64_t axes[MOST_SPATIAL];
    uint32_t n_axes = 0;

    x = wf_emit_cast(c->e, wf_call_count(c, count), dtype);
    count = wf_emit_cast(c->e, count, dtype);
    if (wf_onnx_int(c->p, "align_corners", 0)) {
        count = wf_emit_sub(c->e, count, wf_emit_scalar(c->e, dtype, 1));
        /* One pixel lies at -1, whatever it is divided by. */
        count = wf_emit_binary(c->e, "Max", count, wf_emit_scalar(c->e, dtype, 1));
        x = wf_emit_div(c->e, wf_emit_scale(c->e, x, 2), count);
    } else {
        x = wf_emit_add(c->e, wf_emit_scale(c->e, x, 2), wf_emit_scalar(c->e, dtype, 1));
        x = wf_emit_div(c->e, x, count);
    }
    x = wf_emit_sub(c->e, x, wf_emit_scalar(c->e, dtype, 1));
    for (uint32_t k = 0; k < n; k++)
        if (k != i)
            axes[n_axes++] = k;
    return x ? wf_emit_unsqueeze(c->e, x, n_axes, axes) : NULL;
}

/* theta[:, row, column] as [batch, 1, ...] for n spatial axes. */
static wf_value *coefficient(wf_call *c, int64_t row, int64_t column, uint32_t n)
{
    wf_value *v = wf_call_slice(c, c->in[0], 1, row, row + 1, 1);
    int64_t dims[1 + MOST_SPATIAL] = {0, 1, 1, 1};

    v = wf_call_slice(c, v, 2, column, column + 1, 1);
    return wf_emit_reshape(c->e, v, 1 + n, dims);
}

/* Element r of each place is theta[r] (x, y, (z), 1): broadcast over the places. */
static wf_status affine_grid(wf_call *c, wf_err *err)
{
    wf_value *at[MOST_SPATIAL], *grid = NULL;
    int64_t last = -1;
    uint32_t n;

    WF_TRY(wf_call_need_rank(c, 0, 3, 3, err));
    WF_TRY(wf_call_need_rank(c, 1, 1, 1, err));
    if (c->in[0]->axes[1].size != 2 && c->in[0]->axes[1].size != 3)
        return wf_fail(err, WF_SHAPE, NULL, "theta has %" PRId64 " rows, and must have 2 or 3",
                       c->in[0]->axes[1].size);
    n = (uint32_t)c->in[0]->axes[1].size;
    for (uint32_t i = 0; i < n; i++)
        at[i] = coordinates(c, i, n);
    for (uint32_t r = 0; r < n; r++) {
        wf_value *sum = coefficient(c, r, n, n);

        /* x goes along the last spatial axis. */
        for (uint32_t k = 0; k < n; k++)
            sum = wf_emit_add(c->e, sum, wf_emit_mul(c->e, coefficient(c, r, k, n), at[n - 1 - k]));
        sum = sum ? wf_emit_unsqueeze(c->e, sum, 1, &last) : NULL;
        grid = r ? wf_call_concat(c, grid, sum, -1) : sum;
    }
    c->out[0] = grid;
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"align_corners", WF_ATTR_INT, false}, {0}};

const wf_expansion wf_expansion_affine_grid = WF_EXPANDS(
    WF_DOMAIN_ONNX, "AffineGrid", 20, 2, 2, 1, 1, affine_grid, .note = WF_EXPANDED, .attrs = attrs);
