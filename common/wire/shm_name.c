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

static bool name_of_port(const char *place, bool any, wf_shm_name *out)
{
    const char *colon = strrchr(place, ':');
    size_t n = colon ? (size_t)(colon - place) : 0;
    char text[sizeof out->at.sun_path];
    bool local = (n == strlen("localhost") && memcmp(place, "localhost", n) == 0);
    bool all = n == 1 && *place == '*';

    if (!colon || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strspn(colon + 1, "0") == strlen(colon + 1))
        return false; /* a port that the system chooses */
    if (any && !local && strncmp(place, "127.", 4) != 0)
        return false;
    if (any || all)
        snprintf(text, sizeof text, "0.0.0.0%s", colon);
    else if (local)
        snprintf(text, sizeof text, "127.0.0.1%s", colon);
    else if ((size_t)snprintf(text, sizeof text, "%s", place) >= sizeof text)
        return false;
    return put(out, "tcp", text);
}

bool wf_shm_name_of(const char *address, bool any, wf_shm_name *out)
{
    char text[64];
    struct stat s;

    if (strncmp(address, tcp, strlen(tcp)) == 0)
        return name_of_port(address + strlen(tcp), any, out);
    if (any || strncmp(address, ipc, strlen(ipc)) != 0 || stat(address + strlen(ipc), &s) != 0)
        return false;
    snprintf(text, sizeof text, "%lx:%lx", (unsigned long)s.st_dev, (unsigned long)s.st_ino);
    return put(out, "ipc", text);
}
