/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_ring_state.c - workers that add up their gradients: sums in halves, the files
 * of checkpoints, and an optimizer whose state is divided. */
#include "tests/unit/ring_world.h"

/* All have the bits of the rounded sums, of which a part is left for float32 alone. */
static void sums_may_travel_in_halves(void **state)
{
    static const int all[WORKERS] = {3, 4, 5}, both[WORKERS] = {6, 2, -1};
    const float *kernel;
    double most = 0;

    (void)state;
    turn(WORKERS);
    for (int s = 0; s < 3; s++) {
        make_steps(all, WORKERS);
        turn(WORKERS);
        want_step(all);
        check_weights();
    }
    for (uint32_t k = 0; k < WORKERS; k++) {
        const wf_exchange *x = w.workers[k].exchange;

        assert_true(x->plain_bytes - x->pushed_bytes == 3 * KERNEL * sizeof(uint16_t));
    }
    kernel = wf_exchange_weights(w.workers[0].exchange, 0, 0);
    for (uint64_t i = 0; i < KERNEL; i++)
        most = fmax(most, fabs(want[0][i] - kernel[i]));
    assert_true(most > 1e-6); /* they did */
    tell_one(0, 2, 3);
    tell_one(1, 2, 3);
    turn(2);
    for (int s = 0; s < 2; s++) {
        make_steps(both, 2);
        turn(2);
        want_step(both);
    }
    open_again(2);
    tell(3, 7);
    turn(WORKERS);
    check_weights();
}

/* A range with a number that a coding cannot say goes as it is. */
static void what_halves_cannot_say_travels_as_float32(void **state)
{
    const float *kernel;

    (void)state;
    turn(WORKERS);
    for (uint32_t k = 0; k < WORKERS; k++) {
        worker *it = &w.workers[k];
        float *g;

        it->step = 1;
        assert_int_equal(wf_exchange_want(it->exchange, 1, 1, NULL), WF_OK);
        wf_exchange_begin_step(it->exchange, 1, 1);
        g = wf_exchange_gradient(it->exchange, 1, 0);
        for (uint64_t i = 0; i < KERNEL; i++)
            g[i] = i == 5 ? 1e6F : 0.1F + (float)k;
        assert_int_equal(wf_exchange_push(it->exchange, 1, 0, NULL), WF_OK);
        assert_int_equal(wf_exchange_end_step(it->exchange, 1, NULL), WF_OK);
    }
    turn(WORKERS);
    kernel = wf_exchange_weights(w.workers[0].exchange, 0, 0);
    assert_true(fabs(kernel[5] - (first_value(0, 5) - 0.25 * 1e6)) < 0.1);
    assert_true(fabs(kernel[6] - (first_value(0, 6) - 0.25 * 1.1)) < 5e-3);
    for (uint32_t k = 1; k < WORKERS; k++)
        assert_memory_equal(wf_exchange_weights(w.workers[k].exchange, 0, 0), kernel,
                            KERNEL * sizeof(float));
}

/* The files that worker 0 knows of: each of another slice, and there. */
static void check_files(const char *const names[], const uint32_t writers[])
{
    const wf_exchange *x = w.workers[0].exchange;
    bool in[N] = {false};
    wf_err err;

    assert_true(wf_exchange_copied(x));
    assert_true(wf_exchange_saved(x));
    assert_int_equal(x->saving.n, WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++) {
        const Weft__Saved *saved = x->saving.shards[i].result;
        wf_disk_file *f = NULL;
        char path[128];
        uint64_t bytes = 0;

        assert_string_equal(saved->what, "");
        assert_string_equal(saved->file, names[i]);
        assert_int_equal(x->saving.shards[i].writer.index, writers[i]);
        for (size_t k = 0; k < saved->n_slices; k++) {
            assert_false(in[saved->slices[k]->slice]);
            in[saved->slices[k]->slice] = true;
        }
        snprintf(path, sizeof path, "/ckpt/j/tmp/%s", saved->file);
        assert_int_equal(wf_disk_open(wf_memdisk_disk(w.disk), path, WF_DISK_READ, &f, &err),
                         WF_OK);
        assert_int_equal(wf_disk_size(f, &bytes, &err), WF_OK);
        assert_int_equal(bytes, saved->bytes);
        assert_int_equal(wf_disk_close(&f, &err), WF_OK);
    }
    for (uint32_t v = 0; v < N; v++)
        assert_true(in[v]);
}

static void begin_save(void)
{
    wf_err err;

    assert_int_equal(wf_disk_make_dirs(wf_memdisk_disk(w.disk), "/ckpt/j/tmp", &err), WF_OK);
    assert_int_equal(wf_exchange_save_begin(w.workers[0].exchange, 7, "/ckpt/j/tmp", &err), WF_OK);
}

static uint64_t slots_of(uint32_t who)
{
    const wf_local *l = &((const wf_ring *)w.workers[who].exchange)->local;
    uint64_t n = 0;

    for (uint32_t v = 0; v < N; v++)
        n += l->variables[v].slots[0] ? counts[v] : 0;
    return n;
}

