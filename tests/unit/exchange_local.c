/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_local.c - a worker that holds its variables, in memory of the host or of a
 * GPU: updates are those of the rule, for any number of threads; what is saved is what a later one
 * begins with, wherever that has its variables. */
#include "common/ckpt/ckpt.h"
#include "common/ckpt/initial.h"
#include "common/optim/rule.h"
#include "common/optim/statistic.h"
#include "tests/cuda/host.h"
#include "tests/kit/memdisk.h"
#include "worker/exchange.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The kernel has more than one chunk of an update; a large one has more elements than are copied
 * to a device at a time. */
enum {
    ROWS = 300,
    MANY_ROWS = 4400,
    COLUMNS = 250,
    MEAN = 7,
    TABLE = 5,
    BIAS = 3,
    N = 4,
    MOST = MANY_ROWS * COLUMNS,
    STEPS = 4
};

typedef struct world {
    wf_memdisk *disk;
    wf_pool *pool;
    wf_exchange *exchange;
    wf_exchange_place place;
    wf_stream *stream; /* of the device, for the test's own copies */
    uint64_t rows_of_kernel;
    Weft__Start start;
    Weft__Variable rows[N], *list[N];
    Weft__Slice slices[N], *slice_list[N];
    int64_t dims[N][2];
} world;

static float first_value(uint32_t variable, uint64_t i)
{
    return (float)(variable + 1) * 0.5f + (float)(i % 97) * 0.01f;
}

static float gradient_value(uint32_t variable, uint32_t step, uint64_t i)
{
    return (float)((i * 7 + step * 13 + variable) % 31) * 0.02f - 0.3f;
}

static uint64_t count_of(const world *w, uint32_t variable)
{
    const uint64_t counts[N] = {w->rows_of_kernel * COLUMNS, MEAN, TABLE, BIAS};

    return counts[variable];
}

static void write_first_values(world *w)
{
    wf_shard_tensor tensors[N];
    wf_shard_writer *writer = NULL;
    char sum[WF_SUM_TEXT];
    uint64_t bytes;
    wf_err err;

    for (uint32_t v = 0; v < N; v++) {
        tensors[v] = (wf_shard_tensor){
            .name = w->rows[v].name, .dtype = WF_F32, .rank = (uint32_t)w->rows[v].n_dims};
        memcpy(tensors[v].dims, w->dims[v], sizeof w->dims[v]);
    }
    assert_int_equal(wf_disk_make_dirs(wf_memdisk_disk(w->disk), "/ckpt/j", &err), WF_OK);
    assert_int_equal(wf_shard_create(wf_memdisk_disk(w->disk), "/ckpt/j/" WF_INITIAL_NAME, tensors,
                                     N, NULL, 0, &writer, &err),
                     WF_OK);
    for (uint32_t v = 0; v < N; v++)
        for (uint64_t i = 0; i < count_of(w, v); i++) {
            float value = first_value(v, i);

            assert_int_equal(wf_shard_write(writer, &value, sizeof value, &err), WF_OK);
        }
    assert_int_equal(wf_shard_finish(&writer, &bytes, sum, &err), WF_OK);
}

static wf_status open_exchange(world *w, wf_err *err)
{
    return wf_exchange_open(&(wf_exchange_conf){.start = &w->start,
                                                .generation = 1,
                                                .incarnation = 0xAB,
                                                .disk = wf_memdisk_disk(w->disk),
                                                .pool = w->pool,
                                                .place = w->place},
                            &w->exchange, err);
}

/* From now on exchanges are opened by a worker with that place, or with none. */
static void move_to(world *w, const wf_device *device)
{
    wf_err err;

    wf_stream_free(&w->stream);
    w->place = (wf_exchange_place){device, device ? wf_updates_of(device) : NULL};
    if (device)
        assert_int_equal(wf_stream_new(device, &w->stream, &err), WF_OK);
}

