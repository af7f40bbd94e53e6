/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/kernel_pooling.c - poolings over seeded windows (strides, pads, dilations, ceiling) of
 * one to three axes, against the definition; and where their gradients go. */
#include "tests/unit/numbers.h"

enum { AXES = 3, SHAPES = 60 };

typedef struct window {
    uint32_t n; /* axes */
    int64_t in[AXES], out[AXES], kernel[AXES], strides[AXES], dilations[AXES];
    int64_t pads[2 * AXES]; /* begins, then ends */
    bool ceil_mode, count_pad;
} window;

/* What lies under the window of one output: flat positions in a channel; -1: padding. */
typedef struct under {
    int64_t at[343];
    int64_t n, inside;
} under;

static int64_t draw(uint64_t shape, uint64_t *next, int64_t least, int64_t most)
{
    return least +
           (int64_t)wf_rng_below((wf_rng_key){shape, 99}, (*next)++, (uint64_t)(most - least + 1));
}

/* The extent of an axis of the output, from ONNX's formula; a window must begin within the input or
 * the padding in front of it. */
static int64_t extent(const window *w, uint32_t i)
{
    int64_t reach = w->dilations[i] * (w->kernel[i] - 1) + 1;
    int64_t room = w->in[i] + w->pads[i] + w->pads[w->n + i] - reach;
    int64_t n = (room + (w->ceil_mode ? w->strides[i] - 1 : 0)) / w->strides[i] + 1;

    if (w->ceil_mode && (n - 1) * w->strides[i] >= w->in[i] + w->pads[i])
        n--;
    return n;
}

static window seeded_window(uint64_t shape)
{
    window w = {0};
    uint64_t next = 0;

    w.n = (uint32_t)(1 + shape % AXES);
    w.ceil_mode = draw(shape, &next, 0, 1);
    w.count_pad = draw(shape, &next, 0, 1);
    for (uint32_t i = 0; i < w.n; i++) {
        int64_t reach;

        w.kernel[i] = draw(shape, &next, 1, 4);
        w.dilations[i] = draw(shape, &next, 1, 2);
        w.strides[i] = draw(shape, &next, 1, 3);
        reach = w.dilations[i] * (w.kernel[i] - 1) + 1;
        w.in[i] = reach + draw(shape, &next, 0, w.n == 1 ? 70 : 6);
        w.pads[i] = draw(shape, &next, 0, w.kernel[i] - 1);
        w.pads[w.n + i] = draw(shape, &next, 0, w.kernel[i] - 1);
        w.out[i] = extent(&w, i);
    }
    return w;
}

/* Positions under output o of a channel. All of a window counts, also what lies behind the padding
 * (ceil_mode), as onnx's node suite has it. */
static under look(const window *w, int64_t o)
{
    under u = {0};
    int64_t first[AXES], taps = 1;

    for (uint32_t i = w->n; i-- > 0; o /= w->out[i]) {
        first[i] = o % w->out[i] * w->strides[i] - w->pads[i];
        taps *= w->kernel[i];
    }
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t rest = tap, at = 0, stride = 1;
        bool inside = true;

        for (uint32_t i = w->n; i-- > 0; rest /= w->kernel[i]) {
            int64_t x = first[i] + rest % w->kernel[i] * w->dilations[i];

            inside = inside && x >= 0 && x < w->in[i];
            at += x * stride;
            stride *= w->in[i];
        }
        u.at[u.n++] = inside ? at : -1;
        u.inside += inside;
    }
    return u;
}

static uint32_t attrs_of(const window *w, wf_attr attrs[6])
{
    attrs[0] = wf_attr_ints("kernel_shape", w->n, w->kernel);
    attrs[1] = wf_attr_ints("strides", w->n, w->strides);
    attrs[2] = wf_attr_ints("dilations", w->n, w->dilations);
    attrs[3] = wf_attr_ints("pads", 2ul * w->n, w->pads);
    attrs[4] = wf_attr_int("ceil_mode", w->ceil_mode);
    return 5;
}

static wf_tensor *image(const window *w, wf_dtype dtype, uint64_t seed, const int64_t spatial[])
{
    int64_t dims[AXES + 2] = {2, 3};
    wf_tensor *t;

    memcpy(dims + 2, spatial, w->n * sizeof dims[0]);
    t = new_tensor(dtype, w->n + 2, dims);
    for (int64_t i = 0; i < wf_elems(t); i++) {
        int64_t x = (int64_t)wf_rng_below((wf_rng_key){seed, 5}, (uint64_t)i, 200);

        put(dtype, t->data, i,
            dtype == WF_U8 ? x : (number)(x - 100) / (wf_dtype_is_float(dtype) ? 8 : 1));
    }
    return t;
}

typedef enum kind { MAX, AVERAGE, LP } kind;

static number pooled(kind k, const window *w, const under *u, wf_dtype dtype, const void *channel)
{
    number s = k == MAX ? -(number)INFINITY : 0;

    for (int64_t i = 0; i < u->n; i++) {
        number x = u->at[i] < 0 ? 0 : get(dtype, channel, u->at[i]);

        if (k == MAX)
            s = u->at[i] < 0 ? s : fmaxl(s, x);
        else
            s += k == LP ? powl(fabsl(x), 3) : x;
    }
    if (k == LP)
        return powl(s, 1 / 3.0L);
    return k == AVERAGE ? s / (number)(w->count_pad ? u->n : u->inside) : s;
}

static int64_t product(uint32_t n, const int64_t dims[])
{
    int64_t p = 1;

    for (uint32_t i = 0; i < n; i++)
        p *= dims[i];
    return p;
}

