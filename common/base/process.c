/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/process.c */
#include "common/base/process.h"

#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>

enum { KEEP_BLOCKS_BELOW = 32 << 20 /* the largest that mallopt lets malloc keep */ };

wf_status wf_process_raise_files(wf_err *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot read the limit on open files");
    if (limit.rlim_cur == limit.rlim_max)
        return WF_OK;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wf_fail_errno(err, errno, NULL, "cannot raise the limit on open files");
    return WF_OK;
}

void wf_process_keep_blocks(void)
{
    mallopt(M_MMAP_THRESHOLD, KEEP_BLOCKS_BELOW);
    mallopt(M_TRIM_THRESHOLD, KEEP_BLOCKS_BELOW);
}