static int begin_with(void **state, uint32_t threads, int64_t rows, const wf_device *device)
{
    static const uint32_t kinds[N] = {WF_KIND_TRAINABLE, WF_KIND_STATISTIC, WF_KIND_FROZEN,
                                      WF_KIND_TRAINABLE};
    static char *const names[N] = {"kernel", "mean", "table", "bias"};
    static world w;

    w = (world){.disk = wf_memdisk_new(),
                .rows_of_kernel = (uint64_t)rows,
                .dims = {{rows, COLUMNS}, {MEAN}, {TABLE}, {BIAS}}};
    move_to(&w, device);
    weft__start__init(&w.start);
    for (uint32_t v = 0; v < N; v++) {
        weft__variable__init(&w.rows[v]);
        w.rows[v].name = names[v];
        w.rows[v].dtype = WF_F32;
        w.rows[v].kind = kinds[v];
        w.rows[v].momentum = v == 1 ? 0.9 : 0;
        w.rows[v].dims = w.dims[v];
        w.rows[v].n_dims = v == 0 ? 2 : 1;
        w.list[v] = &w.rows[v];
        weft__slice__init(&w.slices[v]);
        w.slices[v].variable = v;
        w.slices[v].count = count_of(&w, v);
        w.slice_list[v] = &w.slices[v];
    }
    w.start.job = "j";
    w.start.checkpoint_dir = "/ckpt";
    w.start.strategy = "local";
    w.start.rule = "adam";
    w.start.initial = true;
    w.start.variables = w.list;
    w.start.n_variables = N;
    w.start.slices = w.slice_list;
    w.start.n_slices = N;
    write_first_values(&w);
    assert_int_equal(wf_pool_new(threads, &w.pool, NULL), WF_OK);
    assert_int_equal(open_exchange(&w, NULL), WF_OK);
    *state = &w;
    return 0;
}

static int begin(void **state)
{
    return begin_with(state, 1, ROWS, NULL);
}

static int begin_threads(void **state)
{
    return begin_with(state, 3, ROWS, NULL);
}

static int begin_gpu(void **state)
{
    return begin_with(state, 1, ROWS, cuda_host_device());
}

static int begin_large_gpu(void **state)
{
    return begin_with(state, 1, MANY_ROWS, cuda_host_device());
}

static int end(void **state)
{
    world *w = *state;

    wf_exchange_free(&w->exchange);
    wf_stream_free(&w->stream);
    wf_pool_free(&w->pool);
    wf_memdisk_free(&w->disk);
    return 0;
}

static const uint32_t trained[] = {0, 1, 3};

/* Writes a gradient as a plan does: behind the last update, which reads the one before. */
static void give(world *w, uint32_t step, uint32_t v)
{
    static float host[MOST];
    float *g = wf_exchange_gradient(w->exchange, step, v);
    size_t n = count_of(w, v);
    wf_err err;

    assert_non_null(g);
    for (uint64_t i = 0; i < n; i++)
        (w->place.device ? host : g)[i] = gradient_value(v, step, i);
    if (w->place.device) {
        assert_int_equal(wf_stream_after(w->stream, w->exchange->written, &err), WF_OK);
        assert_int_equal(wf_stream_copy(w->stream, WF_COPY_IN, g, host, n * sizeof *g, &err),
                         WF_OK);
        assert_int_equal(wf_stream_wait(w->stream, &err), WF_OK);
    }
    assert_int_equal(wf_exchange_push(w->exchange, step, v, NULL), WF_OK);
}

static void train_step(world *w, uint32_t step)
{
    for (size_t k = 0; k < WF_COUNT(trained); k++)
        give(w, step, trained[k]);
    assert_int_equal(wf_exchange_end_step(w->exchange, step, NULL), WF_OK);
}

