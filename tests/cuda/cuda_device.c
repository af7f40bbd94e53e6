/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_device.c - a GPU as a device, over the host's table: what it promises under any
 * order of streams, what it says when something fails; and that the host finds what it is made to
 * find. */
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/on_host_thread.h"
#include "common/kernels/cuda/product/product.h"
#include "common/kernels/kernel.h"
#include "common/wire/buf_pool.h"
#include "common/wire/pinned.h"
#include "common/wire/shm_memory.h"
#include "tests/cuda/ending.h"
#include "tests/cuda/host.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 1000, SEEDS = 1000 };

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != WF_OK)                                                                       \
            fail_msg("%s; %s", err.what, err.hint);                                                \
    } while (0)

static wf_err err;

static wf_stream *open_stream(void)
{
    wf_stream *s = NULL;

    assert_ok(wf_stream_new(cuda_host_device(), &s, &err));
    return s;
}

static int on_entry(void **state)
{
    (void)state;
    cuda_host_fail(NULL, 0, 0);
    cuda_host_has(2, 9);
    err = (wf_err){0};
    return 0;
}

/* All is given back. */
static int on_exit_of_test(void **state)
{
    cuda_host_counts c = cuda_host_count();

    (void)state;
    return c.held == 0 && c.streams == 0 && c.events == 0 && c.objects == 1 ? 0
                                                                            : -1; /* its handle */
}

static void bytes_come_back(void **state)
{
    const wf_device *d = cuda_host_device();
    wf_stream *s = open_stream();
    uint8_t from[N], to[N], *a = wf_device_alloc(d, N), *b = wf_device_alloc(d, N);

    (void)state;
    for (int i = 0; i < N; i++)
        from[i] = (uint8_t)i;
    assert_ok(wf_stream_copy(s, WF_COPY_IN, a, from, N, &err));
    assert_ok(wf_stream_fill(s, b, 7, N, &err));
    assert_ok(wf_stream_copy(s, WF_COPY_WITHIN, b, a, N - 1, &err));
    assert_ok(wf_stream_copy(s, WF_COPY_OUT, to, b, N, &err));
    assert_ok(wf_stream_wait(s, &err));
    assert_memory_equal(to, from, N - 1);
    assert_int_equal(to[N - 1], 7);
    wf_stream_free(&s);
    wf_device_free(d, a);
    wf_device_free(d, b);
}

/* One stream writes, another reads behind an event: whatever the order, it reads what was written.
 * Without the event it does not always. */
static bool reads_what_was_written(uint64_t seed, bool waits)
{
    const wf_device *d = cuda_host_device();
    wf_stream *writer = open_stream(), *reader = open_stream();
    wf_device_event *e = NULL;
    uint8_t *a = wf_device_alloc(d, N), to[N];
    bool right = true;

    cuda_host_seed(seed);
    assert_ok(wf_device_event_new(d, &e, &err));
    assert_true(wf_device_event_done(e)); /* of nothing yet */
    assert_ok(wf_stream_fill(writer, a, 1, N, &err));
    assert_ok(wf_stream_fill(writer, a, 2, N, &err));
    assert_ok(wf_device_event_record(e, writer, &err));
    if (waits)
        assert_ok(wf_stream_after(reader, e, &err));
    assert_ok(wf_stream_copy(reader, WF_COPY_OUT, to, a, N, &err));
    assert_ok(wf_stream_wait(reader, &err));
    for (int i = 0; i < N; i++)
        right &= to[i] == 2;
    assert_ok(wf_device_event_wait(e, &err));
    assert_true(wf_device_event_done(e));
    wf_device_event_free(&e);
    wf_stream_free(&reader);
    wf_stream_free(&writer);
    wf_device_free(d, a);
    return right;
}

static void streams_run_in_any_order_that_events_allow(void **state)
{
    int right = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        assert_true(reads_what_was_written(seed, true));
        right += reads_what_was_written(seed, false);
    }
    assert_in_range(right, 1, SEEDS - 1);
}

/* ---- failures ---- */

