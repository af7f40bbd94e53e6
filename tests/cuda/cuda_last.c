/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_last.c - each operation that takes images with their channels last, on the host's
 * GPU: with the cpu's results, with cuDNN and without, and with no more Transposes than it needs.
 *
 * An operation stands between convolutions by 1, whose results have their channels last; operands
 * are small whole numbers, which narrow types hold. */
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/exec/plan.h"
#include "common/graph/channels_last.h"
#include "common/graph/narrow.h"
#include "common/log/log.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

enum { N = 2, C = 16, H = 5, W = 7, SEED = 11, MOST_PORTS = 8, MOST_ELEMS = 1 << 13, PADDED = 4 };

static wf_err err;

typedef struct builder {
    wf_graph *g;
    wf_emit e;
    wf_dtype type;
} builder;

/* A narrow node; bit k of `narrow`: output k is. */
static void add(builder *b, const char *op, uint32_t n_in, wf_value *const in[], uint32_t n_attrs,
                const wf_attr attrs[], uint32_t narrow, uint32_t n_out, wf_value *out[])
{
    wf_attr all[8];

    assert_true(n_attrs + 2 <= WF_COUNT(all));
    if (n_attrs)
        memcpy(all, attrs, n_attrs * sizeof *attrs);
    all[n_attrs] = wf_attr_string(WF_NARROW, wf_dtype_name(b->type));
    all[n_attrs + 1] = wf_attr_int(WF_NARROW_OUT, narrow);
    wf_emit_node(&b->e, op, n_in, in, n_attrs + 2, all, n_out, out);
}

static wf_value *one(builder *b, const char *op, uint32_t n_in, wf_value *const in[],
                     uint32_t n_attrs, const wf_attr attrs[])
{
    wf_value *out = NULL;

    add(b, op, n_in, in, n_attrs, attrs, 1, 1, &out);
    return out;
}

/* x by weights of 1. */
static wf_value *convolved(builder *b, wf_value *x, bool narrow)
{
    const int64_t dims[] = {C, C, 1, 1};
    wf_tensor *t = NULL;
    wf_value *w, *out = NULL;

    assert_ok(wf_tensor_new(WF_F32, 4, dims, &t, &err), err);
    memset(t->data, 0, wf_tensor_bytes(t));
    for (int64_t i = 0; i < C; i++)
        wf_f32_mut(t)[i * C + i] = 1;
    assert_ok(wf_graph_add_constant(b->g, "one", &t, &w, &err), err);
    add(b, "Conv", 2, (wf_value *[]){x, w}, 0, NULL, narrow, 1, &out);
    return out;
}

static wf_value *image(builder *b, const char *name, int64_t h, int64_t w)
{
    return convolved(b, input(b->g, name, DIMS(N, C, h, w)), true);
}

/* ---- what is put between ---- */

static wf_value *relu(builder *b)
{
    return one(b, "Relu", 1, (wf_value *[]){image(b, "x", H, W)}, 0, NULL);
}

static wf_value *sum(builder *b)
{
    return one(b, "Add", 2, (wf_value *[]){image(b, "x", H, W), image(b, "y", H, W)}, 0, NULL);
}

/* No kernel of Softmax takes the order, nor does the sum of images that differ in it. */
static wf_value *border(builder *b)
{
    wf_value *x = image(b, "x", H, W);
    const wf_attr axis = wf_attr_int("axis", 1);
    wf_value *y = one(b, "Softmax", 1, (wf_value *[]){x}, 1, &axis);

    return one(b, "Add", 2, (wf_value *[]){y, x}, 0, NULL);
}

/* Operands that are broadcast. */
static wf_value *per_channel(builder *b)
{
    return one(b, "Add", 2, (wf_value *[]){image(b, "x", H, W), input(b->g, "b", DIMS(C, 1, 1))}, 0,
               NULL);
}

/* The gradient of a bias. */
static wf_value *sums(builder *b)
{
    const int64_t axes[] = {0, 2, 3};
    const wf_attr keep = wf_attr_int("keepdims", 0);
    wf_value *in[] = {image(b, "x", H, W), wf_emit_ints(&b->e, 3, axes)}, *out = NULL;

    add(b, "ReduceSum", 2, in, 1, &keep, 0, 1, &out);
    assert_ok(wf_graph_add_output(b->g, out, &err), err);
    return NULL;
}