/* The weights of a variable in memory of the host, until the next call. */
static const float *weights_of(const world *w, uint32_t v)
{
    static float copy[MOST];
    const float *at = wf_exchange_weights(w->exchange, 0, v);
    wf_err err;

    if (!w->place.device)
        return at;
    assert_int_equal(wf_stream_after(w->stream, w->exchange->written, &err), WF_OK);
    assert_int_equal(
        wf_stream_copy(w->stream, WF_COPY_OUT, copy, at, count_of(w, v) * sizeof *copy, &err),
        WF_OK);
    assert_int_equal(wf_stream_wait(w->stream, &err), WF_OK);
    return copy;
}

/* The same by the rule itself, over all elements at once. */
static void expect_trained(const world *w, uint32_t v, uint32_t first, uint32_t last)
{
    static float weights[MOST], g[MOST], slots[WF_MAX_SLOTS][MOST];
    float *slot_list[WF_MAX_SLOTS] = {slots[0], slots[1], slots[2], slots[3]};
    uint64_t n = count_of(w, v);
    wf_opt opt;

    assert_int_equal(wf_opt_init(&opt, w->start.rule, 0, NULL, NULL, NULL), WF_OK);
    for (uint64_t i = 0; i < n; i++)
        weights[i] = first_value(v, i);
    for (uint32_t k = 0; k < wf_opt_n_slots(&opt); k++)
        for (uint64_t i = 0; i < n; i++)
            slots[k][i] = wf_opt_slot_initial(&opt, k);
    for (uint32_t step = first; step <= last; step++) {
        for (uint64_t i = 0; i < n; i++)
            g[i] = gradient_value(v, step, i);
        wf_opt_apply(&opt, step - first + 1, n, weights, g, slot_list);
    }
    assert_memory_equal(weights_of(w, v), weights, n * sizeof *weights);
}

static void expect_after(const world *w, uint32_t steps)
{
    float mean[MEAN], g[MEAN];

    expect_trained(w, 0, 1, steps);
    expect_trained(w, 3, 1, steps);
    for (uint64_t i = 0; i < MEAN; i++)
        mean[i] = first_value(1, i);
    for (uint32_t step = 1; step <= steps; step++) {
        for (uint64_t i = 0; i < MEAN; i++)
            g[i] = gradient_value(1, step, i);
        wf_statistic_apply(0.9, MEAN, mean, g);
    }
    assert_memory_equal(weights_of(w, 1), mean, sizeof mean);
    for (uint64_t i = 0; i < TABLE; i++)
        assert_true(weights_of(w, 2)[i] == first_value(2, i));
}

static void updates_are_those_of_the_rule(void **state)
{
    world *w = *state;

    expect_after(w, 0);
    for (uint32_t step = 1; step <= STEPS; step++) {
        assert_int_equal(wf_exchange_want(w->exchange, step % 2, step, NULL), WF_OK);
        assert_true(wf_exchange_ready(w->exchange, step % 2));
        train_step(w, step);
        assert_int_equal(wf_exchange_in_flight(w->exchange), 0);
    }
    expect_after(w, STEPS);
}

static void a_dropped_step_changes_nothing(void **state)
{
    world *w = *state;

    train_step(w, 1);
    assert_non_null(wf_exchange_gradient(w->exchange, 2, 0));
    assert_int_equal(wf_exchange_drop_step(w->exchange, 2, NULL), WF_OK);
    assert_int_equal(wf_exchange_end_step(w->exchange, 2, NULL), WF_OK);
    expect_after(w, 1);
    assert_int_equal(w->exchange->acked, 2);
}

