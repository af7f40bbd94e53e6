/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exchange_ring_gpu.c - workers that add up their gradients, with variables on GPUs: of
 * a step the means go there, once, and the bits are those of workers without one; whoever joins or
 * is behind gets values there, and files and shares of the state come from there. */
#include "tests/unit/ring_world.h"

/* Who is idle makes no run that would wait for the update before. */
static void means_are_weighted_and_equal_wherever_variables_are(void **state)
{
    static const int plan[][WORKERS] = {{8, 8, 8},   {5, -1, 3}, {-1, -1, 7}, {6, 0, 2},
                                        {-1, 3, -1}, {0, 0, 0},  {-1, 9, 2},  {2, -1, 2}};

    (void)state;
    turn(WORKERS);
    for (size_t s = 0; s < WF_COUNT(plan); s++) {
        make_steps(plan[s], WORKERS);
        turn(WORKERS);
        want_step(plan[s]);
        if (s % 3 == 1) /* a look waits for all that was queued: not each time */
            check_weights();
    }
    check_weights();
}

/* A pair, and one that is left alone, whose means are its own gradients. */
static void fewer_are_left(void **state)
{
    static const int all[WORKERS] = {3, 4, 5}, both[WORKERS] = {6, 2, -1},
                     one[WORKERS] = {4, -1, -1};

    (void)state;
    turn(WORKERS);
    make_steps(all, WORKERS);
    turn(WORKERS);
    want_step(all);
    tell(2, 3);
    for (int s = 0; s < 4; s++) {
        turn(2);
        make_steps(both, 2);
        turn(2);
        want_step(both);
    }
    check_weights_of(2);
    tell_one(0, 3, 1);
    for (int s = 0; s < 4; s++) {
        run_worker(&w.workers[0]);
        make_step(0, 4);
        want_step(one);
    }
    tell_one(0, 4, 1); /* it begins anew while the device reads its gradients */
    make_step(0, 4);
    want_step(one);
    check_weights_of(1);
    open_again(2);
    tell_one(0, 5, 5);
    tell_one(2, 5, 5);
    turn(1);
    make_step(0, 3);
    make_step(2, 5);
    turn(1);
    want_step((const int[WORKERS]){3, -1, 5});
    check_weights_of(1);
}

/* One has applied a step that the other has not, which then gets the values. */
static void who_is_behind_or_joins_gets_the_values(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};

    (void)state;
    turn(WORKERS);
    make_step_of_first(all);
    tell(2, 3);
    turn(2);
    check_weights_of(2);
    open_again(2);
    tell(3, 7);
    turn(WORKERS);
    check_weights();
    make_steps(all, WORKERS);
    turn(WORKERS);
    want_step(all);
    check_weights();
}

/* Whatever messages are lost with it: gradients that were given are given again. */
static void a_step_begins_anew_when_a_link_was_lost(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};

    (void)state;
    turn(WORKERS);
    for (uint32_t round = 0; round < 6; round++) {
        wf_peer *peer = w.workers[0].peers[1 + round % 2];

        make_steps(all, WORKERS);
        for (uint32_t i = 0; i < round; i++) {
            run_worker(&w.workers[i % WORKERS]);
            w.now_ns += MS;
        }
        wf_exchange_on_down(w.workers[0].exchange, peer);
        for (uint32_t i = 0; i < WORKERS; i++)
            run_worker(&w.workers[(i + round) % WORKERS]);
        assert_int_equal(wf_exchange_on_up(w.workers[0].exchange, peer, NULL), WF_OK);
        turn(WORKERS);
        want_step(all);
        check_weights();
    }
}

/* Numbers that go in and out of the GPUs of all three. */
static void check_copies(const cuda_host_counts *before, uint64_t in, uint64_t out)
{
    const cuda_host_counts now = cuda_host_count();

    assert_int_equal(now.bytes_in - before->bytes_in, in * sizeof(float));
    assert_int_equal(now.bytes_out - before->bytes_out, out * sizeof(float));
    assert_int_equal(now.bytes_by_hand - before->bytes_by_hand, 0);
    assert_int_equal(now.made - before->made, 0);
}

/* The means of what is trained or averaged, from pinned memory. The host waits for nothing, but for
 * the update before where it makes means itself: that is over. */
