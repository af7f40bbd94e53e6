/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/bytes.h - a growing string of bytes, for building text, files and messages.
 *
 * Appends never fail one by one: the first failure is kept in `failed` and later appends do
 * nothing, so that a builder checks once, at its end.
 */
#ifndef WF_BASE_BYTES_H
#define WF_BASE_BYTES_H

#include "common/base/cc.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_bytes {
    uint8_t *data; /* always one zero byte longer than size, so text can be printed */
    size_t size, room;
    bool failed; /* no memory: what is there is not all */
} wf_bytes;

/* Frees what it holds; it is then empty and may be used again. `(wf_bytes){0}` is an empty one. */
void wf_bytes_close(wf_bytes *b);
/* Keeps the memory, drops the content. */
void wf_bytes_clear(wf_bytes *b);
void wf_bytes_add(wf_bytes *b, const void *data, size_t n);
/* n bytes at the end to be written by the caller, or NULL when there is no memory. */
uint8_t *wf_bytes_extend(wf_bytes *b, size_t n);
void wf_bytes_puts(wf_bytes *b, const char *s);
void wf_bytes_printf(wf_bytes *b, const char *fmt, ...) WF_PRINTF(2, 3);
/* The text so far, never NULL. */
const char *wf_bytes_str(const wf_bytes *b);
/* WF_NOMEM if any append failed. */
WF_MUST_USE wf_status wf_bytes_check(const wf_bytes *b, wf_err *err);

#endif
