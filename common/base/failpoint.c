/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/failpoint.c - built only with the meson option `failpoints`. The visit counts are the
 * one thing here that changes, and exist in such builds alone. */
#include "common/base/failpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_POINTS = 32 };

static unsigned visits[MOST_POINTS]; /* by place in WEFT_FAILPOINTS */

static int errno_of(const char *text)
{
    if (strncmp(text, "ENOSPC", 6) == 0)
        return ENOSPC;
    if (strncmp(text, "EIO", 3) == 0)
        return EIO;
    return atoi(text);
}

static wf_status act(const char *name, const char *action, wf_err *err)
{
    if (strncmp(action, "kill", 4) == 0)
        raise(SIGKILL);
    if (strncmp(action, "stop", 4) == 0)
        raise(SIGSTOP);
    if (strncmp(action, "sleep:", 6) == 0) {
        long ms = atol(action + 6);
        struct timespec t = {ms / 1000, ms % 1000 * 1000000};

        nanosleep(&t, NULL);
    }
    if (strncmp(action, "error:", 6) == 0)
        return wf_fail_errno(err, errno_of(action + 6), NULL, "failpoint %s", name);
    return WF_OK;
}

wf_status wf_failpoint(const char *name, wf_err *err)
{
    const char *at = getenv("WEFT_FAILPOINTS");
    size_t n = strlen(name);

    for (unsigned i = 0; at && *at && i < MOST_POINTS; i++) {
        size_t length = strcspn(at, ",");

        if (length > n && strncmp(at, name, n) == 0 && at[n] == '=') {
            const char *nth = memchr(at, '@', length);
            unsigned visit = __atomic_add_fetch(&visits[i], 1, __ATOMIC_RELAXED);

            if (!nth || visit == (unsigned)atoi(nth + 1))
                return act(name, at + n + 1, err);
        }
        at += length + (at[length] == ',');
    }
    return WF_OK;
}
