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
 * same only if they mean the same listener: HOST as it is written, since who listens at it has it,
 * or the file's number. With `any`, the name of one that listens at all of the host's addresses,
 * where the address is one of this host by its form. False when there is no name. */
bool wf_shm_name_of(const char *address, bool any, wf_shm_name *out);

#endif
