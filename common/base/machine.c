/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/machine.c */
#include "common/base/machine.h"
#include "common/base/cc.h"
#include "common/base/size.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number in a file of one line; `otherwise` when there is no file, or "max" in it. */
static size_t number_in(const char *path, size_t otherwise)
{
    FILE *f = fopen(path, "re");
    char line[64] = "", *end;
    unsigned long long n;

    if (!f)
        return otherwise;
    if (!fgets(line, sizeof line, f))
        line[0] = 0;
    fclose(f);
    errno = 0;
    n = strtoull(line, &end, 10);
    return end == line || errno || n == 0 || n > SIZE_MAX ? otherwise : (size_t)n;
}

size_t wf_machine_memory(void)
{
    static const char *const groups[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t most = SIZE_MAX;
    struct rlimit limit;

    if (pages <= 0 || page <= 0 || !wf_mul_size((size_t)pages, (size_t)page, &most))
        most = SIZE_MAX;
    for (size_t i = 0; i < WF_COUNT(groups); i++)
        most = WF_MIN(most, number_in(groups[i], SIZE_MAX));
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        most = WF_MIN(most, (size_t)limit.rlim_cur);
    return most;
}

size_t wf_machine_core_cache(void)
{
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);

    return bytes > 0 ? (size_t)bytes : (size_t)1 << 20;
}
