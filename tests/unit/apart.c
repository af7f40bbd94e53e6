/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/apart.c - gradients on a device: the look at them, behind the work that writes them,
 * with the first bad one named, and none of the step before remembered; sums of several batches. */
#include "worker/apart.h"
#include "common/base/cc.h"
#include "common/kernels/kernel.h"
#include "tests/cuda/host.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, ELEMENTS = 5000 };

/* Gradients, which a stream of its own writes as a plan does. */
typedef struct stage {
    const wf_device *d;
    wf_stream *stream;
    wf_device_event *done[N];
    float *data; /* [N][ELEMENTS] of the device */
    wf_apart *f;
} stage;

static void begin(stage *s)
{
    wf_err err;

    *s = (stage){.d = cuda_host_device()};
    assert_int_equal(wf_stream_new(s->d, &s->stream, &err), WF_OK);
    for (int i = 0; i < N; i++)
        assert_int_equal(wf_device_event_new(s->d, &s->done[i], &err), WF_OK);
    s->data = wf_device_alloc(s->d, N * ELEMENTS * sizeof(float));
    assert_non_null(s->data);
    assert_int_equal(wf_apart_new(s->d, wf_updates_of(s->d), N, &s->f, &err), WF_OK);
}

static void end(stage *s)
{
    wf_apart_free(&s->f);
    wf_stream_free(&s->stream);
    for (int i = 0; i < N; i++)
        wf_device_event_free(&s->done[i]);
    wf_device_free(s->d, s->data);
    assert_int_equal(cuda_host_count().held, 0);
}

/* A step whose gradient of output 10 - i holds values[i] at its end: what is said of it. */
static int64_t look(stage *s, const float values[N])
{
    static float host[N][ELEMENTS];
    int64_t bad;
    wf_err err;

    memset(host, 0, sizeof host);
    wf_apart_begin(s->f);
    for (uint32_t i = 0; i < N; i++) {
        float *at = s->data + i * ELEMENTS;

        host[i][ELEMENTS - 1] = values[i];
        assert_int_equal(wf_stream_copy(s->stream, WF_COPY_IN, at, host[i], sizeof host[i], &err),
                         WF_OK);
        assert_int_equal(wf_device_event_record(s->done[i], s->stream, &err), WF_OK);
        wf_apart_look(s->f, 10 - i, at, ELEMENTS, s->done[i]);
    }
    assert_int_equal(wf_apart_start(s->f, 1, true, &err), WF_OK);
    assert_int_equal(wf_apart_wait(s->f, &bad, &err), WF_OK);
    return bad;
}

static void the_first_bad_gradient_is_named(void **state)
{
    stage s;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        cuda_host_seed(seed);
        begin(&s);
        assert_int_equal(look(&s, (float[]){0, 1, 2}), -1);
        assert_int_equal(look(&s, (float[]){0, NAN, INFINITY}), 9);
        assert_int_equal(look(&s, (float[]){0, 0, -INFINITY}), 8);
        assert_int_equal(look(&s, (float[]){NAN, 0, 0}), 10);
        assert_int_equal(look(&s, (float[]){0, 0, 0}), -1);
        end(&s);
    }
}

static void a_step_without_gradients_is_fine(void **state)
{
    int64_t bad = 5;
    wf_err err;
    stage s;

    (void)state;
    begin(&s);
    assert_int_equal(look(&s, (float[]){NAN, 0, 0}), 10);
    wf_apart_begin(s.f);
    assert_int_equal(wf_apart_start(s.f, 1, true, &err), WF_OK);
    assert_int_equal(wf_apart_wait(s.f, &bad, &err), WF_OK);
    assert_int_equal(bad, -1);
    end(&s);
}

/* Of three batches, in one of which a number is bad: the sum's bits are the host's, and so is what
 * is said of it. */