static void open_fails(const char *what, wf_status status)
{
    wf_cuda_gpu *g = NULL;

    assert_int_equal(wf_cuda_open(&wf_cuda_host, "cuda", 1, &g, &err), status);
    assert_non_null(strstr(err.what, what));
    assert_non_null(err.hint);
    assert_null(g);
}

static void a_gpu_that_is_not_there_is_said_so(void **state)
{
    (void)state;
    cuda_host_has(0, 9);
    open_fails("cuda:1: this host has no NVIDIA GPU", WF_UNSUPPORTED);
    cuda_host_has(1, 9);
    open_fails("cuda:1: this host has 1 GPU", WF_UNSUPPORTED);
    cuda_host_has(2, 7);
    open_fails("has the compute capability 7.0, and weft needs 8.0", WF_UNSUPPORTED);
    cuda_host_has(2, 9);
    cuda_host_fail("count", 0, WF_CUDA_OLD_DRIVER);
    open_fails("no NVIDIA driver, or one that is older than CUDA 13", WF_UNSUPPORTED);
    cuda_host_fail("properties", 0, 46);
    open_fails("(CUDA error 46)", WF_IO);
}

/* And where no memory can be pinned, it is other memory. */
static void pinned_memory_is_copied_to(void **state)
{
    const wf_device *d = cuda_host_device();

    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        wf_stream *s = open_stream();
        uint8_t from[N], *a = wf_device_alloc(d, N);
        size_t before = cuda_host_count().objects;
        wf_buf *b;

        cuda_host_fail(refused ? "alloc_seen" : NULL, 0, WF_CUDA_NO_MEMORY);
        b = wf_buf_new_pinned(d, N);
        assert_non_null(b);
        assert_int_equal(cuda_host_count().objects - before, !refused);
        assert_ptr_equal(b->device, &wf_cpu);
        for (int i = 0; i < N; i++)
            from[i] = (uint8_t)(i * 3);
        assert_ok(wf_stream_copy(s, WF_COPY_IN, a, from, N, &err));
        assert_ok(wf_stream_copy(s, WF_COPY_OUT, b->data, a, N, &err));
        assert_ok(wf_stream_wait(s, &err));
        assert_memory_equal(b->data, from, N);
        wf_buf_unref(&b);
        wf_stream_free(&s);
        wf_device_free(d, a);
    }
}

/* Memory of messages is pinned from when a device was named on, where it is large, and as long as
 * it is there; a device that refuses leaves it as it is. */
static void memory_of_messages_is_pinned(void **state)
{
    enum { LARGE = 1 << 20, SMALL = 8 << 10 };
    const wf_device *d = cuda_host_device();
    size_t before = cuda_host_count().objects, by_hand = cuda_host_count().bytes_by_hand;
    uint8_t *there = wf_device_alloc(d, LARGE);
    wf_stream *s = open_stream();

    (void)state;
    wf_pinned_by(&wf_cpu);
    assert_false(wf_pins(LARGE));
    wf_pinned_by(d);
    for (int refused = 0; refused < 2; refused++) {
        wf_buf_pool *p = wf_buf_pool_new(0); /* keeps nothing */
        wf_shm_memory *m = NULL;
        wf_buf *large, *small;
        int fd;

        cuda_host_fail(refused ? "pin" : NULL, 0, WF_CUDA_NO_MEMORY);
        large = wf_buf_pool_take(p, LARGE);
        small = wf_buf_pool_take(p, SMALL);
        fd = wf_shm_memory_make(LARGE, &m);
        assert_true(large && small && fd >= 0);
        assert_int_equal(cuda_host_count().objects - before,
                         refused ? 2 : 3); /* and of the stream */
        assert_ok(wf_stream_copy(s, WF_COPY_IN, there, large->data, LARGE, &err));
        assert_ok(wf_stream_copy(s, WF_COPY_OUT, m->at, there, LARGE, &err));
        assert_ok(wf_stream_copy(s, WF_COPY_OUT, small->data, there, SMALL, &err));
        assert_ok(wf_stream_wait(s, &err));
        by_hand += SMALL + (refused ? LARGE : 0);
        assert_int_equal(cuda_host_count().bytes_by_hand, by_hand);
        close(fd);
        wf_shm_memory_unref(&m);
        wf_buf_unref(&large);
        wf_buf_unref(&small);
        assert_int_equal(cuda_host_count().objects - before, 1);
        wf_buf_pool_close(&p);
    }
    wf_stream_free(&s);
    wf_device_free(d, there);
}

