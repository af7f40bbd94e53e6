/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_products.c - the calls of cuBLASLt that may be told to fail; host_blas.c has what
 * they do. */
#include "common/base/cc.h"
#include "tests/cuda/host_work.h"

static void do_product(work *w)
{
    host_multiplication_do(w->product);
}

int host_multiply(wf_cuda_lt *lt, wf_cuda_product *p, const void *alpha, const void *a,
                  wf_cuda_layout *of_a, const void *b, wf_cuda_layout *of_b, const void *beta,
                  void *c, wf_cuda_layout *of_c, const wf_cuda_algorithm *algorithm,
                  void *workspace, wf_cuda_stream *s)
{
    work like = {.act = do_product, .name = "a product"};
    int error = host_begin("multiply");

    wf_assert(lt);
    if (error == 0) {
        like.product = host_multiplication_new(p, alpha, a, of_a, b, of_b, beta, c, of_c, algorithm,
                                               workspace);
        like.ms = like.product ? host_multiplication_ms(like.product) : 0;
        error = like.product ? host_enqueue(s, &like, 0, 0) : WF_CUDA_NO_MEMORY;
    }
    return host_end(error);
}

int host_call_product_new(wf_cuda_product **out, int compute, int scale)
{
    int error = host_begin("product_new");

    return host_end(error ? error : host_product_new(out, compute, scale));
}

int host_call_product_set(wf_cuda_product *p, int attribute, const void *value, size_t bytes)
{
    int error = host_begin("product_set");

    return host_end(error ? error : host_product_set(p, attribute, value, bytes));
}

int host_call_layout_new(wf_cuda_layout **out, int type, uint64_t rows, uint64_t columns,
                         int64_t ld)
{
    int error = host_begin("layout_new");

    return host_end(error ? error : host_layout_new(out, type, rows, columns, ld));
}

int host_call_layout_set(wf_cuda_layout *l, int attribute, const void *value, size_t bytes)
{
    int error = host_begin("layout_set");

    return host_end(error ? error : host_layout_set(l, attribute, value, bytes));
}

int host_call_choose(wf_cuda_lt *lt, wf_cuda_product *p, wf_cuda_layout *a, wf_cuda_layout *b,
                     wf_cuda_layout *c, size_t workspace, uint32_t aligned, int most,
                     wf_cuda_algorithm out[], int *n)
{
    int error = host_begin("choose");

    return host_end(error ? error : host_choose(lt, p, a, b, c, workspace, aligned, most, out, n));
}