/* The manifest that a chief would write of what was saved. */
static void commit(world *w, const char *folder, uint64_t step)
{
    const Weft__Saved *saved = w->exchange->saving.shards[0].result;
    wf_ckpt_variable variables[WF_COUNT(trained)] = {0};
    wf_ckpt_slice slices[WF_COUNT(trained)];
    wf_ckpt_file file = {.name = saved->file, .bytes = saved->bytes};
    wf_ckpt_clock clock = {0, 0xAB, step};
    wf_manifest m = {.job = "j",
                     .digest = "0000000000000001",
                     .cut = {1, 1, 0xAB},
                     .global_step = step,
                     .variables = variables,
                     .n_variables = WF_COUNT(trained),
                     .files = &file,
                     .n_files = 1,
                     .clocks = &clock,
                     .n_clocks = 1,
                     .rule = "adam",
                     .weft = "test"};
    wf_err err = {0};

    snprintf(file.sum, sizeof file.sum, "%s", saved->xxh3);
    for (uint32_t k = 0; k < WF_COUNT(trained); k++) {
        uint32_t v = trained[k];

        variables[k].name = w->rows[v].name;
        variables[k].dtype = WF_F32;
        variables[k].rank = (uint32_t)w->rows[v].n_dims;
        memcpy(variables[k].dims, w->dims[v], sizeof w->dims[v]);
        variables[k].kind = v == 1 ? "statistic" : "trainable";
        slices[k] = (wf_ckpt_slice){0, count_of(w, v), 0, saved->slices[v]->updates};
        variables[k].slices = &slices[k];
        variables[k].n_slices = 1;
        variables[k].n_slots = v == 1 ? 0 : 2;
        variables[k].slots[0] = "momentum";
        variables[k].slots[1] = "velocity";
    }
    if (wf_ckpt_commit(wf_memdisk_disk(w->disk), "/ckpt", folder, &m, &err) != WF_OK)
        fail_msg("%s", err.what);
}

static void save_after_two_steps(world *w)
{
    char folder[WF_CKPT_PATH];

    train_step(w, 1);
    train_step(w, 2);
    assert_int_equal(wf_ckpt_begin(wf_memdisk_disk(w->disk), "/ckpt", "j", (wf_cut_id){1, 1, 0xAB},
                                   folder, NULL),
                     WF_OK);
    assert_int_equal(wf_exchange_save_begin(w->exchange, 1, folder, NULL), WF_OK);
    assert_true(wf_exchange_copied(w->exchange) && wf_exchange_saved(w->exchange));
    assert_string_equal(w->exchange->saving.shards[0].result->what, "");
    assert_int_equal(w->exchange->saving.shards[0].result->slices[0]->updates, 2);
    commit(w, folder, 2);
    wf_exchange_free(&w->exchange);
    w->start.initial = false;
    w->start.restore_step = 2;
}

static void open_again(world *w)
{
    wf_err err = {0};

    wf_exchange_free(&w->exchange);
    if (open_exchange(w, &err) != WF_OK)
        fail_msg("%s", err.what);
}

static void what_is_saved_is_what_a_later_one_begins_with(void **state)
{
    world *w = *state;

    save_after_two_steps(w);
    open_again(w);
    expect_after(w, 2);
    train_step(w, 1); /* steps of a generation begin anew; the updates of a slice go on */
    open_again(w);
    expect_after(w, 2);
}

/* Slots and the number of updates too: the steps that follow have the same bits in either place. */
static void what_a_gpu_saves_goes_on_anywhere(void **state)
{
    static float here[MOST];
    world *w = *state;
    size_t bytes = count_of(w, 0) * sizeof(float);

    save_after_two_steps(w);
    open_again(w);
    train_step(w, 1);
    memcpy(here, weights_of(w, 0), bytes);
    wf_exchange_free(&w->exchange);
    move_to(w, NULL);
    open_again(w);
    train_step(w, 1);
    assert_memory_equal(weights_of(w, 0), here, bytes);
}

static void a_disk_that_is_full_is_told_and_nothing_is_lost(void **state)
{
    world *w = *state;
    char folder[WF_CKPT_PATH];

    train_step(w, 1);
    assert_int_equal(wf_ckpt_begin(wf_memdisk_disk(w->disk), "/ckpt", "j", (wf_cut_id){1, 1, 0xAB},
                                   folder, NULL),
                     WF_OK);
    wf_memdisk_fill(w->disk, true);
    assert_int_equal(wf_exchange_save_begin(w->exchange, 1, folder, NULL), WF_OK);
    assert_true(wf_exchange_saved(w->exchange));
    assert_non_null(strstr(w->exchange->saving.shards[0].result->what, "shard-00000-of-00001"));
    wf_exchange_save_end(w->exchange);
    assert_false(wf_exchange_saved(w->exchange));
    expect_after(w, 1);
}

