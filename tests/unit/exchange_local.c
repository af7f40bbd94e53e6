/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_local.c - a worker that holds its variables: updates are those of the rule,
 * for any number of threads; what is saved is what a later one begins with. */
#include "common/ckpt/ckpt.h"
#include "common/ckpt/initial.h"
#include "common/optim/rule.h"
#include "common/optim/statistic.h"
#include "tests/kit/memdisk.h"
#include "worker/exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The kernel has more than one chunk of an update. */
enum { ROWS = 300, COLUMNS = 250, KERNEL = ROWS * COLUMNS, MEAN = 7, TABLE = 5, N = 3, STEPS = 4 };

typedef struct world {
    wf_memdisk *disk;
    wf_pool *pool;
    wf_exchange *exchange;
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

static uint64_t count_of(uint32_t variable)
{
    return variable == 0 ? KERNEL : variable == 1 ? MEAN : TABLE;
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
        for (uint64_t i = 0; i < count_of(v); i++) {
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
                                                .pool = w->pool},
                            &w->exchange, err);
}

static int begin_with(void **state, uint32_t threads)
{
    static const uint32_t kinds[N] = {WF_KIND_TRAINABLE, WF_KIND_STATISTIC, WF_KIND_FROZEN};
    static char *const names[N] = {"kernel", "mean", "table"};
    static world w;

    w = (world){.disk = wf_memdisk_new(), .dims = {{ROWS, COLUMNS}, {MEAN}, {TABLE}}};
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
        w.slices[v].count = count_of(v);
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
    return begin_with(state, 1);
}

static int begin_threads(void **state)
{
    return begin_with(state, 3);
}

static int end(void **state)
{
    world *w = *state;

    wf_exchange_free(&w->exchange);
    wf_pool_free(&w->pool);
    wf_memdisk_free(&w->disk);
    return 0;
}

static void train_step(world *w, uint32_t step)
{
    for (uint32_t v = 0; v < 2; v++) {
        float *g = wf_exchange_gradient(w->exchange, step, v);

        for (uint64_t i = 0; i < count_of(v); i++)
            g[i] = gradient_value(v, step, i);
        assert_int_equal(wf_exchange_push(w->exchange, step, v, NULL), WF_OK);
    }
    assert_int_equal(wf_exchange_end_step(w->exchange, step, NULL), WF_OK);
}

/* The same by the rule itself, over all elements at once. */
static void expect_after(const world *w, uint32_t steps)
{
    static float kernel[KERNEL], g[KERNEL], slots[WF_MAX_SLOTS][KERNEL];
    float *slot_list[WF_MAX_SLOTS] = {slots[0], slots[1], slots[2], slots[3]}, mean[MEAN];
    wf_opt opt;

    assert_int_equal(wf_opt_init(&opt, "adam", 0, NULL, NULL, NULL), WF_OK);
    for (uint64_t i = 0; i < KERNEL; i++)
        kernel[i] = first_value(0, i);
    for (uint64_t i = 0; i < MEAN; i++)
        mean[i] = first_value(1, i);
    memset(slots, 0, sizeof slots);
    for (uint32_t step = 1; step <= steps; step++) {
        for (uint64_t i = 0; i < KERNEL; i++)
            g[i] = gradient_value(0, step, i);
        wf_opt_apply(&opt, step, KERNEL, kernel, g, slot_list);
        for (uint64_t i = 0; i < MEAN; i++)
            g[i] = gradient_value(1, step, i);
        wf_statistic_apply(0.9, MEAN, mean, g);
    }
    assert_memory_equal(wf_exchange_weights(w->exchange, 0, 0), kernel, sizeof kernel);
    assert_memory_equal(wf_exchange_weights(w->exchange, 0, 1), mean, sizeof mean);
    for (uint64_t i = 0; i < TABLE; i++)
        assert_true(wf_exchange_weights(w->exchange, 0, 2)[i] == first_value(2, i));
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
    wf_ckpt_variable variables[2] = {0};
    wf_ckpt_slice slices[2];
    wf_ckpt_file file = {.name = saved->file, .bytes = saved->bytes};
    wf_ckpt_clock clock = {0, 0xAB, step};
    wf_manifest m = {.job = "j",
                     .digest = "0000000000000001",
                     .cut = {1, 1, 0xAB},
                     .global_step = step,
                     .variables = variables,
                     .n_variables = 2,
                     .files = &file,
                     .n_files = 1,
                     .clocks = &clock,
                     .n_clocks = 1,
                     .rule = "adam",
                     .weft = "test"};
    wf_err err = {0};

    snprintf(file.sum, sizeof file.sum, "%s", saved->xxh3);
    for (uint32_t v = 0; v < 2; v++) {
        variables[v].name = w->rows[v].name;
        variables[v].dtype = WF_F32;
        variables[v].rank = (uint32_t)w->rows[v].n_dims;
        memcpy(variables[v].dims, w->dims[v], sizeof w->dims[v]);
        variables[v].kind = v == 0 ? "trainable" : "statistic";
        slices[v] = (wf_ckpt_slice){0, count_of(v), 0, saved->slices[v]->updates};
        variables[v].slices = &slices[v];
        variables[v].n_slices = 1;
    }
    variables[0].slots[0] = "momentum";
    variables[0].slots[1] = "velocity";
    variables[0].n_slots = 2;
    if (wf_ckpt_commit(wf_memdisk_disk(w->disk), "/ckpt", folder, &m, &err) != WF_OK)
        fail_msg("%s", err.what);
}

static void what_is_saved_is_what_a_later_one_begins_with(void **state)
{
    world *w = *state;
    char folder[WF_CKPT_PATH];
    wf_err err = {0};

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
    if (open_exchange(w, &err) != WF_OK)
        fail_msg("%s", err.what);
    expect_after(w, 2);
    train_step(w, 1); /* steps of a generation begin anew; the updates of a slice go on */
    wf_exchange_free(&w->exchange);
    assert_int_equal(open_exchange(w, &err), WF_OK);
    expect_after(w, 2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(updates_are_those_of_the_rule, begin, end),
        cmocka_unit_test_setup_teardown(updates_are_those_of_the_rule, begin_threads, end),
        cmocka_unit_test_setup_teardown(a_dropped_step_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(what_is_saved_is_what_a_later_one_begins_with,
                                        begin_threads, end),
        cmocka_unit_test_setup_teardown(a_disk_that_is_full_is_told_and_nothing_is_lost, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_start_that_does_not_fit_is_refused, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
