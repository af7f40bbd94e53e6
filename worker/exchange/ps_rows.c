/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_rows.c - the rows of tables that a step uses: their ids are in rising order,
 * so that those of a slice lie side by side, and so do their weights and gradients. */
#include "common/base/row_key.h"
#include "common/base/size.h"
#include "worker/exchange/ps_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_LENT = 64 << 10 }; /* bytes of a table's ids */

wf_status wf_rows_init(const wf_client *c, wf_client_rows *r, wf_err *err)
{
    r->ids = calloc(c->n_variables + 1, sizeof(*r->ids));
    r->n = calloc(c->n_variables + 1, sizeof *r->n);
    r->of_slice = calloc(c->n_slices + 1, sizeof *r->of_slice);
    return r->ids && r->n && r->of_slice ? WF_OK
                                         : wf_fail_nomem(err, c->n_slices * sizeof *r->of_slice);
}

void wf_rows_free(const wf_client *c, wf_client_rows *r)
{
    for (uint32_t v = 0; r->ids && v < c->n_variables; v++)
        wf_buf_unref(&r->ids[v]);
    free(r->ids);
    free(r->n);
    free(r->of_slice);
}

void wf_rows_copy(const wf_client *c, wf_client_rows *to, const wf_client_rows *from)
{
    for (uint32_t v = 0; v < c->n_variables; v++) {
        wf_buf_unref(&to->ids[v]);
        to->ids[v] = from->ids[v] ? wf_buf_ref(from->ids[v]) : NULL;
        to->n[v] = from->n[v];
    }
    memcpy(to->of_slice, from->of_slice, c->n_slices * sizeof *to->of_slice);
}

static wf_status check_ids(const wf_client_variable *v, const uint64_t ids[], uint64_t n,
                           wf_err *err)
{
    wf_rows rows = {n, (const uint8_t *)ids};
    uint64_t all = v->count / v->row;

    if (wf_rows_rise(&rows) && (n == 0 || v->unbounded || ids[n - 1] < all))
        return WF_OK;
    return wf_fail(err, WF_USAGE, NULL,
                   "rows are named out of order, or beyond the table's %" PRIu64, all);
}

/* The row of the variable that an id is in: that of its bucket, where rows are named by keys. */
static uint64_t row_of(const wf_client_variable *v, uint64_t id)
{
    return v->unbounded ? wf_row_bucket(id) : id;
}

/* The first place in [from, n) of an id whose row is not below `row`. */
static uint64_t first_from(const wf_client_variable *v, const uint64_t ids[], uint64_t from,
                           uint64_t n, uint64_t row)
{
    while (from < n) {
        uint64_t middle = from + (n - from) / 2;

        if (row_of(v, ids[middle]) < row)
            from = middle + 1;
        else
            n = middle;
    }
    return from;
}

/* Divides the ids [n] among the slices of a variable. */
static void divide(const wf_client *c, wf_client_rows *r, uint32_t variable, const uint64_t ids[],
                   uint64_t n)
{
    uint64_t row = c->variables[variable].row, at = 0;

    for (uint32_t i = c->first_slice[variable]; i < c->first_slice[variable + 1]; i++) {
        uint64_t end = (c->slices[i].offset + c->slices[i].count) / row, first = at;

        at = first_from(&c->variables[variable], ids, first, n, end);
        r->of_slice[i] = (struct wf_client_range){first, at - first};
    }
    wf_assert(at == n);
}

/* Where the ps can read them, if there are many: a copy of few costs less than a loan. */
static wf_buf *new_ids(const wf_client *c, uint32_t variable, size_t bytes)
{
    return bytes < IDS_LENT ? wf_buf_new_raw(bytes) : wf_pushes_new_buf(c, variable, bytes);
}

wf_status wf_rows_name(wf_exchange *x, int set, uint32_t variable, const uint64_t ids[], uint64_t n,
                       wf_err *err)
{
    wf_client *c = (wf_client *)x;
    const wf_client_variable *v = &c->variables[variable];
    weight_set *s = &c->sets[set];
    wf_buf *copy;

    wf_assert(v->rows_most > 0);
    WF_TRY(check_ids(v, ids, n, err));
    wf_rows_keep(c, s, variable);
    copy = new_ids(c, variable, n * sizeof *ids);
    if (!copy)
        return wf_fail_nomem(err, n * sizeof *ids);
    if (n)
        memcpy(copy->data, ids, n * sizeof *ids);
    wf_buf_unref(&s->rows.ids[variable]);
    s->rows.ids[variable] = copy;
    s->rows.n[variable] = n;
    divide(c, &s->rows, variable, ids, n);
    return WF_OK;
}

