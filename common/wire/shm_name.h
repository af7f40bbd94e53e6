/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_name.h - the name under which a process is found that listens at an address, if
 * it runs on this host. */
#ifndef WF_WIRE_SHM_NAME_H
#define WF_WIRE_SHM_NAME_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct wf_shm_name {
    struct sockaddr_un at; /* of an abstract socket */
    socklen_t size;
} wf_shm_name;

/* The name for tcp://HOST:PORT, or for ipc://PATH of a socket that is there. Two processes have the
 * same only if they mean the same listener: HOST as it is written, since only who has that address
 * can listen at it, or the file's number. False when there is no name. */
bool wf_shm_name_of(const char *address, wf_shm_name *out);

#endif
