/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_norm.c - batch normalisation by cuDNN, over the host's: which cases go through
 * it, with what result. */
#include "common/base/cc.h"
#include "common/base/file.h"
#include "common/exec/exec.h"
#include "common/log/log.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <stdlib.h>

enum { SEEDS = 24, MOST_IN = 5, MOST_OUT = 3, MOST_ELEMS = 4096 };

static wf_err err;

typedef struct layer {
    int64_t batch, channels, inner;
    bool is_grad, trains;
} layer;

static wf_plan *plan_of(const layer *l, const wf_device *device, bool timed, wf_graph **g)
{
    const wf_attr attrs[] = {wf_attr_float("epsilon", 0.01f),
                             wf_attr_int("training_mode", l->trains),
                             wf_attr_float("momentum", 0.75f)};
    const int64_t dims[] = {l->batch, l->channels, l->inner};
    const char *const names[] = {"a", "b", "c", "d", "e"};
    const uint32_t whole = l->is_grad ? 2 : 1, n_in = l->is_grad && l->trains ? 3 : 5;
    const uint32_t n_out = l->is_grad || l->trains ? 3 : 1;
    wf_value *in[MOST_IN], *made[MOST_OUT];
    wf_plan *p = NULL;
    wf_emit e;

    *g = new_graph();
    e = wf_emit_begin(*g, "n", &err);
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = i < whole ? input(*g, names[i], 3, dims) : input(*g, names[i], 1, dims + 1);
    wf_emit_node(&e, l->is_grad ? "BatchNormalizationGrad" : "BatchNormalization", n_in, in,
                 l->is_grad ? 2 : 3, attrs, n_out, made);
    assert_ok(wf_emit_end(&e), err);
    for (uint32_t i = 0; i < n_out; i++)
        assert_ok(wf_graph_add_output(*g, made[i], &err), err);
    assert_ok(
        wf_plan_new(*g, &(wf_plan_options){.device = device, .deterministic = !timed}, &p, &err),
        err);
    return p;
}

/* Results one behind the other; their number. */
static int64_t compute(const layer *l, const wf_device *device, float out[MOST_ELEMS])
{
    static float in[MOST_IN][MOST_ELEMS];
    wf_step_key key = {0};
    int64_t n = 0;
    wf_graph *g;
    wf_plan *p = plan_of(l, device, false, &g);

    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++) {
        /* A variance is no less than 0; neither is anything else here. */
        for (int64_t k = 0; k < wf_plan_input(p, i)->elems; k++)
            in[i][k] = (float)((k * 2654435761 + (int64_t)i * 977) % 4093) / 1024.0f;
        wf_plan_bind_input(p, i, in[i]);
    }
    assert_ok(wf_plan_run(p, &key, NULL, NULL, &err), err);
    for (uint32_t i = 0; i < wf_plan_n_outputs(p); i++) {
        const int64_t elems = wf_plan_output(p, i)->elems;

        assert_true(n + elems <= MOST_ELEMS);
        memcpy(out + n, wf_plan_output_data(p, i), (size_t)elems * sizeof *out);
        n += elems;
    }
    wf_plan_free(&p);
    wf_graph_free(&g);
    return n;
}

/* How often cuDNN executed a plan for it, computed as the CPU does. */
static size_t executed_for(const layer *l)
{
    static float want[MOST_ELEMS], got[MOST_ELEMS];
    const size_t before = cuda_host_count().dnn_executed;
    const int64_t n = compute(l, &wf_cpu, want);

    assert_int_equal(compute(l, cuda_host_device(), got), n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5f * (1 + fabsf(want[i]))))
            fail_msg("[%d, %d, %d]: element %d is %g and not %g", (int)l->batch, (int)l->channels,
                     (int)l->inner, (int)i, (double)got[i], (double)want[i]);
    return cuda_host_count().dnn_executed - before;
}

static void training_goes_through_it(void **state)
{
    size_t executed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const layer l = {.batch = 2 + (int64_t)seed,
                         .channels = 1 + (int64_t)seed % 5,
                         .inner = seed % 3 ? 1 + (int64_t)seed % 7 : 1,
                         .is_grad = seed % 2,
                         .trains = true};

        cuda_host_seed(seed);
        executed += executed_for(&l);
    }
    assert_in_range(executed, SEEDS / 2, SEEDS); /* the host's cuDNN refuses some at random */
}

/* Its engines are compiled, which takes too long to measure several. */
static void one_engine_is_built_and_none_is_timed(void **state)
{
    static char folder[] = "/tmp/weft-cuda-norm-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("WEFT_CACHE", folder, 1);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const layer l = {.batch = 100 + (int64_t)seed, .channels = 4, .inner = 2, .trains = true};
        const size_t before = cuda_host_count().dnn_executed;
        wf_graph *g;
        wf_plan *p;

        cuda_host_seed(seed);
        p = plan_of(&l, cuda_host_device(), true, &g);
        assert_int_equal(cuda_host_count().dnn_executed, before);
        wf_plan_free(&p);
        wf_graph_free(&g);
    }
    unsetenv("WEFT_CACHE");
    assert_ok(wf_remove_tree(folder, &err), err);
}

static void the_rest_is_computed_as_before(void **state)
{
    const layer rest[] = {{.batch = 3, .channels = 4, .inner = 5},
                          {.batch = 3, .channels = 4, .inner = 5, .is_grad = true},
                          {.batch = 1, .channels = 4, .inner = 1, .trains = true}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rest); i++)
        assert_int_equal(executed_for(&rest[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_goes_through_it),
        cmocka_unit_test(one_engine_is_built_and_none_is_timed),
        cmocka_unit_test(the_rest_is_computed_as_before),
    };

    wf_log_init("", WF_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
