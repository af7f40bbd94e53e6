/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/schedule.c */
#include "worker/stages/schedule.h"
#include "common/base/status.h"

wf_stage_action wf_schedule_next(const wf_stage_schedule *s, uint32_t *batch)
{
    uint32_t under_way = s->forwards - s->backwards;

    if (s->forwards < s->batches && (!s->trains || under_way < s->stages - s->stage)) {
        *batch = s->forwards;
        return WF_STAGE_GO_FORWARD;
    }
    if (s->trains && under_way > 0) {
        *batch = s->backwards;
        return WF_STAGE_GO_BACK;
    }
    return WF_STAGE_NOTHING;
}

void wf_schedule_note(wf_stage_schedule *s, wf_stage_action done)
{
    if (done == WF_STAGE_GO_FORWARD)
        s->forwards++;
    if (done == WF_STAGE_GO_BACK)
        s->backwards++;
    wf_assert(s->forwards <= s->batches && s->backwards <= s->forwards);
    wf_assert(!s->trains || s->forwards - s->backwards <= s->stages - s->stage); /* H1 */
}
