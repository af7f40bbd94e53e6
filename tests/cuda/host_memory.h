/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_memory.h - memory of the host's GPUs (host.h); for the files beside it alone.
 *
 * Threading: in the lock of host.c. */
#ifndef TESTS_CUDA_HOST_MEMORY_H
#define TESTS_CUDA_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* NULL: there is none. */
void *host_memory_alloc(size_t bytes);
/* False: no block begins there. */
bool host_memory_free(void *data);
/* Work at an address that is no memory; the program ends by a signal when this returns. In a signal
 * handler. */
typedef void (*host_memory_fault)(const void *at);
/* This thread may touch all memory, until it is closed again, if it is open. */
void host_memory_open(host_memory_fault on_other);
void host_memory_shut(void);
/* Ends the program, naming `who`, if a byte around a block that was touched has changed. */
void host_memory_check(const char *who);
/* Whether all of a range is a block's, or any of it. */
bool host_memory_has(const void *data, size_t bytes);
bool host_memory_touches(const void *data, size_t bytes);
size_t host_memory_held(void);

#endif
