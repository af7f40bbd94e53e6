/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/generation.c */
#include "master/generation/generation.h"
#include "common/optim/rule.h"
#include "common/wire/control.h"
#include "master/member/facts.h"
#include "master/member/view.h"

#include <string.h>

enum {
    VIEW_ROOM = 2 << 20,         /* bytes, of the view that goes with a message */
    MOST_START_BYTES = 64 << 20, /* of starts in one iteration: the loop must not stay away long */
    MOST_FAILURES = 3            /* of a worker in one generation */
};

wf_status wf_generation_check(const wf_job *j, wf_err *err)
{
    const wf_prepared *p = j->prepared;
    size_t start = weft__start__get_packed_size(&p->start);
    size_t setup = weft__setup__get_packed_size(&p->setup);

    if (strcmp(p->start.job, j->name) != 0)
        return wf_fail(err, WF_USAGE, NULL, "job %s was submitted with the file of job %s", j->name,
                       p->start.job);
    if (setup > wf_kind_find(WF_SETUP)->control_limit - VIEW_ROOM)
        return wf_fail(
            err, WF_FULL, "raise slice_bytes",
            "the list of variables and slices of job %s takes %zu bytes, that is too much", j->name,
            setup);
    if (start > wf_kind_find(WF_START)->control_limit - VIEW_ROOM)
        return wf_fail(err, WF_FULL, "store large constants of the model as float32",
                       "the graphs of job %s take %zu bytes, that is too much", j->name, start);
    return WF_OK;
}

/* It has the learning rate from its start: no answer is due to one that it was told before. */
static void note_rate(wf_member *who, double rate)
{
    who->tuned = rate;
    who->tune_sent = false;
}

static wf_status send_setup(wf_master *m, const wf_job *j, wf_member *who, bool initial,
                            uint64_t step, double rate, wf_err *err)
{
    Weft__Setup body = j->prepared->setup;
    Weft__Option own = WEFT__OPTION__INIT, *options[WF_MAX_SETTINGS];
    Weft__View view;
    wf_status rc;

    WF_TRY(wf_view_make(m, &view, err));
    memcpy(options, body.options, body.n_options * sizeof(*options));
    for (size_t i = 0; i < body.n_options && rate > 0; i++)
        if (strcmp(options[i]->name, "learning_rate") == 0) {
            own.name = options[i]->name;
            own.value = rate;
            options[i] = &own;
        }
    body.options = options;
    note_rate(who, rate);
    body.view = &view;
    body.initial = initial;
    body.restore_step = step;
    body.checkpoint_dir = m->checkpoint_dir;
    body.job_id = j->id;
    wf_member_take_part(m, who, WF_PART_WAS_ASKED, j->generation);
    rc = wf_member_send(m, who, WF_SETUP, &body.base, err);
    wf_view_free(&view);
    return rc;
}

/* A start is the same for all workers but for its last fields: in protobuf a message that is
 * written in two parts is both of them. */
static wf_status pack_start(wf_job *j, wf_err *err)
{
    size_t n = weft__start__get_packed_size(&j->prepared->start);
    uint8_t *to;

    if (j->start.size)
        return WF_OK;
    to = wf_bytes_extend(&j->start, n);
    if (!to)
        return wf_fail_nomem(err, n);
    weft__start__pack(&j->prepared->start, to);
    return WF_OK;
}

/* Whether a worker that starts has records of a round to train, or may have. */
static bool needs_round(const wf_job *j)
{
    return j->rounds.n_files > 0 && !j->rounds.is_over;
}

static wf_status make_start(wf_master *m, wf_job *j, Weft__Start own, wf_msg *msg, wf_err *err)
{
    wf_round_message round = {0};
    Weft__View view;
    uint8_t *to;
    size_t n;

    WF_TRY(pack_start(j, err));
    if (needs_round(j)) {
        WF_TRY(wf_round_message_make(&j->rounds, &round, err));
        own.round = &round.body;
    }
    /* Workers have links to the ps, and where they hold variables to each other. */
    if ((m->on_workers || m->n_stages > 0 ? wf_view_make(m, &view, err)
                                          : wf_view_of_ps(m, &view, err)) != WF_OK) {
        wf_round_message_free(&round);
        return err->status;
    }
    own.view = &view;
    own.base_step = j->base_step;
    own.checkpoint_dir = m->checkpoint_dir;
    own.job_id = j->id;
    n = weft__start__get_packed_size(&own);
    to = wf_msg_control(msg, j->start.size + n);
    if (to) {
        memcpy(to, j->start.data, j->start.size);
        weft__start__pack(&own, to + j->start.size);
    }
    wf_view_free(&view);
    wf_round_message_free(&round);
    return to ? WF_OK : wf_fail_nomem(err, j->start.size + n);
}

