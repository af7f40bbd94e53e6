/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/owner.h - which process holds a TCP port, so that an error can name it. */
#ifndef WF_WIRE_OWNER_H
#define WF_WIRE_OWNER_H

#include <stdbool.h>
#include <stddef.h>

/* Writes "process 1234 (nginx)" for the listener at tcp://host:port into text; false, and an empty
 * text, when /proc does not show it (another user's process, ipc, no listener). */
bool wf_port_owner(const char *address, char *text, size_t size);

#endif
