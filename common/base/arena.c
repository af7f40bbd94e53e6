/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/arena.c - a list of blocks, each twice the last until 1 MiB. */
#include "common/base/arena.h"
#include "common/base/size.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = 16 };

typedef struct block {
    struct block *next;
    size_t size, used;
    WF_ALIGNED(16) unsigned char data[];
} block;

struct wf_arena {
    block *blocks;
    size_t next_size, limit_bytes, used;
};

wf_arena *wf_arena_new(size_t limit_bytes)
{
    wf_arena *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->next_size = FIRST_BLOCK;
    a->limit_bytes = limit_bytes;
    return a;
}

void wf_arena_free(wf_arena **a)
{
    if (!*a)
        return;
    for (block *b = (*a)->blocks; b;) {
        block *next = b->next;

        free(b);
        b = next;
    }
    free(*a);
    *a = NULL;
}

static block *add_block(wf_arena *a, size_t need)
{
    size_t size = WF_MAX(a->next_size, need);
    size_t total;
    block *b;

    if (!wf_add_size(sizeof *b, size, &total))
        return NULL;
    b = calloc(1, total);
    if (!b)
        return NULL;
    b->size = size;
    b->next = a->blocks;
    a->blocks = b;
    if (a->next_size < LARGEST_BLOCK)
        a->next_size *= 2;
    return b;
}

void *wf_arena_alloc(wf_arena *a, size_t bytes)
{
    block *b = a->blocks;
    size_t need;
    void *p;

    if (!wf_add_size(bytes, ALIGN - 1, &need))
        return NULL;
    need = WF_MAX(need & ~(size_t)(ALIGN - 1), (size_t)ALIGN);
    if (a->limit_bytes && need > a->limit_bytes - a->used)
        return NULL;
    if (!b || b->size - b->used < need) {
        b = add_block(a, need);
        if (!b)
            return NULL;
    }
    p = b->data + b->used;
    b->used += need;
    a->used += need;
    return p;
}

void *wf_arena_array(wf_arena *a, size_t n, size_t size)
{
    size_t bytes;

    return wf_mul_size(n, size, &bytes) ? wf_arena_alloc(a, bytes) : NULL;
}

char *wf_arena_strndup(wf_arena *a, const char *s, size_t n)
{
    char *p = wf_arena_alloc(a, n + 1);

    if (p)
        memcpy(p, s, n);
    return p;
}

char *wf_arena_strdup(wf_arena *a, const char *s)
{
    return s ? wf_arena_strndup(a, s, strlen(s)) : NULL;
}

char *wf_arena_printf(wf_arena *a, const char *fmt, ...)
{
    va_list ap;
    char *p;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return NULL;
    p = wf_arena_alloc(a, (size_t)n + 1);
    if (!p)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

void *wf_arena_memdup(wf_arena *a, const void *data, size_t n)
{
    void *p = wf_arena_alloc(a, n);

    if (p && n)
        memcpy(p, data, n);
    return p;
}

void wf_arena_allow(wf_arena *a, size_t bytes)
{
    a->limit_bytes = wf_add_size(a->used, bytes, &a->limit_bytes) ? a->limit_bytes : 0;
}

size_t wf_arena_used(const wf_arena *a)
{
    return a->used;
}
