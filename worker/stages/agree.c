/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/agree.c - a step that all stages apply or none does (`on_nan: skip`), or whose
 * gradients are clipped by the norm of those of all stages (`global_clipnorm`).
 *
 * A stage that has all of its gradients sends the first what they come to, and waits with its
 * update until the first has heard so of every stage and says what is done. By then its part of the
 * schedule is done, so no other stage waits for anything of it (H2).
 *
 * The first adds up the sums of squares variable by variable, in the order that one worker with all
 * of them has (worker/gradients.h): the norm has the same bits.
 */
#include "common/wire/control.h"
#include "worker/stages/state.h"

#include <math.h>
#include <stdlib.h>

bool wf_stage_agrees(const wf_stage *s)
{
    return s->now.trains && (s->sums.skips || s->sums.squares);
}

wf_status wf_stage_open_sums(wf_stage *s, const wf_opt *opt, wf_err *err)
{
    size_t n = s->conf.start->n_variables;
    wf_stage_sums *sums = &s->sums;

    sums->skips = s->conf.start->skip_nan;
    if (opt->shared[WF_OPT_GLOBAL_CLIPNORM] <= 0)
        return WF_OK;
    sums->squares = calloc(n + 1, sizeof *sums->squares);
    sums->all = calloc(n + 1, sizeof *sums->all);
    sums->waits = calloc(n + 1, sizeof *sums->waits);
    return sums->squares && sums->all && sums->waits ? WF_OK
                                                     : wf_fail_nomem(err, n * sizeof(double));
}

void wf_stage_close_sums(wf_stage *s)
{
    free(s->sums.squares);
    free(s->sums.all);
    free(s->sums.waits);
}

wf_status wf_stage_take_squares(wf_stage *s, wf_err *err)
{
    wf_stage_sums *sums = &s->sums;

    if (!s->on.updates) { /* gradients are all the host's, or all the device's */
        wf_gradients_squares(s->gradients, sums->squares);
        return WF_OK;
    }
    for (uint32_t i = 0; i < s->conf.start->n_variables; i++)
        sums->waits[i] = wf_gradients_waits(s->gradients, i);
    return wf_exchange_squares(s->own, sums->waits, sums->squares, err);
}

/* The next variable of a stage whose gradient counts, from `at` on; the number of all: there is
 * none. */
static uint32_t next_of(const Weft__Start *start, uint32_t stage, uint32_t at)
{
    while (at < start->n_variables && (start->variables[at]->stage != stage ||
                                       start->variables[at]->kind != WF_KIND_TRAINABLE))
        at++;
    return at;
}

static uint32_t count_of(const wf_stage *s, uint32_t stage)
{
    const Weft__Start *start = s->conf.start;
    uint32_t n = 0;

    for (uint32_t i = next_of(start, stage, 0); i < start->n_variables;
         i = next_of(start, stage, i + 1))
        n++;
    return n;
}

static wf_status send_sums(wf_stage *s, wf_err *err)
{
    const Weft__Start *start = s->conf.start;
    Weft__StageSums body = WEFT__STAGE_SUMS__INIT;
    double *list = NULL;
    wf_status rc;

    body.finite = !s->now.is_bad;
    if (s->sums.squares && body.finite) {
        list = calloc(start->n_variables + 1, sizeof *list);
        if (!list)
            return wf_fail_nomem(err, start->n_variables * sizeof *list);
        for (uint32_t i = next_of(start, start->stage, 0); i < start->n_variables;
             i = next_of(start, start->stage, i + 1))
            list[body.n_squares++] = s->sums.squares[i];
    }
    body.squares = list;
    rc = wf_stage_send(s, 0, WF_STAGE_SUMS, 0, &body.base, err);
    free(list);
    return rc;
}

/* Of the first: what its own gradients come to. */
static void note_own(wf_stage *s)
{
    const Weft__Start *start = s->conf.start;

    s->others[0].summed = true;
    s->others[0].finite = !s->now.is_bad;
    for (uint32_t i = next_of(start, 0, 0); s->sums.squares && i < start->n_variables;
         i = next_of(start, 0, i + 1))
        s->sums.all[i] = s->sums.squares[i];
}

wf_status wf_stage_end_sums(wf_stage *s, wf_err *err)
{
    s->now.summed = true;
    if (!wf_stage_is_first(s))
        return send_sums(s, err);
    note_own(s);
    return WF_OK;
}

bool wf_stage_can_decide(const wf_stage *s)
{
    if (!wf_stage_is_first(s))
        return false;
    for (size_t i = 0; i < s->conf.start->n_stages; i++)
        if (!s->others[i].summed)
            return false;
    return true;
}

