/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/update.c - updates of many variables on a device against those of the host: the same
 * bits for every rule, and for lamb within what update.h says; moving averages, and the look for
 * what is not finite. */
#include "common/base/rng.h"
#include "common/kernels/kernel.h"
#include "common/optim/rule.h"
#include "common/optim/statistic.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <math.h>

enum { SEGMENTS = 101, GAP = 3, STEPS = 3, ARRAYS = 2 + WF_MAX_SLOTS, TOTAL = 24000 };

typedef struct row {
    const char *rule;
    uint32_t n;
    const char *names[4];
    double values[4];
} row;

static const row rows[] = {
    {.rule = "adadelta"},
    {"adadelta", 3, {"rho", "epsilon", "weight_decay"}, {0.8, 1e-3, 0.1}},
    {.rule = "adagrad"},
    {"adagrad", 2, {"initial_accumulator_value", "weight_decay"}, {0, 0.1}},
    {.rule = "adam"},
    {"adam", 3, {"amsgrad", "weight_decay", "beta_1"}, {1, 0.1, 0.5}},
    {.rule = "adamax"},
    {"adamax", 2, {"weight_decay", "beta_2"}, {0.1, 0.5}},
    {.rule = "adamw"},
    {.rule = "amsgrad"},
    {.rule = "ftrl"},
    {"ftrl",
     4,
     {"l1_regularization_strength", "l2_regularization_strength", "beta", "weight_decay"},
     {0.2, 0.1, 0.3, 0.1}},
    {"ftrl", 1, {"learning_rate"}, {0}},
    {.rule = "lamb"},
    {"lamb", 2, {"weight_decay", "learning_rate"}, {0.1, 0.05}},
    {.rule = "lion"},
    {"lion", 2, {"weight_decay", "beta_1"}, {0.1, 0.5}},
    {.rule = "momentum"},
    {"momentum", 2, {"weight_decay", "warmup_steps"}, {0.1, 2}},
    {.rule = "nadam"},
    {"nadam", 2, {"weight_decay", "beta_1"}, {0.1, 0.5}},
    {.rule = "nesterov"},
    {"nesterov", 1, {"weight_decay"}, {0.1}},
    {.rule = "rmsprop"},
    {"rmsprop", 2, {"momentum", "weight_decay"}, {0.5, 0.1}},
    {"rmsprop", 1, {"centered"}, {1}},
    {"rmsprop", 2, {"momentum", "centered"}, {0.5, 1}},
    {.rule = "sgd"},
    {"sgd", 2, {"momentum", "weight_decay"}, {0.5, 0.1}},
    {"sgd", 2, {"momentum", "nesterov"}, {0.5, 1}},
};

/* Weights, gradient and slots of all variables, with gaps in between. */
typedef float arrays[ARRAYS][TOTAL];

static arrays before, host, seen;
static uint64_t sizes[SEGMENTS], places[SEGMENTS];

static const wf_device *gpu(void)
{
    const wf_device *d = NULL;
    wf_err err;

    test_device();
    assert_ok(test_device_called("cuda-host:0", &d, &err), err);
    return d;
}

/* Sizes around those of a warp, a block and a piece; some are 0. */
static void lay_out(void)
{
    static const uint64_t some[] = {1, 3, 0, 31, 257, 33, 64, 5, 100, 2};
    uint64_t at = 1;

    for (size_t k = 0; k < SEGMENTS; k++) {
        sizes[k] = k == 7 ? 5001 : k == 70 ? 1024 : k == 90 ? 1025 : some[k % 10];
        places[k] = at;
        at += sizes[k] + GAP;
    }
    assert_true(at <= TOTAL);
}

static void begin(const wf_opt *opt)
{
    for (size_t k = 0; k < ARRAYS; k++)
        for (size_t i = 0; i < TOTAL; i++)
            before[k][i] = k < 2 || k - 2 >= wf_opt_n_slots(opt)
                               ? wf_rng_f32((wf_rng_key){3, k}, i) - 0.5f
                               : wf_opt_slot_initial(opt, (uint32_t)k - 2);
    memcpy(host, before, sizeof host);
}

static void segments_in(const wf_opt *opt, float *data, wf_update_segment out[SEGMENTS])
{
    for (size_t k = 0; k < SEGMENTS; k++) {
        out[k] = (wf_update_segment){
            .n = sizes[k], .w = data + places[k], .g = data + TOTAL + places[k]};
        for (uint32_t i = 0; i < wf_opt_n_slots(opt); i++)
            out[k].slots[i] = data + (2 + i) * TOTAL + places[k];
    }
}

