/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_convolution.c - what plans of host_dnn.c compute: a convolution of any pass, and
 * a bias. */
#include "tests/cuda/host_descriptor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 3, X = 0, W = 1, Y = 2, BIAS = 3, TENSORS = 4 };

/* With three spatial axes: ones are put in front of fewer. */
typedef struct geometry {
    int made;              /* X, W or Y */
    int64_t batch, groups; /* c, m: channels and maps of one group */
    int64_t c, m, in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES], before[AXES];
} geometry;

typedef struct host_convolution {
    host_execution base; /* first */
    geometry g;
    int type;         /* of all tensors */
    unsigned dropped; /* bits of f32 factors */
    double alpha, beta;
    void *at[TENSORS];  /* the bias may be NULL */
    bool last[TENSORS]; /* channels are last in memory */
} host_convolution;

#define need host_dnn_need

/* ---- what an operation says ---- */

typedef struct numbers {
    int made, alpha, beta, window, parts[3];
} numbers;

static numbers numbers_of(int kind)
{
    switch (kind) {
    case WF_DNN_DO_FORWARD:
        return (numbers){Y,
                         WF_DNN_FORWARD_ALPHA,
                         WF_DNN_FORWARD_BETA,
                         WF_DNN_FORWARD_CONV,
                         {WF_DNN_FORWARD_X, WF_DNN_FORWARD_W, WF_DNN_FORWARD_Y}};
    case WF_DNN_DO_DATA:
        return (numbers){X,
                         WF_DNN_DATA_ALPHA,
                         WF_DNN_DATA_BETA,
                         WF_DNN_DATA_CONV,
                         {WF_DNN_DATA_X, WF_DNN_DATA_W, WF_DNN_DATA_Y}};
    default:
        need(kind == WF_DNN_DO_WEIGHTS, "a graph that does not begin with a convolution");
        return (numbers){W,
                         WF_DNN_WEIGHTS_ALPHA,
                         WF_DNN_WEIGHTS_BETA,
                         WF_DNN_WEIGHTS_CONV,
                         {WF_DNN_WEIGHTS_X, WF_DNN_WEIGHTS_W, WF_DNN_WEIGHTS_Y}};
    }
}

static wf_cuda_descriptor *part_of(const wf_cuda_descriptor *d, int part)
{
    return host_dnn_of(d, numbers_of(d->kind).parts[part]);
}

static void check_axis(const wf_cuda_descriptor *window, const int64_t *const dims[], int64_t i)
{
    int64_t reach = (dims[W][2 + i] - 1) * host_dnn_ints(window, WF_DNN_CONV_DILATIONS)[i] + 1;
    int64_t room = dims[X][2 + i] + host_dnn_ints(window, WF_DNN_CONV_BEFORE)[i] +
                   host_dnn_ints(window, WF_DNN_CONV_AFTER)[i] - reach;

    need(room >= 0 && room / host_dnn_ints(window, WF_DNN_CONV_STRIDES)[i] + 1 == dims[Y][2 + i],
         "a window that does not lead from the input to the output");
}

void host_dnn_check_convolution(const wf_cuda_descriptor *d)
{
    const numbers n = numbers_of(d->kind);
    const wf_cuda_descriptor *window = host_dnn_of(d, n.window);
    const int64_t axes = host_dnn_ints(window, WF_DNN_CONV_AXES)[0];
    const int type = host_dnn_number(window, WF_DNN_CONV_TYPE);
    const int64_t *dims[3];

    need(window->kind == WF_DNN_CONVOLUTION, "no window");
    need(type == (host_dnn_number(part_of(d, 0), WF_DNN_TENSOR_TYPE) == WF_DNN_F64 ? WF_DNN_F64
                                                                                   : WF_DNN_F32),
         "sums of another type than its tensors have");
    for (int i = 0; i < 3; i++) {
        const wf_cuda_descriptor *t = part_of(d, i);

        need(t->kind == WF_DNN_TENSOR && host_dnn_find(t, WF_DNN_TENSOR_DIMS)->n == 2 + axes,
             "a tensor of other axes than the window");
        need(host_dnn_number(t, WF_DNN_TENSOR_TYPE) ==
                 host_dnn_number(part_of(d, 0), WF_DNN_TENSOR_TYPE),
             "a tensor of another type");
        dims[i] = host_dnn_ints(t, WF_DNN_TENSOR_DIMS);
    }
    need(host_dnn_find(d, n.alpha)->type ==
             (type == WF_DNN_F64 ? WF_DNN_IS_DOUBLE : WF_DNN_IS_FLOAT),
         "a factor of another type than the sums");
    need(dims[X][0] == dims[Y][0] && dims[W][0] == dims[Y][1], "other batches, or other maps");
    need(dims[X][1] % dims[W][1] == 0 && dims[W][0] % (dims[X][1] / dims[W][1]) == 0,
         "channels that are not those of groups");
    for (int64_t i = 0; i < axes; i++)
        check_axis(window, dims, i);
}