/* Each call in turn gives an error: it comes out as such, and nothing is left behind. */
static void each_call_may_fail(void **state)
{
    static const char *const calls[] = {"use",  "stream_new", "alloc_seen",   "copy",
                                        "fill", "event_new",  "event_record", "stream_after"};
    const wf_device *d = cuda_host_device();

    (void)state;
    for (size_t k = 0; k < WF_COUNT(calls); k++) {
        wf_stream *s = NULL;
        wf_device_event *e = NULL;
        uint8_t *a = wf_device_alloc(d, N), from[N] = {0};
        wf_status rc;

        cuda_host_fail(calls[k], 0, 999);
        rc = wf_stream_new(d, &s, &err);
        if (rc == WF_OK)
            rc = wf_stream_copy(s, WF_COPY_IN, a, from, N, &err);
        if (rc == WF_OK)
            rc = wf_stream_fill(s, a, 0, N, &err);
        if (rc == WF_OK)
            rc = wf_device_event_new(d, &e, &err);
        if (rc == WF_OK)
            rc = wf_device_event_record(e, s, &err);
        if (rc == WF_OK)
            rc = wf_stream_after(s, e, &err);
        assert_int_equal(rc, WF_BROKEN);
        assert_non_null(strstr(err.what, "cuda-host:0"));
        assert_non_null(strstr(err.what, "999"));
        wf_device_event_free(&e);
        wf_stream_free(&s);
        wf_device_free(d, a);
    }
}

static void memory_may_end(void **state)
{
    (void)state;
    cuda_host_fail("alloc", 0, WF_CUDA_NO_MEMORY);
    assert_null(wf_device_alloc(cuda_host_device(), N));
}

/* As when a GPU falls off the bus: the wait says it, and every one after it. */
static void a_failure_of_work_stays(void **state)
{
    const wf_device *d = cuda_host_device();
    wf_stream *s = open_stream();
    uint8_t *a = wf_device_alloc(d, N);

    (void)state;
    assert_ok(wf_stream_fill(s, a, 0, N, &err));
    cuda_host_fail("stream_wait", 0, 719);
    assert_int_equal(wf_stream_wait(s, &err), WF_BROKEN);
    assert_non_null(strstr(err.what, "719"));
    assert_int_equal(wf_stream_wait(s, &err), WF_BROKEN);
    wf_stream_free(&s);
    wf_device_free(d, a);
}

/* ---- what the host finds ---- */

static void read_on_the_host(void)
{
    volatile uint8_t *a = wf_device_alloc(cuda_host_device(), N);

    signal(SIGSEGV, SIG_DFL);
    (void)a[0];
}

static void copy_from_the_wrong_side(void)
{
    uint8_t *a = wf_device_alloc(cuda_host_device(), N), here[N];

    (void)!wf_stream_copy(open_stream(), WF_COPY_IN, here, a, N, NULL);
}

static void write_from_another_gpu(void)
{
    uint8_t *a = wf_device_alloc(cuda_host_device(), N);
    wf_stream *s = open_stream();

    wf_cuda_host.use(1);
    (void)!wf_cuda_host.fill(a, 0, N, wf_cuda_stream_of(s));
}

static void memory_of_the_other_side_is_found(void **state)
{
    char said[SAID];

    (void)state;
    assert_int_equal(ends_by(write_from_another_gpu, said), SIGABRT);
    assert_non_null(strstr(said, "a stream of GPU 0 is given work by a thread that uses GPU 1"));
    assert_int_equal(ends_by(read_on_the_host, said), SIGSEGV);
    assert_int_equal(ends_by(copy_from_the_wrong_side, said), SIGABRT);
    assert_non_null(strstr(said, "of the other side"));
}

