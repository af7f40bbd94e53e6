/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/device.c - what a device promises, of the cpu and of the remote devices; and that the
 * remote ones find what they are made to find. */
#include "common/tensor/device.h"
#include "common/kernels/kernel.h"
#include "common/tensor/buf.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000 };

static const wf_device *device_called(const char *name)
{
    const wf_device *d = NULL;
    wf_err err;

    test_device(); /* makes the remote ones known */
    assert_ok(wf_device_find(name, &d, &err), err);
    return d;
}

/* A device's memory with one stream and one event. */
typedef struct fixture {
    wf_stream *stream;
    wf_device_event *event;
    wf_buf *a, *b;
    wf_err err;
} fixture;

static fixture open_device(const char *name)
{
    const wf_device *d = device_called(name);
    fixture f = {0};

    assert_ok(wf_stream_new(d, &f.stream, &f.err), f.err);
    assert_ok(wf_device_event_new(d, &f.event, &f.err), f.err);
    f.a = wf_buf_new_on(d, N);
    f.b = wf_buf_new_on(d, N);
    assert_true(f.a && f.b && f.a->device == d);
    return f;
}

static void close_device(fixture *f)
{
    wf_device_event_free(&f->event);
    wf_stream_free(&f->stream);
    wf_buf_unref(&f->a);
    wf_buf_unref(&f->b);
}

/* Host bytes to a, a to b, b to the host. */
static void bytes_come_back(const char *name)
{
    fixture f = open_device(name);
    char from[N], to[N];

    for (int i = 0; i < N; i++)
        from[i] = (char)i;
    assert_true(wf_device_event_done(f.event)); /* of nothing yet */
    assert_ok(wf_stream_copy(f.stream, WF_COPY_IN, f.a->data, from, N, &f.err), f.err);
    assert_ok(wf_stream_fill(f.stream, f.b->data, 7, N, &f.err), f.err);
    assert_ok(wf_stream_copy(f.stream, WF_COPY_WITHIN, f.b->data, f.a->data, N - 1, &f.err), f.err);
    assert_ok(wf_stream_copy(f.stream, WF_COPY_OUT, to, f.b->data, N, &f.err), f.err);
    assert_ok(wf_device_event_record(f.event, f.stream, &f.err), f.err);
    assert_ok(wf_device_event_wait(f.event, &f.err), f.err);
    assert_true(wf_device_event_done(f.event));
    assert_memory_equal(to, from, N - 1);
    assert_int_equal(to[N - 1], 7);
    close_device(&f);
}

static void every_device_copies_and_fills_in_order(void **state)
{
    (void)state;
    bytes_come_back("cpu");
    bytes_come_back("cpu-remote");
    bytes_come_back("cpu-remote-half");
    assert_int_equal(remote_devices_held(), 0);
}

static void two_devices_exchange_by_way_of_the_host(void **state)
{
    fixture f = open_device("cpu-remote"), g = open_device("cpu-remote-half");
    char to[N], want[N];

    (void)state;
    memset(want, 3, N);
    assert_ok(wf_stream_fill(f.stream, f.a->data, 3, N, &f.err), f.err);
    assert_ok(wf_device_copy(g.stream, g.b->data, f.stream, f.a->data, N, &f.err), f.err);
    assert_ok(wf_stream_copy(g.stream, WF_COPY_OUT, to, g.b->data, N, &f.err), f.err);
    assert_ok(wf_stream_wait(g.stream, &f.err), f.err);
    assert_memory_equal(to, want, N);
    close_device(&f);
    close_device(&g);
}

static void a_remote_stream_does_nothing_before_it_must(void **state)
{
    fixture f = open_device("cpu-remote");
    char to[2] = {1, 1};

    (void)state;
    assert_ok(wf_stream_fill(f.stream, f.a->data, 2, N, &f.err), f.err);
    assert_ok(wf_stream_copy(f.stream, WF_COPY_OUT, &to[0], f.a->data, 1, &f.err), f.err);
    assert_ok(wf_device_event_record(f.event, f.stream, &f.err), f.err);
    assert_ok(wf_stream_copy(f.stream, WF_COPY_OUT, &to[1], f.a->data, 1, &f.err), f.err);
    assert_int_equal(to[0], 1);
    assert_false(wf_device_event_done(f.event)); /* the fill alone */
    assert_int_equal(to[0], 1);
    assert_true(wf_device_event_done(f.event));
    assert_int_equal(to[0], 2);
    assert_int_equal(to[1], 1); /* behind the event */
    assert_ok(wf_stream_wait(f.stream, &f.err), f.err);
    assert_int_equal(to[1], 2);
    close_device(&f);
}

static void a_stream_waits_for_the_event_of_another(void **state)
{
    fixture f = open_device("cpu-remote");
    wf_stream *second = NULL;
    char to = 0;

    (void)state;
    assert_ok(wf_stream_new(f.stream->device, &second, &f.err), f.err);
    assert_ok(wf_stream_fill(f.stream, f.a->data, 4, N, &f.err), f.err);
    assert_ok(wf_device_event_record(f.event, f.stream, &f.err), f.err);
    assert_ok(wf_stream_after(second, f.event, &f.err), f.err);
    assert_ok(wf_stream_copy(second, WF_COPY_OUT, &to, f.a->data, 1, &f.err), f.err);
    assert_ok(wf_stream_wait(second, &f.err), f.err);
    assert_int_equal(to, 4);
    wf_stream_free(&second);
    close_device(&f);
}

/* How a child ends that does this. */
static int signal_of(void (*act)(fixture *f), fixture *f)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        (void)!freopen("/dev/null", "w", stderr);
        act(f);
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_it(fixture *f)
{
    volatile char c = *(volatile char *)f->a->data;

    (void)c;
}

static void write_it(fixture *f)
{
    *(volatile char *)f->a->data = 1;
}

static void copy_wrongly(fixture *f)
{
    wf_status ignored = wf_stream_copy(f->stream, WF_COPY_IN, f->a->data, f->b->data, 1, NULL);

    (void)ignored;
}

static void fill_too_much(fixture *f)
{
    wf_status ignored = wf_stream_fill(f->stream, f->a->data, 1, N + 1, NULL);

    ignored = wf_stream_wait(f->stream, NULL);
    (void)ignored;
}

static void memory_of_a_remote_device_is_nobodys_else(void **state)
{
    fixture f = open_device("cpu-remote");

    (void)state;
    assert_int_equal(signal_of(read_it, &f), SIGSEGV);
    assert_int_equal(signal_of(write_it, &f), SIGSEGV);
    assert_int_equal(signal_of(copy_wrongly, &f), SIGABRT);
    assert_int_equal(signal_of(fill_too_much, &f), SIGABRT);
    close_device(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_copies_and_fills_in_order),
        cmocka_unit_test(two_devices_exchange_by_way_of_the_host),
        cmocka_unit_test(a_remote_stream_does_nothing_before_it_must),
        cmocka_unit_test(a_stream_waits_for_the_event_of_another),
        cmocka_unit_test(memory_of_a_remote_device_is_nobodys_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