static void a_start_that_does_not_fit_is_refused(void **state)
{
    world *w = *state;
    wf_err err = {0};

    wf_exchange_free(&w->exchange);
    w->start.strategy = "telepathy";
    assert_int_equal(open_exchange(w, &err), WF_PROTO);
    w->start.strategy = "local";
    w->slices[1].variable = N;
    assert_int_equal(open_exchange(w, &err), WF_PROTO);
    w->slices[1].variable = 1;
    w->dims[0][0] = INT64_MAX / 2;
    assert_int_equal(open_exchange(w, &err), WF_PROTO);
    w->dims[0][0] = -1;
    assert_int_equal(open_exchange(w, &err), WF_PROTO);
    w->dims[0][0] = ROWS + 1;
    assert_int_not_equal(open_exchange(w, &err), WF_OK); /* the file holds less */
    w->dims[0][0] = ROWS;
    w->rows[2].name = "nobody";
    assert_int_equal(open_exchange(w, &err), WF_CORRUPT);
    assert_null(w->exchange);
}

/* Slots that do not begin as zeros. */
static void slots_begin_as_the_rule_says(void **state)
{
    world *w = *state;

    w->start.rule = "adagrad";
    open_again(w);
    train_step(w, 1);
    train_step(w, 2);
    expect_after(w, 2);
}

/* Variables that have had different numbers of updates are corrected for bias by their own. */
static void each_variable_counts_its_updates(void **state)
{
    world *w = *state;

    give(w, 1, 0);
    assert_int_equal(wf_exchange_end_step(w->exchange, 1, NULL), WF_OK);
    train_step(w, 2);
    expect_trained(w, 0, 1, 2);
    expect_trained(w, 3, 2, 2);
}

/* A step queues the update, the average and nothing else, and the host waits for nothing. */
static void a_step_on_a_gpu_copies_nothing(void **state)
{
    world *w = *state;
    cuda_host_counts before, after;

    train_step(w, 1);
    for (size_t k = 0; k < WF_COUNT(trained); k++)
        give(w, 2, trained[k]);
    before = cuda_host_count();
    assert_int_equal(wf_exchange_end_step(w->exchange, 2, NULL), WF_OK);
    after = cuda_host_count();
    assert_int_equal(after.queued - before.queued, 2);
    assert_int_equal(after.made - before.made, 0);
    assert_int_equal(after.waits - before.waits, 0);
    expect_after(w, 2);
}

static void set_option(world *w, char *name, double value)
{
    static Weft__Option option, *list[1] = {&option};

    weft__option__init(&option);
    option.name = name;
    option.value = value;
    w->start.options = list;
    w->start.n_options = 1;
}

/* What a missing push leaves out, and memory that norms take. */
static void gradients_are_clipped_on_a_gpu(void **state)
{
    world *w = *state;
    static float seen[MOST];
    size_t bytes = count_of(w, 0) * sizeof(float);
    wf_err err;

    set_option(w, "global_clipnorm", 0.001);
    w->start.rule =
        "sgd"; /* by its learning rate of 0.01 a step moves 1e-5 at most, instead of 3e-3 */
    open_again(w);
    give(w, 1, 0);
    assert_int_equal(wf_exchange_end_step(w->exchange, 1, NULL), WF_OK);
    memcpy(seen, weights_of(w, 0), bytes);
    for (uint64_t i = 0; i < count_of(w, 0); i++)
        assert_true(fabsf(seen[i] - first_value(0, i)) <= 1.1e-5F);
    train_step(w, 2);
    for (uint64_t i = 0; i < BIAS; i++)
        assert_true(fabsf(weights_of(w, 3)[i] - first_value(3, i)) <= 1.1e-5F);
    wf_exchange_free(&w->exchange);
    cuda_host_fail("alloc", 2 + 2 + 1 + 2, 2); /* those of kernel, mean, table and bias */
    assert_int_equal(open_exchange(w, &err), WF_NOMEM);
    assert_string_equal(err.what, "cuda-host:0 has no 464 bytes left for the norms of gradients");
    cuda_host_fail(NULL, 0, 0);
    open_again(w);
}

