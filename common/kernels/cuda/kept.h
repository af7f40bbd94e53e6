/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/kept.h - files for the next process: what takes long to find out, and may be
 * found out again at any time.
 *
 * A file is called by a key, and holds the key, its content and a checksum. A file that is damaged
 * or was not written by weft counts as missing, and the next write replaces it.
 */
#ifndef WF_KERNELS_CUDA_KEPT_H
#define WF_KERNELS_CUDA_KEPT_H

#include "common/base/bytes.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* XXH3, 128 bits, of all that the content depends on. */
typedef struct wf_cuda_key {
    uint64_t high, low;
} wf_cuda_key;

/* How names of files end, and what these begin with. */
typedef struct wf_cuda_kind {
    const char *suffix;
    char magic[8];
} wf_cuda_kind;

/* $WEFT_CACHE, or $XDG_CACHE_HOME/weft, or ~/.cache/weft. False: none of these is set. */
bool wf_cuda_kept_folder(char out[static PATH_MAX]);
/* Appends the content of that kind and key to *out. False: there is none. */
bool wf_cuda_kept_read(const wf_cuda_kind *kind, wf_cuda_key key, wf_bytes *out);
/* False where the folder cannot be made or written. */
bool wf_cuda_kept_write(const wf_cuda_kind *kind, wf_cuda_key key, const void *data, size_t bytes);
/* The same if there is no such file yet. False also where there is, of another process: of several
 * that add one, one succeeds. */
bool wf_cuda_kept_add(const wf_cuda_kind *kind, wf_cuda_key key, const void *data, size_t bytes);
/* Whether the folder is there, or can be made, and files can be written to it. */
bool wf_cuda_kept_can_write(void);

#endif
