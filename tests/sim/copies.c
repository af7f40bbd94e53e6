/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/copies.c - what must hold where each worker has all variables and gradients are added
 * up between workers. The gradient of a simulated worker is the mean of one for each of its
 * records, so that a common step adds the same to each record that is in it: one, divided by how
 * many there are.
 *
 *   O12 whoever has the values of a common step has the same bits, of those who add up gradients
 *       together: what one had alone that is lost may come out otherwise
 *   O13 a common step adds to each record that is in it once, and one to `steps`
 *   O14 a worker's step that is acknowledged is in the common step that it says, which is in the
 *       history that survives: all values come from it
 */
#include "tests/sim/world.h"
#include "worker/exchange/ring_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The values of one common step. */
struct wf_sim_copy {
    uint32_t era, clock;
    float steps;
    float *records; /* [spec.records] */
    uint8_t *times; /* [spec.records]: how often each was trained */
    bool *is_in;    /* [spec.records]: in this very step */
};

static bool has_values(const wf_sim *s, const wf_sim_copy *c, float steps, const float records[])
{
    return c->steps == steps && memcmp(c->records, records, s->spec.records * sizeof *records) == 0;
}

static void free_copy(wf_sim_copy *c)
{
    free(c->records);
    free(c->times);
    free(c->is_in);
}

static const wf_sim_copy *find(const wf_sim *s, uint32_t era, uint32_t clock)
{
    for (uint32_t i = s->n_copies; i > 0; i--)
        if (s->copies[i - 1].era == era && s->copies[i - 1].clock == clock)
            return &s->copies[i - 1];
    return NULL;
}

/* The newest with these values of `records`. */
static const wf_sim_copy *find_values(const wf_sim *s, const float records[])
{
    for (uint32_t i = s->n_copies; i > 0; i--)
        if (memcmp(s->copies[i - 1].records, records, s->spec.records * sizeof *records) == 0)
            return &s->copies[i - 1];
    return NULL;
}

/* The process of a member. */
static const process *process_of(const wf_sim *s, const wf_ring_member *m)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->procs[i].alive && s->procs[i].life == m->incarnation)
            return &s->procs[i];
    return NULL;
}

static const wf_ring *ring_of(const process *p);
static uint32_t era_of(const process *p);

/* The values of a step were made once more, by members without one who is lost: nobody who is left
 * may have those that there were first, or count on them. */
static void forget_from(process *p, const wf_ring *r, uint32_t era)
{
    wf_sim *s = p->sim;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->n_members; i++) {
        const process *other = process_of(s, &r->members[i]);
        const wf_ring *o = other && era_of(other) == era ? ring_of(other) : NULL;

        if (o && ((other != p && o->has_values && o->clock >= r->clock) ||
                  (other->acked_era == era && other->acked_clock >= r->clock)))
            wf_sim_broken(s, "whoever has applied a step has the same values", other->number,
                          r->clock);
    }
    for (uint32_t i = 0; i < s->n_copies; i++)
        if (s->copies[i].era == era && s->copies[i].clock >= r->clock)
            free_copy(&s->copies[i]);
        else
            s->copies[kept++] = s->copies[i];
    s->n_copies = kept;
}

static wf_sim_copy *add(wf_sim *s, uint32_t era, uint32_t clock, float steps, const float records[])
{
    uint32_t n = s->spec.records;
    wf_sim_copy *c;

    s->copies = realloc(s->copies, (s->n_copies + 1) * sizeof *s->copies);
    wf_assert(s->copies);
    c = &s->copies[s->n_copies++];
    *c = (wf_sim_copy){era, clock, steps, malloc(n * sizeof(float)), calloc(n, 1), calloc(n, 1)};
    wf_assert(c->records && c->times && c->is_in);
    memcpy(c->records, records, n * sizeof(float));
    return c;
}

/* A generation begins with first values, which are all zero, or with those of a checkpoint. */
static void begin_generation(wf_sim *s, uint32_t era, float steps, const float records[])
{
    const wf_sim_copy *from = find_values(s, records);
    uint8_t *times = from ? from->times : NULL;
    wf_sim_copy *c;

    for (uint32_t r = 0; !from && r < s->spec.records; r++)
        if (records[r] != 0)
            wf_sim_broken(s, "a generation begins with values that were saved", r, era);
    c = add(s, era, 0, steps, records);
    if (times)
        memcpy(c->times, times, s->spec.records);
}

