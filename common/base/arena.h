/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/arena.h - memory for things that are born one by one and die together.
 *
 * A graph, a plan, a decoded message each live in one arena. No frees inside, and no pointer from
 * one arena into another that may end sooner. Not for use within a training step.
 */
#ifndef WF_BASE_ARENA_H
#define WF_BASE_ARENA_H

#include "common/base/cc.h"
#include <stddef.h>

typedef struct wf_arena wf_arena;

/* An empty arena that the caller owns, or NULL when there is no memory. limit_bytes bounds what it
 * may ever hold; 0 means no limit. */
wf_arena *wf_arena_new(size_t limit_bytes);
/* Frees *a and all in it, and sets it to NULL; NULL is fine. */
void wf_arena_free(wf_arena **a);

/* `bytes` of zeroed memory aligned to 16, borrowed for the arena's life; NULL when there is none or
 * the limit is reached. Zero bytes give a valid pointer. */
void *wf_arena_alloc(wf_arena *a, size_t bytes);
/* n elements of `size` bytes; NULL also when the product overflows. */
void *wf_arena_array(wf_arena *a, size_t n, size_t size);
/* A copy of a string; NULL in gives NULL out. */
char *wf_arena_strdup(wf_arena *a, const char *s);
char *wf_arena_strndup(wf_arena *a, const char *s, size_t n);
char *wf_arena_printf(wf_arena *a, const char *fmt, ...) WF_PRINTF(2, 3);
/* A copy of n bytes. */
void *wf_arena_memdup(wf_arena *a, const void *p, size_t n);

/* From now on it may grow by `bytes` more, whatever its limit was. */
void wf_arena_allow(wf_arena *a, size_t bytes);
/* Bytes handed out so far. */
size_t wf_arena_used(const wf_arena *a);

#endif