static void check_pool(kind k, const window *w, wf_dtype dtype, uint64_t seed)
{
    static const char *const names[] = {"MaxPool", "AveragePool", "LpPool"};
    wf_attr attrs[6];
    uint32_t n = attrs_of(w, attrs);
    wf_tensor *x = image(w, dtype, seed, w->in), *y;
    int64_t ins = product(w->n, w->in), outs = product(w->n, w->out);

    if (k != MAX)
        attrs[n++] = k == LP ? wf_attr_int("p", 3) : wf_attr_int("count_include_pad", w->count_pad);
    y = run_op(names[k], n, attrs, 1, &x, 0);
    for (uint32_t i = 0; i < w->n; i++)
        assert_int_equal(y->dims[i + 2], w->out[i]);
    for (int64_t i = 0; i < wf_elems(y); i++) {
        under u = look(w, i % outs);
        size_t at = (size_t)(i / outs * ins) * wf_dtype_size(dtype);
        number is = get(dtype, y->data, i);
        number must = u.inside ? pooled(k, w, &u, dtype, (const char *)x->data + at) : is;
        number slack = k == MAX ? 0 : (dtype == WF_F64 ? 1e-13L : 1e-5L) * (1 + fabsl(must));

        if (!(fabsl(is - must) <= slack))
            fail_msg("%s of %s, window %llu: output %lld is %.15Lg, not %.15Lg", names[k],
                     wf_dtype_name(dtype), (unsigned long long)seed, (long long)i, is, must);
    }
    wf_tensor_free(&x);
    wf_tensor_free(&y);
}

static void poolings_are_their_definition(void **state)
{
    static const wf_dtype floats[] = {WF_F32, WF_F64};

    (void)state;
    for (uint64_t shape = 0; shape < SHAPES; shape++) {
        window w = seeded_window(shape);

        for (size_t d = 0; d < WF_COUNT(floats); d++)
            for (kind k = MAX; k <= LP; k++)
                check_pool(k, &w, floats[d], shape);
        check_pool(MAX, &w, WF_U8, shape);
    }
}

/* MaxPoolGrad gives all of dy to the first of the largest, AveragePoolGrad shares it out. */
static void check_gradient(bool largest, const window *w, uint64_t seed)
{
    wf_attr attrs[6];
    uint32_t n = attrs_of(w, attrs);
    wf_tensor *x = image(w, WF_F64, seed, w->in), *dy = image(w, WF_F64, seed + 1000, w->out);
    wf_tensor *want = new_tensor(WF_F64, x->rank, x->dims), *y = NULL, *dx;
    int64_t ins = product(w->n, w->in), outs = product(w->n, w->out);

    if (largest)
        y = run_op("MaxPool", n, attrs, 1, &x, 0);
    else
        attrs[n++] = wf_attr_int("count_include_pad", w->count_pad);
    dx = run_op(largest ? "MaxPoolGrad" : "AveragePoolGrad", n, attrs, largest ? 3 : 2,
                (wf_tensor *[]){dy, x, y}, 0);
    for (int64_t i = 0; i < wf_elems(dy); i++) {
        under u = look(w, i % outs);
        double *to = (double *)want->data + i / outs * ins, give = ((double *)dy->data)[i];
        const double *from = (const double *)x->data + i / outs * ins;
        int64_t best = -1;

        for (int64_t k = 0; k < u.n; k++) {
            if (u.at[k] < 0)
                continue;
            if (!largest)
                to[u.at[k]] += give / (double)(w->count_pad ? u.n : u.inside);
            else if (best < 0 || from[u.at[k]] > from[best])
                best = u.at[k];
        }
        if (best >= 0)
            to[best] += give;
    }
    for (int64_t i = 0; i < wf_elems(dx); i++)
        if (!(fabs(((double *)dx->data)[i] - ((double *)want->data)[i]) <= 1e-12))
            fail_msg("window %llu: gradient %lld of %s is %.15g, not %.15g",
                     (unsigned long long)seed, (long long)i, largest ? "MaxPool" : "AveragePool",
                     ((double *)dx->data)[i], ((double *)want->data)[i]);
    wf_tensor_free(&x);
    wf_tensor_free(&y);
    wf_tensor_free(&dx);
    wf_tensor_free(&dy);
    wf_tensor_free(&want);
}

static void gradients_go_back_where_they_came_from(void **state)
{
    (void)state;
    for (uint64_t shape = 0; shape < SHAPES; shape++) {
        window w = seeded_window(shape);

        check_gradient(true, &w, shape);
        check_gradient(false, &w, shape);
    }
}

static void a_global_pooling_is_of_each_channel(void **state)
{
    wf_tensor *x = seeded(WF_F64, 3, DIMS(2, 3, 5, 7)), *mean, *top;

    (void)state;
    for (int64_t i = 0; i < wf_elems(x); i++)
        ((double *)x->data)[i] = (double)((i * 37) % 101) - 50;
    mean = run_op("GlobalAveragePool", 0, NULL, 1, &x, 0);
    top = run_op("GlobalMaxPool", 0, NULL, 1, &x, 0);
    for (int64_t c = 0; c < 6; c++) {
        double sum = 0, most = -INFINITY;

        for (int64_t i = 0; i < 35; i++) {
            sum += ((double *)x->data)[c * 35 + i];
            most = fmax(most, ((double *)x->data)[c * 35 + i]);
        }
        assert_true(fabs(((double *)mean->data)[c] - sum / 35) < 1e-12);
        assert_true(((double *)top->data)[c] == most);
    }
    wf_tensor_free(&x);
    wf_tensor_free(&mean);
    wf_tensor_free(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poolings_are_their_definition),
        cmocka_unit_test(gradients_go_back_where_they_came_from),
        cmocka_unit_test(a_global_pooling_is_of_each_channel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
