/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/train/update.cu - updates of weights by the formulas of common/optim, element
 * by element as the host's. The build keeps nvcc from joining products and sums in this file, so
 * that both have the same bits.
 */
#include "common/kernels/cuda/train/pieces.h"

extern "C" {
#include "common/kernels/cuda/rows.h"
}

#include "common/optim/formula/adadelta.h"
#include "common/optim/formula/adagrad.h"
#include "common/optim/formula/adam.h"
#include "common/optim/formula/adamax.h"
#include "common/optim/formula/ftrl.h"
#include "common/optim/formula/lamb.h"
#include "common/optim/formula/lion.h"
#include "common/optim/formula/momentum.h"
#include "common/optim/formula/nadam.h"
#include "common/optim/formula/rmsprop.h"
#include "common/optim/formula/sgd.h"

#include <string.h>

namespace
{

enum { MOST = 48 };

typedef wf_pieces<wf_update_segment, MOST> group;

/* ---- rules: each has its scalars, and updates element i ---- */

struct adadelta {
    wf_adadelta s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_adadelta_element(s, w, g, slots[0] + i, slots[1] + i);
    }
};

struct adagrad {
    wf_adagrad s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_adagrad_element(s, w, g, slots[0] + i);
    }
};

template <bool amsgrad> struct adam {
    wf_adam s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_adam_element(s, amsgrad, w, g, slots[0] + i, slots[1] + i,
                        amsgrad ? slots[2] + i : nullptr);
    }
};

struct adamax {
    wf_adamax s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_adamax_element(s, w, g, slots[0] + i, slots[1] + i);
    }
};

struct ftrl {
    wf_ftrl s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_ftrl_element(s, w, g, slots[0] + i, slots[1] + i);
    }
};

struct lion {
    wf_lion s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_lion_element(s, w, g, slots[0] + i);
    }
};

struct momentum {
    wf_momentum s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_momentum_element(s, w, g, slots[0] + i);
    }
};

struct nesterov {
    wf_momentum s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_nesterov_element(s, w, g, slots[0] + i);
    }
};

struct nadam {
    wf_nadam s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_nadam_element(s, w, g, slots[0] + i, slots[1] + i);
    }
};

template <bool moving, bool centered> struct rmsprop {
    wf_rmsprop s;
    WF_CODE void operator()(float *w, float g, float *const *slots, int64_t i) const
    {
        wf_rmsprop_element(s, moving, centered, w, g, slots[0] + i, moving ? slots[1] + i : nullptr,
                           centered ? slots[1 + moving] + i : nullptr);
    }
};

struct sgd {
    wf_momentum s;
    WF_CODE void operator()(float *w, float g, float *const *, int64_t) const
    {
        wf_sgd_element(s, w, g);
    }
};

/* ---- a launch ---- */

template <class F> __global__ void update_pieces(const __grid_constant__ group all, F f)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_update_segment &v = all.of[k];
        const wf_elements s = wf_elements_of(all, k, piece);

        for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x)
            f(v.w + i, v.g[i], v.slots, i);
    }
}

/* One block to a variable, since its norms are needed between the two passes. */
__global__ void update_whole(const __grid_constant__ group all, wf_lamb s, double rate)
{
    const wf_update_segment &v = all.of[blockIdx.x];
    const int64_t n = static_cast<int64_t>(v.n);
    double weights = 0, steps = 0;

    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const double step = wf_lamb_element(s, v.w + i, v.g[i], v.slots[0] + i, v.slots[1] + i);
        const double at = v.w[i];

        weights += at * at;
        steps += step * step;
    }
    weights = sqrt(wf_join_block(weights, 0.0, wf_plus{}));
    steps = sqrt(wf_join_block(steps, 0.0, wf_plus{}));

    const float far = wf_lamb_rate(rate, weights, steps);

    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        v.w[i] -= far * wf_lamb_step(s, v.slots[0][i], v.slots[1][i]);
}

