/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/kept.h - compiled code on disk, for the next process.
 *
 * A file is called by the code's key, and holds the key, the code and a checksum. A file that is
 * damaged or was not written by weft counts as missing, and the next write replaces it.
 */
#ifndef WF_KERNELS_CUDA_KEPT_H
#define WF_KERNELS_CUDA_KEPT_H

#include "common/base/bytes.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* XXH3, 128 bits, of all that the code depends on. */
typedef struct wf_cuda_key {
    uint64_t high, low;
} wf_cuda_key;

/* $WEFT_CACHE, or $XDG_CACHE_HOME/weft, or ~/.cache/weft. False: none of these is set. */
bool wf_cuda_kept_folder(char out[static PATH_MAX]);
/* Appends the code of that key to *out. False: there is none. */
bool wf_cuda_kept_read(wf_cuda_key key, wf_bytes *out);
/* Does nothing where the folder cannot be made or written: code is compiled again then. */
void wf_cuda_kept_write(wf_cuda_key key, const void *code, size_t bytes);

#endif
