/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_pinned.c */
#include "tests/cuda/host_pinned.h"
#include "common/base/status.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PINNED = 1 << 14 };

static struct range {
    const unsigned char *at;
    size_t bytes;
} pinned[MOST_PINNED];
static unsigned n_pinned;

bool host_pinned_has(const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (unsigned i = 0; i < n_pinned; i++)
        if (at >= pinned[i].at && at - pinned[i].at <= (ptrdiff_t)pinned[i].bytes &&
            bytes <= pinned[i].bytes - (size_t)(at - pinned[i].at))
            return true;
    return false;
}

void host_pinned_add(const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (unsigned i = 0; i < n_pinned; i++)
        if (at < pinned[i].at + pinned[i].bytes && pinned[i].at < at + bytes) {
            fprintf(stderr, "%zu bytes of the host at %p are pinned already\n", bytes, data);
            abort();
        }
    wf_assert(n_pinned < MOST_PINNED);
    pinned[n_pinned++] = (struct range){at, bytes};
}

bool host_pinned_drop(const void *at)
{
    for (unsigned i = 0; i < n_pinned; i++)
        if (pinned[i].at == at) {
            pinned[i] = pinned[--n_pinned];
            return true;
        }
    return false;
}
