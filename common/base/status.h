/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/status.h - what a fallible function returns, and the sentence a person reads.
 *
 * Every fallible function returns wf_status and takes a wf_err last. The wf_err is the caller's, on
 * its stack; it is written only on failure. What it holds is fit for a terminal: control characters
 * of names from files are escaped here (text.h). Raise once with wf_fail, put context in front with
 * wf_err_wrap on the way up, print or handle once. A NULL wf_err is allowed where the caller needs
 * the status only.
 */
#ifndef WF_BASE_STATUS_H
#define WF_BASE_STATUS_H

#include "common/base/cc.h"

typedef enum wf_status {
    WF_OK = 0,
    WF_NOMEM,       /* memory, or a stated limit on it, is used up */
    WF_INVALID,     /* a value that a user or a file gave cannot be right */
    WF_USAGE,       /* wrong command line, or wrong text in a YAML file */
    WF_SHAPE,       /* shapes or dtypes do not go together */
    WF_NOTFOUND,    /* a file, name or peer is not there */
    WF_EXISTS,      /* it is there already and may not be replaced */
    WF_UNSUPPORTED, /* weft does not do this (yet) */
    WF_IO,          /* the system refused: errno's text is in `what` */
    WF_CORRUPT,     /* bytes that were ours once, and are no longer what was written */
    WF_PROTO,       /* a peer's message that the protocol does not allow here */
    WF_TIMEOUT,     /* a deadline passed; `what` names who was awaited */
    WF_FULL,        /* a bounded queue, window or table has no room now */
    WF_MISMATCH,    /* two things that must agree do not (digest, version, cluster) */
    WF_NUMERIC,     /* NaN or Inf where none may be */
    WF_SUPERSEDED,  /* a newer incarnation took this task's place */
    WF_STOPPED,     /* ended on request before it was done */
    WF_AGAIN,       /* not now: the same request may succeed later */
    WF_BROKEN       /* a device failed: nothing works on it until the process is started anew */
} wf_status;

typedef struct wf_err {
    wf_status status;
    char what[1024]; /* what is wrong and where, one sentence without a full stop */
    char hint[256];  /* what to do about it; may be empty */
    const char *file;
    int line; /* where in weft it was first raised */
} wf_err;

/* Sets *err and returns `status`. `hint` is plain text or NULL. */
#define wf_fail(err, status, hint, ...)                                                            \
    wf_fail_at((err), (status), (hint), __FILE__, __LINE__, __VA_ARGS__)
wf_status wf_fail_at(wf_err *err, wf_status status, const char *hint, const char *file, int line,
                     const char *fmt, ...) WF_PRINTF(6, 7);

/* The same for a failed system call: adds ": " and the text of `errnum`. Status is WF_IO, or
 * WF_NOTFOUND for ENOENT, or WF_NOMEM for ENOMEM. */
#define wf_fail_errno(err, errnum, hint, ...)                                                      \
    wf_fail_errno_at((err), (errnum), (hint), __FILE__, __LINE__, __VA_ARGS__)
wf_status wf_fail_errno_at(wf_err *err, int errnum, const char *hint, const char *file, int line,
                           const char *fmt, ...) WF_PRINTF(6, 7);

/* Puts "context: " in front of what was said and returns rc; does nothing when rc is WF_OK. */
wf_status wf_err_wrap(wf_err *err, wf_status rc, const char *fmt, ...) WF_PRINTF(3, 4);

/* Says what to do, where nothing was said about that yet; returns rc, and does nothing for WF_OK.
 */
wf_status wf_err_hint(wf_err *err, wf_status rc, const char *hint);

/* "no memory for N bytes", the commonest failure. `bytes` is 0 where a library asked for it and
 * says no size, and SIZE_MAX where the size itself overflows. Returns WF_NOMEM. */
#define wf_fail_nomem(err, bytes) wf_fail_nomem_at((err), (bytes), __FILE__, __LINE__)
wf_status wf_fail_nomem_at(wf_err *err, unsigned long bytes, const char *file, int line);

#ifdef __clang_analyzer__ /* it looks at one file, and cannot know that none of these is WF_OK */
#undef wf_fail
#undef wf_fail_errno
#undef wf_fail_nomem
#define wf_fail(err, status, hint, ...)                                                            \
    ((void)wf_fail_at((err), (status), (hint), __FILE__, __LINE__, __VA_ARGS__), (status))
#define wf_fail_errno(err, errnum, hint, ...)                                                      \
    ((void)wf_fail_errno_at((err), (errnum), (hint), __FILE__, __LINE__, __VA_ARGS__), WF_IO)
#define wf_fail_nomem(err, bytes)                                                                  \
    ((void)wf_fail_nomem_at((err), (bytes), __FILE__, __LINE__), WF_NOMEM)
#endif

/* The exit code for a status: 0 to 5, listed in docs/cluster.md, "Exit codes". */
int wf_exit_code(wf_status status);

/* Returns at once on failure, for functions that own nothing yet. */
#define WF_TRY(call)                                                                               \
    do {                                                                                           \
        wf_status wf_try_rc_ = (call);                                                             \
        if (wf_try_rc_ != WF_OK)                                                                   \
            return wf_try_rc_;                                                                     \
    } while (0)

/* For bugs in weft: prints the claim and aborts, in release builds too. */
#define wf_assert(claim)                                                                           \
    do {                                                                                           \
        if (WF_UNLIKELY(!(claim)))                                                                 \
            wf_assert_failed(#claim, __FILE__, __LINE__);                                          \
    } while (0)
WF_NORETURN void wf_assert_failed(const char *claim, const char *file, int line);

#endif
