/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_guests.c - the stages of a divided model behind the first (worker/stages/stage.h):
 * guests here, without a job of the master's. They are started by the worker of the first stage,
 * which may be this one: then it has a stage for each of some of its devices.
 */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/trainer_state.h"

#include <string.h>

/* ---- where a stage computes ---- */

static wf_status find_device(const wf_trainer *t, const char *name, const wf_device **out,
                             wf_err *err)
{
    *out = t->devices[0];
    if (!name[0])
        return WF_OK;
    for (size_t i = 0; i < t->conf.n_devices; i++)
        if (wf_stage_same_device(t->conf.devices[i], name)) {
            *out = t->devices[i];
            return WF_OK;
        }
    return wf_fail(err, WF_INVALID, "list it under devices in cluster.yaml, for all tasks",
                   "a stage is to be on %.64s of worker/%u, which has not that device", name,
                   t->conf.index);
}

/* The stages of this worker share its threads, and compute at the same time. */
wf_status wf_trainer_stage_conf(wf_trainer *t, const Weft__Start *s, wf_stage_conf *out,
                                wf_err *err)
{
    uint32_t here = 0, before = 0;
    uint64_t ignored;

    *out = (wf_stage_conf){.start = s, .links = &t->links, .pool = t->conf.pool, .fd = -1};
    for (uint32_t i = 0; i < s->n_stages; i++)
        if (s->stages[i]->worker == t->conf.index) {
            here++;
            before += i < s->stage;
        }
    WF_TRY(find_device(t, s->stages[s->stage]->device, &out->device, err));
    if (here < 2)
        return WF_OK;
    WF_TRY(wf_trainer_open_fd(t, err));
    out->fd = t->fd;
    out->threads = (uint32_t)WF_MAX(
        wf_replica_share(wf_pool_threads(t->conf.pool), here, before, &ignored), (uint64_t)1);
    return WF_OK;
}

/* ---- they begin and end ---- */

void wf_trainer_end_guests(wf_trainer *t)
{
    for (uint32_t i = 0; i < t->guests.n; i++) {
        wf_stage_free(&t->guests.rows[i].stage);
        wf_control_free(&t->guests.rows[i].start);
    }
    t->guests.n = 0;
}

void wf_trainer_forget_later(wf_trainer *t)
{
    for (uint32_t i = 0; i < t->later.n; i++)
        wf_control_free(&t->later.rows[i].start);
    t->later.n = 0;
}

/* Says why a stage cannot begin here. */
static wf_status refuse(wf_trainer *t, const struct wf_guest *g, uint32_t stage, const wf_err *why,
                        wf_err *err)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    wf_msg *m = NULL;
    wf_status rc;

    WF_LOG_WARN("stage.failed", "why=\"%s\"", why->what);
    body.status = why->status;
    body.what = (char *)why->what;
    body.hint = (char *)why->hint;
    WF_TRY(wf_net_msg(g->of.net, WF_STAGE_READY, &m, err));
    m->head.job = g->job;
    m->head.generation = g->generation;
    m->head.view = stage;
    rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_stage_links_send(&t->links, g->of.net, g->chief, &m, err);
    wf_net_free_msg(g->of.net, &m);
    return rc;
}

static wf_status begin(wf_trainer *t, struct wf_guest *g, wf_err *err)
{
    const Weft__Start *start = g->start;
    wf_stage_conf conf;

    if (start->stage == 0 || start->stage >= start->n_stages ||
        start->stages[0]->worker != g->chief ||
        start->stages[start->stage]->worker != t->conf.index)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "worker/%u has stage %u of %zu begin here", g->chief, start->stage,
                       start->n_stages);
    WF_TRY(wf_trainer_stage_conf(t, start, &conf, err));
    WF_TRY(wf_stage_new(&conf, &g->stage, err));
    WF_LOG_INFO("stage.begin", "job=%s stage=%u of=%zu generation=%u", start->job, start->stage,
                start->n_stages, g->generation);
    return wf_stage_begin(g->stage,
                          &(wf_exchange_conf){.start = start,
                                              .net = g->of.net,
                                              .job = g->job,
                                              .generation = g->generation,
                                              .checksums = t->conf.checksums,
                                              .incarnation = g->incarnation, /* the chief's */
                                              .disk = g->of.disk,
                                              .pool = t->conf.pool},
                          err);
}

static bool is_own(const wf_trainer *t, const struct wf_guest *g)
{
    return t->start && t->stage && g->chief == t->conf.index;
}

/* Whether those that are in a list are of the same generation of a job. */
static bool goes_with(const struct wf_guests *list, const struct wf_guest *g)
{
    const struct wf_guest *had = &list->rows[0];

    return list->n && had->job == g->job && had->generation == g->generation &&
           had->chief == g->chief && had->incarnation == g->incarnation;
}

/* Takes *g, whose start is given. */
static wf_status take(wf_trainer *t, struct wf_guest *g, wf_err *err)
{
    uint32_t stage = g->start->stage;
    struct wf_guest *row;
    wf_err why = {0};
    wf_status rc;

    if (!goes_with(&t->guests, g) && !is_own(t, g))
        wf_trainer_end_stages(t);
    row = &t->guests.rows[t->guests.n];
    *row = *g;
    why.status = begin(t, row, &why);
    if (why.status == WF_OK) {
        t->guests.n++;
        return WF_OK;
    }
    rc = why.status; /* without its device this process is of no use */
    if (rc == WF_BROKEN)
        *err = why;
    else
        rc = refuse(t, row, stage, &why, err);
    wf_stage_free(&row->stage);
    wf_control_free(&row->start);
    return rc;
}