static wf_value *norm(builder *b, const char *op, bool trains)
{
    const wf_attr attrs[] = {wf_attr_float("epsilon", 0.01f), wf_attr_int("training_mode", trains)};
    wf_value *in[] = {image(b, "x", H, W), input(b->g, "scale", DIMS(C)),
                      input(b->g, "bias", DIMS(C)), input(b->g, "mean", DIMS(C)),
                      input(b->g, "variance", DIMS(C))};
    wf_value *out[3] = {NULL};

    add(b, op, 5, in, 2, attrs, 1, trains ? 3 : 1, out);
    for (int i = 1; trains && i < 3; i++)
        assert_ok(wf_graph_add_output(b->g, out[i], &err), err);
    return out[0];
}

static wf_value *norm_trains(builder *b)
{
    return norm(b, "BatchNormalization", true);
}

/* Relu becomes a part of it, and not where something else reads what it makes. */
static wf_value *norm_and_relu(builder *b)
{
    wf_value *x = norm(b, "BatchNormalization", true);

    return one(b, "Relu", 1, &x, 0, NULL);
}

static wf_value *norm_beside_relu(builder *b)
{
    wf_value *in[2] = {norm(b, "BatchNormalization", false)};

    in[1] = one(b, "Relu", 1, in, 0, NULL);
    return one(b, "Add", 2, in, 0, NULL);
}

static wf_value *norm_predicts(builder *b)
{
    return norm(b, "BatchNormalization", false);
}

static wf_value *norm_grad(builder *b, bool trains)
{
    const wf_attr attrs[] = {wf_attr_float("epsilon", 0.01f), wf_attr_int("training_mode", trains)};
    wf_value *in[] = {image(b, "dy", H, W), image(b, "x", H, W), input(b->g, "scale", DIMS(C)),
                      NULL, NULL};
    wf_value *out[3] = {NULL};

    if (!trains) {
        in[3] = input(b->g, "mean", DIMS(C));
        in[4] = input(b->g, "variance", DIMS(C));
    }
    add(b, "BatchNormalizationGrad", trains ? 3 : 5, in, 2, attrs, 1, 3, out);
    for (int i = 1; i < 3; i++)
        assert_ok(wf_graph_add_output(b->g, out[i], &err), err);
    return out[0];
}

static wf_value *norm_grad_trains(builder *b)
{
    return norm_grad(b, true);
}

static wf_value *norm_grad_predicts(builder *b)
{
    return norm_grad(b, false);
}

static const int64_t kernel[] = {3, 2}, strides[] = {2, 1}, pads[] = {1, 0, 1, 1};
enum { OUT_H = (H + 2 - 3) / 2 + 1, OUT_W = W + 1 - 2 + 1 };

static void window(wf_attr attrs[3])
{
    attrs[0] = wf_attr_ints("kernel_shape", 2, kernel);
    attrs[1] = wf_attr_ints("strides", 2, strides);
    attrs[2] = wf_attr_ints("pads", 4, pads);
}

static wf_value *pool(builder *b, const char *op)
{
    wf_attr attrs[3];

    window(attrs);
    return one(b, op, 1, (wf_value *[]){image(b, "x", H, W)}, 3, attrs);
}

static wf_value *max_pool(builder *b)
{
    return pool(b, "MaxPool");
}

static wf_value *average_pool(builder *b)
{
    return pool(b, "AveragePool");
}

static wf_value *max_pool_grad(builder *b)
{
    wf_value *x = image(b, "x", H, W), *y;
    wf_attr attrs[3];

    window(attrs);
    y = one(b, "MaxPool", 1, (wf_value *[]){x}, 3, attrs);
    return one(b, "MaxPoolGrad", 3, (wf_value *[]){image(b, "dy", OUT_H, OUT_W), x, y}, 3, attrs);
}

static wf_value *average_pool_grad(builder *b)
{
    wf_attr attrs[PADDED];

    window(attrs);
    attrs[3] = wf_attr_int("count_include_pad", 1);
    return one(b, "AveragePoolGrad", 2,
               (wf_value *[]){image(b, "dy", OUT_H, OUT_W), image(b, "x", H, W)}, PADDED, attrs);
}

