/* SPDX-License-Identifier: Apache-2.0 */
/* bench/digits.c - how hard the drawn digits are: a linear model and 784-128-10, trained to the
 * end.
 *
 *   bench_digits [DIR]    DIR holds MNIST's four files; without it, digits are drawn with seed 1
 *
 * A trainer of a hundred lines that shares nothing with weft's graph and kernels: what weft reaches
 * on the same data can be held against it. Adam 0.001, as wf_opt has it.
 */
#include "common/data/digits.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/data/reader.h"
#include "common/optim/rule.h"

#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN = WF_DIGITS_PIXELS, OUT = WF_DIGITS_CLASSES, MOST = 1000 /* records of a batch */ };

/* A layer [in, out] with its bias, and their gradients, as parts of two long arrays. */
typedef struct layer {
    int in, out;
    float *w, *b, *dw, *db;
} layer;

typedef struct model {
    layer layers[2];
    int n;
    size_t size;
    float *params, *grads, *slots[WF_MAX_SLOTS];
    float *hidden, *logits, *dhidden; /* [MOST, ...] */
} model;

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static float *floats(size_t n)
{
    float *p = calloc(n, sizeof *p);

    if (!p)
        die("no memory");
    return p;
}

/* Keras's first weights: glorot_uniform, biases 0. */
static void build(model *m, int hidden)
{
    const int sizes[] = {IN, hidden ? hidden : OUT, OUT};
    size_t at = 0;

    *m = (model){.n = hidden ? 2 : 1};
    for (int k = 0; k < m->n; k++)
        m->size += (size_t)(sizes[k] + 1) * (size_t)sizes[k + 1];
    m->params = floats(m->size);
    m->grads = floats(m->size);
    m->slots[0] = floats(m->size);
    m->slots[1] = floats(m->size);
    m->hidden = floats((size_t)MOST * (size_t)(hidden + 1));
    m->dhidden = floats((size_t)MOST * (size_t)(hidden + 1));
    m->logits = floats(MOST * OUT);
    for (int k = 0; k < m->n; k++) {
        int in = sizes[k], out = sizes[k + 1];
        float limit = sqrtf(6.0f / (float)(in + out));
        layer l = {in,
                   out,
                   m->params + at,
                   m->params + at + in * out,
                   m->grads + at,
                   m->grads + at + in * out};

        for (int i = 0; i < in * out; i++)
            l.w[i] = (2 * wf_rng_f32((wf_rng_key){1, (uint64_t)k}, (uint64_t)i) - 1) * limit;
        m->layers[k] = l;
        at += (size_t)(in + 1) * (size_t)out;
    }
}

static void clear(model *m)
{
    free(m->params);
    free(m->grads);
    free(m->slots[0]);
    free(m->slots[1]);
    free(m->hidden);
    free(m->dhidden);
    free(m->logits);
}

static void forward_layer(const layer *l, const float *x, float *y, int n)
{
    for (int i = 0; i < n; i++)
        memcpy(y + i * l->out, l->b, (size_t)l->out * sizeof *y);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, l->out, l->in, 1, x, l->in, l->w,
                l->out, 1, y, l->out);
}

static void backward_layer(layer *l, const float *x, const float *dy, int n)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, l->in, l->out, n, 1, x, l->in, dy, l->out,
                0, l->dw, l->out);
    memset(l->db, 0, (size_t)l->out * sizeof *l->db);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < l->out; k++)
            l->db[k] += dy[i * l->out + k];
}

/* Logits of a batch; returns how many labels they name. */
static int forward(model *m, const wf_batch *b)
{
    const float *x = wf_f32(&b->fields[0]);
    const int64_t *labels = b->fields[1].data;
    int n = (int)b->n, right = 0;

    if (m->n == 2) {
        forward_layer(&m->layers[0], x, m->hidden, n);
        for (int i = 0; i < n * m->layers[0].out; i++)
            m->hidden[i] = m->hidden[i] > 0 ? m->hidden[i] : 0;
        x = m->hidden;
    }
    forward_layer(&m->layers[m->n - 1], x, m->logits, n);
    for (int i = 0; i < n; i++) {
        int best = 0;

        for (int k = 1; k < OUT; k++)
            if (m->logits[i * OUT + k] > m->logits[i * OUT + best])
                best = k;
        right += best == labels[i];
    }
    return right;
}

