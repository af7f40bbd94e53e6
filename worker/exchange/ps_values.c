/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_values.c - where the weights of a set lie. A variable whose slices came side
 * by side, as they do from a ps that writes them into shared memory (ps/answer.c) or in a message
 * that has all of it, is used where it came: the set holds the frames until it is asked for other
 * weights. All others are copied into memory of the set's own.
 */
#include "common/base/size.h"
#include "worker/exchange/ps_state.h"

#include <stdlib.h>
#include <string.h>

wf_status wf_values_init(const wf_client *c, weight_set *s, wf_err *err)
{
    s->values = calloc(c->n_variables + 1, sizeof *s->values);
    s->frames = calloc(c->n_slices + 1, sizeof(*s->frames));
    return s->values && s->frames ? WF_OK : wf_fail_nomem(err, c->n_slices * sizeof(*s->frames));
}

static void let_go(wf_client *c, weight_set *s, uint32_t i)
{
    if (!s->frames[i])
        return;
    wf_buf_unref(&s->frames[i]);
    c->n_frames--;
}

void wf_values_free(wf_client *c, weight_set *s)
{
    for (uint32_t i = 0; s->frames && i < c->n_slices; i++)
        let_go(c, s, i);
    for (uint32_t v = 0; s->values && v < c->n_variables; v++)
        wf_buf_unref(&s->values[v].own);
    free(s->frames);
    free(s->values);
}

void wf_values_begin(wf_client *c, weight_set *s)
{
    for (uint32_t i = 0; i < c->n_slices; i++)
        let_go(c, s, i);
    for (uint32_t v = 0; v < c->n_variables; v++) {
        s->values[v].at = NULL;
        s->values[v].lent = false;
    }
}

/* Of a slice, or of the rows that the set names of it: the place among the variable's, in
 * elements. */
static uint64_t place_of(const wf_client *c, const weight_set *s, uint32_t i)
{
    const wf_client_slice *slice = &c->slices[i];

    return wf_rows_has(c, i) ? s->rows.of_slice[i].first * c->variables[slice->variable].row
                             : slice->offset;
}

/* And how many elements. */
static uint64_t length_of(const wf_client *c, const weight_set *s, uint32_t i)
{
    const wf_client_slice *slice = &c->slices[i];

    return wf_rows_has(c, i) ? s->rows.of_slice[i].n * c->variables[slice->variable].row
                             : slice->count;
}

/* An evaluation names more rows than a step. */
static wf_status reserve(const wf_client *c, weight_set *s, uint32_t variable, wf_err *err)
{
    const wf_client_variable *v = &c->variables[variable];
    wf_client_values *values = &s->values[variable];
    uint64_t n = WF_MAX(wf_rows_room(v), v->rows_most ? s->rows.n[variable] * v->row : 0);

    if (values->own && values->own->bytes >= n * sizeof(float))
        return WF_OK;
    wf_buf_unref(&values->own);
    values->own = wf_buf_new(n * sizeof(float));
    return values->own ? WF_OK : wf_fail_nomem(err, n * sizeof(float));
}

wf_status wf_values_own(wf_client *c, weight_set *s, uint32_t variable, float **out, wf_err *err)
{
    wf_client_values *v = &s->values[variable];

    if (!v->at || v->lent)
        WF_TRY(reserve(c, s, variable, err));
    *out = v->own->data;
    for (uint32_t i = c->first_slice[variable]; v->lent && i < c->first_slice[variable + 1]; i++) {
        if (!s->frames[i])
            continue;
        memcpy(*out + place_of(c, s, i), v->at + place_of(c, s, i),
               length_of(c, s, i) * sizeof(float));
        let_go(c, s, i);
    }
    v->at = *out;
    v->lent = false;
    return WF_OK;
}

/* Where the variable begins if slice i lies in its place; NULL: it cannot be used there. */
static const float *find_begin(const wf_client *c, const weight_set *s, uint32_t i,
                               const wf_coded *from)
{
    uintptr_t begin = (uintptr_t)from->data - place_of(c, s, i) * sizeof(float);

    return from->coding == WF_CODING_F32 && begin % WF_BUF_ALIGN == 0 ? (const float *)begin : NULL;
}

wf_status wf_values_take(wf_client *c, weight_set *s, uint32_t i, const wf_coded *from,
                         wf_buf *frame, wf_err *err)
{
    uint32_t variable = c->slices[i].variable;
    wf_client_values *v = &s->values[variable];
    bool cached = wf_rows_has(c, i) && wf_rows_cached(c, s, variable);
    const float *begin = cached ? NULL : find_begin(c, s, i, from);
    float *own;

    if (begin && (!v->at || (v->lent && v->at == begin)) && c->n_frames < WF_VALUES_FRAMES_MOST) {
        s->frames[i] = wf_buf_ref(frame);
        c->n_frames++;
        v->at = begin;
        v->lent = true;
        return WF_OK;
    }
    WF_TRY(wf_values_own(c, s, variable, &own, err));
    if (cached)
        wf_rows_take(c, s, i, from, own);
    else
        wf_coded_read(from, 0, from->n, own + place_of(c, s, i));
    return WF_OK;
}
