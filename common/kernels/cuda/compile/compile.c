/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/compile.c */
#include "common/kernels/cuda/compile/compile.h"
#include "common/base/bytes.h"
#include "common/base/size.h"
#include "common/kernels/cuda/kept.h"
#include "common/log/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Compiled code on disk: without it, code is compiled again. */
static const wf_cuda_kind code_kind = {"cubin", "weftcode"};

typedef struct kernel kernel;
struct kernel {
    kernel *next;
    wf_cuda_key key;
    wf_cuda_library *library;
    const void *of; /* NULL: compiling it failed */
};

struct wf_cuda_compiled {
    const wf_cuda_calls *calls;
    const char *gpu;
    int index;
    char architecture[48];
    pthread_mutex_t lock;
    kernel *first;
    bool warned;
};

wf_status wf_cuda_compiled_new(const wf_cuda_calls *calls, int index, const char *gpu,
                               const wf_cuda_properties *has, wf_cuda_compiled **out, wf_err *err)
{
    wf_cuda_compiled *c = calloc(1, sizeof *c);

    if (!c)
        return wf_fail_nomem(err, sizeof *c);
    c->calls = calls;
    c->gpu = gpu;
    c->index = index;
    snprintf(c->architecture, sizeof c->architecture, "--gpu-architecture=sm_%d%d", has->major,
             has->minor);
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return WF_OK;
}

void wf_cuda_compiled_free(wf_cuda_compiled **c)
{
    kernel *next;

    if (!*c)
        return;
    for (kernel *k = (*c)->first; k; k = next) {
        next = k->next;
        if (k->library && (*c)->calls->use((*c)->index) == 0)
            (void)(*c)->calls->library_free(k->library);
        free(k);
    }
    pthread_mutex_destroy(&(*c)->lock);
    free(*c);
    *c = NULL;
}

/* `said`: what the compiler wrote; its first line is shown. */
static void warn(wf_cuda_compiled *c, int error, const char *said)
{
    if (!c->warned)
        WF_LOG_WARN("cuda.not_compiled", "device=%s error=%d why=\"%s\"%s%.*s", c->gpu, error,
                    c->calls->error_string(error), said[0] ? " log=" : "", (int)strcspn(said, "\n"),
                    said);
    c->warned = true;
}

/* ---- from source to code ---- */

static int get_code(const wf_cuda_calls *calls, wf_cuda_program *p, wf_bytes *code)
{
    size_t bytes = 0;
    int error = calls->program_code_size(p, &bytes);
    uint8_t *at = error == 0 ? wf_bytes_extend(code, bytes) : NULL;

    if (error == 0)
        error = at ? calls->program_code(p, (char *)at) : WF_CUDA_NO_MEMORY;
    return error;
}

static void get_log(const wf_cuda_calls *calls, wf_cuda_program *p, wf_bytes *said)
{
    size_t bytes = 0;
    uint8_t *at = calls->program_log_size(p, &bytes) == 0 ? wf_bytes_extend(said, bytes) : NULL;

    if (!at || calls->program_log(p, (char *)at) != 0)
        wf_bytes_clear(said);
}

/* False, with a warning: it failed. */
static bool compile(wf_cuda_compiled *c, const char *source, wf_bytes *code)
{
    const char *const options[] = {c->architecture, "--std=c++17"};
    wf_cuda_program *p = NULL;
    wf_bytes said = {0};
    int error = c->calls->program_new(&p, source, "weft.cu");

    if (error == 0)
        error = c->calls->program_compile(p, (int)WF_COUNT(options), options);
    if (p && error != 0)
        get_log(c->calls, p, &said);
    if (error == 0)
        error = get_code(c->calls, p, code);
    if (error != 0)
        warn(c, error, wf_bytes_str(&said));
    if (p)
        (void)c->calls->program_free(p);
    wf_bytes_close(&said);
    return error == 0;
}

/* ---- from code to kernel ---- */

static int load(const wf_cuda_compiled *c, const wf_bytes *code, const char *name, kernel *out)
{
    int error = c->calls->use(c->index);

    if (error == 0)
        error = c->calls->library_load(&out->library, code->data);
    if (error == 0)
        error = c->calls->library_kernel(&out->of, out->library, name);
    if (error != 0) {
        if (out->library)
            (void)c->calls->library_free(out->library);
        out->library = NULL;
        out->of = NULL;
    }
    return error;
}

/* Code that was kept and cannot be loaded is compiled again. */
static void make(wf_cuda_compiled *c, const char *source, const char *name, kernel *k)
{
    wf_bytes code = {0};
    int error = 0;

    if (!wf_cuda_kept_read(&code_kind, k->key, &code) || load(c, &code, name, k) != 0) {
        wf_bytes_clear(&code);
        if (compile(c, source, &code)) {
            error = load(c, &code, name, k);
            if (error == 0)
                (void)wf_cuda_kept_write(&code_kind, k->key, code.data, code.size);
            else
                warn(c, error, "");
        }
    }
    wf_bytes_close(&code);
}

/* ---- what is there ---- */

static int key_of(const wf_cuda_compiled *c, const char *source, wf_cuda_key *out)
{
    char version[96];
    int major = 0, minor = 0, error = c->calls->compiler_version(&major, &minor);
    int n = snprintf(version, sizeof version, "%s nvrtc %d.%d", c->architecture, major, minor);
    XXH128_hash_t h =
        XXH3_128bits_withSeed(source, strlen(source), XXH3_64bits(version, (size_t)n));

    *out = (wf_cuda_key){h.high64, h.low64};
    return error;
}

static kernel *find(const wf_cuda_compiled *c, wf_cuda_key key)
{
    kernel *k = c->first;

    while (k && (k->key.high != key.high || k->key.low != key.low))
        k = k->next;
    return k;
}

static const void *find_or_make(wf_cuda_compiled *c, const char *source, const char *name)
{
    wf_cuda_key key;
    int error = key_of(c, source, &key);
    kernel *k;

    if (error != 0) {
        warn(c, error, "");
        return NULL;
    }
    k = find(c, key);
    if (k)
        return k->of;
    k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    *k = (kernel){.next = c->first, .key = key};
    c->first = k;
    make(c, source, name, k);
    return k->of;
}

const void *wf_cuda_compiled_kernel(wf_cuda_compiled *c, const char *source, const char *name)
{
    const void *k;

    if (!c->calls->compiler_version)
        return NULL;
    pthread_mutex_lock(&c->lock);
    k = find_or_make(c, source, name);
    pthread_mutex_unlock(&c->lock);
    return k;
}
