/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_compile.c - kernels that are compiled while weft runs: the source of chains, what
 * is kept of compilations, what happens without them; and that a compiled chain gives the bits of
 * the interpreter. */
#include "common/base/cc.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/narrow.h"
#include "common/kernels/cuda/compile/source.h"
#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/kept.h"
#include "common/tensor/dtype.h"
#include "tests/cuda/chain_case.h"
#include "tests/cuda/host.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != WF_OK)                                                                       \
            fail_msg("%s; %s", err.what, err.hint);                                                \
    } while (0)

static wf_err err;
static char folder[] = "/tmp/weft-cuda-compile-XXXXXX";

static int on_entry(void **state)
{
    (void)state;
    cuda_host_fail(NULL, 0, 0);
    setenv("WEFT_CACHE", folder, 1);
    (void)!wf_remove_tree(folder, NULL);
    return 0;
}

/* All is given back. */
static int on_exit_of_test(void **state)
{
    cuda_host_counts c = cuda_host_count();

    (void)state;
    return c.held == 0 && c.streams == 0 && c.objects == 0 ? 0 : -1;
}

static void need_compiler(void)
{
    int major, minor;

    if (wf_cuda_host.compiler_version(&major, &minor) == 0)
        return;
    print_message("skipped: this host has no g++, which compiles the kernels of its GPUs\n");
    skip();
}

static wf_cuda_gpu *open_gpu(const wf_cuda_calls *calls)
{
    wf_cuda_gpu *g = NULL;

    assert_ok(wf_cuda_open(calls, "cuda-host", 0, &g, &err));
    return g;
}

static size_t compilations(void)
{
    return cuda_host_count().compilations;
}

/* ---- sources ---- */

static char *source_of(const chain_case *c)
{
    wf_bytes source = {0};

    wf_cuda_chain_source(&c->plan, c->n, &c->types, &source);
    assert_false(source.failed);
    return (char *)source.data;
}

static const char *const golden[CHAIN_CASES] = {
    "typedef float T;\n"
    "typedef wf_chain_four<T> E;\n"
    "typedef unsigned I;\n"
    "\n"
    "extern \"C\" __global__ void wf_chain(const __grid_constant__ wf_chain_operands a)\n"
    "{\n"
    "    const I n = (I)(a.n / 4);\n"
    "\n"
    "    for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "         i += (I)gridDim.x * blockDim.x) {\n"
    "        const E x0 = ((const E *)a.in[0])[i];\n"
    "        const E x1 = ((const E *)a.in[1])[i];\n"
    "        E all;\n"
    "\n"
    "#pragma unroll\n"
    "        for (int k = 0; k < 4; k++) {\n"
    "            const T v0 = wf_step_mul(x0.v[k], x1.v[k]);\n"
    "            const T v1 = wf_step_add(v0, x0.v[k]);\n"
    "            const T v2 = wf_step_relu(v1);\n"
    "            all.v[k] = v2;\n"
    "        }\n"
    "        ((E *)a.out)[i] = all;\n"
    "    }\n"
    "}\n",
    "typedef double T;\n"
    "typedef T E;\n"
    "typedef unsigned I;\n"
    "\n"
    "extern \"C\" __global__ void wf_chain(const __grid_constant__ wf_chain_operands a)\n"
    "{\n"
    "    const I n = (I)(a.n);\n"
    "    const I p1 = (I)(a.periods[1]);\n"
    "    const T x2 = ((const T *)a.in[2])[0];\n"
    "\n"
    "    for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "         i += (I)gridDim.x * blockDim.x) {\n"
    "        const E x0 = ((const E *)a.in[0])[i];\n"
    "        const E x1 = ((const E *)a.in[1])[i % p1];\n"
    "        const T v0 = wf_step_add(x0, x1);\n"
    "        const T v1 = wf_step_mul(v0, x2);\n"
    "        const T v2 = wf_step_sigmoid(v1);\n"
    "        ((T *)a.out)[i] = v2;\n"
    "    }\n"
    "}\n",
    "typedef float T;\n"
    "typedef wf_chain_four<T> E;\n"
    "typedef long long I;\n"
    "\n"
    "extern \"C\" __global__ void wf_chain(const __grid_constant__ wf_chain_operands a)\n"
    "{\n"
    "    const I n = (I)(a.n / 4);\n"
    "    const I p1 = (I)(a.periods[1] / 4);\n"
    "\n"
    "    for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "         i += (I)gridDim.x * blockDim.x) {\n"
    "        const E x0 = ((const E *)a.in[0])[i];\n"
    "        const E x1 = ((const E *)a.in[1])[i % p1];\n"
    "        E all;\n"
    "\n"
    "#pragma unroll\n"
    "        for (int k = 0; k < 4; k++) {\n"
    "            const T v0 = wf_step_add(x0.v[k], x1.v[k]);\n"
    "            const T v1 = wf_step_sqrt(v0);\n"
    "            all.v[k] = v1;\n"
    "        }\n"
    "        ((E *)a.out)[i] = all;\n"
    "    }\n"
    "}\n",
    "typedef float T;\n"
    "typedef wf_chain_four<T> E;\n"
    "typedef unsigned I;\n"
    "\n"
    "extern \"C\" __global__ void wf_chain(const __grid_constant__ wf_chain_operands a)\n"
    "{\n"
    "    const I n = (I)(a.n / 4);\n"
    "    const I p1 = (I)(a.periods[1] / 4);\n"
    "    const I s1 = (I)(a.spans[1] / 4);\n"
    "\n"
    "    for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "         i += (I)gridDim.x * blockDim.x) {\n"
    "        const E x0 = ((const E *)a.in[0])[i];\n"
    "        const E x1 = ((const E *)a.in[1])[i / s1 * p1 + i % p1];\n"
    "        E all;\n"
    "\n"
    "#pragma unroll\n"
    "        for (int k = 0; k < 4; k++) {\n"
    "            const T v0 = wf_step_add(x0.v[k], x1.v[k]);\n"
    "            const T v1 = wf_step_sqrt(v0);\n"
    "            all.v[k] = v1;\n"
    "        }\n"
    "        ((E *)a.out)[i] = all;\n"
    "    }\n"
    "}\n",
};

