/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/blame.c - the node that made the first NaN, found by running the plan once more.
 *
 * Rooms of the arena are used again and again, so what a value holds is looked at right behind the
 * kernel that made it. A second run up to the culprit says what it was given: a kernel in place
 * would have overwritten that. */
#include "common/base/size.h"
#include "common/exec/plan.h"
#include "common/graph/narrow.h"
#include "common/graph/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a value holds that is no number, from harmless to bad. */
typedef enum taint { CLEAN = 0, INFINITE, NOT_A_NUMBER } taint;

typedef struct search {
    wf_plan *p;
    uint8_t *taints;   /* [n_values], by wf_value.index */
    bool *bad;         /* [n_values]: on the way from where it began to where it was seen */
    uint32_t *step_of; /* [n_values]: of the step that makes it; WF_TO_THE_END: none does */
    wf_buf *scratch;   /* what lies on a device is looked at here; as large as the largest value */
} search;

static double number_at(const wf_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case WF_F32:
        return (double)((const float *)t->data)[i];
    case WF_BF16:
        return (double)wf_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case WF_F16:
        return (double)wf_f16_to_f32(((const uint16_t *)t->data)[i]);
    default:
        return ((const double *)t->data)[i];
    }
}

static bool is_float(const wf_tensor *t)
{
    return t && t->data && (wf_dtype_is_float(t->dtype) || wf_dtype_is_narrow(t->dtype));
}

static taint taint_of(const wf_tensor *t)
{
    taint worst = CLEAN;

    for (int64_t i = 0; is_float(t) && i < wf_elems(t); i++) {
        double x = number_at(t, i);

        if (isnan(x))
            return NOT_A_NUMBER;
        if (isinf(x))
            worst = INFINITE;
    }
    return worst;
}

/* t as the host can read it: itself, or a copy that lasts until the next call. `v` is its value. */
static wf_status host_copy(search *s, const wf_value *v, const wf_tensor *t, wf_tensor *out,
                           wf_err *err)
{
    wf_stream *stream = s->p->sides[s->p->side_of[v->index]].stream;

    *out = *t;
    WF_TRY(wf_plan_wait(s->p, err));
    if (s->p->side_of[v->index] == WF_SIDE_HOST)
        return WF_OK;
    out->data = s->scratch->data;
    WF_TRY(wf_stream_copy(stream, WF_COPY_OUT, out->data, t->data, wf_tensor_bytes(t), err));
    return wf_stream_wait(stream, err);
}

static wf_status make_scratch(search *s, wf_err *err)
{
    size_t most = 0;

    for (uint32_t i = 0; i < s->p->n_rooms; i++)
        if (s->p->rooms[i].side != WF_SIDE_HOST)
            most = WF_MAX(most, s->p->rooms[i].bytes);
    if (most == 0)
        return WF_OK;
    s->scratch = wf_buf_new(most);
    return s->scratch ? WF_OK : wf_fail_nomem(err, most);
}

/* Views have no step: what they show is their input's. */
static const wf_value *behind_views(const search *s, const wf_value *v)
{
    while (v->producer && s->step_of[v->index] == WF_TO_THE_END && v->producer->n_in &&
           v->producer->in[0] && !v->known)
        v = v->producer->in[0];
    return v;
}

/* Runs all of it and notes what each value held when it was made. */
static wf_status look(search *s, wf_err *err)
{
    wf_plan *p = s->p;
    wf_tensor made;

    for (size_t i = 0; i < p->g->n_values; i++) {
        const wf_value *v = p->g->values[i];

        s->step_of[i] = WF_TO_THE_END;
        if (v->known)
            s->taints[i] = (uint8_t)taint_of(v->known);
    }
    for (uint32_t i = 0; i < p->n_ins; i++)
        if (p->ins[i].used) {
            uint32_t at = p->ins[i].value->index;

            WF_TRY(host_copy(s, p->ins[i].value, &p->tensors[at], &made, err));
            s->taints[at] = (uint8_t)taint_of(&made);
        }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const wf_node *n = p->steps[i].run.node;

        WF_TRY(wf_step_run(p, &p->steps[i], err));
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k]) {
                WF_TRY(host_copy(s, n->out[k], p->steps[i].out[k], &made, err));
                s->step_of[n->out[k]->index] = i;
                s->taints[n->out[k]->index] = (uint8_t)taint_of(&made);
            }
    }
    return WF_OK;
}

/* Marks the inputs of a step that are as bad; false when there is none. */
static bool blame_inputs(search *s, const wf_node *n, taint kind)
{
    bool any = false;

    for (uint32_t k = 0; k < n->n_in; k++) {
        const wf_value *in = n->in[k] ? behind_views(s, n->in[k]) : NULL;

        if (in && s->taints[in->index] >= kind)
            any = s->bad[in->index] = true;
    }
    return any;
}

/* Where the badness of a value began: backwards along values that are as bad, so that an infinity
 * which harms nobody (a mask's) is never met. What was fed comes before what was computed, and of
 * several nodes the first one that ran. */
static const wf_value *origin(search *s, const wf_value *v, taint kind)
{
    const wf_plan *p = s->p;
    const wf_value *first = NULL;

    memset(s->bad, 0, p->g->n_values * sizeof *s->bad);
    s->bad[v->index] = true;
    for (uint32_t i = p->n_steps; i-- > 0;) {
        const wf_node *n = p->steps[i].run.node;
        const wf_value *made = NULL;

        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] && s->bad[n->out[k]->index])
                made = n->out[k];
        if (made && !blame_inputs(s, n, kind))
            first = made;
    }
    for (size_t i = 0; i < p->g->n_values; i++)
        if (s->bad[i] && s->step_of[i] == WF_TO_THE_END)
            return p->g->values[i];
    return first;
}

