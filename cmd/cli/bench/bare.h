/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/bare.h - the same work over bare ZeroMQ: a DEALER here, and a ROUTER in a process
 * of its own that takes, gives or echoes messages as large as weft's, with the socket buffers that
 * weft sets. Nobody looks at a byte of them.
 */
#ifndef WF_CMD_CLI_BENCH_BARE_H
#define WF_CMD_CLI_BENCH_BARE_H

#include "cmd/cli/bench/figures.h"
#include "common/base/status.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Starts an echo, to be ended with SIGKILL; it ends with the calling thread as well. Before this
 * process has other threads. `most_bytes`: the largest message. Errors: WF_IO. */
WF_MUST_USE wf_status wf_bare_start(const char *address, size_t most_bytes, pid_t *pid,
                                    wf_err *err);

typedef struct wf_bare wf_bare;

/* Dials n echoes. A piece of work moves `bytes` in messages of at most `chunk`, in equal parts to
 * or from each. *stop is read while it waits. The caller owns *out, also on failure. Errors: WF_IO,
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_bare_open(const char *const addresses[], uint32_t n, size_t bytes,
                                   size_t chunk, const atomic_bool *stop, wf_bare **out,
                                   wf_err *err);
void wf_bare_close(wf_bare **b);
/* Does it once, and says how long it took. Errors: WF_STOPPED; WF_TIMEOUT; WF_IO. */
WF_MUST_USE wf_status wf_bare_do(wf_bare *b, const wf_bench_work *work, int64_t *took_ns,
                                 wf_err *err);

#endif
