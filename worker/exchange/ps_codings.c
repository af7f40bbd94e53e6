/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_codings.c - gradients in fewer bytes (common/wire/coding.h). A gradient is
 * written once, when it is pushed; what is sent again has the same bytes (K2).
 *
 * What a dense variable loses stays here, its residual, and goes with the next gradient. It belongs
 * to this exchange: a generation begins without, and no checkpoint has it. A step that is dropped
 * leaves it as it is. Rows of tables have no residual: a batch may name a row once and not again.
 */
#include "common/base/pages.h"
#include "common/base/size.h"
#include "worker/exchange/ps_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

wf_status wf_codings_take(const Weft__Variable *from, wf_client_variable *v, wf_err *err)
{
    bool is_table = v->rows_most > 0;

    v->push = (wf_coding)from->push_coding;
    v->kept_ratio = from->push_kept;
    if (from->push_coding >= WF_N_CODINGS || (v->push && from->kind != WF_KIND_TRAINABLE) ||
        (is_table && v->push > WF_CODING_F16) ||
        (v->push == WF_CODING_TOPK && !(v->kept_ratio > 0 && v->kept_ratio <= 1)))
        return wf_fail(err, WF_PROTO, "upgrade this side",
                       "variable \"%.200s\" cannot be pushed with coding %" PRIu32, from->name,
                       from->push_coding);
    return WF_OK;
}

/* Numbers of a part: of a slice, or of its rows that a step has. */
static uint64_t count_of(const wf_client *c, const step_push *s, uint32_t id)
{
    const wf_client_slice *slice = &c->slices[id];

    if (!wf_rows_has(c, id))
        return slice->count;
    return s ? s->rows.of_slice[id].n * c->variables[slice->variable].row : 0;
}

static uint64_t kept_of(const wf_client_variable *v, uint64_t n)
{
    return v->push == WF_CODING_TOPK ? wf_coding_kept(n, v->kept_ratio) : 0;
}

/* One whose slices are all small is sent as float32. */
static bool has_large_slice(const wf_client *c, uint32_t variable)
{
    for (uint32_t i = c->first_slice[variable]; i < c->first_slice[variable + 1]; i++)
        if (c->slices[i].count >= WF_CODING_LEAST)
            return true;
    return false;
}

static wf_status begin_variable(wf_client *c, uint32_t variable, wf_err *err)
{
    wf_client_variable *v = &c->variables[variable];

    if (!v->push || v->rows_most)
        return WF_OK;
    if (!has_large_slice(c, variable)) {
        v->push = WF_CODING_F32;
        return WF_OK;
    }
    v->residual = wf_pages_alloc(v->count * sizeof *v->residual);
    if (!v->residual)
        return wf_fail_nomem(err, v->count * sizeof *v->residual);
    memset(v->residual, 0, v->count * sizeof *v->residual);
    return WF_OK;
}

wf_status wf_codings_init(wf_client *c, wf_err *err)
{
    for (uint32_t i = 0; i < c->n_variables; i++)
        WF_TRY(begin_variable(c, i, err));
    for (int k = 0; k < WF_CLIENT_STEPS; k++) {
        c->steps[k].coded = calloc(c->n_variables + 1, sizeof(*c->steps[k].coded));
        c->steps[k].codings = calloc(c->n_slices + 1, sizeof *c->steps[k].codings);
        if (!c->steps[k].coded || !c->steps[k].codings)
            return wf_fail_nomem(err, c->n_slices * sizeof *c->steps[k].codings);
    }
    return WF_OK;
}

void wf_codings_close(wf_client *c)
{
    for (int k = 0; k < WF_CLIENT_STEPS; k++) {
        for (uint32_t v = 0; c->steps[k].coded && v < c->n_variables; v++)
            wf_buf_unref(&c->steps[k].coded[v]);
        free(c->steps[k].coded);
        free(c->steps[k].codings);
    }
    for (uint32_t v = 0; c->variables && v < c->n_variables; v++)
        free(c->variables[v].residual);
}

