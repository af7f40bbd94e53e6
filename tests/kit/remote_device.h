/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote_device.h - devices for tests, on which nothing may assume that memory is the
 * host's.
 *
 *   cpu-remote       computes every operation, with the cpu's kernels
 *   cpu-remote-half  lacks the kernels of about every second operation
 *
 * and cuda-host:0 (tests/cuda/host.h), which has the kernels of GPUs. A GPU itself is cuda:0, as in
 * every program.
 *
 * Their memory has addresses that no host code can read or write: it ends by SIGSEGV. Fresh memory
 * holds NaN-like garbage. Their streams run as late as they may: only what is waited for is done,
 * and an event that is asked for without waiting lets one piece of work happen. A kernel or copy
 * that is given memory of the wrong side aborts and says so. So a missing wait, a missing copy and
 * host memory that is written too early change results or crash.
 */
#ifndef TESTS_KIT_REMOTE_DEVICE_H
#define TESTS_KIT_REMOTE_DEVICE_H

#include "common/base/status.h"
#include "common/tensor/device.h"
#include <stddef.h>

/* The device that a test program is to use: the one that WEFT_TEST_DEVICE names, or the cpu. Ends
 * the program with a sentence when there is none. This call and the next make all devices known to
 * wf_device_find. */
const wf_device *test_device(void);
/* The one behind a plus in that name, over which remote_pair.c spreads plans too; NULL: none. */
const wf_device *test_second_device(void);

/* The device of that name: one of these, or what wf_device_open opens. Errors: those of that. */
WF_MUST_USE wf_status test_device_called(const char *name, const wf_device **out, wf_err *err);

/* The bytes that are allocated on both devices now. */
size_t remote_devices_held(void);
/* The pieces of work that were queued on both devices so far, each with one allocation, and that
 * have been done. */
size_t remote_devices_queued(void);
/* The waits of one stream for another among those that were queued. */
size_t remote_devices_waits(void);
size_t remote_devices_done(void);

#endif