static bool is_bad(const wf_stage *s)
{
    for (size_t i = 0; i < s->conf.start->n_stages; i++)
        if (!s->others[i].finite)
            return true;
    return s->conf.is_finite && !s->conf.is_finite(s->conf.arg);
}

wf_status wf_stage_decide(wf_stage *s, wf_err *err)
{
    Weft__StageApply body = WEFT__STAGE_APPLY__INIT;
    double sum = 0;

    body.drops = s->sums.skips && is_bad(s);
    for (uint32_t i = 0; s->sums.squares && !body.drops && i < s->conf.start->n_variables; i++)
        if (s->conf.start->variables[i]->kind == WF_KIND_TRAINABLE)
            sum += s->sums.all[i];
    body.norm = sqrt(sum);
    s->now.decided = true;
    s->now.drops = body.drops;
    s->now.norm = body.norm;
    for (uint32_t i = 1; i < s->conf.start->n_stages; i++)
        WF_TRY(wf_stage_send(s, i, WF_STAGE_APPLY, 0, &body.base, err));
    return WF_OK;
}

bool wf_stage_is_dropped(const wf_stage *s)
{
    return s->now.drops;
}

/* ---- messages ---- */

static wf_status bad_message(const wf_stage *s, uint32_t from, const wf_msg *m, wf_err *err)
{
    return wf_fail(err, WF_PROTO, NULL,
                   "worker/%u: %s of round %u, which is none that is due "
                   "(round %u is under way)",
                   wf_stage_worker(s, from), wf_kind_name(m->head.kind), m->head.step,
                   s->now.number);
}

/* Whether they are as the stage of another worker has them: gradients that are not finite fail the
 * step there, unless it may be dropped. */
static bool are_sums(const wf_stage *s, uint32_t from, const Weft__StageSums *body)
{
    if (body->n_squares != (s->sums.squares && body->finite ? count_of(s, from) : 0))
        return false;
    for (size_t i = 0; i < body->n_squares; i++)
        if (!isfinite(body->squares[i]) || body->squares[i] < 0)
            return false;
    return body->finite || s->sums.skips;
}

/* Of the first: what the gradients of another stage come to. */
static void note_sums(wf_stage *s, uint32_t of, const Weft__StageSums *body)
{
    const Weft__Start *start = s->conf.start;
    uint32_t at = 0;

    s->others[of].summed = true;
    s->others[of].finite = body->finite;
    for (size_t k = 0; k < body->n_squares; k++, at++) {
        at = next_of(start, of, at);
        s->sums.all[at] = body->squares[k];
    }
}

wf_status wf_stage_on_sums(wf_stage *s, uint32_t from, const wf_msg *m, wf_err *err)
{
    Weft__StageSums *body = NULL;
    wf_status rc = WF_OK;

    if (s->is_over || m->head.step < s->now.number)
        return WF_OK;
    if (!wf_stage_agrees(s) || !s->now.busy || m->head.step != s->now.number ||
        s->others[from].summed)
        return bad_message(s, from, m, err);
    WF_TRY(wf_control_get(m, &weft__stage_sums__descriptor, &body, err));
    if (are_sums(s, from, body))
        note_sums(s, from, body);
    else
        rc = wf_fail(err, WF_PROTO, NULL, "worker/%u: %zu sums of stage %u, or sums that cannot be",
                     wf_stage_worker(s, from), body->n_squares, from);
    wf_control_free(&body);
    return rc;
}

wf_status wf_stage_on_apply(wf_stage *s, const wf_msg *m, wf_err *err)
{
    Weft__StageApply *body = NULL;
    wf_status rc = WF_OK;

    if (s->is_over || m->head.step < s->now.number)
        return WF_OK;
    if (!wf_stage_agrees(s) || m->head.step != s->now.number || !s->now.summed || s->now.decided)
        return bad_message(s, 0, m, err);
    WF_TRY(wf_control_get(m, &weft__stage_apply__descriptor, &body, err));
    if ((body->drops && !s->sums.skips) || (!body->drops && s->now.is_bad) ||
        !isfinite(body->norm) || body->norm < 0) {
        rc = wf_fail(err, WF_PROTO, NULL, "worker/%u: round %u cannot end so",
                     wf_stage_worker(s, 0), m->head.step);
    } else {
        s->now.decided = true;
        s->now.drops = body->drops;
        s->now.norm = body->norm;
    }
    wf_control_free(&body);
    return rc;
}