/* Places for the parts of a variable that are to be coded; the bytes of all. */
static size_t place_parts(const wf_client *c, step_push *s, uint32_t variable)
{
    const wf_client_variable *v = &c->variables[variable];
    size_t used = 0;

    for (uint32_t i = c->first_slice[variable]; i < c->first_slice[variable + 1]; i++) {
        uint64_t n = count_of(c, s, i);

        if (n < WF_CODING_LEAST)
            continue;
        s->codings[i] = (wf_client_coding){
            .coding = v->push, .at = used, .bytes = wf_coding_bytes(v->push, n, kept_of(v, n))};
        used += wf_codings_room(s->codings[i].bytes);
    }
    return used;
}

/* Memory that nobody reads any more, or new: of a table, for the most rows that a step names. */
static wf_status reserve(const wf_client *c, step_push *s, uint32_t variable, size_t bytes,
                         wf_err *err)
{
    const wf_client_variable *v = &c->variables[variable];
    uint32_t n_slices = c->first_slice[variable + 1] - c->first_slice[variable];
    size_t most = wf_coding_bytes(v->push, wf_rows_room(v), 0) + n_slices * wf_codings_room(1);
    wf_buf **b = &s->coded[variable];

    wf_assert(!v->rows_most || bytes <= most);
    bytes = v->rows_most ? most : bytes;

    if (*b && (wf_buf_refs(*b) > 1 || (*b)->bytes < bytes))
        wf_buf_unref(b);
    if (!*b)
        *b = wf_pushes_new_buf(c, variable, bytes);
    return *b ? WF_OK : wf_fail_nomem(err, bytes);
}

typedef struct writing {
    const wf_client *c;
    step_push *s;
    uint32_t variable;
} writing;

/* Writes the part of a slice; one that cannot be said in so few bytes stays float32. */
static void write_part(const writing *w, uint32_t id)
{
    const wf_client_variable *v = &w->c->variables[w->variable];
    const wf_client_slice *slice = &w->c->slices[id];
    wf_client_coding *to = &w->s->codings[id];
    uint64_t n = count_of(w->c, w->s, id);
    uint64_t first = v->rows_most ? w->s->rows.of_slice[id].first * v->row : slice->offset;
    const float *gradient = (const float *)w->s->grads[w->variable]->data + first;
    uint8_t *data;

    if (!to->coding)
        return;
    data = (uint8_t *)w->s->coded[w->variable]->data + to->at;
    memset(data + to->bytes, 0, wf_codings_room(to->bytes) - to->bytes); /* as it leaves, too */
    if (!wf_coding_write(to->coding, kept_of(v, n), gradient,
                         v->residual ? v->residual + slice->offset : NULL, n, data))
        to->coding = WF_CODING_F32;
}

static void write_parts(void *arg, int64_t begin, int64_t end)
{
    const writing *w = arg;

    for (int64_t i = begin; i < end; i++)
        write_part(w, w->c->first_slice[w->variable] + (uint32_t)i);
}

wf_status wf_codings_write(wf_client *c, step_push *s, uint32_t variable, wf_err *err)
{
    uint32_t first = c->first_slice[variable];
    writing w = {c, s, variable};
    wf_status rc;
    size_t bytes;

    if (s->nothing || !c->variables[variable].push)
        return WF_OK;
    bytes = place_parts(c, s, variable);
    if (bytes == 0)
        return WF_OK;
    rc = reserve(c, s, variable, bytes, err);
    if (rc != WF_OK) { /* it stays float32 */
        memset(s->codings + first, 0, (c->first_slice[variable + 1] - first) * sizeof *s->codings);
        return rc;
    }
    wf_pool_for(c->pool, c->first_slice[variable + 1] - first, 1, write_parts, &w);
    return WF_OK;
}
