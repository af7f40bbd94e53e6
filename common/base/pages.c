/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/pages.c */
#include "common/base/pages.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE_PAGE = 2 << 20 };

void *wf_pages_alloc(size_t bytes)
{
    size_t align = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : ALIGN, room;
    void *data;

    if (bytes > SIZE_MAX - align)
        return NULL;
    room = wf_align_up(WF_MAX(bytes, (size_t)1), align);
    data = aligned_alloc(align, room);
    if (data && align == HUGE_PAGE)
        (void)madvise(data, room, MADV_HUGEPAGE); /* a wish, not a need */
    return data;
}