/* Sums of squares of some gradients; and a step that is clipped by a norm that others have a part
 * in: by sgd with a learning rate of 0.01 and a limit of 1. */
static void gradients_on_a_gpu_are_clipped_by_a_norm_from_outside(void **state)
{
    static const double norms[] = {0.5, 4};
    const bool of[N] = {true, true, true, false};
    double sums[N], want = 0;
    world *w = *state;
    wf_err err;

    set_option(w, "global_clipnorm", 1);
    w->start.rule = "sgd";
    for (size_t k = 0; k < WF_COUNT(norms); k++) {
        float by = norms[k] > 1 ? 0.25F : 1;

        open_again(w);
        give(w, 1, 0);
        for (uint32_t v = 0; v < N; v++)
            sums[v] = -1;
        assert_int_equal(wf_exchange_squares(w->exchange, of, sums, &err), WF_OK);
        want = 0;
        for (uint64_t i = 0; i < count_of(w, 0); i++)
            want += (double)gradient_value(0, 1, i) * (double)gradient_value(0, 1, i);
        assert_true(fabs(sums[0] - want) < 1e-9 * want && want > 0);
        for (uint32_t v = 1; v < N; v++) /* a statistic, a frozen one, and one that is not named */
            assert_true(sums[v] == 0);
        wf_exchange_clip_by(w->exchange, norms[k]);
        assert_int_equal(wf_exchange_end_step(w->exchange, 1, &err), WF_OK);
        for (uint64_t i = 0; i < count_of(w, 0); i++)
            assert_true(fabsf(weights_of(w, 0)[i] - first_value(0, i) +
                              0.01F * by * gradient_value(0, 1, i)) < 1e-6F);
    }
}

/* Weights, gradient and two slots of the kernel and the bias; weights and value of the mean;
 * weights of the table. */
static void memory_of_a_gpu_that_is_missing_is_named(void **state)
{
    const size_t kernel = ROWS * COLUMNS * sizeof(float);
    static const char *const arrays[] = {"weights", "momentum", "velocity", "gradient"};
    world *w = *state;
    char want[100];
    wf_err err;

    wf_exchange_free(&w->exchange);
    assert_int_equal(cuda_host_count().held, 0);
    for (size_t k = 0; k < WF_COUNT(arrays); k++) {
        cuda_host_has_memory((k + 1) * kernel - 1);
        assert_int_equal(open_exchange(w, &err), WF_NOMEM);
        snprintf(want, sizeof want, "cuda-host:0 has no %zu bytes left for the %s of \"kernel\"",
                 kernel, arrays[k]);
        assert_string_equal(err.what, want);
        assert_non_null(strstr(err.hint, "lower the batch"));
        assert_int_equal(cuda_host_count().held, 0);
    }
    cuda_host_has_memory(4 * kernel + 1000);
    assert_int_equal(open_exchange(w, &err), WF_OK);
    cuda_host_has_memory((size_t)8 << 30);
}

static void a_gpu_that_fails_is_told(void **state)
{
    static const char *const calls[] = {"stream_new", "event_new", "copy"};
    world *w = *state;
    wf_err err;

    wf_exchange_free(&w->exchange);
    for (size_t k = 0; k < WF_COUNT(calls); k++) {
        cuda_host_fail(calls[k], 0, 79);
        assert_int_equal(open_exchange(w, &err), WF_BROKEN);
        assert_non_null(strstr(err.what, "CUDA error 79"));
        assert_null(w->exchange);
    }
    cuda_host_fail(NULL, 0, 0);
    open_again(w);
    for (size_t k = 0; k < WF_COUNT(trained); k++)
        give(w, 1, trained[k]);
    cuda_host_fail("launch", 0, 79);
    assert_int_equal(wf_exchange_end_step(w->exchange, 1, &err), WF_BROKEN);
    assert_non_null(strstr(err.what, "updating variables: cuda-host:0: "));
    cuda_host_fail(NULL, 0, 0);
}

