/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_shared.c */
#include "common/wire/shm_shared.h"
#include "common/wire/shm_pool.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PEERS_MOST = 64, /* beside the one of the pool that the block is of */
    KEPT_MOST = 128  /* descriptors: a process may often have 1,024 */
};

struct wf_shm_shared {
    int fd;
    size_t bytes;
    struct known {
        wf_shm_pool *pool;
        uint32_t number;
    } known[PEERS_MOST];
    uint32_t n;
    wf_shm_shared *next, *before;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wf_shm_shared *first;
static uint32_t kept;

static bool add(wf_shm_shared *s)
{
    bool room;

    pthread_mutex_lock(&lock);
    room = kept < KEPT_MOST;
    if (room) {
        kept++;
        s->next = first;
        if (first)
            first->before = s;
        first = s;
    }
    pthread_mutex_unlock(&lock);
    return room;
}

wf_shm_shared *wf_shm_shared_new(int fd, size_t bytes)
{
    wf_shm_shared *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->bytes = bytes;
    s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (s->fd >= 0 && add(s))
        return s;
    if (s->fd >= 0)
        close(s->fd);
    free(s);
    return NULL;
}

void wf_shm_shared_free(wf_shm_shared **shared)
{
    wf_shm_shared *s = *shared;

    *shared = NULL;
    if (!s)
        return;
    pthread_mutex_lock(&lock);
    kept--;
    if (s->next)
        s->next->before = s->before;
    if (s->before)
        s->before->next = s->next;
    else
        first = s->next;
    pthread_mutex_unlock(&lock);
    close(s->fd);
    free(s);
}

bool wf_shm_shared_with(wf_shm_shared *s, wf_shm_pool *p, uint32_t *number)
{
    uint32_t i = 0;
    bool known;

    pthread_mutex_lock(&lock);
    while (i < s->n && s->known[i].pool != p)
        i++;
    known = i < s->n;
    if (!known && s->n < PEERS_MOST && wf_shm_pool_offer(p, s->fd, s->bytes, &s->known[i].number)) {
        s->known[i].pool = p;
        s->n++;
        known = true;
    }
    if (known)
        *number = s->known[i].number;
    pthread_mutex_unlock(&lock);
    return known;
}

bool wf_shm_shared_withdraw(wf_shm_shared *s)
{
    bool all;

    pthread_mutex_lock(&lock);
    while (s->n > 0 && wf_shm_pool_withdraw(s->known[s->n - 1].pool, s->known[s->n - 1].number))
        s->n--;
    all = s->n == 0;
    pthread_mutex_unlock(&lock);
    return all;
}

void wf_shm_shared_leave(const wf_shm_pool *p)
{
    pthread_mutex_lock(&lock);
    for (wf_shm_shared *s = first; s; s = s->next)
        for (uint32_t i = 0; i < s->n; i++)
            if (s->known[i].pool == p) {
                s->known[i] = s->known[--s->n];
                break;
            }
    pthread_mutex_unlock(&lock);
}
