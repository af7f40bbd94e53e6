/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/owner.c - /proc/net/tcp gives the socket's inode, /proc/PID/fd who has it open. */
#include "common/wire/owner.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long listener_inode(const char *table, unsigned port)
{
    FILE *f = fopen(table, "re");
    unsigned long inode = 0;
    char line[512];

    while (f && !inode && fgets(line, sizeof line, f)) {
        unsigned local, state;
        unsigned long found;

        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu",
                   &local, &state, &found) == 3 &&
            local == port && state == 0x0A)
            inode = found;
    }
    if (f)
        fclose(f);
    return inode;
}

static bool has_open(const char *pid, const char *link)
{
    char folder[PATH_MAX], target[64];
    bool found = false;
    struct dirent *e;
    DIR *d;

    snprintf(folder, sizeof folder, "/proc/%s/fd", pid);
    d = opendir(folder);
    while (d && !found && (e = readdir(d))) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);

        found = n > 0 && (size_t)n == strlen(link) && memcmp(target, link, (size_t)n) == 0;
    }
    if (d)
        closedir(d);
    return found;
}

static void describe(const char *pid, char *text, size_t size)
{
    char path[PATH_MAX], name[64] = "?";
    FILE *f;

    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    f = fopen(path, "re");
    if (f && fgets(name, sizeof name, f))
        name[strcspn(name, "\n")] = 0;
    if (f)
        fclose(f);
    snprintf(text, size, "process %s (%s)", pid, name);
}

bool wf_port_owner(const char *address, char *text, size_t size)
{
    const char *colon = strrchr(address, ':');
    unsigned long inode = 0;
    bool found = false;
    char link[64];
    struct dirent *e;
    DIR *d;

    text[0] = 0;
    if (strncmp(address, "tcp://", 6) == 0 && colon) {
        unsigned port = (unsigned)strtoul(colon + 1, NULL, 10);

        inode = listener_inode("/proc/net/tcp", port);
        if (!inode)
            inode = listener_inode("/proc/net/tcp6", port);
    }
    if (!inode)
        return false;
    snprintf(link, sizeof link, "socket:[%lu]", inode);
    d = opendir("/proc");
    while (d && !found && (e = readdir(d))) {
        found = isdigit((unsigned char)e->d_name[0]) && has_open(e->d_name, link);
        if (found)
            describe(e->d_name, text, size);
    }
    if (d)
        closedir(d);
    return found;
}
