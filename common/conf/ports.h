/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/ports.h - ports of this host that nobody has at this moment. */
#ifndef WF_CONF_PORTS_H
#define WF_CONF_PORTS_H

#include "common/base/status.h"
#include "common/conf/conf.h"

enum { WF_PORTS_MOST = 2 * WF_CONF_MAX_TASKS + 1 };

/* Fills ports [n], n <= WF_PORTS_MOST, which are all different. Errors: WF_IO. */
WF_MUST_USE wf_status wf_ports_draw(uint32_t ports[], size_t n, wf_err *err);

#endif
