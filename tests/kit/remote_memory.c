/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote_memory.c - memory of the remote devices.
 *
 * Each block has two addresses: the one that is handed out, of pages without any right, and the one
 * behind it, which kernels and copies use while they run. */
#include "common/base/machine.h"
#include "common/base/size.h"
#include "tests/kit/remote.h"
#include "tests/kit/remote_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST_BLOCKS = 1 << 16, GARBAGE = 0xFF };

static size_t held;

typedef struct block {
    char *shown, *behind;
    size_t bytes, mapped;
} block;

static block blocks[MOST_BLOCKS]; /* sorted by shown */
static size_t n_blocks;

/* The number of blocks that begin at p or below. */
static size_t blocks_up_to(const void *p)
{
    size_t low = 0, high = n_blocks;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (blocks[mid].shown <= (const char *)p)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static const block *block_of(const void *p)
{
    size_t n = blocks_up_to(p);

    if (n == 0 || (const char *)p >= blocks[n - 1].shown + blocks[n - 1].mapped)
        return NULL;
    return &blocks[n - 1];
}

void *remote_behind(const void *p, size_t bytes, const char *who)
{
    const block *b = block_of(p);
    size_t at = b ? (size_t)((const char *)p - b->shown) : 0;

    if (!b || at > b->bytes || bytes > b->bytes - at) {
        fprintf(stderr, "%s was given %zu bytes at %p, which are not a device's\n", who, bytes, p);
        abort();
    }
    return b->behind + at;
}

void remote_need_host(const void *p, size_t bytes, const char *who)
{
    if (block_of(p) || block_of((const char *)p + bytes - 1)) {
        fprintf(stderr, "%s was given memory of a device for memory of the host\n", who);
        abort();
    }
}

size_t remote_memory(const wf_device *d)
{
    (void)d;
    return wf_machine_memory();
}

void *remote_alloc(const wf_device *d, size_t bytes)
{
    block b = {.bytes = bytes, .mapped = wf_align_up(bytes + 1, PAGE)};
    size_t at;

    (void)d;
    if (bytes > SIZE_MAX / 2)
        return NULL;
    b.behind = aligned_alloc(64, wf_align_up(bytes + 1, (size_t)64));
    if (!b.behind)
        return NULL;
    memset(b.behind, GARBAGE, bytes);
    b.shown = mmap(NULL, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b.shown == MAP_FAILED) {
        free(b.behind);
        return NULL;
    }
    remote_lock();
    wf_assert(n_blocks < MOST_BLOCKS);
    at = blocks_up_to(b.shown);
    memmove(&blocks[at + 1], &blocks[at], (n_blocks - at) * sizeof blocks[0]);
    blocks[at] = b;
    n_blocks++;
    held += bytes;
    remote_unlock();
    return b.shown;
}

void remote_free(const wf_device *d, void *data)
{
    block *b;

    (void)d;
    remote_lock();
    b = &blocks[blocks_up_to(data) - 1];
    wf_assert(b->shown == data);
    munmap(b->shown, b->mapped);
    free(b->behind);
    held -= b->bytes;
    n_blocks--;
    memmove(b, b + 1, (n_blocks - (size_t)(b - blocks)) * sizeof *b);
    remote_unlock();
}

size_t remote_devices_held(void)
{
    return held;
}
