/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/hosts.h - the key `hosts` of `data`: which hosts have files near. For this room only.
 */
#ifndef WF_CONF_HOSTS_H
#define WF_CONF_HOSTS_H

#include "common/conf/conf.h"
#include "common/conf/read.h"

/* Reads it into the wf_job_conf `into`. Errors: WF_USAGE with file and line. */
WF_MUST_USE wf_status wf_read_hosts(wf_conf_reader *r, const wf_tree *node, void *into,
                                    wf_err *err);
/* That splits of this data can be near a host: its records stay in the order of the files. Errors:
 * WF_USAGE. */
WF_MUST_USE wf_status wf_check_hosts(const wf_conf_reader *r, const wf_tree *node,
                                     const wf_job_conf *j, wf_err *err);

#endif
