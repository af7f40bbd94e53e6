/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/todo.c */
#include "common/base/todo.h"

#include <stdlib.h>

static uint64_t words_of(uint64_t n)
{
    return (n + 63) / 64;
}

wf_status wf_todo_init(wf_todo *t, uint64_t n, wf_err *err)
{
    uint64_t words = 0, at = 0;
    uint64_t *block;

    *t = (wf_todo){0};
    for (uint64_t k = words_of(n);; k = words_of(k)) {
        words += k + 1; /* one more, so that the word behind the last may be looked at */
        t->n_levels++;
        if (k <= 1)
            break;
    }
    wf_assert(t->n_levels <= WF_TODO_LEVELS);
    block = calloc(words, sizeof *block);
    if (!block)
        return wf_fail_nomem(err, words * sizeof *block);
    for (uint32_t i = 0; i < t->n_levels; i++) {
        n = words_of(n);
        t->levels[i] = block + at;
        at += n + 1;
    }
    return WF_OK;
}

void wf_todo_close(wf_todo *t)
{
    free(t->levels[0]);
    *t = (wf_todo){0};
}

void wf_todo_add(wf_todo *t, uint64_t i)
{
    for (uint32_t k = 0; k < t->n_levels; k++, i /= 64)
        t->levels[k][i / 64] |= UINT64_C(1) << i % 64;
}

void wf_todo_remove(wf_todo *t, uint64_t i)
{
    for (uint32_t k = 0; k < t->n_levels; k++, i /= 64) {
        t->levels[k][i / 64] &= ~(UINT64_C(1) << i % 64);
        if (t->levels[k][i / 64])
            return;
    }
}

/* Up until a word has a bit at or behind `from`, then down along the first bits. */
bool wf_todo_next(const wf_todo *t, uint64_t from, uint64_t *out)
{
    uint32_t k = 0;
    uint64_t word = 0;

    for (; k < t->n_levels; k++) {
        word = t->levels[k][from / 64] & ~UINT64_C(0) << from % 64;
        if (word)
            break;
        from = from / 64 + 1;
    }
    if (k == t->n_levels)
        return false;
    from = from / 64 * 64 + (uint64_t)__builtin_ctzll(word);
    while (k-- > 0)
        from = from * 64 + (uint64_t)__builtin_ctzll(t->levels[k][from]);
    *out = from;
    return true;
}
