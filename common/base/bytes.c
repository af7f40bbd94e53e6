/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/bytes.c - growth by doubling; a failed append makes all later ones do nothing. */
#include "common/base/bytes.h"
#include "common/base/size.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_bytes_close(wf_bytes *b)
{
    free(b->data);
    *b = (wf_bytes){0};
}

void wf_bytes_clear(wf_bytes *b)
{
    b->size = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = 0;
}

uint8_t *wf_bytes_extend(wf_bytes *b, size_t n)
{
    size_t need;
    uint8_t *at;

    if (b->failed)
        return NULL;
    if (!wf_add_size(b->size, n, &need) || !wf_add_size(need, 1, &need)) {
        b->failed = true;
        return NULL;
    }
    if (need > b->room) {
        size_t room = WF_MAX(need, b->room > SIZE_MAX / 2 ? need : 2 * b->room);
        uint8_t *data = realloc(b->data, WF_MAX(room, (size_t)64));

        if (!data) {
            b->failed = true;
            return NULL;
        }
        b->data = data;
        b->room = WF_MAX(room, (size_t)64);
    }
    at = b->data + b->size;
    b->size += n;
    b->data[b->size] = 0;
    return at;
}

void wf_bytes_add(wf_bytes *b, const void *data, size_t n)
{
    uint8_t *at = wf_bytes_extend(b, n);

    if (at && n)
        memcpy(at, data, n);
}

void wf_bytes_puts(wf_bytes *b, const char *s)
{
    wf_bytes_add(b, s, strlen(s));
}

void wf_bytes_printf(wf_bytes *b, const char *fmt, ...)
{
    va_list ap;
    uint8_t *at;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
        return;
    }
    at = wf_bytes_extend(b, (size_t)n);
    if (!at)
        return;
    va_start(ap, fmt);
    vsnprintf((char *)at, (size_t)n + 1, fmt, ap);
    va_end(ap);
}

const char *wf_bytes_str(const wf_bytes *b)
{
    return b->data ? (const char *)b->data : "";
}

wf_status wf_bytes_check(const wf_bytes *b, wf_err *err)
{
    return b->failed ? wf_fail_nomem(err, b->size) : WF_OK;
}
