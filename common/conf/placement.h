/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/placement.h - the keys below `placement`. For this room only. */
#ifndef WF_CONF_PLACEMENT_H
#define WF_CONF_PLACEMENT_H

#include "common/conf/read.h"

/* Into a wf_job_conf. */
extern const wf_key wf_placement_keys[];

#endif