/* `own`: what this start has beside those of other workers. */
static wf_status send_start(wf_master *m, wf_job *j, wf_member *who, const Weft__Start *own,
                            wf_err *err)
{
    wf_msg *msg = NULL;
    wf_status rc;

    wf_member_take_part(m, who, WF_PART_WAS_ASKED, j->generation);
    who->wants = false;
    who->steps = 0;
    who->round = 0;
    who->round_sent = needs_round(j) ? j->rounds.round : 0;
    wf_assert(who->viewed == who->incarnation); /* M4: the view that every ps has holds it */
    WF_TRY(wf_net_msg(m->net, WF_START, &msg, err));
    rc = make_start(m, j, *own, msg, err);
    if (rc == WF_OK)
        rc = wf_master_send(m, who->peer, &msg, err);
    wf_net_free_msg(m->net, &msg);
    return rc;
}

/* To a worker that holds the variables itself. */
static wf_status send_start_from(wf_master *m, wf_job *j, wf_member *who, bool initial,
                                 uint64_t step, double rate, wf_err *err)
{
    Weft__Start own = WEFT__START__INIT;

    own.initial = initial;
    own.restore_step = step;
    own.learning_rate = rate;
    note_rate(who, rate);
    return send_start(m, j, who, &own, err);
}

wf_status wf_generation_set_up(wf_master *m, wf_job *j, bool initial, uint64_t step, double rate,
                               wf_err *err)
{
    wf_assert(j->state == WF_JOB_STARTING && m->job_generation == j->generation);
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (!wf_member_holds_variables(m, who) || !wf_member_is_registered(who))
            continue;
        if (who->task.role == WF_ROLE_PS)
            WF_TRY(send_setup(m, j, who, initial, step, rate, err));
        else
            WF_TRY(send_start_from(m, j, who, initial, step, rate, err));
    }
    return WF_OK;
}

bool wf_generation_is_barred(const wf_member *who, const wf_job *j)
{
    return who->unfit.generation == j->generation && who->unfit.failures >= MOST_FAILURES;
}

/* To one that joins those who hold the variables: one of them gives it their values. */
static wf_status send_start_joining(wf_master *m, wf_job *j, wf_member *who, double rate,
                                    wf_err *err)
{
    Weft__Start own = WEFT__START__INIT;

    own.joins = true;
    own.initial = true; /* frozen variables are there */
    own.learning_rate = rate;
    note_rate(who, rate);
    return send_start(m, j, who, &own, err);
}

wf_status wf_generation_start(wf_master *m, wf_job *j, double rate, wf_err *err)
{
    const Weft__Start own = WEFT__START__INIT;
    const wf_facts *f = wf_master_facts(m);
    size_t bytes = 0;

    if (m->view_stale || !f->to_start || (!m->predicts && (!f->ps_here || !f->ps_have_view)) ||
        (m->n_stages > 0 && !f->variables_here))
        return WF_OK;
    for (uint32_t i = 0; i < m->n_members && bytes < MOST_START_BYTES; i++) {
        wf_member *who = &m->members[i];

        if (who->task.role != WF_ROLE_WORKER || !wf_member_is_registered(who) ||
            who->generation == j->generation || wf_generation_is_barred(who, j) ||
            !wf_member_may_have_job(m, who))
            continue;
        WF_TRY(m->on_workers ? send_start_joining(m, j, who, rate, err)
                             : send_start(m, j, who, &own, err));
        bytes += j->start.size;
    }
    return WF_OK;
}

wf_status wf_generation_tell(wf_master *m, wf_job *j, wf_err *err)
{
    Weft__View view;
    wf_status rc = WF_OK;

    if (!m->on_workers || m->view_stale || j->told_view == m->view)
        return WF_OK;
    WF_TRY(wf_view_of_part(m, j->generation, &view, err));
    for (uint32_t i = 0; rc == WF_OK && i < m->n_members; i++)
        if (m->members[i].task.role == WF_ROLE_WORKER &&
            wf_member_has_part(&m->members[i], j->generation))
            rc = wf_member_send(m, &m->members[i], WF_VIEW, &view.base, err);
    wf_view_free(&view);
    j->told_view = m->view;
    return rc;
}
