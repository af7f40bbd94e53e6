/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/address.h - "tcp://HOST:PORT" and "ipc://PATH" taken apart. For this room only. */
#ifndef WF_CONF_ADDRESS_H
#define WF_CONF_ADDRESS_H

#include "common/conf/conf.h"
#include "common/conf/read.h"
#include <stdbool.h>

enum { WF_IPC_MAX = 107 }; /* bytes of a path in sockaddr_un, without its zero */

/* Fills address, host, port and path from an address or a list of one of each kind; a relative path
 * is made absolute. */
WF_MUST_USE wf_status wf_read_address(wf_conf_reader *r, const wf_tree *node, wf_task_conf *out,
                                      wf_err *err);
/* ipc, or a host that never leaves this machine. */
bool wf_address_is_local(const wf_task_conf *t);
/* The same place, by whatever name: "localhost" is 127.0.0.1. */
bool wf_address_same(const wf_task_conf *a, const wf_task_conf *b);

#endif
