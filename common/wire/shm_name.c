/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_name.c */
#include "common/wire/shm_name.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char tcp[] = "tcp://", ipc[] = "ipc://";

static bool put(wf_shm_name *out, const char *kind, const char *text)
{
    size_t room = sizeof out->at.sun_path - 1; /* behind the zero of an abstract name */
    int n;

    *out = (wf_shm_name){.at.sun_family = AF_UNIX};
    n = snprintf(out->at.sun_path + 1, room, "weft/%u/%s/%s", (unsigned)geteuid(), kind, text);
    out->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return n > 0 && (size_t)n < room;
}

static bool name_of_port(const char *place, wf_shm_name *out)
{
    static const char local[] = "localhost:";
    const char *colon = strrchr(place, ':');
    char text[sizeof out->at.sun_path];
    int n;

    if (!colon || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strspn(colon + 1, "0") == strlen(colon + 1))
        return false; /* a port that the system chooses */
    if (strncmp(place, local, strlen(local)) == 0)
        n = snprintf(text, sizeof text, "127.0.0.1%s", colon);
    else
        n = snprintf(text, sizeof text, "%s", place);
    return n > 0 && (size_t)n < sizeof text && put(out, "tcp", text);
}

bool wf_shm_name_of(const char *address, wf_shm_name *out)
{
    char text[64];
    struct stat s;

    if (strncmp(address, tcp, strlen(tcp)) == 0)
        return name_of_port(address + strlen(tcp), out);
    if (strncmp(address, ipc, strlen(ipc)) != 0 || stat(address + strlen(ipc), &s) != 0)
        return false;
    snprintf(text, sizeof text, "%lx:%lx", (unsigned long)s.st_dev, (unsigned long)s.st_ino);
    return put(out, "ipc", text);
}
