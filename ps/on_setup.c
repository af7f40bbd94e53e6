/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_setup.c - a job's slices come to this ps, from its initial values or from a checkpoint; and
 * the view, which says who may touch them.
 *
 * A set-up of a new generation replaces what was there in one go: a half-read checkpoint never
 * answers a pull.
 */
#include "common/log/log.h"
#include "common/session/rule.h"
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "ps/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Who was in the view that a difference is told to, but for those who left. */
static uint32_t keep_members(const wf_ps *ps, const Weft__View *body, wf_ps_member members[])
{
    uint32_t n = 0;

    for (uint32_t i = 0; body->since && i < ps->n_members; i++) {
        bool left = false;

        for (size_t k = 0; k < body->n_left && !left; k++)
            left = body->left[k] == ps->members[i].incarnation;
        if (!left)
            members[n++] = ps->members[i];
    }
    return n;
}

static wf_status read_members(const wf_ps *ps, const Weft__View *body, wf_ps_member members[],
                              uint32_t *n, wf_index *in_view, wf_err *err)
{
    *n = keep_members(ps, body, members);
    for (size_t i = 0; i < body->n_members; i++) {
        const Weft__Member *from = body->members[i];

        members[(*n)++] = (wf_ps_member){from->role, from->index, from->incarnation};
    }
    for (uint32_t i = 0; i < *n; i++)
        WF_TRY(wf_index_put(in_view, members[i].incarnation, &members[i], err));
    return WF_OK;
}

/* What a worker has pushed to steps that are not complete is trained by another (T2). */
static void forget_steps(wf_slice *s, uint64_t incarnation)
{
    wf_seen_forget(&s->seen, incarnation);
    wf_held_forget(&s->held, incarnation);
}

/* Whoever the view has removed never pushes again. */
static void forget_removed(wf_ps *ps, const wf_ps_member old[], uint32_t n_old)
{
    for (uint32_t i = 0; i < n_old; i++) {
        if (wf_ps_in_view(ps, old[i].incarnation))
            continue;
        for (uint32_t k = 0; k < ps->n_slices; k++)
            forget_steps(ps->slices[k], old[i].incarnation);
        wf_clocks_leave(&ps->clocks, old[i].incarnation, 0);
    }
}

static wf_status take_view(wf_ps *ps, uint32_t number, const Weft__View *body, wf_err *err)
{
    size_t most = body->n_members + (body->since ? ps->n_members : 0);
    wf_ps_member *members = calloc(most + 1, sizeof *members), *old = ps->members;
    wf_index in_view = {0};
    uint32_t n = 0;
    wf_status rc = members ? read_members(ps, body, members, &n, &in_view, err)
                           : wf_fail_nomem(err, most * sizeof *members);

    if (rc != WF_OK) {
        wf_index_close(&in_view);
        free(members);
        return rc;
    }
    wf_index_close(&ps->in_view);
    ps->in_view = in_view;
    ps->members = members;
    ps->view = number;
    forget_removed(ps, old, ps->n_members);
    ps->n_members = n;
    free(old);
    wf_ps_check_workers(ps);
    WF_TRY(wf_together_advance(ps, err));
    return wf_ps_answer_held(ps, err);
}

wf_status wf_ps_on_view(wf_ps *ps, const wf_msg *m, wf_err *err)
{
    Weft__View *body = NULL;
    wf_status rc = WF_OK;

    if (m->head.view > ps->view) {
        WF_TRY(wf_control_get(m, &weft__view__descriptor, &body, err));
        if (!body->since || body->since == ps->view) /* else the answer says which one is here */
            rc = take_view(ps, m->head.view, body, err);
        wf_control_free(&body);
    }
    return rc == WF_OK ? wf_session_send(&ps->session, WF_VIEW_OK, NULL, err) : rc;
}

void wf_ps_clear_job(wf_ps *ps)
{
    wf_ps_drop_move(ps);
    ps->acks.n = ps->acks.n_slices = 0;          /* of a generation that is over */
    for (uint32_t i = 0; i < ps->n_workers; i++) /* lists name places of slices */
        wf_ps_close_pulls(ps, ps->workers[i]);
    for (uint32_t i = 0; i < ps->n_slices; i++)
        wf_slice_free(&ps->slices[i]);
    free(ps->slices);
    ps->slices = NULL;
    ps->n_slices = 0;
    ps->place = NULL;
    wf_map_close(&ps->map);
    wf_clocks_close(&ps->clocks);
    wf_together_close(&ps->together);
    ps->bounded = false;
    ps->load_ns = 0;
    ps->variables = NULL;
    ps->n_variables = 0;
    wf_ps_change(ps, WF_PS_WAS_CLEARED);
    wf_session_forget_fault(&ps->session);
    ps->saving.chief = 0; /* another job's first cut has the same generation and number */
    wf_bytes_clear(&ps->saving.said);
    wf_arena_free(&ps->arena);
}

