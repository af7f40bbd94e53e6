/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/cuda_nvrtc.c - NVRTC itself, which needs no GPU: it takes the source of every chain.
 */
#include "common/base/size.h"
#include "common/kernels/cuda/compile/nvrtc.h"
#include "common/kernels/cuda/compile/source.h"
#include "tests/cuda/chain_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Whether it compiles; what it says is in `said` [4096] if not, or if it warns. */
static bool compiles(const char *source, const char *architecture, char said[4096])
{
    const char *const options[] = {architecture, "--std=c++17"};
    wf_cuda_program *p = NULL;
    size_t bytes = 0;
    bool right;
    char *code;

    assert_int_equal(wf_cuda_nvrtc_new(&p, source, "weft.cu"), 0);
    right = wf_cuda_nvrtc_compile(p, (int)WF_COUNT(options), options) == 0;
    assert_int_equal(wf_cuda_nvrtc_log_size(p, &bytes), 0);
    assert_true(bytes <= 4096);
    assert_int_equal(wf_cuda_nvrtc_log(p, said), 0);
    if (right) {
        assert_int_equal(wf_cuda_nvrtc_code_size(p, &bytes), 0);
        code = malloc(bytes);
        assert_int_equal(wf_cuda_nvrtc_code(p, code), 0);
        assert_memory_equal(code,
                            "\x7f"
                            "ELF",
                            4);
        free(code);
    }
    assert_int_equal(wf_cuda_nvrtc_free(p), 0);
    return right;
}

static void need_nvrtc(void)
{
    int major, minor;

    if (wf_cuda_nvrtc_version(&major, &minor) == 0)
        return;
    print_message("skipped: this host has no NVRTC\n");
    skip();
}

static void takes(const chain_case *c, const char *architecture)
{
    wf_bytes source = {0};
    char said[4096] = "";

    wf_cuda_chain_source(&c->plan, c->n, &c->types, &source);
    if (!compiles(wf_bytes_str(&source), architecture, said) || strlen(said) > 0)
        fail_msg("%s\n%s", said, wf_bytes_str(&source));
    wf_bytes_close(&source);
}

static void sources_of_chains_are_taken(void **state)
{
    static const wf_dtype dtypes[] = {WF_F32, WF_F64};
    static const int64_t sizes[][2] = {{1000, 1000}, {999, 999}, {1000, 20},
                                       {999, 3},     {1000, 1},  {(int64_t)1 << 33, 4}};

    (void)state;
    need_nvrtc();
    for (int i = 0; i < CHAIN_CASES; i++) {
        chain_case c = chain_case_at(i);

        takes(&c, "--gpu-architecture=sm_80");
    }
    for (size_t i = 0; i < WF_COUNT(dtypes); i++)
        for (size_t k = 0; k < WF_COUNT(sizes); k++) {
            chain_case c = chain_case_of_all(dtypes[i], sizes[k][0], sizes[k][1]);

            takes(&c, "--gpu-architecture=sm_90");
        }
    for (uint32_t narrow = 2; narrow < 16; narrow++)
        for (size_t k = 0; k < WF_COUNT(sizes); k++) {
            chain_case c = chain_case_narrow(narrow % 2 ? WF_F16 : WF_BF16, narrow / 2, sizes[k][0],
                                             sizes[k][1]);

            takes(&c, "--gpu-architecture=sm_90");
        }
}

static void mistakes_are_said(void **state)
{
    char said[4096] = "";

    (void)state;
    need_nvrtc();
    assert_false(compiles("no source", "--gpu-architecture=sm_90", said));
    assert_non_null(strstr(said, "weft.cu(1): error"));
    assert_false(compiles("", "--gpu-architecture=sm_10", said));
    assert_string_equal(wf_cuda_nvrtc_error_string(WF_CUDA_OF_NVRTC + 6),
                        "NVRTC_ERROR_COMPILATION");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_of_chains_are_taken),
        cmocka_unit_test(mistakes_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