wf_status wf_trainer_take_later(wf_trainer *t, wf_err *err)
{
    struct wf_guests later = t->later;
    wf_status rc = WF_OK;

    t->later.n = 0;
    for (uint32_t i = 0; i < later.n; i++) {
        const wf_peer *chief = wf_stage_link_to(&t->links, later.rows[i].chief);

        if (rc == WF_OK && chief && chief->incarnation == later.rows[i].incarnation)
            rc = take(t, &later.rows[i], err);
        else
            wf_control_free(&later.rows[i].start);
    }
    return rc;
}

/* Has *g wait; its start is given. */
static void keep(wf_trainer *t, const struct wf_guest *g)
{
    if (!goes_with(&t->later, g))
        wf_trainer_forget_later(t);
    t->later.rows[t->later.n++] = *g;
}

/* ---- messages ---- */

/* Whether a worker has sent such a start before: of that stage and generation, or of a later one.
 */
static bool is_known(const struct wf_guests *list, const struct wf_guest *g)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct wf_guest *had = &list->rows[i];

        if (had->job == g->job && had->chief == g->chief && had->incarnation == g->incarnation &&
            (had->generation > g->generation ||
             (had->generation == g->generation && had->start->stage == g->start->stage)))
            return true;
    }
    return false;
}

static wf_status on_start(wf_trainer *t, const wf_worker_of *of, const wf_event *ev, wf_err *err)
{
    struct wf_guest g = {.of = *of,
                         .job = ev->msg->head.job,
                         .generation = ev->msg->head.generation,
                         .chief = ev->peer ? ev->peer->task.index : t->conf.index,
                         .incarnation = ev->peer ? ev->peer->incarnation : 0};
    wf_status rc;

    WF_TRY(wf_control_get(ev->msg, &weft__start__descriptor, &g.start, err));
    if (g.start->stage >= WF_STAGES_MOST) { /* so that lists have room for all */
        rc = wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                     "worker/%u has stage %u of %zu begin here", g.chief, g.start->stage,
                     g.start->n_stages);
        wf_control_free(&g.start);
        return rc;
    }
    if (!ev->peer && g.start->n_stages) /* it is this worker's own */
        g.incarnation = g.start->stages[0]->incarnation;
    if (is_known(&t->guests, &g) || is_known(&t->later, &g)) {
        rc = wf_fail(err, WF_PROTO, NULL,
                     "worker/%u: a start of stage %u, generation %u, after one of that or a later "
                     "generation",
                     g.chief, g.start->stage, g.generation);
        wf_control_free(&g.start);
        return rc;
    }
    if (!t->start || is_own(t, &g))
        return take(t, &g, err);
    keep(t, &g);
    return WF_OK;
}

static bool is_from(const struct wf_guests *list, const wf_event *ev)
{
    const struct wf_guest *g = &list->rows[0];

    return list->n && ev->peer && g->chief == ev->peer->task.index &&
           g->incarnation == ev->peer->incarnation && g->job == ev->msg->head.job &&
           g->generation == ev->msg->head.generation;
}

static wf_stage *stage_for(const wf_trainer *t, const wf_msg *m)
{
    if (t->stage && wf_stage_is_for(t->stage, m))
        return t->stage;
    for (uint32_t i = 0; i < t->guests.n; i++)
        if (wf_stage_is_for(t->guests.rows[i].stage, m))
            return t->guests.rows[i].stage;
    return NULL;
}

static wf_status on_message(wf_trainer *t, const wf_worker_of *of, const wf_event *ev, wf_err *err)
{
    wf_stage *s = stage_for(t, ev->msg);

    if (ev->msg->head.kind == WF_STAGE_START)
        return on_start(t, of, ev, err);
    if (ev->msg->head.kind == WF_STAGE_STOP && is_from(&t->later, ev))
        wf_trainer_forget_later(t);
    if (ev->msg->head.kind == WF_STAGE_STOP && is_from(&t->guests, ev)) {
        wf_trainer_end_stages(t);
        return WF_OK;
    }
    return s ? wf_stage_on_message(s, ev->peer, ev->msg, err) : WF_OK;
}

/* A link has come, or is lost. */
static wf_status on_link(wf_trainer *t, const wf_peer *peer, bool up, wf_err *err)
{
    wf_status rc = t->stage ? wf_stage_on_link(t->stage, peer, up, err) : WF_OK;

    for (uint32_t i = 0; i < t->guests.n; i++) {
        wf_err why;
        wf_status rc_there = wf_stage_on_link(t->guests.rows[i].stage, peer, up, &why);

        if (rc == WF_OK && rc_there != WF_OK)
            *err = why;
        rc = rc == WF_OK ? rc_there : rc;
    }
    return rc;
}

wf_status wf_trainer_on_stage(void *arg, const wf_worker_of *of, const wf_event *ev, wf_err *err)
{
    wf_trainer *t = arg;
    wf_status rc;

    switch (ev->kind) {
    case WF_EV_UP:
        WF_TRY(wf_stage_links_on_up(&t->links, ev->peer, err));
        return on_link(t, ev->peer, true, err);
    case WF_EV_DOWN:
        rc = on_link(t, ev->peer, false, err);
        wf_stage_links_on_down(&t->links, ev->peer);
        return rc;
    case WF_EV_MESSAGE:
        return on_message(t, of, ev, err);
    default:
        return WF_OK;
    }
}