static wf_row_policy policy_of(const wf_ps *ps, const Weft__Variable *v)
{
    const Weft__Rows *r = v->rows;

    if (!r)
        return (wf_row_policy){.dtype = (wf_dtype)v->dtype, .rounding = v->rounding};
    return (wf_row_policy){.seeded = true,
                           .dtype = (wf_dtype)v->dtype,
                           .rounding = v->rounding,
                           .first = {(wf_distribution_kind)r->distribution, r->centre, r->spread},
                           .seed = r->seed,
                           .stream = r->stream,
                           .admit_after = r->admit_after,
                           .evict_after = r->evict_after,
                           .max_rows = r->max_rows,
                           .filter_bytes = r->filter_bytes,
                           .max_bytes = r->max_bytes,
                           .fails_full = r->fails_full,
                           .disk = r->on_disk ? ps->conf.rows_dir : NULL,
                           .by_frequency = r->by_frequency};
}

static wf_status copy_variables(wf_ps *ps, const Weft__Setup *body, wf_err *err)
{
    ps->variables = wf_arena_array(ps->arena, body->n_variables, sizeof *ps->variables);
    if (!ps->variables)
        return wf_fail_nomem(err, body->n_variables * sizeof *ps->variables);
    for (size_t i = 0; i < body->n_variables; i++) {
        const Weft__Variable *v = body->variables[i];

        ps->variables[i] = (wf_ps_variable){
            .name = wf_arena_strdup(ps->arena, v->name),
            .dtype = v->dtype,
            .rank = (uint32_t)v->n_dims,
            .kind = v->kind,
            .momentum = v->momentum,
            .slice_kind = wf_slice_kind_find(ps->conf.kinds, v->slice_kind),
            .policy = policy_of(ps, v),
            .pull = (wf_coding)v->pull_coding,
            .dims = wf_arena_memdup(ps->arena, v->dims, v->n_dims * sizeof *v->dims),
        };
        if (!ps->variables[i].name || !ps->variables[i].dims)
            return wf_fail_nomem(err, 64);
        if (v->pull_coding > WF_CODING_F16)
            return wf_fail(err, WF_UNSUPPORTED, "install the release of the master on every host",
                           "\"%s\" is to be pulled with coding %u, which this ps does not know",
                           v->name, v->pull_coding);
        if (v->rows && v->rows->on_disk && !ps->conf.rows_dir)
            return wf_fail(err, WF_UNSUPPORTED, "leave when_full: disk out",
                           "rows of \"%s\" are to lie in files, and this ps has no folder for them",
                           v->name);
        if (!ps->variables[i].slice_kind)
            return wf_fail(
                err, WF_UNSUPPORTED, "install the release of the master on every host",
                "\"%s\" is to be held in slices of kind \"%s\", which this ps does not know",
                v->name, v->slice_kind);
    }
    ps->n_variables = (uint32_t)body->n_variables;
    return WF_OK;
}

/* Elements of a row; 0 when that is no number. */
static uint64_t row_of(const wf_ps_variable *v)
{
    uint64_t n = 1;

    for (uint32_t i = 1; i < v->rank; i++)
        if (v->dims[i] < 0 || __builtin_mul_overflow(n, (uint64_t)v->dims[i], &n))
            return 0;
    return n;
}

wf_status wf_ps_make_slice(const wf_ps *ps, uint32_t id, wf_slice **out, wf_err *err)
{
    const wf_map_slice *place = &ps->map.slices[id];
    const wf_ps_variable *v;

    if (place->variable >= ps->n_variables)
        return wf_fail(err, WF_PROTO, NULL, "slice %u is of variable %u of %u", id, place->variable,
                       ps->n_variables);
    v = &ps->variables[place->variable];
    if (!(v->momentum >= 0 && v->momentum <= 1))
        return wf_fail(err, WF_PROTO, NULL, "\"%s\" has a momentum of %g", v->name, v->momentum);
    return wf_slice_new(v->slice_kind,
                        &(wf_slice){.id = id,
                                    .variable = place->variable,
                                    .offset = place->offset,
                                    .count = place->count,
                                    .row = row_of(v),
                                    .trainable = v->kind == WF_PS_TRAINABLE,
                                    .statistic = v->kind == WF_PS_STATISTIC,
                                    .momentum = v->momentum,
                                    .policy = v->policy},
                        &ps->opt, out, err);
}