/* O13. */
static void take_step(wf_sim *s, uint32_t era, uint32_t clock, float steps, const float records[])
{
    const wf_sim_copy *before = find(s, era, clock - 1);
    uint32_t n = 0;
    wf_sim_copy *c;

    if (!before) {
        wf_sim_broken(s, "a common step follows another", era, clock);
        return;
    }
    c = add(s, era, clock, steps, records);
    before = find(s, era, clock - 1); /* the list may have moved */
    for (uint32_t r = 0; r < s->spec.records; r++)
        n += records[r] != before->records[r];
    for (uint32_t r = 0; r < s->spec.records; r++) {
        float more = records[r] - before->records[r];

        c->is_in[r] = more != 0;
        c->times[r] = (uint8_t)(before->times[r] + c->is_in[r]);
        if (c->is_in[r] && !(fabsf(more * (float)n - 1) < 0.01F))
            wf_sim_broken(s, "each record of a step is in it once", r, n);
    }
    if (steps != before->steps + (n > 0))
        wf_sim_broken(s, "a common step is one update", (uint64_t)steps, (uint64_t)before->steps);
}

static uint32_t era_of(const process *p)
{
    return wf_era(wf_worker_job_number(p->worker), wf_worker_generation(p->worker));
}

static const wf_ring *ring_of(const process *p)
{
    return p->worker && wf_sim_copies(p->sim) ? (const wf_ring *)wf_worker_exchange(p->worker)
                                              : NULL;
}

/* O14, of the last own step; the others before it were the last once, or came with it. */
static void check_acked(process *p, const wf_ring *r, uint32_t era)
{
    const wf_ring_batch *b = &p->gave[r->applied_step % WF_SIM_GAVE];
    const wf_sim_copy *c;

    if (r->local.base.acked != r->applied_step || !r->applied_step || b->era != era ||
        b->step != r->applied_step)
        return;
    p->acked_era = era;
    p->acked_clock = r->applied_clock;
    c = find(p->sim, era, r->applied_clock);
    for (uint32_t i = 0; i < b->n; i++)
        if (!c || !c->is_in[b->records[i]])
            wf_sim_broken(p->sim, "what is acknowledged is applied", r->applied_clock,
                          b->records[i]);
}

bool wf_sim_copies(const wf_sim *s)
{
    return s->spec.ps == 0 && s->spec.workers > 1;
}

/* Notes the newest view that anybody has taken. */
static void note_view(wf_sim *s, const wf_ring *r, uint32_t era)
{
    if (era < s->copies_era || (era == s->copies_era && r->view <= s->copies_view))
        return;
    s->copies_era = era;
    s->copies_view = r->view;
    s->n_copies_members = r->n_members;
    for (uint32_t i = 0; i < r->n_members; i++)
        s->copies_members[i] = r->members[i].incarnation;
}

/* Whether a newer view lacks a process, which may not have heard of it: what it has may come out
 * otherwise for the others. */
static bool is_out(const process *p, const wf_ring *r, uint32_t era)
{
    const wf_sim *s = p->sim;

    if (era != s->copies_era || r->view >= s->copies_view)
        return era < s->copies_era;
    for (uint32_t i = 0; i < s->n_copies_members; i++)
        if (s->copies_members[i] == p->life)
            return false;
    return true;
}

void wf_sim_check_copy(process *p)
{
    const wf_ring *r = ring_of(p);
    const wf_sim_copy *c;
    const float *steps, *records;
    uint32_t era;

    /* Shares of a step come one after the other. */
    if (!r || !r->has_values || r->is_updated || r->weights_in || p->sim->rc != WF_OK)
        return;
    era = era_of(p);
    note_view(p->sim, r, era);
    if (is_out(p, r, era))
        return;
    steps = r->local.variables[WF_MODEL_STEPS].weights->data;
    records = r->local.variables[WF_MODEL_RECORDS].weights->data;
    c = find(p->sim, era, r->clock);
    if (c && r->clock > 0 && !has_values(p->sim, c, steps[0], records)) {
        forget_from(p, r, era);
        c = NULL;
    }
    if (!c && r->clock == 0)
        begin_generation(p->sim, era, steps[0], records);
    else if (!c)
        take_step(p->sim, era, r->clock, steps[0], records);
    else if (!has_values(p->sim, c, steps[0], records))
        wf_sim_broken(p->sim, "whoever has applied a step has the same values", p->number,
                      r->clock);
    check_acked(p, r, era);
}

void wf_sim_gave(process *p, const wf_train_step *of)
{
    wf_ring_batch *b = &p->gave[of->step % WF_SIM_GAVE];

    *b = (wf_ring_batch){.era = era_of(p), .step = of->step};
    for (uint64_t at = of->batch.begin; at < of->batch.end && b->n < WF_SIM_BATCH; at++)
        b->records[b->n++] = wf_sim_record(p, at);
}

void wf_sim_count_times(wf_sim *s, float records[])
{
    const wf_sim_copy *c = find_values(s, records);

    if (!c)
        wf_sim_broken(s, "a checkpoint has the values of a common step", s->n_copies, 0);
    for (uint32_t r = 0; c && r < s->spec.records; r++)
        records[r] = c->times[r];
}

void wf_sim_free_copies(wf_sim *s)
{
    for (uint32_t i = 0; i < s->n_copies; i++)
        free_copy(&s->copies[i]);
    free(s->copies);
}
