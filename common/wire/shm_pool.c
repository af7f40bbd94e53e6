/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_pool.c */
#include "common/wire/shm_pool.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/shm_memory.h"
#include "common/wire/shm_note.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST_LOG = 16, MOST_LOG = 29, CLASSES = MOST_LOG + 1 };

static const size_t KEEP_BYTES = (size_t)128 << 20;
static const int64_t QUIET_NS = 10 * WF_NS_PER_S;

typedef struct block {
    wf_shm_pool *pool;
    wf_shm_memory *memory;
    uint32_t number, log; /* its bytes are 1 << log */
    struct block *next;
} block;

struct wf_shm_pool {
    pthread_mutex_t lock;
    int socket;   /* -1: the connection is over */
    uint32_t out; /* blocks that buffers lie in */
    block *idle[CLASSES];
    size_t idle_bytes, out_bytes;
    size_t most_out;          /* bytes, while blocks are taken: they will be again */
    bool taken;               /* since the last look */
    int64_t quiet_ns;         /* since when none was taken */
    bool used[WF_SHM_BLOCKS]; /* numbers */
    uint32_t next_number;
};

wf_shm_pool *wf_shm_pool_new(int socket)
{
    wf_shm_pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->socket = socket;
    return p;
}

static void free_block(block *b)
{
    wf_shm_memory_unref(&b->memory);
    free(b);
}

static void free_pool(wf_shm_pool *p)
{
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void wf_shm_pool_close(wf_shm_pool **p)
{
    wf_shm_pool *it = *p;
    bool last;

    *p = NULL;
    if (!it)
        return;
    pthread_mutex_lock(&it->lock);
    it->socket = -1;
    for (uint32_t i = 0; i < CLASSES; i++) {
        while (it->idle[i]) {
            block *b = it->idle[i];

            it->idle[i] = b->next;
            free_block(b);
        }
    }
    last = it->out == 0;
    pthread_mutex_unlock(&it->lock);
    if (last)
        free_pool(it);
}

/* Whether the peer was told to unmap a block that it does not use: it has given back all loans. */
static bool forget(wf_shm_pool *p, const block *b)
{
    return wf_shm_note_send(p->socket, &(wf_shm_note){.kind = WF_NOTE_FORGET, .number = b->number},
                            -1);
}

/* Blocks for all of a large model go out and come back in each step: to make them anew would take
 * longer than to fill them. */
static bool is_kept(const wf_shm_pool *p, size_t bytes)
{
    return p->idle_bytes + bytes <= KEEP_BYTES ||
           p->idle_bytes + bytes + p->out_bytes <= p->most_out;
}

static void release_block(void *data, void *hint)
{
    block *b = hint;
    wf_shm_pool *p = b->pool;
    size_t bytes = (size_t)1 << b->log;
    bool last;

    (void)data;
    pthread_mutex_lock(&p->lock);
    p->out--;
    p->out_bytes -= bytes;
    last = p->socket < 0 && p->out == 0;
    if (p->socket >= 0 && (is_kept(p, bytes) || !forget(p, b))) {
        b->next = p->idle[b->log];
        p->idle[b->log] = b;
        p->idle_bytes += bytes;
    } else {
        p->used[b->number] = false;
        free_block(b);
    }
    pthread_mutex_unlock(&p->lock);
    if (last)
        free_pool(p);
}

/* A free number, or WF_SHM_BLOCKS. */
static uint32_t find_number(wf_shm_pool *p)
{
    for (uint32_t i = 0; i < WF_SHM_BLOCKS; i++) {
        uint32_t number = (p->next_number + i) % WF_SHM_BLOCKS;

        if (!p->used[number]) {
            p->next_number = number + 1;
            return number;
        }
    }
    return WF_SHM_BLOCKS;
}

static block *make_block(wf_shm_pool *p, uint32_t log, bool *failed)
{
    block *b = calloc(1, sizeof *b);
    uint32_t number = find_number(p);
    int fd;

    if (!b || number == WF_SHM_BLOCKS) {
        free(b);
        return NULL;
    }
    *b = (block){.pool = p, .number = number, .log = log};
    fd = wf_shm_memory_make((size_t)1 << log, &b->memory);
    if (fd < 0 ||
        !wf_shm_note_send(
            p->socket,
            &(wf_shm_note){.kind = WF_NOTE_BLOCK, .number = number, .bytes = (uint64_t)1 << log},
            fd)) {
        *failed = fd < 0 || (errno != EAGAIN && errno != ETOOMANYREFS);
        free_block(b);
        b = NULL;
    } else {
        p->used[number] = true;
    }
    if (fd >= 0)
        close(fd);
    return b;
}

wf_buf *wf_shm_pool_take(wf_shm_pool *p, size_t bytes, bool *failed)
{
    uint32_t log = LEAST_LOG;
    wf_buf *buf = NULL;
    block *b;

    *failed = false;
    if (bytes > WF_SHM_BLOCK_MOST)
        return NULL;
    while ((size_t)1 << log < bytes)
        log++;
    pthread_mutex_lock(&p->lock);
    b = p->idle[log];
    if (b) {
        p->idle[log] = b->next;
        p->idle_bytes -= (size_t)1 << log;
    } else if (p->socket >= 0) {
        b = make_block(p, log, failed);
    }
    p->out += b != NULL;
    p->out_bytes += b ? (size_t)1 << log : 0;
    p->most_out = WF_MAX(p->most_out, p->out_bytes);
    p->taken = true;
    pthread_mutex_unlock(&p->lock);
    if (b)
        buf = wf_buf_wrap(b->memory->at, bytes, release_block, b);
    if (b && !buf)
        release_block(NULL, b);
    return buf;
}

/* Forgets idle blocks, the largest first, down to KEEP_BYTES. */
static void trim(wf_shm_pool *p)
{
    for (uint32_t i = CLASSES; i-- > 0;)
        while (p->idle_bytes > KEEP_BYTES && p->idle[i]) {
            block *b = p->idle[i];

            if (!forget(p, b))
                return;
            p->idle[i] = b->next;
            p->idle_bytes -= (size_t)1 << i;
            p->used[b->number] = false;
            free_block(b);
        }
}

void wf_shm_pool_tend(wf_shm_pool *p, int64_t now_ns)
{
    pthread_mutex_lock(&p->lock);
    if (p->taken)
        p->quiet_ns = now_ns;
    p->taken = false;
    if (p->socket >= 0 && now_ns - p->quiet_ns > QUIET_NS) {
        p->most_out = p->out_bytes;
        trim(p);
    }
    pthread_mutex_unlock(&p->lock);
}

bool wf_shm_pool_has(const wf_shm_pool *p, const wf_buf *b, uint32_t *number, const uint8_t **base)
{
    const block *of = b->release == release_block ? b->hint : NULL;

    if (!of || of->pool != p)
        return false;
    *number = of->number;
    *base = of->memory->at;
    return true;
}