static void sources_are_as_written_here(void **state)
{
    static const char end_of_steps[] = "#endif\n\n";

    (void)state;
    for (int i = 0; i < CHAIN_CASES; i++) {
        chain_case c = chain_case_at(i);
        char *source = source_of(&c), *own = strstr(source, end_of_steps);

        assert_non_null(strstr(source, "wf_step_tanh_grad")); /* the text of steps.h */
        assert_non_null(own);
        assert_string_equal(own + strlen(end_of_steps), golden[i]);
        free(source);
    }
}

static void equal_chains_have_equal_sources(void **state)
{
    chain_case a = chain_case_of_all(WF_F32, 1000, 20), b = chain_case_of_all(WF_F32, 1000, 20);
    chain_case larger = chain_case_of_all(WF_F32, 4000, 40);
    chain_case others[] = {chain_case_of_all(WF_F64, 1000, 20), chain_case_of_all(WF_F32, 1000, 10),
                           chain_case_of_all(WF_F32, 1000, 1),
                           chain_case_of_all(WF_F32, 1000, 1000)};
    char *of_a = source_of(&a), *of_b = source_of(&b), *of_larger = source_of(&larger);

    (void)state;
    assert_string_equal(of_a, of_b);
    assert_string_equal(of_a, of_larger);
    for (size_t i = 0; i < WF_COUNT(others); i++) {
        char *other = source_of(&others[i]);

        assert_string_not_equal(of_a, other);
        free(other);
    }
    free(of_a);
    free(of_b);
    free(of_larger);
}

/* ---- what is kept ---- */

/* On a GPU of its own that is closed again: whether the kernel is there. */
static bool has_kernel(const wf_cuda_calls *calls)
{
    chain_case c = chain_case_at(0);
    char *source = source_of(&c);
    wf_cuda_gpu *g = open_gpu(calls);
    const void *k = wf_cuda_compiled_kernel(g->compiled, source, WF_CUDA_CHAIN_KERNEL);

    /* The second time it is the same, or known to be missing. */
    assert_ptr_equal(wf_cuda_compiled_kernel(g->compiled, source, WF_CUDA_CHAIN_KERNEL), k);
    wf_cuda_close(&g);
    free(source);
    return k != NULL;
}

