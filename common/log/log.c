/* SPDX-License-Identifier: Apache-2.0 */
/* common/log/log.c - each line is one write(2), so lines of several threads do not mix. */
#include "common/log/log.h"
#include "common/base/clock.h"
#include "common/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char speaker[64];
static wf_log_level lowest = WF_WARN;

void wf_log_init(const char *who, wf_log_level least)
{
    snprintf(speaker, sizeof speaker, "%s", who);
    lowest = least;
}

void wf_log_pass(void (*init)(const char *who, wf_log_level least))
{
    init(speaker, lowest);
}

int wf_log_on(wf_log_level level)
{
    return level >= lowest;
}

void wf_log_line(wf_log_level level, const char *event, const char *fmt, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    int64_t now_ns = wf_wall_ns();
    time_t seconds = (time_t)(now_ns / WF_NS_PER_S);
    char line[2048], facts[2048];
    struct tm tm;
    va_list ap;
    size_t at;

    if (!wf_log_on(level))
        return;
    gmtime_r(&seconds, &tm);
    at = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    at += (size_t)snprintf(line + at, sizeof line - at, ".%03dZ %s %s%s%.200s",
                           (int)(now_ns / WF_NS_PER_MS % 1000), names[level], speaker,
                           speaker[0] ? " " : "", event);
    if (fmt[0]) {
        line[at++] = ' ';
        va_start(ap, fmt);
        if (vsnprintf(facts, sizeof facts, fmt, ap) < 0)
            facts[0] = 0;
        va_end(ap);
        at += wf_text_escape(facts, false, line + at, sizeof line - at - 1);
    }
    line[at++] = '\n';
    if (write(STDERR_FILENO, line, at) < 0)
        return; /* nobody to tell */
}
