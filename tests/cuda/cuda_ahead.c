/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_ahead.c - what the next run is fed is copied while a run computes: the next run
 * has that content whatever order the streams run in, no kernel waits for the copy, and it costs
 * neither a wait nor memory in a step. */
#include "common/base/cc.h"
#include "common/base/rng.h"
#include "common/exec/exec.h"
#include "common/kernels/kernel.h"
#include "common/log/log.h"
#include "tests/cuda/host.h"
#include "tests/unit/graph_test.h"

#include <math.h>
#include <string.h>

enum { BATCH = 6, IN = 8, OUT = 3, SETS = 6, SEEDS = 30, X = BATCH * IN, Z = BATCH * OUT };

static wf_err err;

/* What is fed to the runs, and what they make of it on the cpu. */
static float x[SETS][X], z[SETS][Z], want[SETS][Z];

/* out = tanh(x w) z, for the host; and there, for the device, its double. */
static wf_graph *make(void)
{
    wf_graph *g = new_graph();
    wf_value *in[] = {input(g, "x", DIMS(BATCH, IN)), input(g, "w", DIMS(IN, OUT)),
                      input(g, "z", DIMS(BATCH, OUT))};
    wf_emit e = wf_emit_begin(g, "m", &err);
    wf_value *out = wf_emit_unary(&e, "Tanh", wf_emit_matmul(&e, in[0], in[1]));
    wf_value *there;

    out = wf_emit_mul(&e, out, in[2]);
    there = wf_emit_add(&e, out, out);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_rename_value(g, there, "there", &err), err);
    assert_ok(wf_graph_add_output(g, out, &err), err);
    assert_ok(wf_graph_add_output(g, there, &err), err);
    return g;
}

typedef struct fed {
    wf_plan *plan;
    uint32_t x, z;
    wf_buf *w, *there;
    wf_device_event *done; /* of `there`, in the run in hand */
} fed;

static const float *weights(void)
{
    static float w[IN * OUT];

    for (int i = 0; i < IN * OUT; i++)
        w[i] = (float)(i % 7 - 3) / 4;
    return w;
}

static wf_buf *room(const wf_device *d, size_t bytes)
{
    wf_buf *b = wf_buf_new_on(d, bytes);

    assert_non_null(b);
    return b;
}

static void open_fed(fed *f, const wf_device *d)
{
    static const char *const resident[] = {"w", "there"};
    wf_graph *g = make();
    wf_stream *stream = NULL;

    *f = (fed){.w = room(d, IN * OUT * sizeof(float)), .there = room(d, Z * sizeof(float))};
    assert_ok(wf_plan_new(g, &(wf_plan_options){.device = d, .resident = resident, .n_resident = 2},
                          &f->plan, &err),
              err);
    f->x = (uint32_t)wf_plan_find_input(f->plan, "x");
    f->z = (uint32_t)wf_plan_find_input(f->plan, "z");
    assert_ok(wf_stream_new(d, &stream, &err), err);
    assert_ok(wf_stream_copy(stream, WF_COPY_IN, f->w->data, weights(), f->w->bytes, &err), err);
    assert_ok(wf_stream_wait(stream, &err), err);
    wf_stream_free(&stream);
    wf_plan_bind_input(f->plan, (uint32_t)wf_plan_find_input(f->plan, "w"), f->w->data);
    wf_plan_bind_output(f->plan, (uint32_t)wf_plan_find_output(f->plan, "there"), f->there->data);
    wf_graph_free(&g);
}

static void close_fed(fed *f)
{
    wf_plan_free(&f->plan);
    wf_buf_unref(&f->w);
    wf_buf_unref(&f->there);
}

static wf_status note(void *arg, uint32_t i, wf_device_event *done, wf_err *e)
{
    fed *f = arg;

    (void)e;
    if (strcmp(wf_plan_output(f->plan, i)->name, "there") == 0)
        f->done = done;
    return WF_OK;
}

static void bind(const fed *f, int set)
{
    wf_plan_bind_input(f->plan, f->x, x[set]);
    wf_plan_bind_input(f->plan, f->z, z[set]);
}

static void start(fed *f, int set)
{
    bind(f, set);
    assert_ok(wf_plan_start(f->plan, &(wf_step_key){0}, note, f, &err), err);
}

static void bring(const fed *f, int set)
{
    assert_ok(wf_plan_bring_ahead(f->plan, f->x, x[set], &err), err);
    assert_ok(wf_plan_bring_ahead(f->plan, f->z, z[set], &err), err);
}

static const float *finish(const fed *f)
{
    assert_ok(wf_plan_wait(f->plan, &err), err);
    return wf_plan_output_data(f->plan, wf_plan_output(f->plan, 0)->device->is_host ? 0 : 1);
}

static void assert_near(const float *got, int set)
{
    for (int i = 0; i < Z; i++)
        if (!(fabsf(got[i] - want[set][i]) <= 1e-5f))
            fail_msg("set %d, element %d: %g, not %g", set, i, (double)got[i],
                     (double)want[set][i]);
}

