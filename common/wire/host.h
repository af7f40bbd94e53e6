/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/host.h - the host in a task's address. */
#ifndef WF_WIRE_HOST_H
#define WF_WIRE_HOST_H

enum { WF_HOST_NAME = 256 /* bytes of a host's name, with the zero behind it */ };

/* The host in an address that has one, "tcp://HOST:PORT", alone or among others; "": none has, and
 * the address is of this host alone. */
void wf_host_of(const char *address, char name[WF_HOST_NAME]);

#endif
