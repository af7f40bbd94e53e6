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
#include "common/graph/emit.h"

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

enum { IN = 784, HIDDEN = 128, OUT = 10, ROUNDS = 15, VARIABLES = 4, RECORDS = 60000 };

static const char *const names[VARIABLES] = {"w1", "b1", "w2", "b2"};
static const int64_t dims[VARIABLES][2] = {{IN, HIDDEN}, {HIDDEN, 0}, {HIDDEN, OUT}, {OUT, 0}};

static wf_status add_input(wf_graph *g, const char *name, wf_dtype dtype, uint32_t rank,
                           const int64_t d[], wf_value **out, wf_err *err)
{
    WF_TRY(wf_graph_add_value(g, name, out, err));
    wf_value_set_type(*out, dtype, rank, d);
    return wf_graph_add_input(g, *out, err);
}

static wf_status make_graph(int64_t batch, wf_graph **out, wf_err *err)
{
    wf_graph *g;
    wf_value *x, *y, *v[VARIABLES], *grads[VARIABLES], *loss;
    wf_emit e;

    WF_TRY(wf_graph_new("mlp", &g, err));
    *out = g;
    WF_TRY(add_input(g, "x", WF_F32, 2, (int64_t[]){batch, IN}, &x, err));
    WF_TRY(add_input(g, "y", WF_I64, 1, &batch, &y, err));
    for (int i = 0; i < VARIABLES; i++)
        WF_TRY(add_input(g, names[i], WF_F32, dims[i][1] ? 2 : 1, dims[i], &v[i], err));
    e = wf_emit_begin(g, "mlp", err);
    x = wf_emit_unary(&e, "Relu", wf_emit_gemm(&e, x, v[0], v[1], 1, 1, false, false));
    x = wf_emit_gemm(&e, x, v[2], v[3], 1, 1, false, false);
    loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2, (wf_value *[]){x, y}, 0, NULL);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_graph_add_output(g, loss, err));
    WF_TRY(wf_graph_differentiate(g, loss, v, VARIABLES, grads, err));
    for (int i = 0; i < VARIABLES; i++)
        WF_TRY(wf_graph_add_output(g, grads[i], err));
    return wf_graph_sort(g, err);
}

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
            ((int64_t *)data)[i] = (int64_t)wf_rng_below(key, (uint64_t)i, OUT);
        else
            ((float *)data)[i] = (wf_rng_f32(key, (uint64_t)i) - 0.5f) * 0.1f;
    }
}

/* The step's five products alone, between buffers of the same sizes. */
static void products(int m, const float *x, float *h, float *w, float *o)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, HIDDEN, IN, 1, x, IN, w, HIDDEN, 0, h,
                HIDDEN);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, OUT, HIDDEN, 1, h, HIDDEN, w, OUT, 0,
                o, OUT);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, HIDDEN, OUT, m, 1, h, HIDDEN, o, OUT, 0, w,
                OUT);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, HIDDEN, OUT, 1, o, OUT, w, OUT, 0, h,
                HIDDEN);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, IN, HIDDEN, m, 1, x, IN, h, HIDDEN, 0, w,
                HIDDEN);
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
    uint8_t *records; /* [RECORDS][IN] */
    uint64_t next;    /* of the records read, in no order */
    int socket;
    struct iovec grads[VARIABLES], weights[VARIABLES];
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
    for (int i = 0; i < IN; i++)
        to[i] = (float)from[i] * (1.0f / 255.0f);
}

static void read_batch(work *k)
{
    for (int i = 0; i < k->batch; i++) {
        uint64_t at = wf_rng_below((wf_rng_key){1, 0}, k->next++, RECORDS);

        scale_record(k->records + at * IN, k->x + (size_t)i * IN);
        k->y[i] = (int64_t)(at % OUT);
    }
}

/* All of it, without sleeping. */
static void transfer(int fd, const struct iovec parts[], bool sends)
{
    struct iovec left[VARIABLES];
    struct msghdr h = {.msg_iov = left, .msg_iovlen = VARIABLES};

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

    for (uint32_t i = 0; i < VARIABLES; i++) {
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
    for (uint32_t i = 0; i < VARIABLES; i++)
        free(k->grads[i].iov_base);
    return us;
}

static wf_status bench(int64_t batch, wf_err *err)
{
    wf_graph *g = NULL;
    wf_plan *plan = NULL;
    void *data[2 + VARIABLES];
    work k = {.err = err, .batch = (int)batch};
    double flops = 2.0 * (double)batch * (2 * IN * HIDDEN + 3 * HIDDEN * OUT), step, gemm,
           exchanged;
    int steps = (int)(20000 / batch) + 10;

    WF_TRY(make_graph(batch, &g, err));
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
    k.records = calloc(RECORDS, IN);
    if (!k.records)
        return wf_fail_nomem(err, (size_t)RECORDS * IN);
    for (size_t i = 0; i < (size_t)RECORDS * IN; i++)
        k.records[i] = (uint8_t)(i * 31);
    k.h = calloc((size_t)batch * HIDDEN, sizeof(float));
    k.o = calloc((size_t)batch * OUT, sizeof(float));
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

        if (batch < 1 || batch > RECORDS) {
            fprintf(stderr, "a batch has 1 to %d records, not \"%s\"\n", RECORDS, batches[i]);
            return 2;
        }
        if (bench(batch, &err) != WF_OK) {
            fprintf(stderr, "%s; %s\n", err.what, err.hint);
            return 1;
        }
    }
    return 0;
}