static void batches_are_added_up(void **state)
{
    static float host[ELEMENTS], want[ELEMENTS], got[ELEMENTS];
    const float by[] = {0.4f, 0.35f, 0.25f};
    float *sum;
    int64_t bad;
    stage s;
    wf_err err;

    (void)state;
    begin(&s);
    sum = s.data + ELEMENTS;
    for (int bad_batch = -1; bad_batch < 3; bad_batch++) {
        for (int b = 0; b < 3; b++) {
            for (int i = 0; i < ELEMENTS; i++) {
                host[i] = (float)(i % 97) * 0.37f - (float)(b + 1) * 1.1f;
                if (i == 4000 && b == bad_batch)
                    host[i] = INFINITY;
                want[i] = b == 0 ? by[b] * host[i] : want[i] + by[b] * host[i];
            }
            assert_int_equal(wf_stream_copy(s.stream, WF_COPY_IN, s.data, host, sizeof host, &err),
                             WF_OK);
            assert_int_equal(wf_device_event_record(s.done[0], s.stream, &err), WF_OK);
            wf_apart_begin(s.f);
            wf_apart_sum(s.f, sum, s.data, ELEMENTS, s.done[0]);
            if (b == 2)
                wf_apart_look(s.f, 7, sum, ELEMENTS, s.done[0]);
            assert_int_equal(wf_apart_start(s.f, by[b], b == 0, &err), WF_OK);
            assert_int_equal(wf_apart_wait(s.f, &bad, &err), WF_OK);
            assert_int_equal(bad, b == 2 && bad_batch >= 0 ? 7 : -1);
        }
        assert_int_equal(wf_stream_copy(s.stream, WF_COPY_OUT, got, sum, sizeof got, &err), WF_OK);
        assert_int_equal(wf_stream_wait(s.stream, &err), WF_OK);
        assert_memory_equal(got, want, sizeof got);
    }
    end(&s);
}

/* Nothing is made in a step, and the host waits once. */
static void a_look_waits_once(void **state)
{
    cuda_host_counts before, after;
    stage s;

    (void)state;
    begin(&s);
    assert_int_equal(look(&s, (float[]){0, 0, 0}), -1);
    before = cuda_host_count();
    assert_int_equal(look(&s, (float[]){0, 0, 0}), -1);
    after = cuda_host_count();
    assert_int_equal(after.waits - before.waits, 1);
    assert_int_equal(after.made - before.made, 0);
    /* three copies in, the wait for them, the fill, the kernel, and the words out */
    assert_int_equal(after.queued - before.queued, 3 + 4);
    assert_int_equal(after.bytes_out - before.bytes_out, N * sizeof(int32_t));
    end(&s);
}

static void what_fails_is_told(void **state)
{
    static const char *const making[] = {"alloc", "stream_new"}, *const looking[] = {
                                                                     "stream_after", "fill",
                                                                     "launch", "copy"};
    wf_err err;
    stage s;

    (void)state;
    begin(&s);
    wf_apart_free(&s.f);
    for (size_t i = 0; i < WF_COUNT(making); i++) {
        cuda_host_fail(making[i], 0, 2);
        assert_int_equal(wf_apart_new(s.d, wf_updates_of(s.d), N, &s.f, &err), WF_NOMEM);
        assert_null(s.f);
    }
    assert_int_equal(wf_apart_new(s.d, wf_updates_of(s.d), N, &s.f, &err), WF_OK);
    for (size_t i = 0; i < WF_COUNT(looking); i++) {
        wf_apart_begin(s.f);
        wf_apart_look(s.f, 0, s.data, ELEMENTS, s.done[0]);
        cuda_host_fail(looking[i], 0, 79);
        assert_int_equal(wf_apart_start(s.f, 1, true, &err), WF_BROKEN);
    }
    cuda_host_fail(NULL, 0, 0);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_bad_gradient_is_named),
        cmocka_unit_test(a_step_without_gradients_is_fine),
        cmocka_unit_test(batches_are_added_up),
        cmocka_unit_test(a_look_waits_once),
        cmocka_unit_test(what_fails_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