static wf_value *mean(builder *b)
{
    return one(b, "GlobalAveragePool", 1, (wf_value *[]){image(b, "x", H, W)}, 0, NULL);
}

/* What is behind a mean, or gives its gradient, may be float32. */
static wf_value *wide_mean(builder *b)
{
    wf_value *out = NULL;

    add(b, "GlobalAveragePool", 1, (wf_value *[]){image(b, "x", H, W)}, 0, NULL, 0, 1, &out);
    return out;
}

static wf_value *mean_grad(builder *b)
{
    return one(b, "AveragePoolGrad", 2, (wf_value *[]){image(b, "dy", 1, 1), image(b, "x", H, W)},
               0, NULL);
}

static wf_value *wide_mean_grad(builder *b)
{
    return one(b, "AveragePoolGrad", 2,
               (wf_value *[]){input(b->g, "dy", DIMS(N, C, 1, 1)), image(b, "x", H, W)}, 0, NULL);
}

static wf_value *conv(builder *b)
{
    wf_value *in[] = {image(b, "x", H, W), input(b->g, "w", DIMS(C, C, 3, 2)),
                      input(b->g, "bias", DIMS(C))};
    wf_attr attrs[3];

    window(attrs);
    return one(b, "Conv", 3, in, 3, attrs);
}

/* Of pictures in float32, whose channels are second. */
static wf_value *conv_of_pictures(builder *b)
{
    wf_value *in[] = {input(b->g, "x", DIMS(N, 3, H, W)), input(b->g, "w", DIMS(C, 3, 3, 2))};
    wf_attr attrs[3];

    window(attrs);
    return one(b, "Conv", 2, in, 3, attrs);
}

static wf_value *conv_data(builder *b)
{
    wf_value *in[] = {image(b, "dy", OUT_H, OUT_W), input(b->g, "w", DIMS(C, C, 3, 2)),
                      image(b, "x", H, W)};
    wf_attr attrs[3];

    window(attrs);
    return one(b, "ConvDataGrad", 3, in, 3, attrs);
}

/* Its result are weights. */
static wf_value *conv_weights(builder *b)
{
    wf_value *in[] = {image(b, "dy", OUT_H, OUT_W), image(b, "x", H, W),
                      input(b->g, "w", DIMS(C, C, 3, 2))};
    wf_value *out = NULL;
    wf_attr attrs[3];

    window(attrs);
    add(b, "ConvWeightGrad", 3, in, 3, attrs, 0, 1, &out);
    assert_ok(wf_graph_add_output(b->g, out, &err), err);
    return NULL;
}

static const struct {
    const char *op; /* that has to be marked, or to have a result of the order */
    wf_value *(*make)(builder *b);
    size_t transposes;
} cases[] = {
    {"Relu", relu, 0},
    {"Add", sum, 0},
    {"Softmax", border, 2},
    {"Add", per_channel, 1},
    {"ReduceSum", sums, 0},
    {"BatchNormalization", norm_trains, 0},
    {"BatchNormalization", norm_predicts, 0},
    {"BatchNormalization", norm_and_relu, 0},
    {"Relu", norm_beside_relu, 0},
    {"BatchNormalizationGrad", norm_grad_trains, 0},
    {"BatchNormalizationGrad", norm_grad_predicts, 0},
    {"MaxPool", max_pool, 0},
    {"MaxPoolGrad", max_pool_grad, 0},
    {"AveragePool", average_pool, 0},
    {"AveragePoolGrad", average_pool_grad, 0},
    {"GlobalAveragePool", mean, 0},
    {"GlobalAveragePool", wide_mean, 0},
    {"AveragePoolGrad", mean_grad, 0},
    {"AveragePoolGrad", wide_mean_grad, 0},
    {"Conv", conv, 0},
    {"Conv", conv_of_pictures, 0},
    {"ConvDataGrad", conv_data, 0},
    {"ConvWeightGrad", conv_weights, 0},
};

/* ---- running ---- */

/* -1, 0 or 1; what divides is more than 0. */
static float number(const char *name, uint64_t i)
{
    const wf_rng_key key = {SEED, (uint64_t)name[0]};
    const float x = (float)(int)(3 * wf_rng_f32(key, i)) - 1;

    return strcmp(name, "variance") == 0 ? 2 + x : x;
}