/* What a call is given. */
struct call {
    wf_run run;
    size_t n;
    const wf_update_segment *segments;
    wf_err *err;
};

template <class F> wf_status each(const call &c, F f)
{
    for (size_t at = 0; at < c.n;) {
        const group all = wf_next_pieces<wf_update_segment, MOST>(c.n, c.segments, &at);

        if (all.n > 0)
            WF_TRY(wf_launch(&c.run, "an update", update_pieces<F>,
                             wf_blocks(&c.run, all.pieces * WF_BLOCK), c.err, all, f));
    }
    return WF_OK;
}

wf_status each_whole(const call &c, wf_lamb s, double rate)
{
    for (size_t at = 0; at < c.n;) {
        const group all = wf_next_pieces<wf_update_segment, MOST>(c.n, c.segments, &at);

        if (all.n > 0)
            WF_TRY(wf_launch_meeting(&c.run, "an update", update_whole,
                                     static_cast<unsigned>(all.n), WF_BLOCK, c.err, all, s, rate));
    }
    return WF_OK;
}

wf_status of_sgd(const call &c, const double *o, wf_momentum s)
{
    if (o[WF_SGD_MOMENTUM] == 0)
        return each(c, sgd{s});
    return o[WF_SGD_NESTEROV] == 0 ? each(c, momentum{s}) : each(c, nesterov{s});
}

wf_status of_rmsprop(const call &c, const double *o, wf_rmsprop s)
{
    const bool centered = o[WF_RMSPROP_CENTERED] != 0;

    if (o[WF_RMSPROP_MOMENTUM] != 0)
        return centered ? each(c, rmsprop<true, true>{s}) : each(c, rmsprop<true, false>{s});
    return centered ? each(c, rmsprop<false, true>{s}) : each(c, rmsprop<false, false>{s});
}

wf_status of_adam(const call &c, const double *o, wf_adam s)
{
    return o[WF_ADAM_AMSGRAD] != 0 ? each(c, adam<true>{s}) : each(c, adam<false>{s});
}

} // namespace

wf_status wf_cuda_update(wf_stream *stream, const wf_rule *rule, const double options[],
                         uint64_t updates, size_t n, const wf_update_segment segments[],
                         wf_err *err)
{
    const call c = {wf_run_on(stream), n, segments, err};
    const auto is = [&](const char *name) { return strcmp(rule->name, name) == 0; };

    if (is("adadelta"))
        return each(c, adadelta{wf_adadelta_scalars(options, updates)});
    if (is("adagrad"))
        return each(c, adagrad{wf_adagrad_scalars(options, updates)});
    if (is("adam") || is("adamw") || is("amsgrad"))
        return of_adam(c, options, wf_adam_scalars(options, updates));
    if (is("adamax"))
        return each(c, adamax{wf_adamax_scalars(options, updates)});
    if (is("ftrl")) /* at a rate of 0 nothing changes */
        return options[WF_FTRL_RATE] <= 0 ? WF_OK
                                          : each(c, ftrl{wf_ftrl_scalars(options, updates)});
    if (is("lamb"))
        return each_whole(c, wf_lamb_scalars(options, updates), options[WF_LAMB_RATE]);
    if (is("lion"))
        return each(c, lion{wf_lion_scalars(options, updates)});
    if (is("momentum"))
        return each(c, momentum{wf_momentum_scalars(options, updates)});
    if (is("nadam"))
        return each(c, nadam{wf_nadam_scalars(options, updates)});
    if (is("nesterov"))
        return each(c, nesterov{wf_momentum_scalars(options, updates)});
    if (is("rmsprop"))
        return of_rmsprop(c, options, wf_rmsprop_scalars(options, updates));
    if (is("sgd"))
        return of_sgd(c, options, wf_sgd_scalars(options, updates));
    return wf_fail(err, WF_UNSUPPORTED, "train on the cpu", "%s: optimizer %s is not there yet",
                   stream->device->name, rule->name);
}