/* The map of the generation, and the slices that it places here. */
static wf_status make_slices(wf_ps *ps, uint32_t version, const Weft__Setup *body, wf_err *err)
{
    WF_TRY(wf_map_init(&ps->map, (uint32_t)body->n_slices, version, err));
    ps->place = wf_arena_array(ps->arena, body->n_slices, sizeof *ps->place);
    ps->slices = calloc(body->n_slices + 1, sizeof(*ps->slices));
    if (!ps->place || !ps->slices)
        return wf_fail_nomem(err, body->n_slices * sizeof(*ps->slices));
    for (uint32_t id = 0; id < ps->map.n; id++) {
        wf_map_slice *place = &ps->map.slices[id];
        wf_slice *s = NULL;

        place->variable = body->slices[id]->variable;
        place->offset = body->slices[id]->offset;
        place->count = body->slices[id]->count;
        place->primary = body->slices[id]->ps;
        ps->place[id] = UINT32_MAX;
        if (place->primary != ps->conf.index)
            continue;
        WF_TRY(wf_ps_make_slice(ps, id, &s, err));
        wf_ps_add_slice(ps, s);
    }
    return WF_OK;
}

/* The first slice on a ps that is trained. */
static uint32_t find_clock_slice(const Weft__Setup *body)
{
    uint32_t i = 0;

    while (i < body->n_slices &&
           (body->slices[i]->variable >= body->n_variables ||
            body->variables[body->slices[i]->variable]->kind != WF_PS_TRAINABLE ||
            body->variables[body->slices[i]->variable]->on_workers))
        i++;
    return i;
}

static wf_status set_up(wf_ps *ps, const wf_msg *m, const Weft__Setup *body, wf_err *err)
{
    wf_status rc;

    wf_ps_clear_job(ps);
    wf_ps_change(ps, WF_PS_WAS_BEGUN);
    ps->arena = wf_arena_new(0);
    if (!ps->arena)
        return wf_fail_nomem(err, 4096);
    ps->job = wf_arena_strdup(ps->arena, body->job);
    ps->checkpoint_dir = wf_arena_strdup(ps->arena, body->checkpoint_dir);
    if (!ps->job || !ps->checkpoint_dir)
        return wf_fail_nomem(err, strlen(body->checkpoint_dir));
    ps->job_number = m->head.job;
    ps->staleness = (wf_histogram){0}; /* that of the job before was told until now */
    ps->job_id = body->job_id;
    ps->generation = m->head.generation;
    ps->bounded = body->bounded > 0;
    ps->clocks.staleness = body->bounded ? body->bounded - 1 : 0;
    ps->together.on = body->together && ps->bounded;
    ps->together.backups = ps->together.on ? body->backups : 0;
    ps->together.clock_slice = find_clock_slice(body);
    ps->left_out = 0;
    ps->staleness_aware = body->staleness_aware;
    rc = wf_rule_get(body->rule, body->options, body->n_options, &ps->opt, err);
    if (rc == WF_OK)
        rc = copy_variables(ps, body, err);
    if (rc == WF_OK)
        rc = make_slices(ps, m->head.map, body, err);
    if (rc == WF_OK)
        rc = wf_ps_load(ps, body, err);
    if (rc == WF_OK && body->view)
        rc = take_view(ps, m->head.view, body->view, err);
    if (rc != WF_OK)
        wf_ps_clear_job(ps);
    else
        wf_ps_change(ps, WF_PS_WAS_LOADED);
    wf_ps_share_room(ps);
    return wf_err_wrap(err, rc, "ps %u: setting up job %s", ps->conf.index, body->job);
}

wf_status wf_ps_on_setup(wf_ps *ps, const wf_msg *m, wf_err *err)
{
    Weft__Outcome outcome = WEFT__OUTCOME__INIT;
    Weft__Setup *body = NULL;
    wf_msg *ok = NULL;
    wf_err why = {0};
    wf_status rc;

    WF_TRY(wf_control_get(m, &weft__setup__descriptor, &body, err));
    if (wf_ps_serves(ps) && body->job_id == ps->job_id && m->head.generation <= ps->generation) {
        wf_control_free(&body);
        return WF_OK; /* known, or older */
    }
    rc = set_up(ps, m, body, &why);
    WF_LOG_INFO("ps.set_up", "job=%s generation=%u slices=%u status=%d", body->job,
                m->head.generation, ps->n_slices, (int)rc);
    wf_control_free(&body);
    outcome.status = rc;
    outcome.what = why.what;
    outcome.hint = why.hint;
    for (uint32_t i = 0; i < ps->n_slices; i++)
        outcome.bytes += ps->slices[i]->bytes;
    WF_TRY(wf_net_msg(ps->net, WF_SETUP_OK, &ok, err));
    rc = wf_control_put(ok, &outcome.base, err);
    if (rc == WF_OK) {
        ok->head.job = m->head.job;
        ok->head.generation = m->head.generation;
        ok->head.view = ps->view;
        ok->head.map = m->head.map;
        rc = wf_net_send(ps->net, ps->session.peer, WF_LANE_CONTROL, 0, &ok, err);
    }
    wf_net_free_msg(ps->net, &ok);
    return rc;
}