/* Results one behind the other; their number. */
static size_t compute(const wf_graph *g, const wf_device *device, wf_compute compute, float out[],
                      wf_plan **plan)
{
    static float in[MOST_PORTS][MOST_ELEMS];
    const wf_step_key key = {0};
    size_t n = 0;

    assert_ok(
        wf_plan_new(g,
                    &(wf_plan_options){.device = device, .compute = compute, .deterministic = true},
                    plan, &err),
        err);
    for (uint32_t i = 0; i < wf_plan_n_inputs(*plan); i++) {
        const wf_port *port = wf_plan_input(*plan, i);

        assert_true(i < MOST_PORTS && port->elems <= MOST_ELEMS);
        for (int64_t k = 0; k < port->elems; k++)
            in[i][k] = number(port->name, (uint64_t)k);
        wf_plan_bind_input(*plan, i, in[i]);
    }
    assert_ok(wf_plan_run(*plan, &key, NULL, NULL, &err), err);
    for (uint32_t i = 0; i < wf_plan_n_outputs(*plan); i++) {
        const wf_port *port = wf_plan_output(*plan, i);

        assert_true(port->dtype == WF_F32 && n + (size_t)port->elems <= MOST_ELEMS);
        memcpy(out + n, wf_plan_output_data(*plan, i), port->bytes);
        n += (size_t)port->elems;
    }
    return n;
}

static bool is_last(const wf_value *v)
{
    return v->rank == 4 && v->axes[3].size == C && v->axes[1].size != C;
}

/* Nodes of an operation. */
static size_t count(const wf_plan *p, const char *op)
{
    size_t n = 0;

    for (size_t i = 0; i < p->g->n_nodes; i++)
        n += strcmp(p->g->nodes[i]->op->name, op) == 0;
    return n;
}

static void check_plan(const wf_plan *p, const char *op, size_t transposes)
{
    size_t found = 0;

    for (size_t i = 0; i < p->g->n_nodes; i++) {
        const wf_node *node = p->g->nodes[i];

        if (strcmp(node->op->name, op) == 0)
            found += transposes > 0 || wf_has_channels_last(node) || is_last(node->out[0]) ||
                     is_last(node->in[0]);
    }
    assert_true(found > 0);
    assert_int_equal(count(p, "Transpose"), transposes);
}

static void compare(size_t i, wf_compute compute_in, double rounding)
{
    static float want[MOST_ELEMS], got[MOST_ELEMS];
    builder b = {.g = new_graph(), .type = wf_compute_kept(compute_in)};
    wf_value *made;
    wf_plan *p = NULL;
    size_t n;

    b.e = wf_emit_begin(b.g, "n", &err);
    made = cases[i].make(&b);
    if (made)
        made = convolved(&b, made, false);
    assert_ok(wf_emit_end(&b.e), err);
    if (made)
        assert_ok(wf_graph_add_output(b.g, made, &err), err);
    n = compute(b.g, &wf_cpu, WF_COMPUTE_F32, want, &p);
    wf_plan_free(&p);
    assert_int_equal(compute(b.g, cuda_host_device(), compute_in, got, &p), n);
    check_plan(p, cases[i].op, cases[i].transposes);
    assert_int_equal(count(p, "Relu"), cases[i].make == relu || cases[i].make == norm_beside_relu);
    for (size_t k = 0; k < n; k++)
        if (!(fabs((double)got[k] - (double)want[k]) <= rounding * (1 + fabs((double)want[k]))))
            fail_msg("case %d, %s: element %d is %g, not %g", (int)i, cases[i].op, (int)k,
                     (double)got[k], (double)want[k]);
    wf_plan_free(&p);
    wf_graph_free(&b.g);
}

static void each_computes_what_the_cpu_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++)
        for (int without = 0; without < 2; without++) {
            cuda_host_dnn(without ? CUDA_HOST_DNN_REFUSES : CUDA_HOST_DNN_PRESENT);
            cuda_host_seed(i + 1);
            compare(i, WF_COMPUTE_BF16, 0x1p-8);
            compare(i, WF_COMPUTE_F16, 0x1p-11);
        }
    cuda_host_dnn(CUDA_HOST_DNN_PRESENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_computes_what_the_cpu_does),
    };

    wf_log_init("", WF_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
