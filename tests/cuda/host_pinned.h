/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_pinned.h - memory of the host that is pinned for the host's GPUs (host.h); for
 * the files beside it alone.
 *
 * Threading: in the lock of host.c. */
#ifndef TESTS_CUDA_HOST_PINNED_H
#define TESTS_CUDA_HOST_PINNED_H

#include <stdbool.h>
#include <stddef.h>

/* Ends the program if any of it is pinned already: memory that was given back without a word would
 * be when it is used again. */
void host_pinned_add(const void *data, size_t bytes);
/* False: none begins there. */
bool host_pinned_drop(const void *at);
/* Whether all of a range is pinned. */
bool host_pinned_has(const void *data, size_t bytes);

#endif