/* Fresh numbers, and what the cpu makes of them. */
static void fill(uint64_t seed)
{
    fed f;

    for (uint64_t s = 0; s < SETS; s++) {
        for (uint64_t i = 0; i < X; i++)
            x[s][i] = 2 * wf_rng_f32((wf_rng_key){seed, s}, i) - 1;
        for (uint64_t i = 0; i < Z; i++)
            z[s][i] = wf_rng_f32((wf_rng_key){seed, SETS + s}, i) + 1;
    }
    open_fed(&f, &wf_cpu);
    for (int s = 0; s < SETS; s++) {
        start(&f, s);
        memcpy(want[s], finish(&f), sizeof want[s]);
    }
    close_fed(&f);
}

static void spoil(int set)
{
    memset(x[set], 0x7f, sizeof x[set]);
    memset(z[set], 0x7f, sizeof z[set]);
}

/* The host's copy is spoilt before the run that takes it begins. */
static void the_next_run_takes_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        fed f;

        cuda_host_seed(seed);
        fill(seed);
        open_fed(&f, cuda_host_device());
        for (int s = 0; s < SETS; s++) {
            if (s > 0)
                wf_plan_take_ahead(f.plan);
            start(&f, s);
            if (s + 1 < SETS)
                bring(&f, s + 1);
            assert_near(finish(&f), s);
            if (s + 1 < SETS)
                spoil(s + 1);
        }
        close_fed(&f);
    }
}

/* Without the word that it is for this run, or for memory that is not bound, or after another run,
 * what is bound is copied. */
static void what_is_not_for_a_run_is_left(void **state)
{
    fed f;

    (void)state;
    fill(3);
    open_fed(&f, cuda_host_device());
    start(&f, 0);
    bring(&f, 1);
    assert_near(finish(&f), 0);
    memcpy(x[1], x[2], sizeof x[1]); /* other numbers at the same place */
    memcpy(z[1], z[2], sizeof z[1]);
    start(&f, 1);
    bring(&f, 3);
    assert_near(finish(&f), 2);
    wf_plan_take_ahead(f.plan);
    start(&f, 4);
    bring(&f, 5);
    assert_near(finish(&f), 4);
    start(&f, 4);
    assert_near(finish(&f), 4);
    wf_plan_take_ahead(f.plan);
    memcpy(x[5], x[2], sizeof x[5]);
    memcpy(z[5], z[2], sizeof z[5]);
    start(&f, 5);
    assert_near(finish(&f), 2);
    close_fed(&f);
}

/* Copies are done when nothing else may run: what the host writes once the kernels are done is what
 * the next run gets. */
static void kernels_do_not_wait_for_it(void **state)
{
    fed f;

    (void)state;
    fill(4);
    open_fed(&f, cuda_host_device());
    cuda_host_copies_last(true);
    for (int s = 0; s < 3; s++) {
        if (s > 0)
            wf_plan_take_ahead(f.plan);
        start(&f, s);
        bring(&f, s + 1);
        assert_ok(wf_device_event_wait(f.done, &err), err);
        memcpy(x[s + 1], x[5], sizeof x[s + 1]);
        memcpy(z[s + 1], z[5], sizeof z[s + 1]);
        assert_near(finish(&f), s ? 5 : 0);
    }
    cuda_host_copies_last(false);
    close_fed(&f);
}

/* From the third run on, as without it; and a run that takes it copies nothing from the host. */
static void it_costs_neither_a_wait_nor_memory(void **state)
{
    cuda_host_counts before, started, after;
    size_t waits[2] = {0};

    (void)state;
    fill(5);
    for (int ahead = 0; ahead < 2; ahead++) {
        fed f;

        open_fed(&f, cuda_host_device());
        for (int s = 0; s < SETS; s++) {
            before = cuda_host_count();
            if (ahead && s > 0)
                wf_plan_take_ahead(f.plan);
            start(&f, s);
            started = cuda_host_count();
            if (ahead)
                bring(&f, (s + 1) % SETS);
            assert_near(finish(&f), s);
            after = cuda_host_count();
            if (s < 2)
                continue;
            assert_int_equal(after.made, before.made);
            assert_int_equal(after.bytes_in - before.bytes_in, (X + Z) * sizeof(float));
            assert_int_equal(started.bytes_in - before.bytes_in,
                             ahead ? 0 : (X + Z) * sizeof(float));
            waits[ahead] += after.waits - before.waits;
        }
        close_fed(&f);
    }
    assert_int_equal(waits[0], SETS - 2);
    assert_int_equal(waits[1], waits[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_run_takes_it),
        cmocka_unit_test(what_is_not_for_a_run_is_left),
        cmocka_unit_test(kernels_do_not_wait_for_it),
        cmocka_unit_test(it_costs_neither_a_wait_nor_memory),
    };

    wf_log_init("", WF_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