/* Whether the pull of a set asks a ps for rows of slice i. */
static bool is_asked(const wf_client *c, uint32_t ps, const weight_set *s, uint32_t i)
{
    return c->slices[i].ps == ps && wf_rows_asked(c, s, i) > 0 && !s->have[i];
}

static void copy_ids(const wf_client *c, const weight_set *s, uint32_t i, uint64_t to[])
{
    uint32_t variable = c->slices[i].variable;
    const uint64_t *ids = s->rows.ids[variable]->data;
    const struct wf_client_range *r = &s->rows.of_slice[i], *missing = &s->missing_of[i];

    if (wf_rows_asked(c, s, i) == r->n)
        memcpy(to, ids + r->first, r->n * sizeof *to);
    else
        for (uint64_t k = 0; k < missing->n; k++)
            to[k] = ids[s->missing[variable].places[missing->first + k]];
}

/* Whether all rows that were named are asked for, in frames that a message has room for. */
static bool is_as_named(const wf_client *c, uint32_t ps, const weight_set *s)
{
    uint32_t frames = 0, variable = UINT32_MAX;
    uint64_t end = 0;

    for (uint32_t i = 0; i < c->n_slices; i++) {
        const struct wf_client_range *r = &s->rows.of_slice[i];

        if (!is_asked(c, ps, s, i))
            continue;
        if (wf_rows_asked(c, s, i) != r->n)
            return false;
        frames += c->slices[i].variable != variable || r->first != end;
        variable = c->slices[i].variable;
        end = r->first + r->n;
    }
    return frames <= WF_MAX_FRAMES;
}

/* The ids of slice i: where they were named, or a copy in `copies`, of which *used bytes are. */
static const uint8_t *find_ids(const wf_client *c, const weight_set *s, uint32_t i, wf_buf *copies,
                               size_t *used)
{
    uint8_t *to;

    if (!copies)
        return (const uint8_t *)s->rows.ids[c->slices[i].variable]->data +
               s->rows.of_slice[i].first * sizeof(uint64_t);
    to = (uint8_t *)copies->data + *used;
    copy_ids(c, s, i, (uint64_t *)(void *)to);
    *used += wf_rows_asked(c, s, i) * sizeof(uint64_t);
    return to;
}

static wf_status add_asked(const wf_client *c, uint32_t ps, const weight_set *s, wf_buf *copies,
                           wf_msg *m, wf_part parts[], uint32_t *n, wf_err *err)
{
    size_t used = 0;

    for (uint32_t i = 0; i < c->n_slices; i++) {
        size_t bytes = wf_rows_asked(c, s, i) * sizeof(uint64_t);
        const uint8_t *ids;
        uint32_t frame;

        if (!is_asked(c, ps, s, i))
            continue;
        if (*n == WF_MAX_PARTS)
            return wf_fail(err, WF_FULL, "take small variables out of `tables`",
                           "a step asks ps %u for rows of more than %d slices", ps, WF_MAX_PARTS);
        ids = find_ids(c, s, i, copies, &used);
        WF_TRY(wf_msg_add_bytes(m, copies ? copies : s->rows.ids[c->slices[i].variable], ids, bytes,
                                &frame, err));
        parts[(*n)++] =
            (wf_part){.slice = i,
                      .codec = WF_CODEC_IDS,
                      .ids = {.frame = (uint8_t)frame,
                              .offset = (uint64_t)(ids - m->frames[frame].data),
                              .bytes = bytes,
                              .checksum = c->checksums ? wf_part_checksum(ids, bytes) : 0}};
    }
    return WF_OK;
}

wf_status wf_rows_ask(wf_client *c, uint32_t ps, const weight_set *s, wf_msg *m, wf_part parts[],
                      uint32_t *n, wf_err *err)
{
    uint64_t bytes = 0;
    wf_buf *copies = NULL;
    wf_status rc;

    *n = 0;
    for (uint32_t i = 0; s->step && i < c->n_slices; i++)
        if (is_asked(c, ps, s, i))
            bytes += wf_rows_asked(c, s, i) * sizeof(uint64_t);
    if (bytes == 0)
        return WF_OK;
    if (!is_as_named(c, ps, s)) {
        copies = wf_net_buf(c->ps[ps], bytes);
        if (!copies)
            return wf_fail_nomem(err, bytes);
    }
    rc = add_asked(c, ps, s, copies, m, parts, n, err);
    wf_buf_unref(&copies);
    return rc;
}