/* Kernels that take a place of memory and an index. */
typedef void kernel(uint8_t *a, size_t i);

static void call(const void *k, void *const args[])
{
    ((kernel *)(uintptr_t)k)(*(uint8_t *const *)args[0], *(const size_t *)args[1]);
}

static wf_status run_kernel(kernel *k, const char *name, bool meets, uint8_t *a, size_t i)
{
    static const size_t bytes[] = {sizeof a, sizeof i};
    const wf_cuda_function f = {(const void *)(uintptr_t)k, name, call, bytes, 2, meets};
    wf_stream *s = open_stream();
    void *args[] = {&a, &i};
    wf_status rc;

    assert_int_equal(wf_cuda_host.launch(&f, (wf_cuda_dim){2, 1, 1}, (wf_cuda_dim){64, 1, 1}, args,
                                         0, wf_cuda_stream_of(s)),
                     0);
    rc = wf_stream_wait(s, &err);
    wf_stream_free(&s);
    return rc;
}

static void write_one(uint8_t *a, size_t i)
{
    a[i] = 1;
}

static void run_a_little_behind(void)
{
    (void)!run_kernel(write_one, "wild", false, wf_device_alloc(cuda_host_device(), N), N);
}

static void run_far_behind(void)
{
    (void)!run_kernel(write_one, "wild", false, wf_device_alloc(cuda_host_device(), N), N + 50000);
}

static void indices_out_of_bounds_are_found_and_named(void **state)
{
    char said[SAID];

    (void)state;
    assert_int_equal(ends_by(run_a_little_behind, said), SIGABRT);
    assert_non_null(strstr(said, "wild wrote behind memory of 1000 bytes"));
    assert_int_equal(ends_by(run_far_behind, said), SIGSEGV);
    assert_non_null(strstr(said, "wild: thread 0 of block"));
}

/* ---- products ---- */

enum { M = 3, COLUMNS = 4, K = 5 };

static wf_cuda_gemm plain_product(void)
{
    return (wf_cuda_gemm){
        .dtype = WF_F32, .m = M, .n = COLUMNS, .k = K, .alpha = 1, .batch = 1, .aligned = 64};
}

/* A way for it, which the caller frees; the workspace that it asked for. */
static wf_cuda_gemm_way *way_of(const wf_cuda_gemm *g, size_t *workspace)
{
    wf_prep prep = {.device = cuda_host_device()};
    wf_cuda_gemm_way *w = NULL;

    assert_ok(wf_cuda_gemm_new(&prep, g, &w, &err));
    *workspace = prep.workspace_bytes;
    return w;
}

/* In memory of all that it needs, but for what a mistake takes away. */
static struct {
    bool without_bias, without_workspace, at_odd_place, on_the_host;
} lacks;

static void run_product(void)
{
    const wf_device *d = cuda_host_device();
    wf_cuda_gemm g = plain_product();
    wf_run run = {.device = d, .stream = open_stream()};
    uint8_t *a = wf_device_alloc(d, 4096);
    _Alignas(64) uint8_t here[4096];
    size_t workspace;
    wf_cuda_gemm_way *w;

    g.adds_row = true;
    w = way_of(&g, &workspace);
    run.workspace = wf_device_alloc(d, lacks.without_workspace ? workspace / 2 : workspace);
    assert_ok(wf_stream_fill(run.stream, a, 0, 4096, &err));
    assert_ok(wf_cuda_gemm_go(w, &run, lacks.on_the_host ? here : a,
                              a + 256 + (lacks.at_odd_place ? 4 : 0),
                              lacks.without_bias ? NULL : a + 1024, a + 2048, &err));
    assert_ok(wf_stream_wait(run.stream, &err));
    wf_cuda_gemm_free(w);
    wf_stream_free(&run.stream);
    wf_device_free(d, run.workspace);
    wf_device_free(d, a);
}

