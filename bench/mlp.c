/* SPDX-License-Identifier: Apache-2.0 */
/* bench/mlp.c - one training step's arithmetic: forward and backward of 784-128-10 with softmax
 * cross-entropy, on one thread: against its matrix products alone; and between reading its records
 * and an exchange of its gradients for as many bytes of weights, one step ahead, over a bare TCP
 * connection with a process that does nothing else. The latter is what sockets leave of a worker
 * that calls them on the thread that computes.
 *
 *   bench_mlp [BATCH...]
 *
 * Prints microseconds a step (median of rounds) and GFLOP/s, by batch size.
 */
#include "common/base/cc.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/exec/exec.h"
#include "mlp_graph.h"

#include <cblas.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROUNDS = 15 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void fill(void *data, const wf_port *port, uint64_t stream)
{
    wf_rng_key key = {1, stream};

    for (int64_t i = 0; i < port->elems; i++) {
        if (port->dtype == WF_I64)
            ((int64_t *)data)[i] = (int64_t)wf_rng_below(key, (uint64_t)i, MLP_OUT);
        else
            ((float *)data)[i] = (wf_rng_f32(key, (uint64_t)i) - 0.5f) * 0.1f;
    }
}

/* The step's five products alone, between buffers of the same sizes. */
static void products(int m, const float *x, float *h, float *w, float *o)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, MLP_HIDDEN, MLP_IN, 1, x, MLP_IN, w,
                MLP_HIDDEN, 0, h, MLP_HIDDEN);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, MLP_OUT, MLP_HIDDEN, 1, h, MLP_HIDDEN,
                w, MLP_OUT, 0, o, MLP_OUT);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, MLP_HIDDEN, MLP_OUT, m, 1, h, MLP_HIDDEN,
                o, MLP_OUT, 0, w, MLP_OUT);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, MLP_HIDDEN, MLP_OUT, 1, o, MLP_OUT, w,
                MLP_OUT, 0, h, MLP_HIDDEN);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, MLP_IN, MLP_HIDDEN, m, 1, x, MLP_IN, h,
                MLP_HIDDEN, 0, w, MLP_HIDDEN);
}

static double median_us(void (*once)(void *), void *arg, int steps)
{
    double us[ROUNDS];

    for (int i = 0; i < 20; i++)
        once(arg);
    for (int r = 0; r < ROUNDS; r++) {
        int64_t from = wf_now_ns();

        for (int i = 0; i < steps; i++)
            once(arg);
        us[r] = (double)(wf_now_ns() - from) / 1e3 / steps;
    }
    qsort(us, ROUNDS, sizeof us[0], by_size);
    return us[ROUNDS / 2];
}

typedef struct work {
    wf_plan *plan;
    wf_err *err;
    int batch;
    float *x, *h, *w, *o;
    int64_t *y;
    uint8_t *records; /* [MLP_RECORDS][MLP_IN] */
    uint64_t next;    /* of the records read, in no order */
    int socket;
    struct iovec grads[MLP_VARIABLES], weights[MLP_VARIABLES];
} work;

static void run_plan(void *arg)
{
    work *k = arg;

    if (wf_plan_run(k->plan, &(wf_step_key){.seed = 1}, NULL, NULL, k->err) != WF_OK) {
        fprintf(stderr, "%s\n", k->err->what);
        exit(1);
    }
}

static void run_products(void *arg)
{
    work *k = arg;

    products(k->batch, k->x, k->h, k->w, k->o);
}

/* ---- over sockets ---- */

/* One record of bytes as numbers from 0 to 1. */
WF_MULTIVERSION
static void scale_record(const uint8_t *restrict from, float *restrict to)
{
    for (int i = 0; i < MLP_IN; i++)
        to[i] = (float)from[i] * (1.0f / 255.0f);
}

static void read_batch(work *k)
{
    for (int i = 0; i < k->batch; i++) {
        uint64_t at = wf_rng_below((wf_rng_key){1, 0}, k->next++, MLP_RECORDS);

        scale_record(k->records + at * MLP_IN, k->x + (size_t)i * MLP_IN);
        k->y[i] = (int64_t)(at % MLP_OUT);
    }
}

/* All of it, without sleeping. */
static void transfer(int fd, const struct iovec parts[], bool sends)
{
    struct iovec left[MLP_VARIABLES];
    struct msghdr h = {.msg_iov = left, .msg_iovlen = MLP_VARIABLES};

    memcpy(left, parts, sizeof left);
    while (h.msg_iovlen > 0) {
        ssize_t n =
            sends ? sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) : recvmsg(fd, &h, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN))
            _exit(1); /* of the answering process, in the end */
        for (; n > 0 || (h.msg_iovlen > 0 && h.msg_iov->iov_len == 0);) {
            size_t used = WF_MIN((size_t)WF_MAX(n, (ssize_t)0), h.msg_iov->iov_len);

            h.msg_iov->iov_base = (uint8_t *)h.msg_iov->iov_base + used;
            h.msg_iov->iov_len -= used;
            n -= (ssize_t)used;
            if (h.msg_iov->iov_len == 0) {
                h.msg_iov++;
                h.msg_iovlen--;
            }
        }
    }
}

