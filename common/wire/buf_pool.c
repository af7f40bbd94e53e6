/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/buf_pool.c */
#include "common/wire/buf_pool.h"
#include "common/base/pages.h"
#include "common/wire/pinned.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4 << 10, LARGE = 4 << 20, LEAST_LOG = 12, MOST_LOG = 30, CLASSES = MOST_LOG + 1 };

typedef struct block {
    wf_buf_pool *pool;
    void *data;
    uint32_t log; /* its bytes are 1 << log */
    bool pinned;  /* by a device (pinned.h) */
    struct block *next;
} block;

struct wf_buf_pool {
    pthread_mutex_t lock;
    bool closed;
    size_t out; /* blocks */
    size_t most, idle_bytes;
    block *idle[CLASSES];
};

wf_buf_pool *wf_buf_pool_new(size_t most)
{
    wf_buf_pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->most = most;
    return p;
}

static void free_block(block *b)
{
    if (b->pinned)
        wf_unpin(b->data);
    free(b->data);
    free(b);
}

static void free_pool(wf_buf_pool *p)
{
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void wf_buf_pool_close(wf_buf_pool **p)
{
    wf_buf_pool *it = *p;
    bool last;

    *p = NULL;
    if (!it)
        return;
    pthread_mutex_lock(&it->lock);
    it->closed = true;
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

static void release_block(void *data, void *hint)
{
    block *b = hint;
    wf_buf_pool *p = b->pool;
    size_t bytes = (size_t)1 << b->log;
    bool last;

    (void)data;
    pthread_mutex_lock(&p->lock);
    p->out--;
    last = p->closed && p->out == 0;
    if (!p->closed && p->idle_bytes + bytes <= p->most) {
        b->next = p->idle[b->log];
        p->idle[b->log] = b;
        p->idle_bytes += bytes;
        b = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    if (b)
        free_block(b);
    if (last)
        free_pool(p);
}

static uint32_t log_of(size_t bytes)
{
    uint32_t log = LEAST_LOG;

    while (log < MOST_LOG && ((size_t)1 << log) < bytes)
        log++;
    return log;
}

static block *new_block(wf_buf_pool *p, uint32_t log)
{
    size_t bytes = (size_t)1 << log;
    block *b = malloc(sizeof *b);
    void *data = NULL;

    if (b) /* a page is pinned for one block alone; large ones have whole pages in any case */
        data = wf_pins(bytes) && bytes < LARGE ? aligned_alloc(PAGE, bytes) : wf_pages_alloc(bytes);
    if (!data) {
        free(b);
        return NULL;
    }
    memset(data, 0, bytes);
    *b = (block){.pool = p, .data = data, .log = log, .pinned = wf_pin(data, bytes)};
    return b;
}

wf_buf *wf_buf_pool_take(wf_buf_pool *p, size_t bytes)
{
    uint32_t log = log_of(bytes);
    wf_buf *buf;
    block *b;

    if (bytes > (size_t)1 << MOST_LOG)
        return wf_buf_new(bytes);
    pthread_mutex_lock(&p->lock);
    b = p->idle[log];
    if (b) {
        p->idle[log] = b->next;
        p->idle_bytes -= (size_t)1 << log;
    }
    p->out++;
    pthread_mutex_unlock(&p->lock);
    if (!b)
        b = new_block(p, log);
    buf = b ? wf_buf_wrap(b->data, bytes, release_block, b) : NULL;
    if (buf)
        return buf;
    pthread_mutex_lock(&p->lock);
    p->out--;
    pthread_mutex_unlock(&p->lock);
    if (b)
        free_block(b);
    return NULL;
}
