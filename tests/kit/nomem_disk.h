/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/nomem_disk.h - the disk in memory, where a sweep over failing allocations uses it.
 *
 * The memory of a memdisk is the disk's own, and the end of it is no event there. So its functions
 * are spared, wf_disk_list with the arena of its caller among them.
 */
#ifndef WF_TESTS_KIT_NOMEM_DISK_H
#define WF_TESTS_KIT_NOMEM_DISK_H

#include "tests/kit/memdisk.h"

/* From now on the calls of a wf_memdisk_disk are spared (tests/kit/nomem.h). */
void wf_nomem_disk(wf_disk *memdisk);

#endif
