/* SPDX-License-Identifier: Apache-2.0 */
/* ps/loads.c - what slices cost: bytes that are pulled and pushed, and time of updates. Each second
 * the master is told the sums, and of the slices with the most traffic each by itself.
 *
 * A count is two additions a part; a report looks at each slice once. With 10,000 slices on a ps
 * that is some tens of microseconds a second, and a message of about 2 KiB, however many there are:
 * of slices that are not among the busiest no move would change the balance. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "ps/state.h"

enum { MOST = 64 };
static const int64_t EVERY_NS = WF_NS_PER_S;

void wf_ps_count_part(wf_slice *s, const wf_slice_part *p)
{
    s->load.pushed_bytes += p->n * sizeof(float) + p->rows.n * sizeof(uint64_t);
    s->load.parts++;
}

/* Threads update all slices together, so that nobody knows what each of them took. */
void wf_ps_count_time(wf_ps *ps, uint32_t n, uint64_t ns)
{
    double all = 0;

    for (uint32_t i = 0; i < n; i++)
        all += (double)ps->updates[i].update.part.n + 1;
    for (uint32_t i = 0; i < n; i++) {
        const wf_slice_update *u = &ps->updates[i].update;

        u->slice->load.apply_ns += (uint64_t)((double)ns * ((double)u->part.n + 1) / all);
    }
}

void wf_ps_count_anew(wf_ps *ps)
{
    ps->load_ns = 0;
    for (uint32_t i = 0; i < ps->n_slices; i++)
        ps->slices[i]->load = (wf_slice_load){0};
}

static uint64_t traffic(const wf_slice *s)
{
    return s->load.pulled_bytes + s->load.pushed_bytes;
}

/* Puts a slice into a list of the busiest, in their order; equal ones by their number. */
static uint32_t insert(const wf_slice *most[], uint32_t n, const wf_slice *s)
{
    uint32_t at = n < MOST ? n : MOST - 1;

    if (n == MOST && (traffic(s) < traffic(most[at]) ||
                      (traffic(s) == traffic(most[at]) && s->id > most[at]->id)))
        return n;
    for (; at > 0 && (traffic(most[at - 1]) < traffic(s) ||
                      (traffic(most[at - 1]) == traffic(s) && most[at - 1]->id > s->id));
         at--)
        most[at] = most[at - 1];
    most[at] = s;
    return WF_MIN(n + 1, (uint32_t)MOST);
}

/* What goes to another ps when the slice does, and lies there then. */
static uint64_t all_bytes(const wf_slice *s)
{
    return wf_slice_held(s) + wf_slice_on_disk(s);
}

static void fill_row(const wf_slice *s, Weft__SliceLoad *row)
{
    weft__slice_load__init(row);
    row->slice = s->id;
    row->held_bytes = all_bytes(s);
    row->pulled_bytes = s->load.pulled_bytes;
    row->pushed_bytes = s->load.pushed_bytes;
    row->parts = s->load.parts;
    row->apply_ns = s->load.apply_ns;
}

static wf_status tell(wf_ps *ps, int64_t now_ns, wf_err *err)
{
    Weft__SliceLoad rows[MOST], *list[MOST];
    const wf_slice *most[MOST];
    Weft__Load body = WEFT__LOAD__INIT;
    uint32_t n = 0;

    for (uint32_t i = 0; i < ps->n_slices; i++) {
        const wf_slice *s = ps->slices[i];

        body.held_bytes += all_bytes(s);
        body.pulled_bytes += s->load.pulled_bytes;
        body.pushed_bytes += s->load.pushed_bytes;
        body.parts += s->load.parts;
        body.apply_ns += s->load.apply_ns;
        n = insert(most, n, s);
    }
    for (uint32_t i = 0; i < n; i++) {
        fill_row(most[i], &rows[i]);
        list[i] = &rows[i];
    }
    body.slices = ps->n_slices;
    body.time_ns = (uint64_t)(now_ns - ps->load_ns);
    body.most = list;
    body.n_most = n;
    return wf_session_send(&ps->session, WF_LOAD, &body.base, err);
}

wf_status wf_ps_tell_load(wf_ps *ps, int64_t now_ns, wf_err *err)
{
    int64_t every_ns = ps->conf.load_ns ? ps->conf.load_ns : EVERY_NS;

    if (!wf_ps_serves(ps))
        return WF_OK;
    if (ps->load_ns && now_ns - ps->load_ns < every_ns)
        return WF_OK;
    if (ps->load_ns && ps->session.peer->up)
        WF_TRY(tell(ps, now_ns, err));
    wf_ps_count_anew(ps);
    ps->load_ns = now_ns;
    return WF_OK;
}
