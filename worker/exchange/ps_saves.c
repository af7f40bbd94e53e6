/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_saves.c - the files of a checkpoint: each parameter server writes one. */
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"
#include "common/wire/control.h"
#include "worker/exchange/ps_state.h"

/* Of the ps that had slices at the start, and of those that have some now; or of all, and one more.
 */
uint32_t wf_saves_count(const wf_exchange *x)
{
    const wf_client *c = (const wf_client *)x;
    uint32_t n = c->shards_at_start;

    if (c->is_part)
        return c->n_ps + 1;

    for (uint32_t i = 0; i < c->n_slices; i++)
        n = WF_MAX(n, c->slices[i].ps + 1);
    return n;
}

wf_status wf_saves_ask(wf_client *c, uint32_t ps, wf_err *err)
{
    const wf_exchange_save *s = &c->base.saving;
    Weft__Save body = WEFT__SAVE__INIT;
    char file[64];
    wf_msg *m = NULL;
    wf_status rc;

    s->shards[ps].writer = (wf_task){WF_ROLE_PS, ps};
    body.folder = s->folder;
    body.file = (char *)wf_ckpt_shard_name(ps, s->n, file, sizeof file);
    WF_TRY(wf_net_msg(c->net, WF_CUT_SAVE, &m, err));
    rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK) {
        wf_client_set_head(c, m);
        m->head.cut = s->cut;
        rc = wf_net_send(c->net, c->ps[ps], WF_LANE_CONTROL, 0, &m, err);
    }
    wf_net_free_msg(c->net, &m);
    return rc;
}

wf_status wf_saves_begin(wf_exchange *x, wf_err *err)
{
    wf_client *c = (wf_client *)x;

    for (uint32_t i = 0; i < x->saving.n - c->is_part; i++) {
        if (i >= c->n_ps || !c->ps[i])
            return wf_fail(err, WF_NOTFOUND, NULL, "ps %u is not dialled", i);
        WF_TRY(wf_saves_ask(c, i, err));
    }
    return WF_OK;
}

/* A ps that has taken its copies for this cut takes no others, and reports again how far it is. */
wf_status wf_saves_on_message(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
{
    wf_exchange_save *s = &c->base.saving;

    if (m->head.cut != s->cut || ps >= s->n)
        return WF_OK;
    if (m->head.kind == WF_CUT_FORKED)
        s->shards[ps].copied = true;
    else if (!s->shards[ps].result)
        return wf_control_get(m, &weft__saved__descriptor, &s->shards[ps].result, err);
    return WF_OK;
}
