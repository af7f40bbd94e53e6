/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/status.c - errors are formatted once, where they are raised. */
#include "common/base/status.h"
#include "common/base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set(wf_err *err, wf_status status, const char *hint, const char *file, int line)
{
    err->status = status;
    err->file = file;
    err->line = line;
    wf_text_escape(hint ? hint : "", false, err->hint, sizeof err->hint);
}

/* Formats into err->what from `at` on; returns where it ends. */
__attribute__((format(printf, 3, 0))) static size_t put(wf_err *err, size_t at, const char *fmt,
                                                        va_list ap)
{
    char text[sizeof err->what];

    if (vsnprintf(text, sizeof text, fmt, ap) < 0)
        text[0] = 0;
    return at + wf_text_escape(text, false, err->what + at, sizeof err->what - at);
}

wf_status wf_fail_at(wf_err *err, wf_status status, const char *hint, const char *file, int line,
                     const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return status;
    set(err, status, hint, file, line);
    va_start(ap, fmt);
    put(err, 0, fmt, ap);
    va_end(ap);
    return status;
}

wf_status wf_fail_errno_at(wf_err *err, int errnum, const char *hint, const char *file, int line,
                           const char *fmt, ...)
{
    wf_status status = errnum == ENOENT ? WF_NOTFOUND : errnum == ENOMEM ? WF_NOMEM : WF_IO;
    char reason[128] = "";
    va_list ap;
    size_t at;

    if (!err)
        return status;
    set(err, status, hint, file, line);
    va_start(ap, fmt);
    at = put(err, 0, fmt, ap);
    va_end(ap);
    snprintf(err->what + at, sizeof err->what - at, ": %s",
             strerror_r(errnum, reason, sizeof reason));
    return status;
}

wf_status wf_err_wrap(wf_err *err, wf_status rc, const char *fmt, ...)
{
    char old[sizeof err->what];
    va_list ap;
    size_t at;

    if (rc == WF_OK || !err)
        return rc;
    memcpy(old, err->what, sizeof old);
    va_start(ap, fmt);
    at = put(err, 0, fmt, ap);
    va_end(ap);
    if (at + 2 < sizeof err->what) {
        memcpy(err->what + at, ": ", 2);
        wf_text_escape(old, false, err->what + at + 2, sizeof err->what - at - 2);
    }
    return rc;
}

wf_status wf_err_hint(wf_err *err, wf_status rc, const char *hint)
{
    if (rc != WF_OK && err && !err->hint[0])
        wf_text_escape(hint, false, err->hint, sizeof err->hint);
    return rc;
}

wf_status wf_fail_nomem_at(wf_err *err, unsigned long bytes, const char *file, int line)
{
    static const char hint[] = "free some memory, or use a smaller batch or model";

    if (bytes == 0)
        return wf_fail_at(err, WF_NOMEM, hint, file, line, "no memory is left");
    if (bytes == ULONG_MAX)
        return wf_fail_at(err, WF_NOMEM, hint, file, line, "more bytes than any memory has");
    return wf_fail_at(err, WF_NOMEM, hint, file, line, "no memory for %lu bytes", bytes);
}

int wf_exit_code(wf_status status)
{
    switch (status) {
    case WF_OK:
        return 0;
    case WF_USAGE:
        return 2;
    case WF_UNSUPPORTED:
        return 3;
    case WF_SUPERSEDED:
        return 4;
    case WF_STOPPED:
        return 5;
    default:
        return 1;
    }
}

void wf_assert_failed(const char *claim, const char *file, int line)
{
    fprintf(stderr, "weft: a bug in weft: %s does not hold at %s:%d\n", claim, file, line);
    abort();
}
