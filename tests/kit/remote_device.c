/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote_device.c - the remote devices and their kernels: the cpu's, which run later and
 * on the memory behind the addresses that they are given. */
#include "tests/kit/remote_device.h"
#include "common/graph/op.h"
#include "common/kernels/cpu/device.h"
#include "common/kernels/kernel.h"
#include "tests/cuda/host.h"
#include "tests/kit/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 4096 };

/* A device's row k is of the cpu's row cpu_row[k - rows]. */
typedef struct table {
    wf_kernel rows[MOST_ROWS];
    const wf_kernel *cpu_row[MOST_ROWS];
    const wf_kernel *files[1];
    wf_device device;
    wf_device_rows all;
} table;

static table whole, half;

static const wf_kernel *cpu_row_of(const wf_kernel *k)
{
    const table *t = k >= whole.rows && k < whole.rows + MOST_ROWS ? &whole : &half;

    return t->cpu_row[k - t->rows];
}

/* Results do not depend on the number of threads: one of them, the one that waits. */
static wf_status remote_prepare(wf_prep *prep, const wf_tensor *const in[],
                                const wf_tensor *const out[], wf_err *err)
{
    wf_prep own = *prep;
    wf_status rc;

    own.kernel = cpu_row_of(prep->kernel);
    own.device = &wf_cpu;
    own.threads = 1;
    rc = own.kernel->prepare(&own, in, out, err);
    prep->workspace_bytes = own.workspace_bytes;
    prep->state = own.state;
    prep->release = own.release;
    return rc;
}

static void show(wf_tensor *t)
{
    if (wf_tensor_bytes(t))
        t->data = remote_behind(t->data, wf_tensor_bytes(t), "a kernel");
}

static wf_status do_kernel(remote_work *w, wf_err *err)
{
    wf_status rc;

    for (uint32_t i = 0; i < w->n_in + w->n_out; i++)
        show(&w->headers[i]);
    w->run.kernel = cpu_row_of(w->run.kernel);
    w->run.device = &wf_cpu;
    w->run.pool = NULL;
    w->run.workspace = remote_behind(w->run.workspace, 0, "a kernel's workspace");
    rc = wf_stream_new(&wf_cpu, &w->run.stream, err);
    if (rc == WF_OK)
        rc = w->run.kernel->run(&w->run, w->in, w->out, err);
    return wf_err_wrap(err, rc, "%s \"%s\"", w->run.node->op->name, w->run.node->name);
}

static wf_status remote_run(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    uint32_t n_in = run->node->n_in + WF_KERNEL_PORTS, n_out = run->node->n_out + WF_KERNEL_PORTS;
    size_t bytes = sizeof(remote_work) + (n_in + n_out) * (sizeof(wf_tensor) + sizeof(wf_tensor *));
    remote_work *w = calloc(1, bytes);

    if (!w)
        return wf_fail_nomem(err, bytes);
    *w = (remote_work){.act = do_kernel, .run = *run, .n_in = n_in, .n_out = n_out};
    w->in = (const wf_tensor **)&w->headers[n_in + n_out];
    w->out = (wf_tensor **)&w->in[n_in];
    for (uint32_t i = 0; i < run->node->n_in; i++)
        if (in[i]) {
            w->headers[i] = *in[i];
            w->in[i] = &w->headers[i];
        }
    for (uint32_t i = 0; i < run->node->n_out; i++)
        if (out[i]) {
            w->headers[n_in + i] = *out[i];
            w->out[i] = &w->headers[n_in + i];
        }
    remote_append(run->stream, w);
    return WF_OK;
}

/* By the sum of the name's letters: neighbours in a graph differ often enough. */
static bool half_has(const char *op)
{
    unsigned sum = 0;

    for (; *op; op++)
        sum += (unsigned char)*op;
    return sum % 2;
}

static void fill_table(table *t, const char *name, bool all)
{
    const wf_kernel *k;
    wf_err err;
    size_t n = 0;

    for (size_t i = 0; (k = wf_kernel_at(&wf_cpu, i)); i++) {
        if (!all && !half_has(k->op))
            continue;
        wf_assert(n + 2 < MOST_ROWS);
        t->rows[n] = *k;
        t->rows[n].run = remote_run;
        t->rows[n].prepare = k->prepare ? remote_prepare : NULL;
        t->cpu_row[n++] = k;
    }
    t->device = remote_device_called(name);
    t->files[0] = t->rows;
    /* The row of narrow nodes lies behind the one that ends the list. */
    t->rows[n + 1] = wf_cpu_widened;
    t->rows[n + 1].run = remote_run;
    t->rows[n + 1].prepare = remote_prepare;
    t->cpu_row[n + 1] = &wf_cpu_widened;
    t->all = (wf_device_rows){.device = &t->device,
                              .files = t->files,
                              .n_files = 1,
                              .widened = &t->rows[n + 1],
                              .narrow = WF_TYPE(WF_BF16)};
    wf_assert(wf_device_add(&t->all, &err) == WF_OK);
}

static void add_both(void)
{
    if (whole.all.device)
        return;
    remote_set_up();
    fill_table(&whole, "cpu-remote", true);
    fill_table(&half, "cpu-remote-half", false);
    cuda_host_gpu(0);
    cuda_host_gpu(1);
}

wf_status test_device_called(const char *name, const wf_device **out, wf_err *err)
{
    add_both();
    return wf_device_open(name, out, err);
}

static const wf_device *device_called(const char *name, size_t n)
{
    const wf_device *d = NULL;
    char one[64];
    wf_err err = {0};

    snprintf(one, sizeof one, "%.*s", (int)n, name);
    if (test_device_called(one, &d, &err) != WF_OK) {
        fprintf(stderr, "%s; %s\n", err.what, err.hint);
        exit(2);
    }
    return d;
}

const wf_device *test_device(void)
{
    const char *name = getenv("WEFT_TEST_DEVICE");

    add_both();
    return name ? device_called(name, strcspn(name, "+")) : &wf_cpu;
}

const wf_device *test_second_device(void)
{
    const char *names = getenv("WEFT_TEST_DEVICE"), *second = names ? strchr(names, '+') : NULL;

    add_both();
    return second ? device_called(second + 1, strlen(second + 1)) : NULL;
}
