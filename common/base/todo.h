/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/todo.h - a set of small numbers that knows its smallest: one bit for each, and bits
 * above them that say which words are not empty. All operations take a few steps, whatever the
 * size. */
#ifndef WF_BASE_TODO_H
#define WF_BASE_TODO_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_TODO_LEVELS = 5 };

typedef struct wf_todo {
    uint64_t *levels[WF_TODO_LEVELS]; /* one block of memory; the last level is one word */
    uint32_t n_levels;
} wf_todo;

/* An empty set of numbers below n, at most 2^30. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_todo_init(wf_todo *t, uint64_t n, wf_err *err);
void wf_todo_close(wf_todo *t);
void wf_todo_add(wf_todo *t, uint64_t i);
void wf_todo_remove(wf_todo *t, uint64_t i);
/* The smallest number that is at least `from`; false when there is none. */
bool wf_todo_next(const wf_todo *t, uint64_t from, uint64_t *out);

#endif
