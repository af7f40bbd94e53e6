/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/kept.c
 *
 * Two threads of a process that write the same file use the same temporary name: the file may be
 * damaged for a moment, which its readers notice by the checksum. */
#include "common/kernels/cuda/kept.h"
#include "common/base/file.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static const size_t MOST_BYTES = (size_t)64 << 20; /* code of a chain has some KiB */

/* A host's own byte order: a file of another one is damaged. */
typedef struct head {
    char magic[8];
    wf_cuda_key key;
    uint64_t bytes, sum; /* of the content behind it */
} head;

bool wf_cuda_kept_folder(char out[static PATH_MAX])
{
    const char *weft = getenv("WEFT_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = 0;

    if (weft && weft[0])
        n = snprintf(out, PATH_MAX, "%s", weft);
    else if (xdg && xdg[0])
        n = snprintf(out, PATH_MAX, "%s/weft", xdg);
    else if (home && home[0])
        n = snprintf(out, PATH_MAX, "%s/.cache/weft", home);
    return n > 0 && n < PATH_MAX;
}

static bool path_of(const wf_cuda_kind *kind, wf_cuda_key key, char folder[static PATH_MAX],
                    char path[static PATH_MAX])
{
    return wf_cuda_kept_folder(folder) &&
           snprintf(path, PATH_MAX, "%s/%016" PRIx64 "%016" PRIx64 ".%s", folder, key.high, key.low,
                    kind->suffix) < PATH_MAX;
}

static bool is_right(const head *h, const wf_cuda_kind *kind, wf_cuda_key key, const wf_bytes *file)
{
    return memcmp(h->magic, kind->magic, sizeof h->magic) == 0 && h->key.high == key.high &&
           h->key.low == key.low && h->bytes == file->size - sizeof *h &&
           h->sum == XXH3_64bits(file->data + sizeof *h, file->size - sizeof *h);
}

bool wf_cuda_kept_read(const wf_cuda_kind *kind, wf_cuda_key key, wf_bytes *out)
{
    char folder[PATH_MAX], path[PATH_MAX];
    wf_bytes file = {0};
    bool found;
    head h;

    if (!path_of(kind, key, folder, path) || wf_file_read(path, MOST_BYTES, &file, NULL) != WF_OK)
        return false;
    found = file.size > sizeof h;
    if (found) {
        memcpy(&h, file.data, sizeof h);
        found = is_right(&h, kind, key, &file);
    }
    if (found)
        wf_bytes_add(out, file.data + sizeof h, file.size - sizeof h);
    wf_bytes_close(&file);
    return found && !out->failed;
}

/* Writes a file of that path, which is in the folder. */
static bool write_to(const char *path, const wf_cuda_kind *kind, wf_cuda_key key, const void *data,
                     size_t bytes)
{
    head h = {.key = key, .bytes = bytes, .sum = XXH3_64bits(data, bytes)};
    wf_bytes file = {0};
    bool written;

    memcpy(h.magic, kind->magic, sizeof h.magic);
    wf_bytes_add(&file, &h, sizeof h);
    wf_bytes_add(&file, data, bytes);
    written = !file.failed && wf_file_write(path, file.data, file.size, NULL) == WF_OK;
    wf_bytes_close(&file);
    return written;
}

bool wf_cuda_kept_write(const wf_cuda_kind *kind, wf_cuda_key key, const void *data, size_t bytes)
{
    char folder[PATH_MAX], path[PATH_MAX];

    return path_of(kind, key, folder, path) && wf_make_dirs(folder, NULL) == WF_OK &&
           write_to(path, kind, key, data, bytes);
}

/* A link is made of one process alone, and of a file that is whole. One that is damaged is
 * replaced, as is any where links cannot be made. */
bool wf_cuda_kept_add(const wf_cuda_kind *kind, wf_cuda_key key, const void *data, size_t bytes)
{
    static _Atomic uint32_t number; /* of a thread's own file */
    char folder[PATH_MAX], path[PATH_MAX], own[PATH_MAX];
    wf_bytes there = {0};
    bool added;

    if (!path_of(kind, key, folder, path) || wf_make_dirs(folder, NULL) != WF_OK ||
        snprintf(own, sizeof own, "%s.%ld-%u", path, (long)getpid(), number++) >= PATH_MAX ||
        !write_to(own, kind, key, data, bytes))
        return false;
    added = link(own, path) == 0;
    if (!added && !wf_cuda_kept_read(kind, key, &there))
        added = rename(own, path) == 0;
    (void)unlink(own);
    wf_bytes_close(&there);
    return added;
}

bool wf_cuda_kept_can_write(void)
{
    char folder[PATH_MAX];

    return wf_cuda_kept_folder(folder) && wf_make_dirs(folder, NULL) == WF_OK &&
           access(folder, W_OK | X_OK) == 0;
}