static void update_on(const wf_device *d, const wf_opt *opt)
{
    float *data = wf_device_alloc(d, sizeof seen);
    wf_update_segment of[SEGMENTS];
    wf_stream *s = NULL;
    wf_err err;

    assert_non_null(data);
    segments_in(opt, data, of);
    assert_ok(wf_stream_new(d, &s, &err), err);
    assert_ok(wf_stream_copy(s, WF_COPY_IN, data, before, sizeof before, &err), err);
    for (uint64_t t = 1; t <= STEPS; t++) {
        double options[WF_MAX_OPTIONS];

        wf_opt_options(opt, t, options);
        assert_ok(wf_updates_of(d)->update(s, opt->rule, options, t, SEGMENTS, of, &err), err);
    }
    assert_ok(wf_stream_copy(s, WF_COPY_OUT, seen, data, sizeof seen, &err), err);
    assert_ok(wf_stream_wait(s, &err), err);
    wf_stream_free(&s);
    wf_device_free(d, data);
}

static void update_host(const wf_opt *opt)
{
    wf_update_segment of[SEGMENTS];

    segments_in(opt, host[0], of);
    for (uint64_t t = 1; t <= STEPS; t++)
        for (size_t k = 0; k < SEGMENTS; k++)
            wf_opt_apply(opt, t, of[k].n, of[k].w, of[k].g, of[k].slots);
}

static void compare(const row *r, const wf_opt *opt)
{
    for (size_t k = 0; k < ARRAYS; k++)
        for (size_t i = 0; i < TOTAL; i++) {
            float way = fabsf(host[k][i] - before[k][i]);
            float may =
                opt->rule->whole && k == 0 ? 1e-5f * way + STEPS * 1.2e-7f * fabsf(host[k][i]) : 0;

            if (memcmp(&seen[k][i], &host[k][i], sizeof(float)) != 0 &&
                !(fabsf(seen[k][i] - host[k][i]) <= may && may > 0))
                fail_msg("%s (row %zu), array %zu, element %zu: %.9g, the host has %.9g", r->rule,
                         (size_t)(r - rows), k, i, (double)seen[k][i], (double)host[k][i]);
        }
}

static void a_device_updates_as_the_host_does(void **unused)
{
    const wf_device *d = gpu();

    (void)unused;
    lay_out();
    for (size_t k = 0; k < WF_COUNT(rows); k++) {
        const row *r = &rows[k];
        wf_opt opt;
        wf_err err;

        assert_ok(wf_opt_init(&opt, r->rule, r->n, r->names, r->values, &err), err);
        begin(&opt);
        update_host(&opt);
        update_on(d, &opt);
        compare(r, &opt);
    }
}

static void every_rule_is_tried(void **unused)
{
    (void)unused;
    for (size_t i = 0; wf_rules[i]; i++) {
        bool there = false;

        for (size_t k = 0; k < WF_COUNT(rows); k++)
            there |= strcmp(rows[k].rule, wf_rules[i]->name) == 0;
        if (!there)
            fail_msg("no row of %s", wf_rules[i]->name);
    }
}

static void a_rule_that_the_device_lacks_is_named(void **unused)
{
    const wf_device *d = gpu();
    const wf_rule other = {.name = "other"};
    wf_stream *s = NULL;
    wf_err err;

    (void)unused;
    assert_ok(wf_stream_new(d, &s, &err), err);
    assert_int_equal(wf_updates_of(d)->update(s, &other, NULL, 1, 0, NULL, &err), WF_UNSUPPORTED);
    assert_says(err, "cuda-host:0: optimizer other is not there yet");
    wf_stream_free(&s);
}

static void moving_averages_have_the_bits_of_the_host(void **unused)
{
    const wf_device *d = gpu();
    float *data = wf_device_alloc(d, sizeof seen);
    wf_average_segment of[SEGMENTS];
    wf_stream *s = NULL;
    wf_opt opt;
    wf_err err;

    (void)unused;
    assert_non_null(data);
    lay_out();
    assert_ok(wf_opt_init(&opt, "sgd", 0, NULL, NULL, &err), err);
    begin(&opt);
    for (size_t k = 0; k < SEGMENTS; k++) {
        double momentum = k % 3 == 0 ? 0.99 : k % 3 == 1 ? 0 : 0.7;

        of[k] =
            (wf_average_segment){sizes[k], momentum, data + places[k], data + TOTAL + places[k]};
        wf_statistic_apply(momentum, sizes[k], host[0] + places[k], host[1] + places[k]);
    }
    assert_ok(wf_stream_new(d, &s, &err), err);
    assert_ok(wf_stream_copy(s, WF_COPY_IN, data, before, sizeof before, &err), err);
    assert_ok(wf_updates_of(d)->average(s, SEGMENTS, of, &err), err);
    assert_ok(wf_stream_copy(s, WF_COPY_OUT, seen, data, sizeof seen, &err), err);
    assert_ok(wf_stream_wait(s, &err), err);
    assert_memory_equal(seen, host, sizeof seen);
    wf_stream_free(&s);
    wf_device_free(d, data);
}