static void of_a_step_the_means_go_to_the_device(void **state)
{
    static const int all[WORKERS] = {3, 4, 5}, both[WORKERS] = {3, 4, -1};
    cuda_host_counts before;

    (void)state;
    turn(WORKERS);
    for (int s = 0; s < 4; s++) {
        const uint64_t n = KERNEL + MEAN + BIAS, workers = s < 2 ? WORKERS : 2;

        if (s == 2)
            tell(2, 3);
        turn((uint32_t)workers);
        before = cuda_host_count();
        make_steps(s < 2 ? all : both, (uint32_t)workers);
        turn((uint32_t)workers);
        want_step(s < 2 ? all : both);
        assert_int_equal(wf_device_event_wait(w.workers[0].exchange->written, NULL), WF_OK);
        if (s % 2) { /* memory of the first step is there */
            for (uint32_t k = 1; k < workers; k++)
                assert_int_equal(wf_device_event_wait(w.workers[k].exchange->written, NULL), WF_OK);
            check_copies(&before, workers * n, 0);
        }
    }
    check_weights_of(2);
}

/* Each updates its share, whose weights come out once and go in once at each of the others. */
static void weights_of_shares_are_copied_once(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    cuda_host_counts before = {0};

    (void)state;
    turn(WORKERS);
    for (int s = 0; s < 4; s++) {
        before = cuda_host_count();
        make_steps(all, WORKERS);
        turn(WORKERS);
        want_step(all);
    }
    for (uint32_t k = 0; k < WORKERS; k++)
        assert_int_equal(wf_device_event_wait(w.workers[k].exchange->written, NULL), WF_OK);
    check_copies(&before, WORKERS * (KERNEL + MEAN + BIAS) + (WORKERS - 1) * (KERNEL + BIAS),
                 KERNEL + BIAS);
    check_weights();
}

static void set_clipvalue(void)
{
    static Weft__Option *list[3], clip;

    weft__option__init(&clip);
    clip.name = "clipvalue";
    clip.value = 1e-6;
    list[0] = &w.options[0];
    list[1] = &w.options[1];
    list[2] = &clip;
    w.start.options = list;
    w.start.n_options = 3;
}

/* Gradients were clipped before they left (worker/gradients.h): the mean is not. Nor is there
 * memory for one gradient of several batches, which are added up on the host. */
static void means_are_not_clipped(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    const size_t plain = wf_exchange_device_bytes(&w.start, cuda_host_device());

    (void)state;
    set_clipvalue();
    for (uint32_t i = 0; i < WORKERS; i++) {
        wf_exchange_free(&w.workers[i].exchange);
        open_exchange(i, false);
    }
    tell(2, 7);
    turn(WORKERS);
    make_steps(all, WORKERS);
    turn(WORKERS);
    want_step(all);
    check_weights();
    assert_int_equal(plain, ((KERNEL + BIAS) * 3 + MEAN * 2 + TABLE) * sizeof(float));
    w.start.options[2]->name = "gradient_accumulation_steps";
    w.start.options[2]->value = 4;
    assert_int_equal(wf_exchange_device_bytes(&w.start, cuda_host_device()), plain);
}

/* Where variables live, and where their gradients do not. */
static void dense_variables_live_on_the_device(void **state)
{
    const wf_device *gpu = cuda_host_device();

    (void)state;
    assert_ptr_equal(wf_exchange_home(&w.start, gpu, 0), gpu);
    assert_true(wf_exchange_sends(&w.start));
    w.start.strategy = "hybrid";
    assert_ptr_equal(wf_exchange_home(&w.start, gpu, 0), &wf_cpu);
    w.rows[0].on_workers = true;
    assert_ptr_equal(wf_exchange_home(&w.start, gpu, 0), gpu);
    assert_ptr_equal(wf_exchange_home(&w.start, NULL, 0), &wf_cpu);
    assert_true(wf_exchange_sends(&w.start));
    assert_int_equal(wf_exchange_device_bytes(&w.start, gpu), 3 * KERNEL * sizeof(float));
    w.start.strategy = "local";
    assert_false(wf_exchange_sends(&w.start));
    w.start.strategy = "multi_worker_mirrored";
}