static void mistakes_of_products_are_found_and_named(void **state)
{
    char said[SAID];

    (void)state;
    run_product();
    lacks.without_bias = true;
    assert_int_equal(ends_by(run_product, said), SIGABRT);
    assert_non_null(strstr(said, "no bias for its epilogue"));
    lacks.without_bias = false;
    lacks.without_workspace = true;
    assert_int_equal(ends_by(run_product, said), SIGABRT);
    assert_non_null(strstr(said, "a workspace that is too small"));
    lacks.without_workspace = false;
    lacks.at_odd_place = true;
    assert_int_equal(ends_by(run_product, said), SIGABRT);
    assert_non_null(strstr(said, "not aligned as the algorithm needs it"));
    lacks.at_odd_place = false;
    lacks.on_the_host = true;
    assert_int_equal(ends_by(run_product, said), SIGABRT);
    assert_non_null(strstr(said, "not in memory of the device"));
    lacks.on_the_host = false;
}

/* cuBLASLt has narrow results of narrow factors alone, and both in sums of float32. */
static void types_that_no_product_has_are_refused(void **state)
{
    static const struct {
        wf_dtype dtype, factors, result;
        bool fits;
    } cases[] = {{WF_F32, WF_BF16, WF_BF16, true}, {WF_F32, WF_BF16, WF_NONE, true},
                 {WF_F32, WF_F16, WF_F16, true},   {WF_F32, WF_NONE, WF_BF16, false},
                 {WF_F32, WF_F16, WF_BF16, false}, {WF_F64, WF_BF16, WF_BF16, false},
                 {WF_F32, WF_F32, WF_F64, false}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_prep prep = {.device = cuda_host_device(), .compute = WF_COMPUTE_BF16};
        wf_cuda_gemm g = plain_product();
        wf_cuda_gemm_way *w = NULL;

        g.dtype = cases[i].dtype;
        g.factors = cases[i].factors;
        g.result = cases[i].result;
        assert_int_equal(wf_cuda_gemm_new(&prep, &g, &w, &err), cases[i].fits ? WF_OK : WF_BROKEN);
        wf_cuda_gemm_free(w);
    }
}

/* Each of its calls in turn gives an error, and what was made before it is given back. */
static void a_product_that_cannot_be_made_leaves_nothing(void **state)
{
    static const char *const calls[] = {"product_new", "product_set", "layout_new", "layout_set",
                                        "choose"};
    wf_cuda_gemm g = plain_product();

    (void)state;
    g.adds_row = true;
    g.batch = 2;
    g.strides[0] = M * K;
    g.strides[2] = M * COLUMNS;
    for (size_t k = 0; k < WF_COUNT(calls); k++) {
        wf_prep prep = {.device = cuda_host_device()};
        wf_cuda_gemm_way *w = NULL;

        cuda_host_fail(calls[k], 0, WF_CUDA_OF_BLAS + 15);
        assert_int_equal(wf_cuda_gemm_new(&prep, &g, &w, &err), WF_BROKEN);
        assert_non_null(strstr(err.what, "10015"));
        assert_null(w);
    }
}

/* ---- threads that meet ---- */

static const char key;

static uint32_t *shared(size_t i, int writes)
{
    return wf_host_shared_at(wf_host_share(&key, "sums", sizeof(uint32_t), 64), i, writes);
}

/* a[block] = 0 + 1 + ... + 63, by the warps' exchange and the block's memory. */
static void add_numbers(uint8_t *a, size_t i)
{
    const wf_host_thread *t = wf_host_self();
    uint32_t sum = t->thread.x, theirs;

    for (unsigned mask = 16; mask > 0; mask /= 2) {
        wf_host_exchange(&sum, &theirs, sizeof sum, mask);
        sum += theirs;
    }
    *shared(t->thread.x, 1) = sum;
    wf_host_meet();
    sum = *shared(0, 0) + *shared(32 + i, 0);
    if (t->thread.x == 0)
        ((uint32_t *)(void *)a)[t->block.x] = sum;
}

