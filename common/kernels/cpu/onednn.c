/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/onednn.c */
#include "common/kernels/cpu/onednn.h"
#include "common/base/status.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdlib.h>

struct wf_onednn_product {
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, bias, c, scratch;
    size_t workspace;
};

static dnnl_engine_t engine; /* NULL: there is none */

static void open_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

static void close_engine(void) __attribute__((destructor));
static void close_engine(void)
{
    if (engine)
        dnnl_engine_destroy(engine);
    engine = NULL;
}

dnnl_engine_t wf_onednn_engine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_engine);
    return engine;
}

/* oneDNN would start a team of its own threads in each of ours. The setting is one of a thread. */
void wf_onednn_stay(void)
{
    static _Thread_local bool set;

    if (!set)
        omp_set_num_threads(1);
    set = true;
}

bool wf_onednn_has_f32(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

static bool describe(dnnl_memory_desc_t *out, dnnl_data_type_t type, int64_t rows, int64_t columns,
                     bool trans, int64_t ld)
{
    dnnl_dims_t dims = {rows, columns}, strides = {trans ? 1 : ld, trans ? ld : 1};

    return dnnl_memory_desc_init_by_strides(out, 2, dims, type, strides) == dnnl_success;
}

/* What follows the product, and that memory for it comes from us. NULL on failure. */
static dnnl_primitive_attr_t new_attr(const wf_onednn_shape *s)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t after = NULL;
    bool ok =
        dnnl_primitive_attr_create(&attr) == dnnl_success &&
        dnnl_post_ops_create(&after) == dnnl_success &&
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success;

    if (ok && s->add)
        ok = dnnl_post_ops_append_sum(after, 1.0f) == dnnl_success;
    if (ok && s->relu)
        ok = dnnl_post_ops_append_eltwise(after, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f) ==
             dnnl_success;
    if (ok)
        ok = dnnl_primitive_attr_set_post_ops(attr, after) == dnnl_success;
    if (after)
        dnnl_post_ops_destroy(after);
    if (!ok && attr) {
        dnnl_primitive_attr_destroy(attr);
        attr = NULL;
    }
    return attr;
}

static bool new_memory(dnnl_memory_t *out, const dnnl_memory_desc_t *md)
{
    return dnnl_memory_create(out, md, wf_onednn_engine(), DNNL_MEMORY_NONE) == dnnl_success;
}

static bool make(wf_onednn_product *p, const wf_onednn_shape *s, dnnl_primitive_attr_t attr)
{
    dnnl_memory_desc_t a, b, c, bias;
    const dnnl_memory_desc_t *scratch;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_matmul_desc_t d;
    bool ok = describe(&a, dnnl_f32, s->m, s->k, s->trans_a, s->lda) &&
              describe(&b, dnnl_f32, s->k, s->n, s->trans_b, s->ldb) &&
              describe(&c, dnnl_f32, s->m, s->n, false, s->ldc) &&
              describe(&bias, dnnl_f32, 1, s->n, false, s->n) &&
              dnnl_matmul_desc_init(&d, &a, &b, s->bias ? &bias : NULL, &c) == dnnl_success &&
              dnnl_primitive_desc_create(&pd, &d, attr, wf_onednn_engine(), NULL) == dnnl_success;

    if (!ok)
        return false;
    scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    p->workspace = dnnl_memory_desc_get_size(scratch);
    ok = dnnl_stream_create(&p->stream, wf_onednn_engine(), dnnl_stream_default_flags) ==
             dnnl_success &&
         dnnl_primitive_create(&p->primitive, pd) == dnnl_success && new_memory(&p->a, &a) &&
         new_memory(&p->b, &b) && new_memory(&p->c, &c) && new_memory(&p->scratch, scratch) &&
         (!s->bias || new_memory(&p->bias, &bias));
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

wf_onednn_product *wf_onednn_product_new(const wf_onednn_shape *s)
{
    wf_onednn_product *p = wf_onednn_engine() ? calloc(1, sizeof *p) : NULL;
    dnnl_primitive_attr_t attr;

    if (!p)
        return NULL;
    wf_onednn_stay();
    attr = new_attr(s);
    if (!attr || !make(p, s, attr)) {
        wf_onednn_product_free(p);
        p = NULL;
    }
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return p;
}

void wf_onednn_product_free(wf_onednn_product *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < 5; i++) {
        dnnl_memory_t m[] = {p->a, p->b, p->bias, p->c, p->scratch};

        if (m[i])
            dnnl_memory_destroy(m[i]);
    }
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    if (p->stream)
        dnnl_stream_destroy(p->stream);
    free(p);
}

size_t wf_onednn_product_workspace(const wf_onednn_product *p)
{
    return p->workspace;
}

void wf_onednn_product_run(wf_onednn_product *p, const void *a, const void *b, const float *bias,
                           float *c, void *workspace)
{
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->a},
                              {DNNL_ARG_WEIGHTS, p->b},
                              {DNNL_ARG_DST, p->c},
                              {DNNL_ARG_SCRATCHPAD, p->scratch},
                              {DNNL_ARG_BIAS, p->bias}};

    wf_onednn_stay();
    dnnl_memory_set_data_handle(p->a, (void *)a);
    dnnl_memory_set_data_handle(p->b, (void *)b);
    dnnl_memory_set_data_handle(p->c, c);
    dnnl_memory_set_data_handle(p->scratch, workspace);
    if (bias)
        dnnl_memory_set_data_handle(p->bias, (void *)bias);
    /* Its arguments were checked when it was made: it fails for want of memory alone. */
    wf_assert(dnnl_primitive_execute(p->primitive, p->stream, bias ? 5 : 4, args) == dnnl_success);
}