static void a_gpu_that_fails_is_told(void **state)
{
    static const int all[WORKERS] = {3, 4, 5};
    uint32_t failed = 0;

    (void)state;
    turn(WORKERS);
    make_steps(all, WORKERS);
    cuda_host_fail("copy", 0, 79);
    for (int k = 0; k < 30 * WORKERS; k++) {
        run_worker(&w.workers[k % WORKERS]);
        w.now_ns += 2 * MS;
    }
    cuda_host_fail(NULL, 0, 0);
    for (uint32_t k = 0; k < WORKERS; k++) {
        if (w.workers[k].says == WF_OK)
            continue;
        failed++;
        assert_int_equal(w.workers[k].says, WF_BROKEN);
        assert_non_null(strstr(w.workers[k].why.what, "bringing means: cuda-host:"));
    }
    assert_int_equal(failed, 1);
}

/* Whoever reads the weights of both parts finds the event behind updates of those on the device. */
static void a_hybrid_tells_of_updates_on_the_device(void **state)
{
    wf_err err;

    (void)state;
    w.start.strategy = "hybrid";
    for (uint32_t v = 0; v < N; v++)
        w.rows[v].on_workers = true;
    wf_exchange_free(&w.workers[0].exchange);
    w.on_gpu[0] = true;
    open_exchange(0, false);
    assert_non_null(w.workers[0].exchange->written);
    assert_ptr_equal(w.workers[0].exchange->written->device, cuda_host_gpu(0));
    assert_int_equal(wf_device_event_wait(w.workers[0].exchange->written, &err), WF_OK);
    w.start.strategy = "multi_worker_mirrored";
}

/* Each array in turn is the one that lacks room. */
static void memory_of_a_gpu_that_is_missing_is_named(void **state)
{
    static const char *const wanted[] = {"the weights of \"kernel\"", "the momentum of \"kernel\"",
                                         "the mean gradients of a step"};
    const wf_device *gpu = cuda_host_gpu(0);
    wf_exchange_conf conf = {.start = &w.start,
                             .net = w.workers[0].net,
                             .incarnation = 100,
                             .disk = wf_memdisk_disk(w.disk),
                             .place = {.device = gpu, .updates = wf_updates_of(gpu)}};
    wf_err err;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(wanted); i++) {
        wf_exchange_free(&w.workers[0].exchange);
        cuda_host_has_memory(i * (KERNEL + N * 64) * sizeof(float) + (KERNEL / 2) * sizeof(float));
        assert_int_equal(wf_exchange_open(&conf, &w.workers[0].exchange, &err), WF_NOMEM);
        assert_non_null(strstr(err.what, wanted[i]));
        assert_null(w.workers[0].exchange);
    }
    cuda_host_has_memory((size_t)8 << 30);
    assert_int_equal(cuda_host_count().held, 0);
    assert_int_equal(cuda_host_count().streams, 0);
}

#define RING(name, begin) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RING(means_are_weighted_and_equal_wherever_variables_are, begin_gpus),
        RING(means_are_weighted_and_equal_wherever_variables_are, begin_gpus_apart),
        RING(means_are_weighted_and_equal_wherever_variables_are, begin_one_gpu),
        RING(means_are_weighted_and_equal_wherever_variables_are, begin_divided_gpus),
        RING(fewer_are_left, begin_gpus),
        RING(fewer_are_left, begin_gpus_apart),
        RING(fewer_are_left, begin_one_gpu),
        RING(who_is_behind_or_joins_gets_the_values, begin_gpus),
        RING(who_is_behind_or_joins_gets_the_values, begin_gpus_apart),
        RING(who_is_behind_or_joins_gets_the_values, begin_one_gpu),
        RING(a_step_begins_anew_when_a_link_was_lost, begin_gpus),
        RING(a_step_begins_anew_when_a_link_was_lost, begin_gpus_apart),
        RING(of_a_step_the_means_go_to_the_device, begin_gpus),
        RING(weights_of_shares_are_copied_once, begin_divided_gpus),
        RING(means_are_not_clipped, begin_gpus),
        RING(dense_variables_live_on_the_device, begin),
        RING(a_hybrid_tells_of_updates_on_the_device, begin),
        RING(a_gpu_that_fails_is_told, begin_gpus),
        RING(memory_of_a_gpu_that_is_missing_is_named, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