static void set_axes(int64_t to[AXES], const int64_t from[], int64_t n, int64_t before)
{
    for (int64_t i = 0; i < AXES; i++)
        to[i] = i < AXES - n ? before : from[i - (AXES - n)];
}

static geometry geometry_of(const wf_cuda_descriptor *d)
{
    const numbers n = numbers_of(d->kind);
    const wf_cuda_descriptor *window = host_dnn_of(d, n.window);
    const int64_t axes = host_dnn_ints(window, WF_DNN_CONV_AXES)[0];
    const int64_t *x = host_dnn_ints(part_of(d, X), WF_DNN_TENSOR_DIMS);
    const int64_t *w = host_dnn_ints(part_of(d, W), WF_DNN_TENSOR_DIMS);
    const int64_t *y = host_dnn_ints(part_of(d, Y), WF_DNN_TENSOR_DIMS);
    geometry g = {.made = n.made, .batch = x[0], .groups = x[1] / w[1], .c = w[1]};

    g.m = w[0] / g.groups;
    set_axes(g.in, x + 2, axes, 1);
    set_axes(g.kernel, w + 2, axes, 1);
    set_axes(g.out, y + 2, axes, 1);
    set_axes(g.stride, host_dnn_ints(window, WF_DNN_CONV_STRIDES), axes, 1);
    set_axes(g.dilation, host_dnn_ints(window, WF_DNN_CONV_DILATIONS), axes, 1);
    set_axes(g.before, host_dnn_ints(window, WF_DNN_CONV_BEFORE), axes, 0);
    return g;
}

/* ---- what an execution has ---- */

/* Whether the strides are those of a tensor without gaps, with its channels second or last; of an
 * extent of 1 none counts. */
static bool is_packed(const wf_cuda_descriptor *tensor, bool last)
{
    const host_dnn_value *dims = host_dnn_find(tensor, WF_DNN_TENSOR_DIMS);
    const int64_t *strides = host_dnn_ints(tensor, WF_DNN_TENSOR_STRIDES);
    int64_t n = last ? dims->of.ints[1] : 1;

    if (last && dims->of.ints[1] > 1 && strides[1] != 1)
        return false;
    for (int64_t i = dims->n - 1; i >= 0; i--) {
        if (last && i == 1)
            continue;
        if (dims->of.ints[i] > 1 && strides[i] != n)
            return false;
        n *= dims->of.ints[i];
    }
    return true;
}

static int64_t elements(const wf_cuda_descriptor *tensor)
{
    const host_dnn_value *dims = host_dnn_find(tensor, WF_DNN_TENSOR_DIMS);
    int64_t n = 1;

    for (int64_t i = 0; i < dims->n; i++)
        n *= dims->of.ints[i];
    return n;
}

static void *memory_of(const wf_cuda_descriptor *pack, const wf_cuda_descriptor *tensor, bool *last)
{
    *last = !is_packed(tensor, false);
    need(!*last || is_packed(tensor, true), "a tensor with gaps");
    return host_dnn_memory(pack, tensor, (size_t)elements(tensor));
}

/* Where a bias is added, its result takes the place of the sum, which is not stored. */
static void place(host_convolution *c, const wf_cuda_descriptor *graph,
                  const wf_cuda_descriptor *pack)
{
    const host_dnn_value *operations = host_dnn_find(graph, WF_DNN_GRAPH_OPERATIONS);
    const wf_cuda_descriptor *conv = operations->of.descriptors[0], *each = NULL;

    if (operations->n > 1)
        each = operations->of.descriptors[1];
    for (int i = 0; i < 3; i++) {
        const wf_cuda_descriptor *t = part_of(conv, i);

        if (each && i == c->g.made) {
            need(each->kind == WF_DNN_DO_POINTWISE && host_dnn_of(each, WF_DNN_EACH_X) == t &&
                     host_dnn_find(t, WF_DNN_TENSOR_VIRTUAL),
                 "a bias that is not added to the sum");
            t = host_dnn_of(each, WF_DNN_EACH_Y);
        }
        c->at[i] = memory_of(pack, t, &c->last[i]);
    }
    if (each)
        c->at[BIAS] = memory_of(pack, host_dnn_of(each, WF_DNN_EACH_B), &c->last[BIAS]);
}

/* ---- computing ---- */

/* Without so many bits, towards 0: what an engine that rounds may do. */
static double rounded(double value, unsigned dropped)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    bits &= ~((1u << dropped) - 1);
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static int64_t size(const int64_t of[AXES])
{
    return of[0] * of[1] * of[2];
}

