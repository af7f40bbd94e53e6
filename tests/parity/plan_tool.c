/* SPDX-License-Identifier: Apache-2.0 */
/* tests/parity/plan_tool.c - what the parity tests of kernels and plans drive: runs a model as it
 * is and writes all its outputs.
 *
 *   plan_tool MODEL.onnx IN OUT [THREADS [COMPUTE]]
 *   plan_tool -
 *
 * With - it reads such words from each line of its input, with a tab between two, and answers each
 * line with one: the exit code, a tab and the sentence. A test of thousands of models starts it
 * once.
 *
 * IN and OUT hold tensors one after the other: u32 bytes of name, name, u32 dtype (ONNX's number),
 * u32 rank, i64 dims, elements; all little-endian. The plan runs twice, into buffers of the caller
 * and over memory that the first run left behind; both must give the same bits.
 */
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/exec/exec.h"
#include "common/onnx/onnx.h"
#include "tests/kit/remote_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, GARBAGE = 0xA5, WORDS = 5 };

typedef struct tensors {
    uint32_t n;
    char *names[MOST];
    wf_tensor *t[MOST];
} tensors;

static bool take(wf_bytes *in, size_t *at, void *to, size_t n)
{
    if (in->size - *at < n)
        return false;
    if (n)
        memcpy(to, in->data + *at, n);
    *at += n;
    return true;
}

static wf_status read_tensors(const char *path, tensors *out, wf_err *err)
{
    wf_bytes in = {0};
    size_t at = 0;
    wf_status rc = wf_file_read(path, (size_t)1 << 30, &in, err);

    while (rc == WF_OK && at < in.size) {
        uint32_t length, head[2];
        int64_t dims[WF_MAX_RANK];
        wf_tensor *t = NULL;
        char *name;

        wf_assert(out->n < MOST && take(&in, &at, &length, sizeof length) && length < 4096);
        name = calloc(1, length + 1);
        wf_assert(name && take(&in, &at, name, length));
        out->names[out->n] = name;
        wf_assert(take(&in, &at, head, sizeof head) && head[1] <= WF_MAX_RANK);
        wf_assert(take(&in, &at, dims, head[1] * sizeof dims[0]));
        rc = wf_tensor_new((wf_dtype)head[0], head[1], dims, &t, err);
        if (rc == WF_OK)
            wf_assert(take(&in, &at, t->data, wf_tensor_bytes(t)));
        out->t[out->n++] = t;
    }
    wf_bytes_close(&in);
    return rc;
}

static void free_tensors(tensors *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        free(t->names[i]);
        wf_tensor_free(&t->t[i]);
    }
}

static wf_status make_plan(const wf_graph *g, const tensors *in, wf_pool *pool, wf_compute compute,
                           wf_plan **plan, wf_err *err)
{
    wf_plan_shape shapes[MOST];
    wf_plan_options o = {.device = test_device(),
                         .pool = pool,
                         .n_shapes = in->n,
                         .shapes = shapes,
                         .compute = compute};

    for (uint32_t i = 0; i < in->n; i++) {
        shapes[i] = (wf_plan_shape){.name = in->names[i], .rank = in->t[i]->rank};
        memcpy(shapes[i].dims, in->t[i]->dims, sizeof shapes[i].dims);
    }
    WF_TRY(wf_plan_new(g, &o, plan, err));
    for (uint32_t i = 0; i < in->n; i++) {
        int64_t at = wf_plan_find_input(*plan, in->names[i]);

        if (at >= 0)
            wf_plan_bind_input(*plan, (uint32_t)at, in->t[i]->data);
    }
    return WF_OK;
}

/* One output after a run into memory of its own. */
static void add_output(wf_bytes *out, const wf_port *port, const void *data)
{
    uint32_t length = (uint32_t)strlen(port->name), head[2] = {port->dtype, port->rank};

    wf_bytes_add(out, &length, sizeof length);
    wf_bytes_add(out, port->name, length);
    wf_bytes_add(out, head, sizeof head);
    wf_bytes_add(out, port->dims, port->rank * sizeof port->dims[0]);
    wf_bytes_add(out, data, port->bytes);
}

static wf_status run_once(wf_plan *plan, bool bind, wf_bytes *out, wf_err *err)
{
    void *data[MOST] = {0};
    uint32_t n = wf_plan_n_outputs(plan);
    wf_status rc;

    wf_assert(n <= MOST);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = wf_plan_output(plan, i)->bytes;

        if (bind) {
            data[i] = malloc(bytes + 1);
            wf_assert(data[i]);
            memset(data[i], GARBAGE, bytes);
        }
        wf_plan_bind_output(plan, i, data[i]);
    }
    rc = wf_plan_run(plan, &(wf_step_key){.seed = 7}, NULL, NULL, err);
    for (uint32_t i = 0; rc == WF_OK && i < n; i++)
        add_output(out, wf_plan_output(plan, i), wf_plan_output_data(plan, i));
    for (uint32_t i = 0; i < n; i++)
        free(data[i]);
    return rc;
}

static wf_status run(const char *model, const char *in_path, const char *out_path, uint32_t threads,
                     const char *compute, wf_err *err)
{
    tensors in = {0};
    wf_graph *g = NULL;
    wf_plan *plan = NULL;
    wf_pool *pool = NULL;
    wf_bytes first = {0}, second = {0};
    wf_status rc = wf_onnx_read(model, &g, err);

    if (rc == WF_OK)
        rc = read_tensors(in_path, &in, err);
    if (rc == WF_OK)
        rc = wf_pool_new(threads, &pool, err);
    if (rc == WF_OK)
        rc = make_plan(g, &in, pool, wf_compute_of(compute), &plan, err);
    if (rc == WF_OK)
        rc = run_once(plan, false, &first, err);
    if (rc == WF_OK)
        rc = run_once(plan, true, &second, err);
    if (rc == WF_OK && (first.size != second.size || !first.data ||
                        memcmp(first.data, second.data, first.size) != 0))
        rc = wf_fail(err, WF_MISMATCH, NULL, "two runs differ");
    if (rc == WF_OK)
        rc = wf_file_write(out_path, first.data, first.size, err);
    wf_bytes_close(&first);
    wf_bytes_close(&second);
    wf_plan_free(&plan);
    wf_pool_free(&pool);
    wf_graph_free(&g);
    free_tensors(&in);
    return rc;
}

/* By the words behind the program's name. Returns the exit code; err: its sentence. */
static int run_words(int n, char *const words[], wf_err *err)
{
    if (n < 3)
        return wf_exit_code(WF_USAGE);
    return wf_exit_code(run(words[0], words[1], words[2],
                            n > 3 ? (uint32_t)strtoul(words[3], NULL, 10) : 1,
                            n > 4 ? words[4] : "float32", err));
}

static void run_line(char *line)
{
    char *words[WORDS], *rest = line;
    wf_err err = {0};
    int n = 0, code;

    line[strcspn(line, "\n")] = '\0';
    while (n < WORDS && (words[n] = strsep(&rest, "\t")))
        n++;
    code = run_words(n, words, &err);
    printf("%d\t%s%s%s\n", code, err.what, err.hint[0] ? "; " : "", err.hint);
    fflush(stdout);
}

static int run_lines(void)
{
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0)
        run_line(line);
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    wf_err err = {0};
    int code;

    if (argc == 2 && strcmp(argv[1], "-") == 0)
        return run_lines();
    code = run_words(argc - 1, argv + 1, &err);
    if (code)
        fprintf(stderr, "%s%s%s\n", err.what, err.hint[0] ? "; " : "", err.hint);
    return code;
}