/* What the device says of `before` with `value` put at element `at` of segment k, and of segment
 * k + 1 again; each segment has a word of its own, which held `first`. */
static void look_at(float value, size_t k, uint64_t at, int32_t first, int32_t out[SEGMENTS])
{
    const wf_device *d = gpu();
    float *data = wf_device_alloc(d, sizeof before[0]);
    int32_t *bad = wf_device_alloc(d, SEGMENTS * sizeof *bad);
    wf_finite_segment of[SEGMENTS];
    wf_stream *s = NULL;
    wf_err err;

    assert_true(data && bad);
    for (size_t i = 0; i < SEGMENTS; i++) {
        of[i] = (wf_finite_segment){sizes[i], data + places[i], bad + i};
        out[i] = first;
    }
    before[0][places[k] + at] = before[0][places[k + 1]] = value;
    assert_ok(wf_stream_new(d, &s, &err), err);
    assert_ok(wf_stream_copy(s, WF_COPY_IN, data, before[0], sizeof before[0], &err), err);
    assert_ok(wf_stream_copy(s, WF_COPY_IN, bad, out, SEGMENTS * sizeof *bad, &err), err);
    assert_ok(wf_updates_of(d)->finite(s, SEGMENTS, of, &err), err);
    assert_ok(wf_stream_copy(s, WF_COPY_OUT, out, bad, SEGMENTS * sizeof *bad, &err), err);
    assert_ok(wf_stream_wait(s, &err), err);
    wf_stream_free(&s);
    wf_device_free(d, data);
    wf_device_free(d, bad);
}

/* Segment 7 has five pieces, and 90 a last one of a single element; between segments lie bad
 * numbers that are nobody's. */
static void what_is_not_finite_is_found(void **unused)
{
    static const struct {
        float value;
        size_t segment;
        uint64_t at;
        bool bad;
    } cases[] = {{NAN, 7, 5000, true},         {-NAN, 0, 0, true},
                 {INFINITY, 90, 1024, true},   {-INFINITY, 70, 511, true},
                 {3.4028235e38F, 7, 3, false}, {-3.4028235e38F, 90, 0, false},
                 {1e-45F, 11, 2, false}};
    int32_t out[SEGMENTS];
    wf_opt opt;
    wf_err err;

    (void)unused;
    assert_ok(wf_opt_init(&opt, "sgd", 0, NULL, NULL, &err), err);
    lay_out();
    for (size_t c = 0; c < WF_COUNT(cases); c++) {
        size_t k = cases[c].segment;

        begin(&opt);
        for (size_t i = 0; i < SEGMENTS; i++)
            before[0][places[i] + sizes[i]] = NAN;
        before[0][0] = NAN;
        look_at(cases[c].value, k, cases[c].at, 0, out);
        for (size_t i = 0; i < SEGMENTS; i++)
            if (out[i] != ((i == k || i == k + 1) && sizes[i] > 0 && cases[c].bad))
                fail_msg("case %zu, segment %zu: %d", c, i, out[i]);
    }
    begin(&opt);
    look_at(0, 0, 0, 5, out); /* a word stays as it is */
    for (size_t i = 0; i < SEGMENTS; i++)
        assert_int_equal(out[i], 5);
}

static void other_devices_have_none(void **unused)
{
    const wf_device *d = NULL;
    wf_err err;

    (void)unused;
    assert_ok(test_device_called("cpu-remote", &d, &err), err);
    assert_null(wf_updates_of(d));
    assert_null(wf_updates_of(&wf_cpu));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_updates_as_the_host_does),
        cmocka_unit_test(every_rule_is_tried),
        cmocka_unit_test(a_rule_that_the_device_lacks_is_named),
        cmocka_unit_test(moving_averages_have_the_bits_of_the_host),
        cmocka_unit_test(what_is_not_finite_is_found),
        cmocka_unit_test(other_devices_have_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
