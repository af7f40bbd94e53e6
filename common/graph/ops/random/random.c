/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/random/random.c - Bernoulli, RandomNormal, RandomNormalLike, RandomUniform and
 * RandomUniformLike. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <inttypes.h>

/* RandomNormal and RandomUniform, of attr shape, and their Like forms, of the shape of input 0.
 * attr dtype is the result's; without it float32, or the input's. attr seed goes into the key of
 * the run (docs/reproducibility.md, "Random numbers"): one seed gives one stream for each job, node
 * and batch. */

static wf_status dtype_of(const wf_node *n, wf_dtype usual, wf_dtype *out, wf_err *err)
{
    int64_t dtype = wf_node_int(n, "dtype", usual);

    *out = usual;
    if (dtype != WF_F32 && dtype != WF_F64)
        return wf_fail(err, WF_UNSUPPORTED, "put a Cast after it",
                       "its result has the ONNX type %" PRId64
                       ", and weft draws float32 (1) and float64 (11)",
                       dtype);
    *out = (wf_dtype)dtype;
    return WF_OK;
}

static wf_status infer_random(wf_graph *g, wf_node *n, wf_err *err)
{
    size_t rank;
    const int64_t *shape = wf_node_ints(n, "shape", &rank);
    wf_axis axes[WF_MAX_RANK];
    wf_dtype dtype;

    (void)g;
    WF_TRY(dtype_of(n, WF_F32, &dtype, err));
    WF_TRY(wf_need_rank((int64_t)rank, err));
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return wf_fail(err, WF_SHAPE, "sizes are 0 or more", "the shape has a negative size");
        axes[i] = wf_axis_of(shape[i]);
    }
    wf_out_axes(n, 0, dtype, (uint32_t)rank, axes);
    return WF_OK;
}

static wf_status infer_like(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_dtype dtype = n->in[0]->dtype;

    (void)g;
    if (dtype != WF_NONE || wf_node_attr(n, "dtype"))
        WF_TRY(dtype_of(n, dtype, &dtype, err));
    wf_out_like(n, 0, dtype, n->in[0]);
    return WF_OK;
}

/* Attributes, of which a and b are those of the distribution. */
#define ATTRS(a, b)                                                                                \
    {"dtype", WF_ATTR_INT, false}, {a, WF_ATTR_FLOAT, false}, {b, WF_ATTR_FLOAT, false},           \
    {                                                                                              \
        "seed", WF_ATTR_FLOAT, false                                                               \
    }
static const wf_attr_row normal[] = {ATTRS("mean", "scale"), {"shape", WF_ATTR_INTS, true}, {0}};
static const wf_attr_row normal_like[] = {ATTRS("mean", "scale"), {0}};
static const wf_attr_row uniform[] = {ATTRS("high", "low"), {"shape", WF_ATTR_INTS, true}, {0}};
static const wf_attr_row uniform_like[] = {ATTRS("high", "low"), {0}};

#define ROW(id, name_, n_in, infer_, attrs_)                                                       \
    const wf_op wf_op_##id =                                                                       \
        WF_OPERATION(WF_DOMAIN_ONNX, name_, 1, n_in, n_in, 1, 1, WF_OP_RANDOM, infer_,             \
                     .no_grad_in = 1u << 0, .attrs = attrs_);

ROW(random_normal, "RandomNormal", 0, infer_random, normal)
ROW(random_normal_like, "RandomNormalLike", 1, infer_like, normal_like)
ROW(random_uniform, "RandomUniform", 0, infer_random, uniform)
ROW(random_uniform_like, "RandomUniformLike", 1, infer_like, uniform_like)

/* Bernoulli: 1 with the probability that the input gives, else 0, of attr dtype or the input's.
 * attr seed goes into the key of the run, as in random.c. */

static bool is_drawn(int64_t dtype)
{
    return dtype == WF_F32 || dtype == WF_F64 || dtype == WF_I32 || dtype == WF_I64 ||
           dtype == WF_U8 || dtype == WF_BOOL;
}

static wf_status infer_bernoulli(wf_graph *g, wf_node *n, wf_err *err)
{
    int64_t dtype = wf_node_int(n, "dtype", n->in[0]->dtype);

    (void)g;
    WF_TRY(wf_need_float(n, 0, "the probability", err));
    if (dtype != WF_NONE && !is_drawn(dtype))
        return wf_fail(err, WF_UNSUPPORTED, "put a Cast after it",
                       "its result has the ONNX type %" PRId64
                       ", and weft draws float32, float64, int32, int64, uint8 and bool",
                       dtype);
    wf_out_like(n, 0, (wf_dtype)dtype, n->in[0]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"dtype", WF_ATTR_INT, false}, {"seed", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_bernoulli =
    WF_OPERATION(WF_DOMAIN_ONNX, "Bernoulli", 15, 1, 1, 1, 1, WF_OP_RANDOM, infer_bernoulli,
                 .no_grad_in = 1u << 0, .attrs = attrs);