static void threads_meet_and_exchange(void **state)
{
    const wf_device *d = cuda_host_device();
    uint8_t *a = wf_device_alloc(d, 2 * sizeof(uint32_t));
    wf_stream *s = open_stream();
    uint32_t got[2];

    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        cuda_host_seed(seed);
        assert_ok(wf_stream_fill(s, a, 0, sizeof got, &err));
        assert_ok(wf_stream_wait(s, &err));
        assert_ok(run_kernel(add_numbers, "add", true, a, seed % 32));
        assert_ok(wf_stream_copy(s, WF_COPY_OUT, got, a, sizeof got, &err));
        assert_ok(wf_stream_wait(s, &err));
        assert_true(got[0] == 2016 && got[1] == 2016);
    }
    wf_stream_free(&s);
    wf_device_free(d, a);
}

static void all_write_one(uint8_t *a, size_t i)
{
    (void)a;
    *shared(i, 1) = 1;
}

static void read_before_meeting(uint8_t *a, size_t i)
{
    uint32_t me = wf_host_self()->thread.x;

    (void)a, (void)i;
    *shared(me, 1) = me;
    (void)*shared(me ^ 1, 0);
}

static void go_beyond(uint8_t *a, size_t i)
{
    (void)a;
    (void)*shared(i, 0);
}

/* Threads wait at different places. */
static void miss_each_other(uint8_t *a, size_t i)
{
    uint32_t mine = 0;

    (void)a, (void)i;
    if (wf_host_self()->thread.x % 2)
        wf_host_meet();
    else
        wf_host_exchange(&mine, &mine, sizeof mine, 1);
}

/* Half of a warp exchanges, and half does not. */
static void leave_some_out(uint8_t *a, size_t i)
{
    uint32_t mine = 0;

    (void)a, (void)i;
    if (wf_host_self()->thread.x % 4 >= 2)
        wf_host_exchange(&mine, &mine, sizeof mine, 1);
    wf_host_meet();
}

static struct {
    kernel *k;
    bool meets;
    size_t i;
} mistake;

static void run_mistake(void)
{
    (void)!run_kernel(mistake.k, "mistaken", mistake.meets, NULL, mistake.i);
}

static void mistakes_of_threads_are_found_and_named(void **state)
{
    const struct {
        kernel *k;
        bool meets;
        size_t i;
        const char *said;
    } rows[] = {{all_write_one, true, 5, "did not meet the thread that wrote sums[5]"},
                {all_write_one, false, 5, "did not meet the thread that wrote sums[5]"},
                {read_before_meeting, true, 0, "sums["},
                {go_beyond, true, 64, "goes beyond the end at sums[64]"},
                {miss_each_other, true, 0, "waits for others that do not come"},
                {leave_some_out, true, 0, "exchanged more or less often"},
                {add_numbers, false, 0, "meets others, and was not launched so"}};
    char said[SAID];

    (void)state;
    for (size_t r = 0; r < WF_COUNT(rows); r++) {
        mistake.k = rows[r].k;
        mistake.meets = rows[r].meets;
        mistake.i = rows[r].i;
        assert_int_equal(ends_by(run_mistake, said), SIGABRT);
        assert_non_null(strstr(said, "mistaken: thread "));
        assert_non_null(strstr(said, rows[r].said));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, on_entry, on_exit_of_test)
    const struct CMUnitTest tests[] = {
        TEST(bytes_come_back),
        TEST(streams_run_in_any_order_that_events_allow),
        TEST(a_gpu_that_is_not_there_is_said_so),
        TEST(each_call_may_fail),
        TEST(memory_may_end),
        TEST(a_failure_of_work_stays),
        TEST(memory_of_the_other_side_is_found),
        TEST(indices_out_of_bounds_are_found_and_named),
        TEST(mistakes_of_products_are_found_and_named),
        TEST(pinned_memory_is_copied_to),
        TEST(memory_of_messages_is_pinned),
        TEST(types_that_no_product_has_are_refused),
        TEST(a_product_that_cannot_be_made_leaves_nothing),
        TEST(threads_meet_and_exchange),
        TEST(mistakes_of_threads_are_found_and_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
