/* SPDX-License-Identifier: Apache-2.0 */
/* common/log/states.c */
#include "common/log/states.h"
#include "common/base/status.h"
#include "common/log/log.h"

#include <stdio.h>

int wf_states_next(const wf_states *s, unsigned from, unsigned event)
{
    for (uint32_t i = 0; from < s->n && i < s->n_edges; i++)
        if (s->edges[i].event == event && s->edges[i].from & WF_STATE(from))
            return s->edges[i].to == WF_STATE_SAME ? (int)from : s->edges[i].to;
    return -1;
}

static const char *name_of(const char *const names[], uint32_t n, unsigned i)
{
    return i < n ? names[i] : "?";
}

unsigned wf_states_take(const wf_states *s, unsigned from, unsigned event, const char *whose)
{
    int to = wf_states_next(s, from, event);
    char claim[160];

    if (to < 0) {
        snprintf(claim, sizeof claim, "%s %s: %s --%s--> is an edge, which", s->name, whose,
                 name_of(s->names, s->n, from), name_of(s->events, s->n_events, event));
        wf_assert_failed(claim, __FILE__, __LINE__);
    }
    if ((unsigned)to != from && wf_log_on(WF_DEBUG))
        WF_LOG_DEBUG("state.changed", "of=%s whose=\"%s\" from=\"%s\" event=\"%s\" to=\"%s\"",
                     s->name, whose, s->names[from], s->events[event], s->names[to]);
    return (unsigned)to;
}
