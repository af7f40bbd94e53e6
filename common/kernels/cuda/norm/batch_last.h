/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/batch_last.h - batch normalisation of narrow images whose channels are
 * last in memory: rows of channels, of which a thread takes eight of a row at a time, and the same
 * channels of each row that it goes through. For batch_norm.cu.
 *
 * Three kernels make a result. A block adds up a piece of rows in float32; one block a channel
 * joins the pieces in their order, in double, and leaves the factors of a line; then each element
 * is put on its channel's line. The gradient's sums are about the first row, too, and are moved to
 * the mean when it is known, so that dy and x are read twice and not three times. */
#ifndef WF_KERNELS_CUDA_BATCH_LAST_H
#define WF_KERNELS_CUDA_BATCH_LAST_H

#include "common/kernels/cuda/eights.h"
#include "common/kernels/cuda/norm/moments.h"
extern "C" {
#include "common/kernels/shape/norm.h"
}

namespace
{

/* Rows that a thread adds up at least, and puts on lines; those that it has loaded at a time;
 * blocks of a processor. */
enum { LAST_ROWS = 16, LAST_AHEAD = 4, LAST_BLOCKS = 4 };

/* Sums of a channel: x and its square, and behind the gradient dy and dy x, all about the first
 * row.
 */
enum { OF_X, OF_XX, OF_DY, OF_DYX, LAST_SUMS };

/* y = a x + c of a channel; backwards dx = a dy + b x + c. */
struct last_line {
    float a, b, c;
};

struct by_rows {
    bool on;
    bool then_relu; /* forwards */
    wf_dtype type;
    int64_t rows, channels;
    int64_t pieces, piece_rows;
    unsigned eights;       /* of a row */
    unsigned wide, chunks; /* of those a block has `wide`; so many blocks have a row */
    unsigned at_once;      /* rows that the threads of a block take at a time */
    size_t sums, lines;    /* in the workspace: float [pieces, channels, n_sums], [channels] */
};

/* The sums of one channel of eight, of n_sums. */
struct last_sums {
    float of[LAST_SUMS][WF_EIGHT];
};

template <bool GRAD>
WF_CODE void add_row(last_sums &all, const wf_wide_eight &x, const wf_wide_eight &dy,
                     const wf_wide_eight &shift)
{
    for (int j = 0; j < WF_EIGHT; j++) {
        const float d = x.v[j] - shift.v[j];

        all.of[OF_X][j] += d;
        all.of[OF_XX][j] += d * d;
        if (GRAD) {
            all.of[OF_DY][j] += dy.v[j];
            all.of[OF_DYX][j] += dy.v[j] * d;
        }
    }
}

/* Rows `row`, row + step ... below `end` of the eight channels at `column`. */
template <wf_dtype TYPE, bool GRAD>
WF_CODE void add_rows(last_sums &all, const by_rows &r, const wf_eight *x, const wf_eight *dy,
                      int64_t row, int64_t end, unsigned column)
{
    const wf_wide_eight shift = wf_widen_eight<TYPE>(x[column]);
    const int64_t step = r.at_once;

    for (; row + (LAST_AHEAD - 1) * step < end; row += LAST_AHEAD * step) {
        wf_eight of_x[LAST_AHEAD], of_dy[LAST_AHEAD];

        for (int k = 0; k < LAST_AHEAD; k++) {
            of_x[k] = x[(row + k * step) * r.eights + column];
            if (GRAD)
                of_dy[k] = dy[(row + k * step) * r.eights + column];
        }
        for (int k = 0; k < LAST_AHEAD; k++)
            add_row<GRAD>(all, wf_widen_eight<TYPE>(of_x[k]),
                          wf_widen_eight<TYPE>(GRAD ? of_dy[k] : of_x[k]), shift);
    }
    for (; row < end; row += step) {
        const wf_eight of_x = x[row * r.eights + column];

        add_row<GRAD>(all, wf_widen_eight<TYPE>(of_x),
                      wf_widen_eight<TYPE>(GRAD ? dy[row * r.eights + column] : of_x), shift);
    }
}

template <wf_dtype TYPE, bool GRAD>
__global__ void sum_last(by_rows r, const wf_eight *x, const wf_eight *dy, float *sums)
{
    WF_SHARED(float, joined, (int)WF_BLOCK *(int)WF_EIGHT);
    const unsigned n_sums = GRAD ? LAST_SUMS : OF_DY;
    const unsigned own = threadIdx.x % r.wide, line = threadIdx.x / r.wide;

    for (int64_t b = blockIdx.x; b < r.pieces * r.chunks; b += gridDim.x) {
        const int64_t piece = b / r.chunks, from = piece * r.piece_rows;
        const int64_t end = from + r.piece_rows < r.rows ? from + r.piece_rows : r.rows;
        const unsigned first = (unsigned)(b % r.chunks) * r.wide;
        last_sums all = {};

        if (line < r.at_once && first + own < r.eights)
            add_rows<TYPE, GRAD>(all, r, x, dy, from + line, end, first + own);
        for (unsigned k = 0; k < n_sums; k++) {
            for (int j = 0; j < WF_EIGHT; j++)
                joined[threadIdx.x * WF_EIGHT + j] = all.of[k][j];
            __syncthreads();
            for (unsigned c = threadIdx.x; c < r.wide * WF_EIGHT; c += blockDim.x) {
                const int64_t channel = (int64_t)first * WF_EIGHT + c;
                float sum = 0;

                for (unsigned i = 0; i < r.at_once; i++)
                    sum += joined[i * r.wide * WF_EIGHT + c];
                if (channel < r.channels)
                    sums[(piece * r.channels + channel) * n_sums + k] = sum;
            }
            __syncthreads(); /* before the next sums are written there */
        }
    }
}

/* Sums k and k + 1 of a channel in all pieces, to all threads of the block. */
WF_CODE wf_two join_last(const by_rows &r, const float *sums, unsigned n_sums, int64_t channel,
                         unsigned k)
{
    wf_two all = {0, 0};

    for (int64_t i = threadIdx.x; i < r.pieces; i += blockDim.x) {
        const float *of = sums + (i * r.channels + channel) * n_sums + k;

        all.a += (double)of[0];
        all.b += (double)of[1];
    }
    return wf_join_two(all);
}

/* Mean and variance of a channel, to all threads of its block: those that are given, or the
 * batch's.
 */
template <wf_dtype TYPE>
WF_CODE wf_two moments_last(const by_rows &r, const wf_eight *x, const float *sums, unsigned n_sums,
                            int64_t c, wf_narrow_from mean, wf_narrow_from variance)
{
    const wf_wide_eight first = wf_widen_eight<TYPE>(x[c / WF_EIGHT]);

    if (mean)
        return {(double)mean[c], (double)variance[c]};
    return wf_moments_end(join_last(r, sums, n_sums, c, OF_X), (double)first.v[c % WF_EIGHT],
                          r.rows);
}

/* The running value after a batch; with momentum 0 it is the batch's, whatever it was. */
WF_CODE float moved_last(double momentum, wf_narrow_from old, int64_t c, double now)
{
    return (float)(momentum == 0 ? now : (double)old[c] * momentum + now * (1 - momentum));
}

template <wf_dtype TYPE>
__global__ void finish_last(by_rows r, wf_batch_norm v, const wf_eight *x, const float *sums,
                            wf_narrow_from scale, wf_narrow_from bias, wf_narrow_from mean,
                            wf_narrow_from variance, wf_narrow_to means, wf_narrow_to variances,
                            last_line *lines)
{
    for (int64_t c = blockIdx.x; c < r.channels; c += gridDim.x) {
        const wf_narrow_from none = {nullptr, WF_F32};
        const wf_two m = moments_last<TYPE>(r, x, sums, OF_DY, c, v.training ? none : mean,
                                            v.training ? none : variance);
        const double slope = (double)scale[c] / std::sqrt(m.b + v.epsilon);

        if (threadIdx.x != 0)
            continue;
        lines[c] = {(float)slope, 0, (float)((double)bias[c] - m.a * slope)};
        if (v.training && means)
            means[c] = moved_last(v.momentum, mean, c, m.a);
        if (v.training && variances)
            variances[c] = moved_last(v.momentum, variance, c, m.b);
    }
}

template <wf_dtype TYPE>
__global__ void finish_grad_last(by_rows r, wf_batch_norm v, const wf_eight *x, const float *sums,
                                 wf_narrow_from scale, wf_narrow_from mean, wf_narrow_from variance,
                                 wf_narrow_to dscale, wf_narrow_to dbias, last_line *lines)
{
    for (int64_t c = blockIdx.x; c < r.channels; c += gridDim.x) {
        const wf_wide_eight first = wf_widen_eight<TYPE>(x[c / WF_EIGHT]);
        const wf_two m = moments_last<TYPE>(r, x, sums, LAST_SUMS, c, mean, variance);
        const wf_two dy = join_last(r, sums, LAST_SUMS, c, OF_DY);
        const double about_mean = dy.b - (m.a - (double)first.v[c % WF_EIGHT]) * dy.a;
        const double inv = 1 / std::sqrt(m.b + v.epsilon), slope = (double)scale[c] * inv;
        const double n = (double)r.rows,
                     back = v.training ? -slope * inv * inv * about_mean / n : 0;

        if (threadIdx.x != 0)
            continue;
        lines[c] = {(float)slope, (float)back,
                    (float)(v.training ? -slope * dy.a / n - back * m.a : 0)};
        if (dscale)
            dscale[c] = (float)(about_mean * inv);
        if (dbias)
            dbias[c] = (float)dy.a;
    }
}

/* Blocks of a row's chunks lie beside each other; their number is a multiple of the chunks'. */
template <wf_dtype TYPE, bool GRAD>
__global__ void put_last(by_rows r, const wf_eight *dy, const wf_eight *x, const last_line *lines,
                         wf_eight *out)
{
    const unsigned own = threadIdx.x % r.wide, line = threadIdx.x / r.wide;
    const unsigned column = blockIdx.x % r.chunks * r.wide + own;
    const int64_t step = (int64_t)(gridDim.x / r.chunks) * r.at_once;
    last_line l[WF_EIGHT];

    if (line >= r.at_once || column >= r.eights)
        return;
    for (int j = 0; j < WF_EIGHT; j++)
        l[j] = lines[column * WF_EIGHT + j];
    for (int64_t row = (int64_t)(blockIdx.x / r.chunks) * r.at_once + line; row < r.rows;
         row += step) {
        const int64_t at = row * r.eights + column;
        const wf_eight of_x = x[at], of_dy = GRAD ? dy[at] : of_x;
        const wf_wide_eight wx = wf_widen_eight<TYPE>(of_x), wdy = wf_widen_eight<TYPE>(of_dy);
        wf_wide_eight y;

        for (int j = 0; j < WF_EIGHT; j++)
            y.v[j] =
                GRAD ? l[j].a * wdy.v[j] + l[j].b * wx.v[j] + l[j].c : l[j].a * wx.v[j] + l[j].c;
        for (int j = 0; r.then_relu && j < WF_EIGHT; j++)
            y.v[j] = y.v[j] < 0 ? 0 : y.v[j]; /* a NaN stays one */
        out[at] = wf_narrow_eight<TYPE>(y);
    }
}

/* How the threads share the rows, and room for their sums. */
wf_status plan_rows(wf_prep *prep, const wf_batch_norm &v, wf_dtype type, unsigned n_sums,
                    by_rows *r, wf_err *err)
{
    const int64_t processors = wf_cuda_gpu_of(prep->device)->has.processors;

    r->on = true;
    r->then_relu = wf_node_int(prep->node, WF_THEN_RELU, 0) != 0;
    r->type = type;
    r->rows = v.batch * v.inner;
    r->channels = v.channels;
    r->eights = (unsigned)(v.channels / WF_EIGHT);
    r->wide = WF_MIN(r->eights, (unsigned)WF_BLOCK);
    r->chunks = (r->eights + r->wide - 1) / r->wide;
    r->at_once = WF_BLOCK / r->wide;
    r->pieces = WF_MIN(wf_ceil_div(r->rows, (int64_t)r->at_once * LAST_ROWS),
                       wf_ceil_div(processors * LAST_BLOCKS, (int64_t)r->chunks));
    r->piece_rows = wf_ceil_div(r->rows, WF_MAX(r->pieces, (int64_t)1));
    WF_TRY(wf_take_room(prep, r->pieces * r->channels, n_sums * sizeof(float), &r->sums, err));
    return wf_take_room(prep, r->channels, sizeof(last_line), &r->lines, err);
}

/* Blocks that put elements on lines. */
unsigned blocks_for(const wf_run *run, const by_rows &r)
{
    const int64_t processors = wf_cuda_gpu_of(run->device)->has.processors;
    const int64_t all = wf_ceil_div(r.rows, (int64_t)r.at_once * LAST_ROWS / 2);

    return (unsigned)(WF_MIN(all, wf_ceil_div(processors * 2 * LAST_BLOCKS, (int64_t)r.chunks)) *
                      r.chunks);
}

template <wf_dtype TYPE>
wf_status forward_of_type(const wf_run *run, const by_rows &r, const wf_batch_norm &v,
                          const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const wf_eight *x = wf_eights_in(in[0]), *none = nullptr;
    float *sums = wf_room<float>(run, r.sums);
    last_line *lines = wf_room<last_line>(run, r.lines);

    if (v.training)
        WF_TRY(wf_launch_meeting(run, "sums", sum_last<TYPE, false>,
                                 (unsigned)(r.pieces * r.chunks), WF_BLOCK, err, r, x, none, sums));
    WF_TRY(wf_launch_meeting(run, "lines", finish_last<TYPE>, (unsigned)r.channels,
                             wf_threads(r.pieces), err, r, v, x, sums, wf_read<wf_narrow>(in[1]),
                             wf_read<wf_narrow>(in[2]), wf_read<wf_narrow>(in[3]),
                             wf_read<wf_narrow>(in[4]), wf_write<wf_narrow>(out[1]),
                             wf_write<wf_narrow>(out[2]), lines));
    return out[0] ? wf_launch(run, run->node->op->name, put_last<TYPE, false>, blocks_for(run, r),
                              err, r, none, x, lines, wf_eights_out(out[0]))
                  : WF_OK;
}

template <wf_dtype TYPE>
wf_status backward_of_type(const wf_run *run, const by_rows &r, const wf_batch_norm &v,
                           const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const wf_eight *dy = wf_eights_in(in[0]), *x = wf_eights_in(in[1]);
    float *sums = wf_room<float>(run, r.sums);
    last_line *lines = wf_room<last_line>(run, r.lines);

    WF_TRY(wf_launch_meeting(run, "sums", sum_last<TYPE, true>, (unsigned)(r.pieces * r.chunks),
                             WF_BLOCK, err, r, x, dy, sums));
    WF_TRY(wf_launch_meeting(run, "lines", finish_grad_last<TYPE>, (unsigned)r.channels,
                             wf_threads(r.pieces), err, r, v, x, sums, wf_read<wf_narrow>(in[2]),
                             wf_read<wf_narrow>(in[3]), wf_read<wf_narrow>(in[4]),
                             wf_write<wf_narrow>(out[1]), wf_write<wf_narrow>(out[2]), lines));
    return out[0] ? wf_launch(run, run->node->op->name, put_last<TYPE, true>, blocks_for(run, r),
                              err, r, dy, x, lines, wf_eights_out(out[0]))
                  : WF_OK;
}

} // namespace

#endif
