/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_push.c - a worker's push: each part applied once, however often it arrives.
 *
 * A worker that misses our answer sends its parts again, perhaps by a new link. `seen` keeps, per
 * slice, the steps applied from each incarnation, so a second copy is acknowledged and not applied.
 * What is applied is handed over to acks.c, which acknowledges it.
 */
#include "common/optim/rule.h"
#include "ps/state.h"

#include <inttypes.h>

wf_slice_part wf_ps_part(const wf_msg *m, uint64_t incarnation, const wf_part *p)
{
    wf_slice_part part = {.incarnation = incarnation,
                          .step = m->head.step,
                          .generation = m->head.generation,
                          .version = p->version};

    if (p->codec == WF_CODEC_NONE) /* it lies in no frame */
        return part;
    part.rows = wf_part_rows(m, p);
    part.coded = wf_part_coded(m, p);
    part.n = part.coded.n;
    if (p->coding == WF_CODING_F32)
        part.values = (const float *)part.coded.data;
    return part;
}

/* What a worker cannot write in fewer bytes it sends as float32, NaN among it: so that a coded part
 * which is not sound was damaged or made up. */
static wf_status check_values(const wf_slice *s, const wf_slice_part *part, const char *name,
                              wf_err *err)
{
    if (!part->values && s->statistic)
        return wf_fail(err, WF_PROTO, "push statistics as float32",
                       "a part of the statistic \"%s\" in %s", name,
                       wf_coding_name(part->coded.coding));
    if (!part->values)
        return wf_err_wrap(err, wf_coded_check(&part->coded, err), "a part of \"%s\"", name);
    if (!wf_all_finite(part->values, part->n))
        return wf_fail(err, WF_NUMERIC, "lower the learning rate, or clip the gradients (clipnorm)",
                       "NaN or Inf in the %s \"%s\" at step %u",
                       s->statistic ? "statistic" : "gradient of", name, part->step);
    return WF_OK;
}

static wf_status check_part(const wf_ps *ps, const wf_msg *m, const wf_part *p, wf_err *err)
{
    const wf_slice *s = wf_ps_slice(ps, p->slice);
    const wf_ps_variable *v;
    wf_slice_part part;
    wf_status rc;

    if (wf_ps_is_away(ps, p->slice))
        return wf_fail(err, WF_AGAIN, NULL, "slice %u has moved", p->slice);
    if (!s)
        return wf_fail(err, WF_PROTO, NULL, "slice %u is not on ps %u", p->slice, ps->conf.index);
    v = &ps->variables[s->variable];
    if (wf_slice_is_frozen(s))
        return wf_fail(err, WF_PROTO, NULL, "\"%s\" is not trainable", v->name);
    if (p->codec == WF_CODEC_NONE)
        return WF_OK;
    if (p->version > s->updates)
        return wf_fail(err, WF_PROTO, NULL,
                       "a part of \"%s\" was computed from version %" PRIu64
                       ", and slice %u has %" PRIu64,
                       v->name, p->version, p->slice, s->updates);
    if (p->codec == WF_CODEC_BYTES) /* that is for states */
        return wf_fail(err, WF_PROTO, NULL, "a part of \"%s\" has codec %u", v->name, p->codec);
    part = wf_ps_part(m, m->head.incarnation, p);
    rc = s->ops->check(s, &part, err);
    if (rc != WF_OK)
        return wf_err_wrap(err, rc, "a part of \"%s\"", v->name);
    return check_values(s, &part, v->name, err);
}

/* All of it before the first write: a peer's bytes are untrusted, and half a push must never be
 * applied. */
static wf_status check_push(wf_ps *ps, const wf_ps_worker *w, const wf_msg *m, wf_push_body *body,
                            uint32_t *n, wf_err *err)
{
    wf_status rc;

    if (m->head.step == 0)
        return wf_fail(err, WF_PROTO, NULL, "a push of step 0");
    WF_TRY(wf_push_get(m, body, ps->parts, n, err));
    for (uint32_t i = 0; i < *n; i++) {
        rc = check_part(ps, m, &ps->parts[i], err);
        if (rc != WF_OK)
            return wf_err_wrap(err, rc, "worker %u", w->peer->task.index);
    }
    return WF_OK;
}

/* NaN ends the job, and so does a table or its disk that is full; any other fault of a push is its
 * sender's, and costs nothing but this push. Of a push that found the disk full some parts may be
 * applied: neither that one is acknowledged nor any that comes behind it is applied. */
wf_status wf_ps_on_push(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    uint32_t slices[WF_MAX_PARTS], n = 0;
    wf_push_body body;
    wf_status rc;

    if (wf_ps_is_full(ps))
        return WF_OK;
    rc = check_push(ps, w, m, &body, &n, err);
    if (rc == WF_NUMERIC || rc == WF_FULL) {
        wf_session_fault(&ps->session, err, NULL);
        return WF_OK;
    }
    if (rc != WF_OK)
        return rc;
    if (ps->together.on)
        return wf_together_hold(ps, w, m, &body, n, err);
    for (uint32_t i = 0; i < n; i++) /* answers use the part table */
        slices[i] = ps->parts[i].slice;
    rc = wf_ps_apply(ps, w->peer->incarnation, m, n, err);
    if (rc != WF_OK)
        return rc == WF_FULL ? WF_OK : rc; /* which it has reported */
    WF_TRY(wf_acks_add(ps, w, m->head.step, slices, n, err));
    WF_TRY(wf_ps_answer_waiting(ps, w, slices, n, err));
    return wf_ps_answer_others(ps, w, slices, n, err);
}