static int connection(bool listens, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

    at.sin_port = listens ? 0 : *port;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (listens && (bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, 1) != 0 ||
                    getsockname(fd, (struct sockaddr *)&at, &size) != 0))
        exit(1);
    if (!listens && connect(fd, (struct sockaddr *)&at, size) != 0)
        exit(1);
    *port = at.sin_port;
    return fd;
}

/* Forks a process that answers each set of gradients with weights, until the connection ends. */
static int answering_process(const work *k)
{
    uint16_t port = 0;
    int door = connection(true, &port), fd;

    fflush(stdout);
    if (fork() == 0) {
        fd = connection(false, &port);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            transfer(fd, k->grads, false);
            transfer(fd, k->weights, true);
        }
    }
    fd = accept(door, NULL, NULL);
    close(door);
    return fd;
}

static void run_with_sockets(void *arg)
{
    work *k = arg;

    read_batch(k);
    run_plan(k);
    transfer(k->socket, k->weights, false);
    transfer(k->socket, k->grads, true);
}

static double with_sockets(work *k, void *data[], int steps)
{
    double us;

    for (uint32_t i = 0; i < MLP_VARIABLES; i++) {
        size_t bytes = wf_plan_input(k->plan, 2 + i)->bytes;

        k->weights[i] = (struct iovec){data[2 + i], bytes};
        k->grads[i] = (struct iovec){aligned_alloc(64, (bytes + 63) / 64 * 64), bytes};
        if (!k->grads[i].iov_base)
            exit(1);
        memset(k->grads[i].iov_base, 0, bytes);
        wf_plan_bind_output(k->plan, 1 + i, k->grads[i].iov_base);
    }
    k->socket = answering_process(k);
    if (k->socket < 0)
        exit(1);
    transfer(k->socket, k->grads, true);
    us = median_us(run_with_sockets, k, steps);
    close(k->socket);
    for (uint32_t i = 0; i < MLP_VARIABLES; i++)
        free(k->grads[i].iov_base);
    return us;
}

static wf_status bench(int64_t batch, wf_err *err)
{
    wf_graph *g = NULL;
    wf_plan *plan = NULL;
    void *data[2 + MLP_VARIABLES];
    work k = {.err = err, .batch = (int)batch};
    double flops = 2.0 * (double)batch * (2 * MLP_IN * MLP_HIDDEN + 3 * MLP_HIDDEN * MLP_OUT), step,
           gemm, exchanged;
    int steps = (int)(20000 / batch) + 10;

    WF_TRY(mlp_graph_make(batch, &g, err));
    WF_TRY(wf_plan_new(g, &(wf_plan_options){0}, &plan, err));
    for (uint32_t i = 0; i < wf_plan_n_inputs(plan); i++) {
        const wf_port *port = wf_plan_input(plan, i);

        data[i] = aligned_alloc(64, (port->bytes + 63) / 64 * 64);
        if (!data[i])
            return wf_fail_nomem(err, port->bytes);
        fill(data[i], port, i);
        wf_plan_bind_input(plan, i, data[i]);
    }
    k.plan = plan;
    step = median_us(run_plan, &k, steps);
    k.x = data[0];
    k.y = data[1];
    k.records = calloc(MLP_RECORDS, MLP_IN);
    if (!k.records)
        return wf_fail_nomem(err, (size_t)MLP_RECORDS * MLP_IN);
    for (size_t i = 0; i < (size_t)MLP_RECORDS * MLP_IN; i++)
        k.records[i] = (uint8_t)(i * 31);
    k.h = calloc((size_t)batch * MLP_HIDDEN, sizeof(float));
    k.o = calloc((size_t)batch * MLP_OUT, sizeof(float));
    k.w = data[2];
    gemm = median_us(run_products, &k, steps);
    exchanged = with_sockets(&k, data, steps);
    printf("batch %4d  step %7.1f us  %6.1f GFLOP/s   products alone %7.1f us  %6.1f GFLOP/s   "
           "records and sockets %7.1f us   arena %zu KiB\n",
           (int)batch, step, flops / step / 1e3, gemm, flops / gemm / 1e3, exchanged,
           wf_plan_memory(plan).arena_bytes / 1024);
    for (uint32_t i = 0; i < wf_plan_n_inputs(plan); i++)
        free(data[i]);
    free(k.records);
    free(k.h);
    free(k.o);
    wf_plan_free(&plan);
    wf_graph_free(&g);
    return WF_OK;
}

int main(int argc, char **argv)
{
    static char *const usual[] = {"32", "128", "512"};
    char *const *batches = argc > 1 ? argv + 1 : usual;
    int n = argc > 1 ? argc - 1 : (int)WF_COUNT(usual);
    wf_err err;

    wf_flush_subnormals(); /* as the processes that train */
    openblas_set_num_threads(1);
    printf("%s\n", openblas_get_config());
    for (int i = 0; i < n; i++) {
        long batch = strtol(batches[i], NULL, 10);

        if (batch < 1 || batch > MLP_RECORDS) {
            fprintf(stderr, "a batch has 1 to %d records, not \"%s\"\n", MLP_RECORDS, batches[i]);
            return 2;
        }
        if (bench(batch, &err) != WF_OK) {
            fprintf(stderr, "%s; %s\n", err.what, err.hint);
            return 1;
        }
    }
    return 0;
}
