/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_memory.c */
#include "tests/cuda/host_memory.h"
#include "common/base/size.h"
#include "common/base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* 0xFF.. is a NaN of every type of floats. */
enum {
    PAGE = 4096,
    GUARD = 1 << 20,
    ALIGN = 256,
    FRESH = 0xFF,
    BEHIND = 0xCB,
    MOST_BLOCKS = 1 << 14
};

/* [mapped, data): a pattern; [data, data + bytes); a pattern up to the end of a page. GUARD bytes
 * before and behind are never opened. */
typedef struct block {
    unsigned char *mapped, *data;
    size_t open, bytes; /* open: bytes from `mapped` on */
    bool is_open;
} block;

static block blocks[MOST_BLOCKS];
static size_t n_blocks, held;
/* While memory is open. */
static bool is_open;
static pthread_t worker;
static host_memory_fault fail;
static struct sigaction theirs;

static void protect(block *b, bool open)
{
    wf_assert(mprotect(b->mapped, b->open, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
    b->is_open = open;
}

void *host_memory_alloc(size_t bytes)
{
    block b = {.bytes = bytes};
    size_t aligned = wf_align_up(bytes, (size_t)ALIGN);

    if (n_blocks == MOST_BLOCKS || bytes > SIZE_MAX / 2)
        return NULL;
    b.open = wf_align_up(aligned, (size_t)PAGE);
    b.mapped = mmap(NULL, b.open + (size_t)2 * GUARD, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b.mapped == MAP_FAILED)
        return NULL;
    b.mapped += GUARD;
    b.data = b.mapped + b.open - aligned;
    protect(&b, true);
    memset(b.mapped, BEHIND, b.open);
    memset(b.data, FRESH, bytes);
    protect(&b, false);
    blocks[n_blocks++] = b;
    held += bytes;
    return b.data;
}

static block *block_of(const void *p)
{
    const unsigned char *at = p;

    for (size_t i = 0; i < n_blocks; i++)
        if (at >= blocks[i].mapped - GUARD && at < blocks[i].mapped + blocks[i].open + GUARD)
            return &blocks[i];
    return NULL;
}

bool host_memory_free(void *data)
{
    block *b = block_of(data);

    if (!b || b->data != data)
        return false;
    munmap(b->mapped - GUARD, b->open + (size_t)2 * GUARD);
    held -= b->bytes;
    *b = blocks[--n_blocks];
    return true;
}

/* Work touches few blocks, and opening all of them for it took an eighth of a job's time: each is
 * opened where it is touched first. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;
    bool is_ours = pthread_equal(pthread_self(), worker);
    block *b = is_ours ? block_of(at) : NULL;

    (void)context;
    if (b && !b->is_open && at >= b->mapped && at < b->mapped + b->open) {
        protect(b, true);
        return;
    }
    signal(number, SIG_DFL); /* the access is made again, and ends the program */
    if (is_ours)
        fail(at);
}

void host_memory_open(host_memory_fault on_other)
{
    const struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    fail = on_other;
    if (is_open)
        return;
    is_open = true;
    worker = pthread_self();
    wf_assert(sigaction(SIGSEGV, &ours, &theirs) == 0);
}

void host_memory_shut(void)
{
    if (!is_open)
        return;
    is_open = false;
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].is_open)
            protect(&blocks[i], false);
    wf_assert(sigaction(SIGSEGV, &theirs, NULL) == 0);
}

/* Each byte is as the next one, and the first as it was written. */
static bool is_pattern(const unsigned char *from, const unsigned char *end)
{
    return from == end ||
           (*from == BEHIND && memcmp(from, from + 1, (size_t)(end - from) - 1) == 0);
}

void host_memory_check(const char *who)
{
    for (size_t i = 0; i < n_blocks; i++) {
        const block *b = &blocks[i];
        bool before = !b->is_open || is_pattern(b->mapped, b->data);

        if (!b->is_open || (before && is_pattern(b->data + b->bytes, b->mapped + b->open)))
            continue;
        fprintf(stderr, "%s wrote %s memory of %zu bytes at %p\n", who,
                before ? "behind" : "before", b->bytes, (void *)b->data);
        abort();
    }
}

bool host_memory_has(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    const block *b = block_of(data);

    return b && at >= b->data && (size_t)(at - b->data) <= b->bytes &&
           bytes <= b->bytes - (size_t)(at - b->data);
}

bool host_memory_touches(const void *data, size_t bytes)
{
    return bytes && (block_of(data) || block_of((const unsigned char *)data + bytes - 1));
}

size_t host_memory_held(void)
{
    return held;
}