/* Gradients of the mean softmax cross-entropy, from the logits on. */
static void backward(model *m, const wf_batch *b)
{
    const float *x = wf_f32(&b->fields[0]);
    const int64_t *labels = b->fields[1].data;
    int n = (int)b->n, h = m->layers[0].out;
    layer *last = &m->layers[m->n - 1];

    for (int i = 0; i < n; i++) {
        float *row = m->logits + i * OUT, sum = 0, most = row[0];

        for (int k = 1; k < OUT; k++)
            most = row[k] > most ? row[k] : most;
        for (int k = 0; k < OUT; k++)
            sum += row[k] = expf(row[k] - most);
        for (int k = 0; k < OUT; k++)
            row[k] = (row[k] / sum - (k == labels[i] ? 1.0f : 0.0f)) / (float)n;
    }
    backward_layer(last, m->n == 2 ? m->hidden : x, m->logits, n);
    if (m->n == 1)
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, h, OUT, 1, m->logits, OUT, last->w, OUT,
                0, m->dhidden, h);
    for (int i = 0; i < n * h; i++)
        m->dhidden[i] = m->hidden[i] > 0 ? m->dhidden[i] : 0;
    backward_layer(&m->layers[0], x, m->dhidden, n);
}

static wf_data_reader *start(const wf_dataset *d, uint64_t batch, bool shuffle)
{
    wf_data_reader_spec spec = {.dataset = d, .batch = batch, .seed = 1, .shuffle = shuffle};
    wf_data_reader *r = NULL;
    wf_err err;

    if (wf_data_reader_new(&spec, &r, &err) != WF_OK)
        die(err.what);
    return r;
}

/* One pass over a data set; `opt` NULL only counts. Returns the share of right answers. */
static double pass(model *m, const wf_dataset *d, wf_data_reader *r, uint64_t epoch,
                   const wf_opt *opt, uint64_t *updates)
{
    const wf_batch *b;
    int right = 0;
    wf_err err;

    if (wf_data_reader_open(r, epoch, 0, 0, wf_dataset_records(d), 0, &err) != WF_OK)
        die(err.what);
    while (wf_data_reader_next(r, &b, NULL) == WF_OK && b) { /* arrays cannot fail */
        right += forward(m, b);
        if (opt) {
            backward(m, b);
            wf_opt_apply(opt, ++*updates, m->size, m->params, m->grads, m->slots);
        }
        wf_data_reader_release(r, &b);
    }
    return (double)right / (double)wf_dataset_records(d);
}

static void train(const wf_dataset *data, const wf_dataset *test, int hidden, uint64_t batch,
                  uint64_t epochs)
{
    wf_data_reader *r = start(data, batch, true), *t = start(test, MOST, false);
    uint64_t updates = 0;
    wf_opt opt;
    model m;

    build(&m, hidden);
    if (wf_opt_init(&opt, "adam", 0, NULL, NULL, NULL) != WF_OK)
        die("no adam");
    for (uint64_t e = 0; e < epochs; e++) {
        int64_t from = wf_now_ns();
        double seen = pass(&m, data, r, e, &opt, &updates);

        printf("%s batch %3u  epoch %2u  train %.4f  test %.4f  %.1f s\n",
               hidden ? "784-128-10" : "linear    ", (unsigned)batch, (unsigned)e + 1, seen,
               pass(&m, test, t, 0, NULL, NULL), (double)(wf_now_ns() - from) / 1e9);
    }
    clear(&m);
    wf_data_reader_free(&r);
    wf_data_reader_free(&t);
}

static wf_dataset *open_set(const char *dir, const char *prefix)
{
    static const int64_t flat[] = {IN};
    const wf_map_step steps[] = {{.type = "scale", .number = 1.0 / 255},
                                 {.type = "reshape", .ints = flat, .n_ints = 1}};
    char x[PATH_MAX], y[PATH_MAX];
    wf_field_spec fields[] = {{.name = "x", .path = x, .steps = steps, .n_steps = 2},
                              {.name = "y", .path = y, .want = WF_I64}};
    wf_dataset *d = NULL;
    wf_err err;

    snprintf(x, sizeof x, "%s/%s-images-idx3-ubyte.gz", dir, prefix);
    snprintf(y, sizeof y, "%s/%s-labels-idx1-ubyte.gz", dir, prefix);
    if (wf_dataset_open(&(wf_dataset_spec){.format = "idx", .fields = fields, .n_fields = 2}, &d,
                        &err) != WF_OK ||
        wf_dataset_check_labels(d, 1, OUT, &err) != WF_OK)
        die(err.what);
    return d;
}

static void draw_set(const char *dir)
{
    wf_err err;

    if (wf_digits_write(dir, 1, 60000, 10000, &err) != WF_OK)
        die(err.what);
}

static void remove_set(const char *dir)
{
    static const char *const names[] = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};
    char path[PATH_MAX];

    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

int main(int argc, char **argv)
{
    char drawn[] = "/tmp/weft-bench-XXXXXX";
    const char *dir = argc > 1 ? argv[1] : mkdtemp(drawn);
    wf_dataset *data, *test;

    if (!dir)
        die("no folder in /tmp");
    if (argc < 2)
        draw_set(dir);
    data = open_set(dir, "train");
    test = open_set(dir, "t10k");
    if (argc < 2)
        remove_set(dir);
    train(data, test, 0, 128, 20);
    train(data, test, 128, 32, 10);
    wf_dataset_free(&data);
    wf_dataset_free(&test);
    return 0;
}