/* Tables. */
static void some_variables_stay_on_the_host(void **state)
{
    static char *const options[] = {"clipvalue", "clipnorm", "global_clipnorm", "learning_rate",
                                    "gradient_accumulation_steps"};
    const wf_device *gpu = cuda_host_device();
    world *w = *state;

    assert_ptr_equal(wf_exchange_home(&w->start, gpu, 0), gpu);
    assert_ptr_equal(wf_exchange_home(&w->start, NULL, 0), &wf_cpu);
    w->rows[0].rows_most = 10;
    assert_ptr_equal(wf_exchange_home(&w->start, gpu, 0), &wf_cpu);
    assert_ptr_equal(wf_exchange_home(&w->start, gpu, 3), gpu);
    w->rows[0].rows_most = 0;
    for (size_t k = 0; k < WF_COUNT(options); k++) {
        set_option(w, options[k], k == 4 ? 2 : 0.5);
        assert_ptr_equal(wf_exchange_home(&w->start, gpu, 0), gpu);
    }
    w->start.n_options = 0;
    w->start.strategy = "parameter_server";
    assert_ptr_equal(wf_exchange_home(&w->start, gpu, 0), &wf_cpu);
    w->start.strategy = "telepathy";
    assert_ptr_equal(wf_exchange_home(&w->start, gpu, 0), &wf_cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(updates_are_those_of_the_rule, begin, end),
        cmocka_unit_test_setup_teardown(updates_are_those_of_the_rule, begin_threads, end),
        cmocka_unit_test_setup_teardown(updates_are_those_of_the_rule, begin_gpu, end),
        cmocka_unit_test_setup_teardown(updates_are_those_of_the_rule, begin_large_gpu, end),
        cmocka_unit_test_setup_teardown(slots_begin_as_the_rule_says, begin, end),
        cmocka_unit_test_setup_teardown(slots_begin_as_the_rule_says, begin_gpu, end),
        cmocka_unit_test_setup_teardown(each_variable_counts_its_updates, begin, end),
        cmocka_unit_test_setup_teardown(each_variable_counts_its_updates, begin_gpu, end),
        cmocka_unit_test_setup_teardown(a_step_on_a_gpu_copies_nothing, begin_gpu, end),
        cmocka_unit_test_setup_teardown(a_dropped_step_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_dropped_step_changes_nothing, begin_gpu, end),
        cmocka_unit_test_setup_teardown(what_is_saved_is_what_a_later_one_begins_with,
                                        begin_threads, end),
        cmocka_unit_test_setup_teardown(what_is_saved_is_what_a_later_one_begins_with,
                                        begin_large_gpu, end),
        cmocka_unit_test_setup_teardown(what_a_gpu_saves_goes_on_anywhere, begin_large_gpu, end),
        cmocka_unit_test_setup_teardown(gradients_are_clipped_on_a_gpu, begin_gpu, end),
        cmocka_unit_test_setup_teardown(gradients_on_a_gpu_are_clipped_by_a_norm_from_outside,
                                        begin_gpu, end),
        cmocka_unit_test_setup_teardown(memory_of_a_gpu_that_is_missing_is_named, begin_gpu, end),
        cmocka_unit_test_setup_teardown(a_gpu_that_fails_is_told, begin_gpu, end),
        cmocka_unit_test_setup_teardown(some_variables_stay_on_the_host, begin, end),
        cmocka_unit_test_setup_teardown(a_disk_that_is_full_is_told_and_nothing_is_lost, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_start_that_does_not_fit_is_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
