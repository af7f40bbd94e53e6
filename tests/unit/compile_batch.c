/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_batch.c - one compilation serves every size of a batch: the graph names what
 * is open after the batch, and plans of other sizes agree with each other. */
#include "common/exec/exec.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/compile_eval.h"
#include <math.h>

#define INTS_OPTION(key, ...)                                                                      \
    {                                                                                              \
        .name = (key), .kind = WF_CONF_INTS, .ints = (const int64_t[]){__VA_ARGS__},               \
        .n = WF_COUNT(((const int64_t[]){__VA_ARGS__})), .line = 7                                 \
    }

enum { MOST = 8, FEATURES = 36, MOST_RESULTS = 4096 };

/* What a plan gives: the loss, and all gradients one after the other. */
typedef struct results {
    size_t n;
    double of[MOST_RESULTS];
} results;

static const wf_conf_input flat[] = {{.name = "x", .dims = {FEATURES}, .rank = 1, .line = 3}};
static const wf_conf_input series[] = {{.name = "x", .dims = {9, 4}, .rank = 2, .line = 3}};
static const wf_conf_input image[] = {{.name = "x", .dims = {6, 6, 1}, .rank = 3, .line = 3}};

/* Layers that reshape, slice and turn what they take. */
static const wf_conf_item mlp_layers[] = {
    LAYER("dense", INT_OPTION("units", 7), TEXT_OPTION("activation", "gelu")),
    LAYER("dense", INT_OPTION("units", 3)),
};
static const wf_conf_item conv_layers[] = {
    LAYER("conv2d", INT_OPTION("filters", 4), INTS_OPTION("kernel_size", 3),
          TEXT_OPTION("activation", "relu")),
    LAYER("max_pooling2d", INTS_OPTION("pool_size", 2)),
    {.type = "flatten", .line = 6},
    LAYER("dense", INT_OPTION("units", 3)),
};
static const wf_conf_item attention_layers[] = {
    LAYER("multi_head_attention", INT_OPTION("num_heads", 2), INT_OPTION("key_dim", 3)),
    {.type = "layer_normalization", .line = 6},
    LAYER("dense", INT_OPTION("units", 5), TEXT_OPTION("activation", "tanh")),
    {.type = "global_average_pooling1d", .line = 6},
    LAYER("dense", INT_OPTION("units", 3)),
};
static const wf_conf_item recurrent_layers[] = {
    LAYER("lstm", INT_OPTION("units", 5)),
    LAYER("dense", INT_OPTION("units", 3)),
};

static const struct {
    const wf_conf_input *input;
    const wf_conf_item *layers;
    size_t n_layers;
} models[] = {
    {flat, mlp_layers, WF_COUNT(mlp_layers)},
    {image, conv_layers, WF_COUNT(conv_layers)},
    {series, attention_layers, WF_COUNT(attention_layers)},
    {series, recurrent_layers, WF_COUNT(recurrent_layers)},
};

static void collect(const wf_compiled *c, const wf_plan *p, results *out)
{
    out->n = 0;
    for (size_t i = 0; i < c->n_outputs; i++) {
        int64_t at = wf_plan_find_output(p, c->outputs[i].name);
        const float *x;

        assert_true(at >= 0);
        x = wf_plan_output_data(p, (uint32_t)at);
        for (int64_t k = 0; k < wf_plan_output(p, (uint32_t)at)->elems; k++) {
            assert_true(out->n < MOST_RESULTS);
            out->of[out->n++] = (double)x[k];
        }
    }
}

static float scale = 1; /* of the loss, in graphs that scale it */

/* The mean over records [first, first + n), and its gradients. */
static void run(const wf_compiled *c, int64_t first, int64_t n, results *out)
{
    static float x[MOST * FEATURES];
    static int64_t y[MOST] = {0, 2, 1, 1, 0, 2, 2, 1};
    wf_plan_symbol batch = {"batch", n};
    wf_plan_options options = {.device = test_device(), .n_symbols = 1, .symbols = &batch};
    wf_step_key key = {0};
    wf_plan *p = NULL;
    wf_err err = {0};

    fill(x, WF_COUNT(x), 5);
    must(wf_plan_new(c->graph, &options, &p, &err), &err);
    wf_plan_bind_input(p, (uint32_t)wf_plan_find_input(p, "x"), x + first * FEATURES);
    wf_plan_bind_input(p, (uint32_t)wf_plan_find_input(p, "y"), y + first);
    if (c->loss_scale)
        wf_plan_bind_input(p, (uint32_t)wf_plan_find_input(p, c->loss_scale), &scale);
    must(wf_plan_run(p, &key, NULL, NULL, &err), &err);
    collect(c, p, out);
    wf_plan_free(&p);
}

