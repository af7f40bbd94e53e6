/* SPDX-License-Identifier: Apache-2.0 */
/* bench/convolutions.c - every way to compute a convolution, on the shapes of real networks: which
 * one the kernel takes, and what the fastest would have been.
 *
 *     bench_convolutions [THREADS]
 *
 * A row is a shape and a pass; GFLOP/s of each way that computes it (0: does not), the best of some
 * runs. The last line is what the choice costs beside the fastest of each row, over all rows.
 */
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/graph/emit.h"
#include "common/kernels/cpu/nn/conv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    const char *of;
    int64_t batch, c, m, size, kernel, stride, pad, groups;
} shape;

static const shape shapes[] = {
    {"LeNet", 128, 1, 32, 28, 5, 1, 2, 1},
    {"LeNet", 128, 32, 64, 14, 5, 1, 2, 1},
    {"LeNet-5", 128, 1, 6, 28, 5, 1, 2, 1},
    {"LeNet-5", 128, 6, 16, 14, 5, 1, 0, 1},
    {"ResNet-18", 64, 3, 64, 32, 3, 1, 1, 1},
    {"ResNet-18", 64, 64, 64, 32, 3, 1, 1, 1},
    {"ResNet-18", 64, 64, 128, 32, 3, 2, 1, 1},
    {"ResNet-18", 64, 64, 128, 32, 1, 2, 0, 1},
    {"ResNet-18", 64, 128, 128, 16, 3, 1, 1, 1},
    {"ResNet-18", 64, 128, 256, 16, 3, 2, 1, 1},
    {"ResNet-18", 64, 256, 256, 8, 3, 1, 1, 1},
    {"ResNet-18", 64, 256, 512, 8, 3, 2, 1, 1},
    {"ResNet-18", 64, 512, 512, 4, 3, 1, 1, 1},
    {"ResNet-50", 16, 256, 64, 56, 1, 1, 0, 1},
    {"ResNet-50", 16, 64, 256, 56, 1, 1, 0, 1},
    {"ResNet-50", 16, 1024, 256, 14, 1, 1, 0, 1},
    {"MobileNetV2", 32, 3, 32, 64, 3, 2, 1, 1},
    {"MobileNetV2", 32, 96, 24, 16, 1, 1, 0, 1},
    {"MobileNetV2", 32, 144, 144, 16, 3, 1, 1, 144},
    {"VGG", 32, 128, 256, 8, 3, 1, 1, 1},
    {"U-Net", 8, 32, 32, 64, 3, 1, 1, 1},
    {"U-Net", 8, 64, 64, 32, 3, 1, 1, 1},
    {"tiny", 8, 3, 8, 16, 3, 1, 1, 1},
    {"tiny", 8, 4, 4, 8, 3, 1, 1, 1},
};
static const wf_conv_way *const ways[] = {&wf_conv_by_planes, &wf_conv_by_onednn,
                                          &wf_conv_by_columns};
static const char *const passes[] = {"forward", "data", "weights"};
static const char *const operations[] = {"Conv", "ConvDataGrad", "ConvWeightGrad"};
enum { N_WAYS = WF_COUNT(ways), RUNS = 7, PASSES = 3 };

typedef struct tensors {
    wf_tensor *x, *w, *y;
} tensors;

static wf_status make_tensor(const int64_t dims[4], wf_tensor **t, wf_err *err)
{
    WF_TRY(wf_tensor_new(WF_F32, 4, dims, t, err));
    wf_rng_fill_f32((wf_rng_key){1, 1}, 0, wf_f32_mut(*t), (size_t)wf_elems(*t));
    return WF_OK;
}

static wf_status make_tensors(const shape *s, tensors *t, wf_err *err)
{
    int64_t out = (s->size + 2 * s->pad - s->kernel) / s->stride + 1;

    WF_TRY(make_tensor((int64_t[]){s->batch, s->c, s->size, s->size}, &t->x, err));
    WF_TRY(make_tensor((int64_t[]){s->m, s->c / s->groups, s->kernel, s->kernel}, &t->w, err));
    return make_tensor((int64_t[]){s->batch, s->m, out, out}, &t->y, err);
}

/* A node of the operation with the shape's attributes. */
static wf_status make_node(wf_graph *g, const shape *s, wf_conv_pass pass, wf_node **n, wf_err *err)
{
    uint32_t n_in = pass == WF_CONV_FORWARD ? 2 : 3;
    wf_value *in[3], *out;
    wf_emit e = wf_emit_begin(g, "m", err);
    wf_attr attrs[] = {
        wf_attr_int("group", s->groups),
        wf_attr_ints("pads", 4, (int64_t[]){s->pad, s->pad, s->pad, s->pad}),
        wf_attr_ints("strides", 2, (int64_t[]){s->stride, s->stride}),
    };

    for (uint32_t i = 0; i < n_in; i++) {
        char name[2] = {(char)('a' + i), 0};

        WF_TRY(wf_graph_add_value(g, name, &in[i], err));
        wf_value_set_type(in[i], WF_F32, 4, (int64_t[]){-1, -1, -1, -1});
        WF_TRY(wf_graph_add_input(g, in[i], err));
    }
    *n = wf_emit_node(&e, operations[pass], n_in, in, WF_COUNT(attrs), attrs, 1, &out);
    return wf_emit_end(&e);
}