static void add_range(const wf_tensor *t, uint32_t i, wf_blame *out)
{
    wf_blame_range *r;

    if (!is_float(t) || wf_elems(t) == 0 || out->n_ranges == WF_BLAME_RANGES)
        return;
    r = &out->ranges[out->n_ranges++];
    *r = (wf_blame_range){i, INFINITY, -INFINITY};
    for (int64_t k = 0; k < wf_elems(t); k++) {
        double x = number_at(t, k);

        r->least = fmin(r->least, x); /* both leave NaN out */
        r->greatest = fmax(r->greatest, x);
    }
}

static const char *variable_of(const wf_plan *p, const wf_value *v)
{
    for (uint32_t i = 0; i < p->n_ins; i++)
        if (p->ins[i].value == v)
            return p->ins[i].port.variable;
    return NULL;
}

/* A NaN may come of infinities (inf - inf): the node that made those. */
static const char *find_cause(search *s, const wf_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        const wf_value *in = n->in[k] ? behind_views(s, n->in[k]) : NULL;

        if (!in || s->taints[in->index] != INFINITE)
            continue;
        in = origin(s, in, INFINITE);
        if (in && s->step_of[in->index] != WF_TO_THE_END)
            return in->producer->name;
    }
    return NULL;
}

/* Runs up to the step that made the value, and notes what it was given. */
static wf_status describe(search *s, const wf_value *v, wf_blame *out, wf_err *err)
{
    uint32_t at = s->step_of[v->index];
    const wf_step *step;
    const wf_attr *steps;
    wf_tensor given;

    out->is_nan = s->taints[v->index] == NOT_A_NUMBER;
    if (at == WF_TO_THE_END) {
        out->kind = WF_BLAME_INPUT;
        out->name = v->name;
        out->variable = variable_of(s->p, v);
        return WF_OK;
    }
    for (uint32_t i = 0; i < at; i++)
        WF_TRY(wf_step_run(s->p, &s->p->steps[i], err));
    step = &s->p->steps[at];
    out->kind = WF_BLAME_NODE;
    out->name = step->run.node->name;
    out->op = step->run.node->op->name;
    steps = wf_node_attr(step->run.node, "steps");
    if (steps && steps->kind == WF_ATTR_STRINGS) {
        out->parts = steps->strings;
        out->n_parts = (uint32_t)steps->n;
    }
    for (uint32_t k = 0; k < step->run.node->n_in; k++)
        if (step->in[k]) {
            WF_TRY(host_copy(s, step->run.node->in[k], step->in[k], &given, err));
            add_range(&given, k, out);
        }
    out->cause = out->is_nan ? find_cause(s, step->run.node) : NULL;
    return WF_OK;
}

wf_status wf_plan_blame(wf_plan *p, const wf_step_key *key, uint32_t output, wf_blame *out,
                        wf_err *err)
{
    search s = {.p = p};
    const wf_value *bad = NULL, *v = p->outs[output].value;
    size_t n = p->g->n_values + 1;
    wf_status rc;

    *out = (wf_blame){.kind = WF_BLAME_NOTHING};
    s.taints = calloc(n, sizeof *s.taints);
    s.bad = calloc(n, sizeof *s.bad);
    s.step_of = calloc(n, sizeof *s.step_of);
    if (!s.taints || !s.bad || !s.step_of) {
        rc = wf_fail_nomem(err, n * sizeof *s.step_of);
        goto out;
    }
    rc = wf_plan_prepare_run(p, key, err);
    if (rc == WF_OK)
        rc = make_scratch(&s, err);
    if (rc == WF_OK)
        rc = look(&s, err);
    if (rc != WF_OK)
        goto out;
    v = behind_views(&s, v);
    if (s.taints[v->index] != CLEAN)
        bad = origin(&s, v, (taint)s.taints[v->index]);
    if (bad)
        rc = describe(&s, bad, out, err);
out:
    free(s.taints);
    free(s.bad);
    free(s.step_of);
    wf_buf_unref(&s.scratch);
    return rc;
}

/* "least..greatest" of an input; `which` when there are several. */
static size_t put_range(const wf_blame_range *r, bool which, char *text, size_t size)
{
    char number[16] = "";

    if (which)
        snprintf(number, sizeof number, " %u", r->input);
    if (r->least > r->greatest)
        return (size_t)snprintf(text, size, ", input%s all NaN", number);
    return (size_t)snprintf(text, size, ", input%s min %.6g max %.6g", number, r->least,
                            r->greatest);
}

void wf_blame_text(const wf_blame *b, char *text, size_t size)
{
    size_t used;

    text[0] = 0;
    if (b->kind == WF_BLAME_INPUT)
        snprintf(text, size, "%s \"%.120s\" holds %s already",
                 b->variable ? "the variable" : "the input", b->variable ? b->variable : b->name,
                 b->is_nan ? "NaN" : "infinity");
    if (b->kind != WF_BLAME_NODE)
        return;
    used = (size_t)snprintf(text, size, "first bad value: %s \"%.120s\"", b->op, b->name);
    for (uint32_t i = 0; i < b->n_parts && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", i ? ", then " : " of ", b->parts[i]);
    for (uint32_t i = 0; i < b->n_ranges && used < size; i++)
        used += put_range(&b->ranges[i], b->n_ranges > 1, text + used, size - used);
    if (b->cause && used < size)
        snprintf(text + used, size - used, "; infinite since \"%.120s\"", b->cause);
}
