/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_memory.c */
#include "common/wire/shm_memory.h"
#include "common/wire/pinned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

static wf_shm_memory *map(int fd, size_t bytes)
{
    wf_shm_memory *m = malloc(sizeof *m);
    void *at;

    if (!m)
        return NULL;
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        free(m);
        return NULL;
    }
    m->at = at;
    m->bytes = bytes;
    m->pinned = wf_pin(at, bytes);
    atomic_init(&m->refs, 1);
    return m;
}

/* A file that grows past RLIMIT_FSIZE ends the process with a signal. */
static bool is_allowed(size_t bytes)
{
    struct rlimit limit;

    errno = EFBIG;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= bytes;
}

int wf_shm_memory_make(size_t bytes, wf_shm_memory **out)
{
    int fd = is_allowed(bytes) ? memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;

    *out = NULL;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        *out = map(fd, bytes);
    if (fd >= 0 && !*out) {
        int error = errno;

        close(fd);
        errno = error;
        fd = -1;
    }
    return fd;
}

wf_shm_memory *wf_shm_memory_map(int fd, size_t bytes)
{
    struct stat s;
    int seals = fcntl(fd, F_GET_SEALS);

    if (bytes == 0 || seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &s) != 0 ||
        (uint64_t)s.st_size != bytes)
        return NULL;
    return map(fd, bytes);
}

wf_shm_memory *wf_shm_memory_ref(wf_shm_memory *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void wf_shm_memory_unref(wf_shm_memory **m)
{
    wf_shm_memory *it = *m;

    *m = NULL;
    if (!it || atomic_fetch_sub_explicit(&it->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (it->pinned)
        wf_unpin(it->at);
    munmap(it->at, it->bytes);
    free(it);
}
