/* SPDX-License-Identifier: Apache-2.0 */
/* worker/loss_scale.c */
#include "worker/loss_scale.h"
#include "common/base/size.h"

/* Losses of up to 2^16 times as much are float32 still. */
static const float MOST = 0x1p112f;

wf_loss_scale wf_loss_scale_begin(bool moves, float initial, uint32_t growth_steps)
{
    return moves ? (wf_loss_scale){.scale = initial, .growth_steps = growth_steps}
                 : (wf_loss_scale){.scale = 1};
}

bool wf_loss_scale_may_fall(const wf_loss_scale *s)
{
    return s->growth_steps && s->scale > 1;
}

bool wf_loss_scale_note(wf_loss_scale *s, bool finite)
{
    const float before = s->scale;

    if (!s->growth_steps)
        return false;
    s->good = finite ? s->good + 1 : 0;
    if (!finite)
        s->scale = WF_MAX(s->scale / 2, 1.0f);
    else if (s->good >= s->growth_steps) {
        s->good = 0;
        s->scale = WF_MIN(s->scale * 2, MOST);
    }
    return s->scale != before;
}
