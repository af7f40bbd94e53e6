/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/ahead.c - what a run is fed is copied to the device while the run before it computes.
 *
 * A step that copies an input to the device has memory of its own there for the next run's content.
 * That is copied on the stream `in`, behind the copies of the run under way, and no kernel waits
 * for it. In the next run the step copies from this memory, on the same stream, and so in order; it
 * costs a pass over memory of the device, and recordings of kernels (replay.c) know one address.
 * The wait for a run waits for these copies too: memory of the host is free then.
 */
#include "common/exec/plan.h"

/* Whether s copies input i to a device as it is given; views on the host share its room. */
static bool brings(const wf_plan *p, const wf_step *s, uint32_t i)
{
    const wf_node *n = s->run.node;

    return s->brings && wf_plan_is_copy(n) &&
           p->room_of[n->in[0]->index] == p->room_of[p->ins[i].value->index];
}

static wf_status bring(wf_plan *p, wf_step *s, const void *data, wf_err *err)
{
    wf_plan_side *side = &p->sides[s->side];
    const size_t bytes = wf_tensor_bytes(s->out[0]);

    s->ahead = NULL;
    if (!s->asked_ahead)
        s->room_ahead = wf_buf_new_on(side->device, bytes);
    s->asked_ahead = true;
    if (!s->room_ahead || bytes == 0)
        return WF_OK; /* then it is copied when its run begins */
    WF_TRY(wf_stream_copy(side->in, WF_COPY_IN, s->room_ahead->data, data, bytes, err));
    side->beside = true;
    s->ahead = data;
    return WF_OK;
}

wf_status wf_plan_bring_ahead(wf_plan *p, uint32_t i, const void *data, wf_err *err)
{
    wf_assert(i < p->n_ins && !p->measure_only);
    for (uint32_t k = 0; k < p->n_steps; k++)
        if (brings(p, &p->steps[k], i))
            WF_TRY(bring(p, &p->steps[k], data, err));
    return WF_OK;
}

void wf_plan_take_ahead(wf_plan *p)
{
    p->takes_ahead = true;
}

/* Content that a run did not take is not for the run behind it either. */
wf_status wf_step_bring(wf_plan *p, wf_step *s, wf_err *err)
{
    const bool there = s->ahead && p->taking && s->ahead == s->in[0]->data;

    s->ahead = NULL;
    if (!there)
        return wf_step_queue(s, err);
    return wf_stream_copy(s->run.stream, WF_COPY_WITHIN, s->out[0]->data, s->room_ahead->data,
                          wf_tensor_bytes(s->out[0]), err);
}