/* Seconds of the fastest of some runs; 0 where the way does not compute the shape. */
static wf_status time_way(const wf_conv *chosen, const wf_conv_way *way, const tensors *t,
                          wf_prep prep, wf_pool *pool, double *seconds, wf_err *err)
{
    wf_conv v = *chosen;
    wf_run run = {.node = prep.node, .pool = pool, .state = &v};
    wf_conv_tensors data = {t->x->data, t->w->data, t->y->data, NULL};
    int64_t best = INT64_MAX;

    *seconds = 0;
    v.way = way;
    v.state = NULL;
    prep.workspace_bytes = 0;
    WF_TRY(way->prepare(&prep, &v, &v.state, err));
    if (!v.state)
        return WF_OK;
    run.workspace = aligned_alloc(64, wf_align_up(prep.workspace_bytes + 64, 64));
    if (!run.workspace)
        return wf_fail_nomem(err, prep.workspace_bytes);
    for (int i = 0; i < RUNS; i++) {
        int64_t from = wf_now_ns();

        way->run(&v, &run, &data);
        best = WF_MIN(best, wf_now_ns() - from);
    }
    *seconds = (double)best / WF_NS_PER_S;
    free(run.workspace);
    if (way->release)
        way->release(v.state);
    return WF_OK;
}

/* One row; *loss is how many times longer the choice takes than the fastest. */
static wf_status race(const shape *s, wf_conv_pass pass, const wf_prep *prep, const wf_conv *chosen,
                      const tensors *t, wf_pool *pool, double *loss, wf_err *err)
{
    double seconds[N_WAYS], least = 1e9, taken = 0;
    double flop = 2e-9 * (double)(wf_elems(t->y) * wf_elems(t->w)) / (double)s->m;

    for (size_t i = 0; i < N_WAYS; i++) {
        WF_TRY(time_way(chosen, ways[i], t, *prep, pool, &seconds[i], err));
        if (seconds[i] > 0)
            least = WF_MIN(least, seconds[i]);
        if (ways[i] == chosen->way)
            taken = seconds[i];
    }
    *loss = taken / least;
    printf("%-12s %4d x %4d to %4d of %2d, %d by %d / %d  %-8s", s->of, (int)s->batch, (int)s->c,
           (int)s->m, (int)s->size, (int)s->kernel, (int)s->kernel, (int)s->stride, passes[pass]);
    for (size_t i = 0; i < N_WAYS; i++)
        printf(" %7.0f", seconds[i] > 0 ? flop / seconds[i] : 0);
    printf("  %-8s %.2f\n", chosen->way->name, *loss);
    return WF_OK;
}

static wf_status measure(const shape *s, wf_conv_pass pass, wf_pool *pool, double *loss,
                         wf_err *err)
{
    wf_graph *g = NULL;
    const wf_kernel *k;
    wf_prep prep = {.threads = wf_pool_threads(pool)};
    tensors t = {0};
    wf_node *n = NULL;
    wf_status rc = make_tensors(s, &t, err);
    const wf_tensor *in[WF_KERNEL_PORTS] = {t.x, t.w}, *out[WF_KERNEL_PORTS] = {t.y};

    if (pass != WF_CONV_FORWARD) {
        in[0] = t.y;
        in[1] = pass == WF_CONV_DATA ? t.w : t.x;
        in[2] = out[0] = pass == WF_CONV_DATA ? t.x : t.w;
    }
    if (rc == WF_OK)
        rc = wf_graph_new("race", &g, err);
    if (rc == WF_OK)
        rc = make_node(g, s, pass, &n, err);
    prep.arena = wf_arena_new(0);
    if (rc == WF_OK && !prep.arena)
        rc = wf_fail_nomem(err, 0);
    if (rc == WF_OK)
        rc = wf_kernel_find(n, &wf_cpu, &k, err);
    prep.node = n;
    if (rc == WF_OK)
        rc = k->prepare(&prep, in, out, err);
    if (rc == WF_OK)
        rc = race(s, pass, &prep, prep.state, &t, pool, loss, err);
    if (prep.release)
        prep.release(prep.state);
    wf_arena_free(&prep.arena);
    wf_graph_free(&g);
    wf_tensor_free(&t.x);
    wf_tensor_free(&t.w);
    wf_tensor_free(&t.y);
    return rc;
}

int main(int argc, char **argv)
{
    uint32_t threads = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    wf_pool *pool = NULL;
    double loss = 1, product = 0, worst = 1;
    wf_status rc;
    wf_err err;

    rc = wf_pool_new(threads, &pool, &err);
    printf("GFLOP/s on %u threads %43s", threads, "");
    for (size_t i = 0; i < N_WAYS; i++)
        printf(" %7s", ways[i]->name);
    printf("  taken    times the fastest's time\n");
    for (size_t i = 0; rc == WF_OK && i < WF_COUNT(shapes) * PASSES; i++) {
        rc = measure(&shapes[i / PASSES], (wf_conv_pass)(i % PASSES), pool, &loss, &err);
        product += rc == WF_OK ? log(loss) : 0;
        worst = WF_MAX(worst, loss);
    }
    wf_pool_free(&pool);
    if (rc != WF_OK) {
        fprintf(stderr, "bench_convolutions: %s\n", err.what);
        return 1;
    }
    printf("the choice takes %.3f times the fastest's time (geometric mean), %.2f at worst\n",
           exp(product / (double)(WF_COUNT(shapes) * PASSES)), worst);
    return 0;
}
