/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/random/random.cu - RandomNormal, RandomUniform, their Like forms, and
 * Bernoulli.
 *
 * Element i is made from the same numbers of the run's random key as in the cpu's file of that
 * name. Normal ones come in pairs from two uniform ones (Box and Muller 1958): sqrt(-2 ln u) times
 * cos and sin of 2 pi v. */
#include "common/kernels/cuda/elementwise/number.h"
#include "common/kernels/cuda/random/draw.h"

#include <cmath>
#include <cstring>

namespace
{

/* The key of a run, and what the node's own seed makes of it. */
struct source {
    const wf_rng_key *of_run;
    bool is_seeded;
    uint32_t seed; /* the bits of it */

    WF_CODE wf_rng_key key() const
    {
        wf_rng_key key = *of_run;

        if (is_seeded)
            key.stream = wf_fold(key.stream, seed);
        return key;
    }
};

source source_of(const wf_run *run)
{
    const wf_attr *seed = wf_node_attr(run->node, "seed");
    source s = {run->key_there, seed != nullptr, 0};

    if (seed)
        std::memcpy(&s.seed, &seed->f, sizeof s.seed);
    return s;
}

/* In [low, high). The product is rounded before the sum, as the cpu's is: a GPU would join them. */
WF_CODE double between(double low, double high, double u)
{
    return low + __dmul_rn(high - low, u);
}

/* How element i is made from the four numbers of its block, and its place k among them. */

struct uniform {
    double low, high;
    float *out;

    WF_CODE void put(int64_t i, const float u[WF_DRAWN], int k) const
    {
        out[i] = (float)between(low, high, (double)u[k]);
    }
};

struct normal {
    double mean, scale;
    float *out;

    WF_CODE void put(int64_t i, const float u[WF_DRAWN], int k) const
    {
        float radius = std::sqrt(-2.0f * std::log(1.0f - u[k & ~1])),
              angle = 6.28318531f * u[k | 1];

        out[i] =
            (float)(mean + scale * (double)(radius * (k & 1 ? std::sin(angle) : std::cos(angle))));
    }
};

template <class T> struct toss {
    wf_numbers of; /* probabilities */
    T *out;

    WF_CODE void put(int64_t i, const float u[WF_DRAWN], int k) const
    {
        out[i] = (T)((double)u[k] < wf_number_of(of, i));
    }
};

template <class F> __global__ void draw(source from, int64_t n, F f)
{
    const wf_rng_key key = from.key();

    for (int64_t block = wf_first(); block * WF_DRAWN < n; block += wf_all()) {
        float u[WF_DRAWN];

        wf_draw(key, block, u);
        for (int k = 0; k < WF_DRAWN; k++)
            if (block * WF_DRAWN + k < n)
                f.put(block * WF_DRAWN + k, u, k);
    }
}

/* Numbers of 53 bits: number i is of block i, and a thread makes one. */
__global__ void draw_uniform(source from, int64_t n, double low, double high, double *out)
{
    const wf_rng_key key = from.key();

    for (int64_t i = wf_first(); i < n; i += wf_all())
        out[i] = between(low, high, wf_philox_f64(key, (uint64_t)i));
}

__global__ void draw_normal(source from, int64_t n, double mean, double scale, double *out)
{
    const wf_rng_key key = from.key();

    for (int64_t i = wf_first(); i < n; i += wf_all()) {
        uint64_t pair = (uint64_t)i & ~(uint64_t)1;
        double radius = std::sqrt(-2 * std::log(1 - wf_philox_f64(key, pair)));
        double angle = 6.283185307179586 * wf_philox_f64(key, pair + 1);

        out[i] = mean + scale * radius * (i & 1 ? std::sin(angle) : std::cos(angle));
    }
}

template <class F> wf_status draw_all(const wf_run *run, int64_t n, F f, wf_err *err)
{
    return wf_launch(run, run->node->op->name, draw<F>, wf_blocks_of_draws(run, n), err,
                     source_of(run), n, f);
}

wf_status random_normal(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    double mean = (double)wf_node_float(run->node, "mean", 0.0f);
    double scale = (double)wf_node_float(run->node, "scale", 1.0f);
    int64_t n = wf_elems(out[0]);

    (void)in;
    if (out[0]->dtype == WF_F32)
        return draw_all(run, n, normal{mean, scale, static_cast<float *>(out[0]->data)}, err);
    return wf_launch(run, run->node->op->name, draw_normal, wf_blocks(run, n), err, source_of(run),
                     n, mean, scale, static_cast<double *>(out[0]->data));
}

wf_status random_uniform(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    double low = (double)wf_node_float(run->node, "low", 0.0f);
    double high = (double)wf_node_float(run->node, "high", 1.0f);
    int64_t n = wf_elems(out[0]);

    (void)in;
    if (out[0]->dtype == WF_F32)
        return draw_all(run, n, uniform{low, high, static_cast<float *>(out[0]->data)}, err);
    return wf_launch(run, run->node->op->name, draw_uniform, wf_blocks(run, n), err, source_of(run),
                     n, low, high, static_cast<double *>(out[0]->data));
}

template <class T>
wf_status toss_all(const wf_run *run, const wf_tensor *in, wf_tensor *out, wf_err *err)
{
    return draw_all(run, wf_elems(out), toss<T>{wf_numbers_of(in), static_cast<T *>(out->data)},
                    err);
}

wf_status bernoulli(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                    wf_err *err)
{
    switch (out[0]->dtype) {
    case WF_F32:
        return toss_all<float>(run, in[0], out[0], err);
    case WF_F64:
        return toss_all<double>(run, in[0], out[0], err);
    case WF_I32:
        return toss_all<int32_t>(run, in[0], out[0], err);
    case WF_I64:
        return toss_all<int64_t>(run, in[0], out[0], err);
    default:
        return toss_all<uint8_t>(run, in[0], out[0], err);
    }
}

} // namespace

#define ROW(name, fn)                                                                              \
    {                                                                                              \
        .op = name, .typed_by = WF_TYPED_BY_OUTPUT, .dtypes = WF_TYPES_FLOAT, .run = fn            \
    }

WF_CUDA_ROWS(random){
    ROW("RandomNormal", random_normal),
    ROW("RandomNormalLike", random_normal),
    ROW("RandomUniform", random_uniform),
    ROW("RandomUniformLike", random_uniform),
    {.op = "Bernoulli", .dtypes = WF_TYPES_FLOAT, .run = bernoulli},
    {},
};
