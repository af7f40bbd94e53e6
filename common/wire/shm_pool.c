/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_pool.c */
#include "common/wire/shm_pool.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/shm_memory.h"
#include "common/wire/shm_note.h"
#include "common/wire/shm_shared.h"

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
    wf_shm_shared *shared; /* NULL: it has one peer */
    uint32_t number, log;  /* its bytes are 1 << log */
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
    bool shares; /* blocks can be taken for several peers, as far as is known */
};

wf_shm_pool *wf_shm_pool_new(int socket)
{
    wf_shm_pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->socket = socket;
    p->shares = true;
    return p;
}

/* Of a shared one no pool knows any more, or this was tried. */
static void free_block(block *b)
{
    wf_shm_shared_free(&b->shared);
    wf_shm_memory_unref(&b->memory);
    free(b);
}

static void free_pool(wf_shm_pool *p)
{
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* All idle blocks, in one list. */
static block *take_idle(wf_shm_pool *p)
{
    block *all = NULL;

    for (uint32_t i = 0; i < CLASSES; i++)
        while (p->idle[i]) {
            block *b = p->idle[i];

            p->idle[i] = b->next;
            b->next = all;
            all = b;
        }
    p->idle_bytes = 0;
    return all;
}

/* A peer that cannot be told now maps the block until its connection ends. */
static void end_block(block *b)
{
    if (b->shared)
        (void)wf_shm_shared_withdraw(b->shared);
    free_block(b);
}

void wf_shm_pool_close(wf_shm_pool **p)
{
    wf_shm_pool *it = *p;
    block *idle;
    bool last;

    *p = NULL;
    if (!it)
        return;
    wf_shm_shared_leave(it);
    pthread_mutex_lock(&it->lock);
    it->socket = -1;
    idle = take_idle(it);
    last = it->out == 0;
    pthread_mutex_unlock(&it->lock);
    while (idle) {
        block *b = idle;

        idle = b->next;
        end_block(b);
    }
    if (last)
        free_pool(it);
}

/* Whether the peer was told to unmap what it does not use: it has given back all loans. */
static bool forget(const wf_shm_pool *p, uint32_t number)
{
    return wf_shm_note_send(p->socket, &(wf_shm_note){.kind = WF_NOTE_FORGET, .number = number},
                            -1);
}

/* Blocks for all of a large model go out and come back in each step: to make them anew would take
 * longer than to fill them. */
static bool is_kept(const wf_shm_pool *p, size_t bytes)
{
    return p->idle_bytes + bytes <= KEEP_BYTES ||
           p->idle_bytes + bytes + p->out_bytes <= p->most_out;
}

static void put_idle(wf_shm_pool *p, block *b)
{
    b->next = p->idle[b->log];
    p->idle[b->log] = b;
    p->idle_bytes += (size_t)1 << b->log;
}

static void release_block(void *data, void *hint)
{
    block *b = hint;
    wf_shm_pool *p = b->pool;
    size_t bytes = (size_t)1 << b->log;
    bool last, ends = true;

    (void)data;
    pthread_mutex_lock(&p->lock);
    p->out--;
    p->out_bytes -= bytes;
    last = p->socket < 0 && p->out == 0;
    if (p->socket >= 0 && (b->shared || is_kept(p, bytes) || !forget(p, b->number))) {
        put_idle(p, b);
        ends = false;
    } else {
        p->used[b->number] = false;
    }
    pthread_mutex_unlock(&p->lock);
    if (ends)
        end_block(b);
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

/* Whether the peer was told of memory under a number of this pool, with the lock held; false with
 * errno. */
static bool tell(wf_shm_pool *p, int fd, size_t bytes, uint32_t *number)
{
    *number = find_number(p);
    errno = EAGAIN;
    if (p->socket < 0 || *number == WF_SHM_BLOCKS)
        return false;
    p->used[*number] = wf_shm_note_send(
        p->socket, &(wf_shm_note){.kind = WF_NOTE_BLOCK, .number = *number, .bytes = bytes}, fd);
    return p->used[*number];
}

bool wf_shm_pool_offer(wf_shm_pool *p, int fd, size_t bytes, uint32_t *number)
{
    bool told;
    int why;

    pthread_mutex_lock(&p->lock);
    told = tell(p, fd, bytes, number);
    why = errno;
    pthread_mutex_unlock(&p->lock);
    errno = why;
    return told;
}

bool wf_shm_pool_withdraw(wf_shm_pool *p, uint32_t number)
{
    bool told;

    pthread_mutex_lock(&p->lock);
    told = p->socket < 0 || forget(p, number);
    if (told)
        p->used[number] = false;
    pthread_mutex_unlock(&p->lock);
    return told;
}

/* Without the lock, which that of what is shared comes before. */
static block *make_block(wf_shm_pool *p, uint32_t log, bool several, bool *failed)
{
    size_t bytes = (size_t)1 << log;
    block *b = calloc(1, sizeof *b);
    int fd;

    if (!b)
        return NULL;
    *b = (block){.pool = p, .log = log};
    fd = wf_shm_memory_make(bytes, &b->memory);
    if (fd < 0 || !wf_shm_pool_offer(p, fd, bytes, &b->number)) {
        *failed = fd < 0 || (errno != EAGAIN && errno != ETOOMANYREFS);
        free_block(b);
        b = NULL;
    } else if (several) {
        b->shared = wf_shm_shared_new(fd, bytes);
        p->shares = b->shared != NULL;
    }
    if (fd >= 0)
        close(fd);
    return b;
}

/* An idle block, or NULL. Those that are shared are kept for who needs one, as long as there are
 * others. */
static block *find_idle(wf_shm_pool *p, uint32_t log, bool several)
{
    block **at = &p->idle[log];
    block *b;

    while (*at && ((*at)->shared != NULL) != several)
        at = &(*at)->next;
    if (!*at && !several)
        at = &p->idle[log];
    b = *at;
    if (!b)
        return NULL;
    *at = b->next;
    p->idle_bytes -= (size_t)1 << log;
    return b;
}

wf_buf *wf_shm_pool_take(wf_shm_pool *p, size_t bytes, bool several, bool *failed)
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
    b = find_idle(p, log, several && p->shares);
    pthread_mutex_unlock(&p->lock);
    if (!b)
        b = make_block(p, log, several && p->shares, failed);
    pthread_mutex_lock(&p->lock);
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

/* The largest idle block, where they have more than KEEP_BYTES; or NULL. */
static block *take_spare(wf_shm_pool *p)
{
    block *b = NULL;

    pthread_mutex_lock(&p->lock);
    for (uint32_t i = CLASSES; !b && p->idle_bytes > KEEP_BYTES && i-- > 0;) {
        b = p->idle[i];
        if (!b)
            continue;
        p->idle[i] = b->next;
        p->idle_bytes -= (size_t)1 << i;
    }
    pthread_mutex_unlock(&p->lock);
    return b;
}

/* Gives idle blocks back to the system, down to KEEP_BYTES, until a peer cannot be told now. */
static void trim(wf_shm_pool *p)
{
    block *b;

    while ((b = take_spare(p)) != NULL) {
        if ((b->shared && !wf_shm_shared_withdraw(b->shared)) ||
            !wf_shm_pool_withdraw(p, b->number)) {
            pthread_mutex_lock(&p->lock);
            put_idle(p, b);
            pthread_mutex_unlock(&p->lock);
            return;
        }
        free_block(b);
    }
}

void wf_shm_pool_tend(wf_shm_pool *p, int64_t now_ns)
{
    bool quiet;

    pthread_mutex_lock(&p->lock);
    if (p->taken)
        p->quiet_ns = now_ns;
    p->taken = false;
    quiet = p->socket >= 0 && now_ns - p->quiet_ns > QUIET_NS;
    if (quiet)
        p->most_out = p->out_bytes;
    pthread_mutex_unlock(&p->lock);
    if (quiet)
        trim(p);
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

bool wf_shm_pool_lends(wf_shm_pool *p, const wf_buf *b, uint32_t *number, const uint8_t **base)
{
    const block *of = b->release == release_block ? b->hint : NULL;

    if (!of || of->pool == p || !of->shared)
        return wf_shm_pool_has(p, b, number, base);
    *base = of->memory->at;
    return wf_shm_shared_with(of->shared, p, number);
}
