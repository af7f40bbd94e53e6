/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/processor.h - the processor that a task stays on, where tasks of one host share all of them.
 *
 * Tasks that wait for messages look and yield, so to the kernel all of them seem to have work,
 * always. It then sees nothing wrong with two workers on one processor and two ps on the other, and
 * moves tasks away from their caches. Where there are as many tasks as processors, or more, each
 * stays on one, if that is fair.
 */
#ifndef WF_CMD_PROCESSOR_H
#define WF_CMD_PROCESSOR_H

#include "common/conf/conf.h"
#include "common/wire/task.h"
#include <stdbool.h>
#include <stdint.h>

/* Whether all tasks have addresses of this host alone. */
bool wf_cluster_is_here(const wf_cluster_conf *c);
/* Which of `n` processors a ps or worker stays on, from 0; -1: the kernel chooses. It stays where
 * the whole cluster is on this host, tasks have one thread each, are no fewer than processors, and
 * can be dealt so that each processor has as many workers and as many ps as any other. */
int wf_processor_of(const wf_cluster_conf *c, wf_task task, uint32_t n);
/* Has the calling thread, and those that it makes, stay there: on one of the processors that it may
 * use. Does nothing where the system refuses. */
void wf_processor_stay(const wf_cluster_conf *c, wf_task task);

#endif