/* The only file of the folder; how many there are. */
static int kept_file(char path[static PATH_MAX])
{
    DIR *d = opendir(folder);
    int n = 0;

    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] != '.') {
            snprintf(path, PATH_MAX, "%s/%s", folder, e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

static void code_is_compiled_once(void **state)
{
    size_t before = compilations();
    char path[PATH_MAX];

    (void)state;
    need_compiler();
    assert_true(has_kernel(&wf_cuda_host));
    assert_int_equal(compilations() - before, 1);
    assert_int_equal(kept_file(path), 1);
    assert_true(has_kernel(&wf_cuda_host)); /* as the next process, which finds the file */
    assert_int_equal(compilations() - before, 1);
}

static void replaces(const void *data, size_t bytes)
{
    size_t before = compilations();
    char path[PATH_MAX];

    assert_int_equal(kept_file(path), 1);
    assert_ok(wf_file_write(path, data, bytes, &err));
    assert_true(has_kernel(&wf_cuda_host));
    assert_int_equal(compilations() - before, 1);
    assert_true(has_kernel(&wf_cuda_host));
    assert_int_equal(compilations() - before, 1);
    assert_int_equal(kept_file(path), 1);
}

static void damaged_files_are_replaced(void **state)
{
    char path[PATH_MAX];
    wf_bytes file = {0};

    (void)state;
    need_compiler();
    assert_true(has_kernel(&wf_cuda_host));
    assert_int_equal(kept_file(path), 1);
    assert_ok(wf_file_read(path, (size_t)64 << 20, &file, &err));
    replaces("", 0);
    replaces("#!/bin/sh\n", 10);
    replaces(file.data, file.size - 1);
    for (size_t at = 0; at < file.size; at += at < 64 ? 13 : file.size / 4) {
        file.data[at] ^= 1;
        replaces(file.data, file.size);
        file.data[at] ^= 1;
    }
    wf_bytes_close(&file);
}

/* Sound files whose code is another's are not loaded by CUDA. */
static void code_that_does_not_load_is_compiled_again(void **state)
{
    size_t before;

    (void)state;
    need_compiler();
    assert_true(has_kernel(&wf_cuda_host));
    before = compilations();
    cuda_host_fail("library_load", 0, 200);
    assert_true(has_kernel(&wf_cuda_host));
    assert_int_equal(compilations() - before, 1);
}

static void a_folder_that_cannot_be_written_is_no_error(void **state)
{
    char below_a_file[PATH_MAX];
    size_t before = compilations();

    (void)state;
    need_compiler();
    assert_ok(wf_make_dirs(folder, &err));
    snprintf(below_a_file, sizeof below_a_file, "%s/file", folder);
    assert_ok(wf_file_write(below_a_file, "", 0, &err));
    snprintf(below_a_file, sizeof below_a_file, "%s/file/cache", folder);
    setenv("WEFT_CACHE", below_a_file, 1);
    assert_true(has_kernel(&wf_cuda_host));
    assert_true(has_kernel(&wf_cuda_host));
    assert_int_equal(compilations() - before, 2);
}

static int another_version(int *major, int *minor)
{
    *major = 0;
    *minor = 1;
    return 0;
}

static int another_capability(int device, wf_cuda_properties *out)
{
    int error = wf_cuda_host.properties(device, out);

    out->minor++;
    return error;
}

static void other_versions_and_gpus_have_their_own_code(void **state)
{
    wf_cuda_calls newer = wf_cuda_host, larger = wf_cuda_host;
    size_t before = compilations();
    char path[PATH_MAX];

    (void)state;
    need_compiler();
    newer.compiler_version = another_version;
    larger.properties = another_capability;
    assert_true(has_kernel(&wf_cuda_host));
    assert_true(has_kernel(&newer));
    assert_true(has_kernel(&larger));
    assert_int_equal(compilations() - before, 3);
    assert_int_equal(kept_file(path), 3);
    assert_true(has_kernel(&wf_cuda_host));
    assert_true(has_kernel(&newer));
    assert_true(has_kernel(&larger));
    assert_int_equal(compilations() - before, 3);
}

static void the_folder_follows_from_the_environment(void **state)
{
    char path[PATH_MAX], home[PATH_MAX], xdg[PATH_MAX];
    const char *had_home = getenv("HOME"), *had_xdg = getenv("XDG_CACHE_HOME");

    (void)state;
    snprintf(home, sizeof home, "%s", had_home ? had_home : "");
    snprintf(xdg, sizeof xdg, "%s", had_xdg ? had_xdg : "");
    setenv("XDG_CACHE_HOME", "/x", 1);
    setenv("HOME", "/home/w", 1);
    setenv("WEFT_CACHE", "/w", 1);
    assert_true(wf_cuda_kept_folder(path));
    assert_string_equal(path, "/w");
    unsetenv("WEFT_CACHE");
    assert_true(wf_cuda_kept_folder(path));
    assert_string_equal(path, "/x/weft");
    unsetenv("XDG_CACHE_HOME");
    assert_true(wf_cuda_kept_folder(path));
    assert_string_equal(path, "/home/w/.cache/weft");
    unsetenv("HOME");
    assert_false(wf_cuda_kept_folder(path));
    if (had_home)
        setenv("HOME", home, 1);
    if (had_xdg)
        setenv("XDG_CACHE_HOME", xdg, 1);
}

/* ---- chains on a GPU ---- */

extern const wf_kernel wf_cuda_kernels_chain[]; /* of f32, of f64 */

/* A Chain node of a case, over [n / period, period] and [period]. */
static const wf_node *node_of(wf_graph *g, const chain_case *c)
{
    int64_t period = c->plan.periods[1], args[2 * WF_CHAIN_STEPS];
    int64_t dims[2][2] = {{c->n / period, period}, {period}};
    const char *steps[WF_CHAIN_STEPS];
    wf_attr attrs[2] = {
        {.name = "steps", .kind = WF_ATTR_STRINGS, .n = c->plan.chain.n_steps, .strings = steps}};
    wf_emit e = wf_emit_begin(g, "test", &err);
    wf_value *in[2], *out;

    for (uint32_t i = 0; i < c->plan.chain.n_steps; i++) {
        steps[i] = c->plan.chain.steps[i].op->name;
        args[2 * i] = c->plan.chain.steps[i].args[0];
        args[2 * i + 1] = c->plan.chain.steps[i].args[1];
    }
    attrs[1] = wf_attr_ints("args", 2 * (size_t)c->plan.chain.n_steps, args);
    for (int i = 0; i < 2; i++) {
        assert_ok(wf_graph_add_value(g, i ? "b" : "a", &in[i], &err));
        in[i]->dtype = c->dtype;
        in[i]->rank = 2 - i;
        for (int k = 0; k < 2 - i; k++)
            in[i]->axes[k] = (wf_axis){.size = dims[i][k], .bound = -1};
        assert_ok(wf_graph_add_input(g, in[i], &err));
    }
    out = wf_emit_op(&e, "Chain", 2, in, 2, attrs);
    assert_ok(wf_emit_end(&e));
    for (int i = 0; i < 2; i++) /* of a narrow node, whose operation knows nothing of it */
        in[i]->dtype = c->types.in[i];
    out->dtype = c->types.out;
    return out->producer;
}

static wf_tensor tensor_of(const wf_value *v, void *data)
{
    wf_tensor t = {.dtype = v->dtype, .rank = (uint32_t)v->rank, .data = data};

    for (int32_t i = 0; i < v->rank; i++)
        t.dims[i] = v->axes[i].size;
    return t;
}

/* Between -3 and 3, with the values that are of no size; of a narrow type any bits that there are.
 */
static void fill(void *data, wf_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = (double)((i * 7919) % 6007) / 1000 - 3;

        if (i % 997 == 0)
            x = i % 2 ? HUGE_VAL : -HUGE_VAL;
        if (wf_dtype_is_narrow(dtype))
            ((uint16_t *)data)[i] = (uint16_t)(i * 7919);
        else if (dtype == WF_F32)
            ((float *)data)[i] = (float)x;
        else
            ((double *)data)[i] = x;
    }
}

/* Writes one bit pattern for all NaNs. On a processor a NaN has the sign of an operand, and of
 * which one is the compiler's choice. */
static void unite_nans(void *data, wf_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (dtype) {
        case WF_F64:
            if (isnan(((double *)data)[i]))
                ((double *)data)[i] = NAN;
            break;
        case WF_F32:
            if (isnan(((float *)data)[i]))
                ((float *)data)[i] = NAN;
            break;
        default: {
            uint16_t *at = (uint16_t *)data + i, infinite = dtype == WF_F16 ? 0x7C00 : 0x7F80;

            if ((*at & 0x7FFF) > infinite)
                *at = 0x7FFF;
        }
        }
}

/* Operands lie `shift` elements behind aligned places; where in_place, the result lies over the
 * first. */
static void run_chain(const wf_cuda_gpu *g, const chain_case *c, int64_t shift, bool in_place,
                      void *result)
{
    const wf_kernel *k = &wf_cuda_kernels_chain[c->dtype == WF_F64];
    const size_t size[3] = {wf_dtype_size(c->types.in[0]), wf_dtype_size(c->types.in[1]),
                            wf_dtype_size(c->types.out)};
    int64_t elems[2] = {c->n, c->plan.periods[1]};
    wf_prep prep = {.kernel = k, .device = &g->base, .arena = wf_arena_new(SIZE_MAX), .threads = 1};
    wf_run run = {.kernel = k, .device = &g->base};
    wf_graph *graph = NULL;
    uint8_t *memory[3], *host = malloc((size_t)c->n * sizeof(double));
    wf_tensor in[2], out;

    assert_ok(wf_graph_new("test", &graph, &err));
    prep.node = run.node = node_of(graph, c);
    assert_ok(wf_stream_new(&g->base, &run.stream, &err));
    for (int i = 0; i < 3; i++)
        memory[i] = wf_device_alloc(&g->base, (size_t)(elems[i % 2] + shift) * size[i]);
    for (int i = 0; i < 2; i++) {
        in[i] = tensor_of(run.node->in[i], memory[i] + (size_t)shift * size[i]);
        fill(host, c->types.in[i], elems[i]);
        assert_ok(wf_stream_copy(run.stream, WF_COPY_IN, in[i].data, host,
                                 (size_t)elems[i] * size[i], &err));
        assert_ok(wf_stream_wait(run.stream, &err));
    }
    out = tensor_of(run.node->out[0], in_place ? in[0].data : memory[2] + (size_t)shift * size[2]);
    assert_ok(k->prepare(&prep, (const wf_tensor *[]){&in[0], &in[1]}, (const wf_tensor *[]){&out},
                         &err));
    run.state = prep.state;
    assert_ok(k->run(&run, (const wf_tensor *[]){&in[0], &in[1]}, (wf_tensor *[]){&out}, &err));
    assert_ok(
        wf_stream_copy(run.stream, WF_COPY_OUT, result, out.data, (size_t)c->n * size[2], &err));
    assert_ok(wf_stream_wait(run.stream, &err));
    unite_nans(result, c->types.out, c->n);
    for (int i = 0; i < 3; i++)
        wf_device_free(&g->base, memory[i]);
    wf_stream_free(&run.stream);
    wf_graph_free(&graph);
    wf_arena_free(&prep.arena);
    free(host);
}

static void gives_the_same(const wf_cuda_gpu *compiles, const wf_cuda_gpu *interprets,
                           const chain_case *c)
{
    size_t bytes = (size_t)c->n * wf_dtype_size(c->types.out), before = compilations();
    void *want = malloc(bytes), *got = malloc(bytes);

    run_chain(interprets, c, 0, false, want);
    assert_int_equal(compilations(), before);
    run_chain(compiles, c, 0, false, got);
    assert_int_equal(compilations(), before + 1);
    assert_memory_equal(got, want, bytes);
    if (c->types.in[0] == c->types.out)
        run_chain(compiles, c, 0, true, got);
    assert_memory_equal(got, want, bytes);
    run_chain(compiles, c, 1, false, got); /* at places that are not aligned */
    assert_memory_equal(got, want, bytes);
    assert_int_equal(compilations(), before + 1);
    free(want);
    free(got);
}

static void compiled_chains_give_the_bits_of_the_interpreter(void **state)
{
    static const wf_dtype dtypes[] = {WF_F32, WF_F64};
    static const int64_t sizes[][2] = {{20000, 20000}, {19999, 19999}, {20000, 20},
                                       {19998, 6},     {20000, 1},     {19999, 1}};
    wf_cuda_calls without = wf_cuda_host;
    wf_cuda_gpu *compiles, *interprets;

    (void)state;
    need_compiler();
    without.compiler_version = NULL;
    compiles = open_gpu(&wf_cuda_host);
    interprets = open_gpu(&without);
    for (size_t i = 0; i < WF_COUNT(dtypes); i++)
        for (size_t k = 0; k < WF_COUNT(sizes); k++) {
            chain_case c = chain_case_of_all(dtypes[i], sizes[k][0], sizes[k][1]);

            gives_the_same(compiles, interprets, &c);
        }
    for (uint32_t narrow = 2; narrow < 16; narrow++)
        for (size_t k = 0; k < WF_COUNT(sizes); k++) {
            chain_case c = chain_case_narrow(narrow % 2 ? WF_F16 : WF_BF16, narrow / 2, sizes[k][0],
                                             sizes[k][1]);

            gives_the_same(compiles, interprets, &c);
        }
    for (int i = 0; i < 2; i++) {
        chain_case c = chain_case_of_halves(i ? WF_F16 : WF_BF16);

        gives_the_same(compiles, interprets, &c);
    }
    wf_cuda_close(&compiles);
    wf_cuda_close(&interprets);
}

/* ---- without compiled code ---- */

/* What is written to stderr from here until end_of_log. */
static FILE *log_file;
static int had_stderr;

static void begin_log(void)
{
    log_file = tmpfile();
    assert_non_null(log_file);
    fflush(stderr);
    had_stderr = dup(STDERR_FILENO);
    dup2(fileno(log_file), STDERR_FILENO);
}

static void end_of_log(char said[4096])
{
    size_t n;

    fflush(stderr);
    dup2(had_stderr, STDERR_FILENO);
    close(had_stderr);
    rewind(log_file);
    n = fread(said, 1, 4095, log_file);
    said[n] = '\0';
    fclose(log_file);
}

static int lines_of(const char *said)
{
    int n = 0;

    for (; *said; said++)
        n += *said == '\n';
    return n;
}

/* The chain is interpreted, with one line of the log, whatever call fails. */
static void a_failed_compilation_is_said_once(void **state)
{
    static const char *const calls[] = {"compiler_version",  "program_new",  "program_compile",
                                        "program_code_size", "program_code", "library_load",
                                        "library_kernel"};
    chain_case c = chain_case_of_all(WF_F32, 20, 20);
    float want[20], got[20];
    wf_cuda_calls without = wf_cuda_host;
    wf_cuda_gpu *g;

    (void)state;
    need_compiler();
    without.compiler_version = NULL;
    g = open_gpu(&without);
    run_chain(g, &c, 0, false, want);
    wf_cuda_close(&g);
    for (size_t i = 0; i < WF_COUNT(calls); i++) {
        char said[4096];

        (void)!wf_remove_tree(folder, NULL);
        g = open_gpu(&wf_cuda_host);
        begin_log();
        cuda_host_fail(calls[i], 0, WF_CUDA_OF_NVRTC + 6);
        run_chain(g, &c, 0, false, got);
        cuda_host_fail(calls[i], 0, WF_CUDA_OF_NVRTC + 6);
        run_chain(g, &c, 0, false, got);
        cuda_host_fail(NULL, 0, 0);
        end_of_log(said);
        assert_memory_equal(got, want, sizeof want);
        assert_int_equal(lines_of(said), 1);
        assert_non_null(strstr(said, "cuda.not_compiled device=cuda-host:0 error=30006"));
        wf_cuda_close(&g);
    }
}

static void mistakes_in_a_source_are_said(void **state)
{
    wf_cuda_gpu *g;
    char said[4096];

    (void)state;
    need_compiler();
    g = open_gpu(&wf_cuda_host);
    begin_log();
    assert_null(wf_cuda_compiled_kernel(g->compiled, "no source", "none"));
    assert_null(wf_cuda_compiled_kernel(g->compiled, "no source either", "none"));
    end_of_log(said);
    assert_int_equal(lines_of(said), 1);
    assert_non_null(strstr(said, "error"));
    assert_non_null(strstr(said, "program.cc"));
    wf_cuda_close(&g);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, on_entry, on_exit_of_test)
    const struct CMUnitTest tests[] = {
        TEST(sources_are_as_written_here),
        TEST(equal_chains_have_equal_sources),
        TEST(code_is_compiled_once),
        TEST(damaged_files_are_replaced),
        TEST(code_that_does_not_load_is_compiled_again),
        TEST(a_folder_that_cannot_be_written_is_no_error),
        TEST(other_versions_and_gpus_have_their_own_code),
        TEST(the_folder_follows_from_the_environment),
        TEST(compiled_chains_give_the_bits_of_the_interpreter),
        TEST(a_failed_compilation_is_said_once),
        TEST(mistakes_in_a_source_are_said),
    };
    int failed;

    if (!mkdtemp(folder))
        return 2;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)!wf_remove_tree(folder, NULL);
    return failed;
}
