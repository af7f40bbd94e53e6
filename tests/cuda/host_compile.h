/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_compile.h - NVRTC's part of host.h's table, by this host's g++; for the files
 * beside it alone.
 *
 * A program becomes a shared library, whose bytes are its code; loading them opens the library. The
 * compiler's version changes with on_host.h, which is a part of each program.
 *
 * Threading: in the lock of host.c. */
#ifndef TESTS_CUDA_HOST_COMPILE_H
#define TESTS_CUDA_HOST_COMPILE_H

#include "common/kernels/cuda/calls.h"
#include <stddef.h>

int host_compiler_version(int *major, int *minor);
int host_program_new(wf_cuda_program **out, const char *source);
int host_program_compile(wf_cuda_program *p, int n, const char *const options[]);
int host_program_log_size(const wf_cuda_program *p, size_t *bytes);
int host_program_log(const wf_cuda_program *p, char *out);
int host_program_code_size(const wf_cuda_program *p, size_t *bytes);
int host_program_code(const wf_cuda_program *p, char *out);
int host_program_free(wf_cuda_program *p);
int host_library_load(wf_cuda_library **out, const void *code);
int host_library_kernel(const void **out, wf_cuda_library *l, const char *name);
int host_library_free(wf_cuda_library *l);
/* Programs and libraries that have not been freed; programs that were compiled so far. */
size_t host_compile_objects(void);
size_t host_compile_count(void);

#endif
