/* SPDX-License-Identifier: Apache-2.0 */
/* common/log/log.h - the front door of common/log: one line per event, `event key=value ...`.
 *
 * 2026-03-01T10:00:00.123Z info worker/0 ckpt.saved step=1200 bytes=41943040 took_ms=180
 *
 * Event names are `thing.happened` and stay stable: people search for them. `error` needs a person,
 * `warn` mended itself, `info` a person follows a job by, `debug` is for us. The sink is set once
 * in main and is the only global of weft that changes.
 */
#ifndef WF_LOG_LOG_H
#define WF_LOG_LOG_H

#include "common/base/cc.h"

typedef enum wf_log_level { WF_DEBUG, WF_INFO, WF_WARN, WF_ERROR } wf_log_level;

/* Says who speaks ("worker/0") and from which level on lines are written to stderr. Without it,
 * WARN and above are written, with no name. Call once, before other threads start. */
void wf_log_init(const char *who, wf_log_level least);
/* Has `init` called with the same: that of a plug-in, which has a log of its own. */
void wf_log_pass(void (*init)(const char *who, wf_log_level least));
/* Whether a level is written now, for facts that cost something to gather. */
int wf_log_on(wf_log_level level);
void wf_log_line(wf_log_level level, const char *event, const char *fmt, ...) WF_PRINTF(3, 4);

#define WF_LOG_DEBUG(event, ...) wf_log_line(WF_DEBUG, event, "" __VA_ARGS__)
#define WF_LOG_INFO(event, ...) wf_log_line(WF_INFO, event, "" __VA_ARGS__)
#define WF_LOG_WARN(event, ...) wf_log_line(WF_WARN, event, "" __VA_ARGS__)
#define WF_LOG_ERROR(event, ...) wf_log_line(WF_ERROR, event, "" __VA_ARGS__)

#endif