/* Their slots are each in one worker, which writes them; without it no step can be made. */
static void who_has_a_share_of_the_state_cannot_be_spared(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    static const char *const names[] = {"shard-00000-of-00003.safetensors",
                                        "shard-00001-of-00003.safetensors",
                                        "shard-00002-of-00003.safetensors"};
    wf_err err;

    (void)state;
    turn(WORKERS);
    assert_true(slots_of(0) + slots_of(1) + slots_of(2) == KERNEL + BIAS);
    assert_true(slots_of(0) && !slots_of(1) && slots_of(2)); /* worker 1 has the statistic */
    make_steps(all, WORKERS);
    turn(WORKERS);
    want_step(all);
    check_weights();
    begin_save();
    turn(WORKERS);
    check_files(names, (const uint32_t[]){10, 11, 12});
    wf_exchange_save_end(w.workers[0].exchange);
    tell(2, 7); /* nothing has changed */
    turn(WORKERS);
    w.weights_are_lost = true;
    make_steps(all, WORKERS);
    turn(WORKERS);
    assert_int_equal(wf_exchange_in_flight(w.workers[1].exchange), 1);
    /* Its own share is updated once. */
    assert_int_equal(wf_exchange_on_view(w.workers[0].exchange, &w.view, 3, &err), WF_AGAIN);
    w.view.n_members = 2;
    w.member_list[0] = &w.members[1];
    w.member_list[1] = &w.members[2];
    assert_int_equal(wf_exchange_on_view(w.workers[2].exchange, &w.view, 3, &err), WF_AGAIN);
    assert_non_null(strstr(err.what, "a share of the optimizer's state"));
    wf_exchange_on_down(w.workers[1].exchange, w.workers[1].peers[0]);
    assert_int_equal(wf_exchange_on_up(w.workers[1].exchange, w.workers[1].peers[0], &err),
                     WF_AGAIN);
}

/* Its step ends as if nothing had happened, for nobody: the master begins another generation. */
static void who_computes_while_a_share_is_lost_sends_nothing(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    worker *first = &w.workers[0];
    const wf_ring *ring = (const wf_ring *)first->exchange;
    uint64_t sent;
    uint32_t step;

    (void)state;
    turn(WORKERS);
    make_steps(all, WORKERS);
    turn(WORKERS);
    step = ++first->step;
    assert_int_equal(wf_exchange_want(first->exchange, (int)(step % WF_STEP_SETS), step, NULL),
                     WF_OK);
    wf_exchange_begin_step(first->exchange, step, 3);
    w.view.n_members = 2;
    w.member_list[0] = &w.members[0];
    w.member_list[1] = &w.members[1];
    assert_int_equal(wf_exchange_on_view(first->exchange, &w.view, 2, NULL), WF_AGAIN);
    assert_int_equal(wf_exchange_on_up(first->exchange, first->peers[1], NULL), WF_OK);
    sent = ring->order;
    for (uint32_t v = 0; v < N; v++) {
        if (v == 2)
            continue;
        memset(wf_exchange_gradient(first->exchange, step, v), 0, counts[v] * sizeof(float));
        assert_int_equal(wf_exchange_push(first->exchange, step, v, NULL), WF_OK);
    }
    assert_int_equal(wf_exchange_end_step(first->exchange, step, NULL), WF_OK);
    assert_int_equal(ring->order, sent);
    turn(WORKERS);
    assert_int_equal(wf_exchange_in_flight(first->exchange), 1);
}

static void each_writes_a_file_of_a_checkpoint(void **state)
{
    static const char *const names[] = {"shard-00000-of-00003.safetensors",
                                        "shard-00001-of-00003.safetensors",
                                        "shard-00002-of-00003.safetensors"};

    (void)state;
    turn(WORKERS);
    begin_save();
    assert_false(wf_exchange_copied(w.workers[0].exchange));
    turn(WORKERS);
    check_files(names, (const uint32_t[]){10, 11, 12});
    wf_exchange_save_end(w.workers[0].exchange);
}

/* One is lost before it has written its file, and one has just joined. */
static void whoever_saves_writes_what_another_cannot(void **state)
{
    static const char *const names[] = {"shard-00000-of-00003.safetensors",
                                        "shard-00001-of-00003.safetensors",
                                        "again-shard-00002-of-00003.safetensors"};

    (void)state;
    turn(WORKERS);
    begin_save();
    turn(2);
    assert_false(wf_exchange_saved(w.workers[0].exchange));
    tell_one(0, 2, 3);
    tell_one(1, 2, 3);
    turn(2);
    check_files(names, (const uint32_t[]){10, 11, 10});
    wf_exchange_save_end(w.workers[0].exchange);
    open_again(2);
    tell(3, 7);
    begin_save();
    turn(2); /* who has joined has not the values */
    assert_false(wf_exchange_saved(w.workers[0].exchange));
    turn(WORKERS);
    assert_true(wf_exchange_saved(w.workers[0].exchange));
}

#define RING(name, begin) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RING(who_has_a_share_of_the_state_cannot_be_spared, begin_divided),
        RING(who_computes_while_a_share_is_lost_sends_nothing, begin_divided),
        RING(sums_may_travel_in_halves, begin_bf16),
        RING(sums_may_travel_in_halves, begin_bf16_apart),
        RING(sums_may_travel_in_halves, begin_f16),
        RING(sums_may_travel_in_halves, begin_f16_apart),
        RING(what_halves_cannot_say_travels_as_float32, begin_f16),
        RING(what_halves_cannot_say_travels_as_float32, begin_f16_apart),
        RING(each_writes_a_file_of_a_checkpoint, begin),
        RING(whoever_saves_writes_what_another_cannot, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
