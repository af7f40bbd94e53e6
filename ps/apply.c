/* SPDX-License-Identifier: Apache-2.0 */
/* ps/apply.c - the parts of a push, each by the thread that its slice belongs to.
 *
 * The thread that owns the sockets waits for the others, so a message is applied as a whole before
 * the next is looked at, and nothing is locked.
 */
#include "ps/state.h"

typedef struct turn {
    wf_ps *ps;
    const wf_msg *msg;
    uint64_t incarnation;
    uint32_t n, threads;
} turn;

static wf_status apply_part(const turn *t, const wf_part *p, wf_ps_applied *r)
{
    wf_slice *s = wf_ps_slice(t->ps, p->slice);

    if (wf_seen_before(&s->seen, t->incarnation, t->msg->head.step))
        return WF_OK;
    WF_TRY(wf_seen_mark(&s->seen, t->incarnation, t->msg->head.step, &r->err));
    if (p->codec == WF_CODEC_NONE) /* dropped whole by its worker: seen, and not an update (V1) */
        return WF_OK;
    return wf_slice_apply(s, &t->ps->opt, wf_part_data(t->msg, p), &r->err);
}

/* P5: thread k does the slices that are its own, and no others. */
static void apply_own(void *arg, int64_t begin, int64_t end)
{
    const turn *t = arg;

    for (int64_t k = begin; k < end; k++) {
        wf_ps_applied *r = &t->ps->applied[k];

        for (uint32_t i = 0; i < t->n && r->rc == WF_OK; i++)
            if (t->ps->parts[i].slice % t->threads == k)
                r->rc = apply_part(t, &t->ps->parts[i], r);
    }
}

wf_status wf_ps_apply(wf_ps *ps, uint64_t incarnation, const wf_msg *m, uint32_t n, wf_err *err)
{
    turn t = {ps, m, incarnation, n, wf_pool_threads(ps->pool)};

    for (uint32_t k = 0; k < t.threads; k++)
        ps->applied[k].rc = WF_OK;
    wf_pool_for(ps->pool, t.threads, 1, apply_own, &t);
    for (uint32_t k = 0; k < t.threads; k++)
        if (ps->applied[k].rc != WF_OK) {
            *err = ps->applied[k].err;
            return ps->applied[k].rc;
        }
    return WF_OK;
}