/* Where element i, counted with the channels second, lies in memory. */
static size_t place_of(const host_convolution *c, int part, int64_t i)
{
    const geometry *g = &c->g;
    const int64_t channels = part == X ? g->groups * g->c : part == W ? g->c : g->groups * g->m;
    const int64_t places = size(part == X ? g->in : part == W ? g->kernel : g->out);

    if (part == BIAS || !c->last[part])
        return (size_t)i;
    return (size_t)((i / places / channels * places + i % places) * channels +
                    i / places % channels);
}

static double get(const host_convolution *c, int part, int64_t i)
{
    return host_element(c->type, c->at[part], place_of(c, part, i));
}

static void put(const host_convolution *c, int64_t i, double value)
{
    host_element_put(c->type, c->at[c->g.made], place_of(c, c->g.made, i), value);
}

static double factor(const host_convolution *c, int part, int64_t i)
{
    double value = get(c, part, i);

    return c->dropped ? rounded(value, c->dropped) : value;
}

/* Adds the product of one input and one weight, or what stands for them, to its sum. */
static void add(const host_convolution *c, double sums[], int64_t x, int64_t w, int64_t y)
{
    switch (c->g.made) {
    case X:
        sums[x] += factor(c, W, w) * factor(c, Y, y);
        break;
    case W:
        sums[w] += factor(c, X, x) * factor(c, Y, y);
        break;
    default:
        sums[y] += factor(c, X, x) * factor(c, W, w);
        break;
    }
}

/* The input that output o reads by a tap, as numbers in their planes; -1: padding. */
static int64_t reads(const geometry *g, int64_t o, int64_t tap)
{
    int64_t at[AXES];

    for (int i = AXES - 1; i >= 0; i--) {
        at[i] = o % g->out[i] * g->stride[i] + tap % g->kernel[i] * g->dilation[i] - g->before[i];
        o /= g->out[i];
        tap /= g->kernel[i];
        if (at[i] < 0 || at[i] >= g->in[i])
            return -1;
    }
    return (at[0] * g->in[1] + at[1]) * g->in[2] + at[2];
}

static void add_planes(const host_convolution *c, double sums[], int64_t o, int64_t tap)
{
    const geometry *g = &c->g;
    const int64_t in = reads(g, o, tap);

    for (int64_t image = 0; image < g->batch && in >= 0; image++)
        for (int64_t map = 0; map < g->groups * g->m; map++)
            for (int64_t k = 0; k < g->c; k++) {
                int64_t channel = map / g->m * g->c + k;

                add(c, sums, (image * g->groups * g->c + channel) * size(g->in) + in,
                    (map * g->c + k) * size(g->kernel) + tap,
                    (image * g->groups * g->m + map) * size(g->out) + o);
            }
}

static void convolve(const host_execution *e)
{
    const host_convolution *c = (const host_convolution *)e;
    const geometry *g = &c->g;
    const int64_t planes[] = {g->groups * g->c, g->c, g->groups * g->m};
    const int64_t firsts[] = {g->batch, g->groups * g->m, g->batch};
    const int64_t sizes[] = {size(g->in), size(g->kernel), size(g->out)};
    const int64_t n = firsts[g->made] * planes[g->made] * sizes[g->made];
    double *sums = calloc((size_t)n, sizeof *sums);

    need(sums != NULL, "more than the host has memory for");
    for (int64_t o = 0; o < sizes[Y]; o++)
        for (int64_t tap = 0; tap < sizes[W]; tap++)
            add_planes(c, sums, o, tap);
    for (int64_t i = 0; i < n; i++) {
        double value = c->alpha * sums[i];

        if (c->beta != 0)
            value += c->beta * get(c, g->made, i);
        if (c->at[BIAS])
            value += get(c, BIAS, i / sizes[g->made] % planes[g->made]);
        put(c, i, value);
    }
    free(sums);
}

host_execution *host_convolution_new(const wf_cuda_descriptor *config,
                                     const wf_cuda_descriptor *pack)
{
    const wf_cuda_descriptor *conv =
        host_dnn_find(config->graph, WF_DNN_GRAPH_OPERATIONS)->of.descriptors[0];
    host_convolution *c = calloc(1, sizeof *c);
    numbers n;

    if (!c)
        return NULL;
    c->base.act = convolve;
    n = numbers_of(conv->kind);
    c->g = geometry_of(conv);
    c->type = host_dnn_number(part_of(conv, X), WF_DNN_TENSOR_TYPE);
    if (config->n_notes && c->type == WF_DNN_F32) /* tensor cores take TF32; others take bfloat16 */
        c->dropped = config->note == WF_DNN_NOTE_TENSOR_CORE ? 13 : 16;
    c->alpha = host_dnn_factor(conv, n.alpha);
    c->beta = host_dnn_factor(conv, n.beta);
    place(c, config->graph, pack);
    return &c->base;
}
