/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/machine.h - what this process may use of the machine. */
#ifndef WF_BASE_MACHINE_H
#define WF_BASE_MACHINE_H

#include <stddef.h>

/* The bytes of memory that this process can have at the very most: the machine's, or less where a
 * container's control group (memory.max, memory.limit_in_bytes of the root that it sees) or
 * RLIMIT_AS sets a limit; limits of groups below that root are not read. What other processes hold
 * is not subtracted, so the answer is the same in every run. Reads files below /sys: for set-up,
 * not for steps. */
size_t wf_machine_memory(void);
/* The bytes of the second-level cache, which belongs to one core; 1 MiB where the system does not
 * say. */
size_t wf_machine_core_cache(void);

#endif