static wf_compiled *compile_model(size_t i, bool scales, wf_model *m)
{
    wf_compile_spec spec = train_spec(m, 1);

    *m = (wf_model){.file = "job.yaml",
                    .inputs = models[i].input,
                    .n_inputs = 1,
                    .layers = models[i].layers,
                    .n_layers = models[i].n_layers};
    spec.strategy = NULL;
    spec.batch = MOST;
    spec.scales_loss = scales;
    return compile(&spec);
}

static void one_graph_serves_every_size(void **state)
{
    static const int64_t sizes[] = {1, 3, 5, MOST};
    static results all, head, tail;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(models); i++) {
        wf_model m;
        wf_compiled *c = compile_model(i, false, &m);

        run(c, 0, MOST, &all);
        for (size_t k = 0; k < WF_COUNT(sizes) - 1; k++) {
            int64_t n = sizes[k];

            run(c, 0, n, &head);
            run(c, n, MOST - n, &tail);
            for (size_t at = 0; at < all.n; at++) {
                double together =
                    (head.of[at] * (double)n + tail.of[at] * (double)(MOST - n)) / MOST;

                if (!(fabs(all.of[at] - together) <= 1e-5 * (1 + fabs(together))))
                    fail_msg("model %zu, %d and %d records: number %zu is %g, together %g", i,
                             (int)n, (int)(MOST - n), at, together, all.of[at]);
            }
        }
        wf_compiled_free(&c);
    }
}

/* Powers of two: all numbers but those of the loss and of the scale have the same bits. */
static void a_scaled_loss_has_the_same_gradients(void **state)
{
    static const float scales[] = {1, 1024, 0x1p40f};
    static results want, got;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(models); i++) {
        wf_model m;
        wf_compiled *plain = compile_model(i, false, &m), *c = compile_model(i, true, &m);

        assert_null(plain->loss_scale);
        assert_int_equal(c->n_feeds, plain->n_feeds);
        assert_int_equal(c->digest, plain->digest);
        run(plain, 0, MOST, &want);
        for (size_t k = 0; k < WF_COUNT(scales); k++) {
            scale = scales[k];
            run(c, 0, MOST, &got);
            assert_int_equal(got.n, want.n);
            for (size_t at = 0; at < want.n; at++)
                if (got.of[at] != want.of[at])
                    fail_msg("model %zu, scale %g: number %zu is %g, and not %g", i, (double)scale,
                             at, got.of[at], want.of[at]);
        }
        scale = INFINITY;
        run(c, 0, MOST, &got);
        assert_true(isfinite(got.of[0])); /* the loss is not scaled, and its gradients are */
        for (size_t at = 1, infinite = 0; at < got.n; at++) {
            infinite += !isfinite(got.of[at]);
            assert_true(at + 1 < got.n || infinite > 0);
        }
        scale = 1;
        wf_compiled_free(&plain);
        wf_compiled_free(&c);
    }
}

/* "batch", or a multiple of it: what else would be open could not be planned. */
static void what_is_open_has_the_name_of_the_batch(void **state)
{
    (void)state;
    for (size_t i = 0; i < WF_COUNT(models); i++) {
        wf_model m;
        wf_compiled *c = compile_model(i, false, &m);

        for (size_t k = 0; k < c->graph->n_values; k++) {
            const wf_value *v = c->graph->values[k];

            assert_true(v->rank >= 0);
            for (int32_t a = 0; a < v->rank; a++) {
                const char *symbol = v->axes[a].symbol;

                if (v->axes[a].size >= 0)
                    continue;
                if (!symbol || strcmp(symbol + strspn(symbol, "0123456789*"), "batch") != 0)
                    fail_msg("model %zu: axis %d of \"%s\" is %s", i, a, v->name,
                             symbol ? symbol : "open");
                assert_true(v->axes[a].bound >= MOST); /* memory can be counted before it runs */
            }
        }
        wf_compiled_free(&c);
    }
}

static void more_than_the_bound_is_refused(void **state)
{
    wf_model m;
    wf_compiled *c = compile_model(0, false, &m);
    wf_plan_symbol batch = {"batch", MOST + 1};
    wf_plan_options options = {.device = test_device(), .n_symbols = 1, .symbols = &batch};
    wf_plan *p = NULL;
    wf_err err = {0};

    (void)state;
    assert_int_equal(wf_plan_new(c->graph, &options, &p, &err), WF_SHAPE);
    assert_says(err, "may be 8 at most, and was given 9");
    wf_compiled_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_graph_serves_every_size),
        cmocka_unit_test(a_scaled_loss_has_the_same_gradients),
        cmocka_unit_test(what_is_open_has_the_name_of_the_batch),
        cmocka_unit_test(more_than_the_bound_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
