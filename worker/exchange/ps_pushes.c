/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_pushes.c - pushes to the parameter servers: gradients gather in messages for
 * each ps, leave, and are kept until they are acknowledged (K2). */
#include "common/base/size.h"
#include "worker/exchange/ps_state.h"

#include <stdlib.h>
#include <string.h>

enum { PUSH_BYTES = 1 << 20 /* a push leaves when so much has gathered */ };

wf_status wf_pushes_init(wf_client *c, wf_err *err)
{
    c->drafts = calloc(c->n_ps + 1, sizeof *c->drafts);
    if (!c->drafts)
        return wf_fail_nomem(err, c->n_ps * sizeof *c->drafts);
    for (int k = 0; k < WF_CLIENT_STEPS; k++) {
        c->steps[k].acked = calloc(c->n_slices + 1, 1);
        c->steps[k].left = calloc(c->n_ps + 1, sizeof(*c->steps[k].left));
        c->steps[k].pushed = calloc(c->n_variables + 1, sizeof(*c->steps[k].pushed));
        c->steps[k].grads = calloc(c->n_variables + 1, sizeof(*c->steps[k].grads));
        c->steps[k].versions = calloc(c->n_slices + 1, sizeof(*c->steps[k].versions));
        if (!c->steps[k].acked || !c->steps[k].left || !c->steps[k].pushed || !c->steps[k].grads ||
            !c->steps[k].versions)
            return wf_fail_nomem(err, c->n_variables);
        WF_TRY(wf_rows_init(c, &c->steps[k].rows, err));
    }
    return WF_OK;
}

void wf_pushes_close(wf_client *c)
{
    for (int k = 0; k < WF_CLIENT_STEPS; k++) {
        for (uint32_t v = 0; c->steps[k].grads && v < c->n_variables; v++)
            wf_buf_unref(&c->steps[k].grads[v]);
        wf_rows_free(c, &c->steps[k].rows);
        free(c->steps[k].grads);
        free(c->steps[k].versions);
        free(c->steps[k].pushed);
        free(c->steps[k].left);
        free(c->steps[k].acked);
    }
    for (uint32_t i = 0; c->drafts && i < c->n_ps; i++)
        wf_net_free_msg(c->net, &c->drafts[i].msg);
    free(c->drafts);
}

static uint64_t push_key(uint32_t step)
{
    return 4 * (uint64_t)step + 1;
}

static step_push *find_step(wf_client *c, uint32_t step)
{
    step_push *s = &c->steps[step % WF_CLIENT_STEPS];

    return s->step == step ? s : NULL;
}

/* Steps leave in order: acked only moves over steps whose parts are all in. */
static void move_acked(wf_client *c)
{
    for (;;) {
        step_push *s = find_step(c, c->base.acked + 1);

        if (!s || !s->ended || s->parts_left > 0)
            return;
        s->step = 0;
        c->base.acked++;
    }
}

wf_status wf_pushes_on_ok(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err)
{
    step_push *s = find_step(c, m->head.step);
    uint32_t n = 0, ids[WF_MAX_PARTS];

    WF_TRY(wf_slices_get(m, ids, &n, err));
    for (uint32_t i = 0; s && i < n; i++) {
        const wf_client_slice *slice = ids[i] < c->n_slices ? &c->slices[ids[i]] : NULL;

        if (!slice || (slice->ps != ps && !slice->map) || !s->pushed[slice->variable])
            return wf_fail(err, WF_PROTO, NULL, "ps %u: slice %u, which was not pushed", ps,
                           ids[i]);
        if (slice->ps != ps || s->acked[ids[i]]) /* K5 */
            continue;
        s->acked[ids[i]] = 1;
        s->left[ps]--;
        s->parts_left--;
    }
    move_acked(c);
    return wf_clock_join_late(c, err);
}

void wf_pushes_moved(wf_client *c, uint32_t slice, uint32_t from, uint32_t to)
{
    for (int k = 0; k < WF_CLIENT_STEPS; k++) {
        step_push *s = &c->steps[k];

        if (!s->step || !s->pushed[c->slices[slice].variable] || s->acked[slice])
            continue;
        wf_assert(s->left[from] > 0);
        s->left[from]--;
        s->left[to]++;
    }
}

void wf_pushes_drop_draft(wf_client *c, uint32_t ps)
{
    wf_net_free_msg(c->net, &c->drafts[ps].msg);
    c->drafts[ps].n = c->drafts[ps].entries = 0;
    c->drafts[ps].bytes = 0;
}

/* The weights of a step may make way for those of a later one before all of it has been pushed, and
 * a part may be pushed again. */
static void note_set(const wf_client *c, step_push *s)
{
    for (int k = 0; k < WF_WEIGHT_SETS; k++) {
        if (k == WF_EVAL_SET || c->base.set_step[k] != s->step)
            continue;
        s->clock = c->sets[k].clock;
        memcpy(s->versions, c->sets[k].versions, c->n_slices * sizeof *s->versions);
        wf_rows_copy(c, &s->rows, &c->sets[k].rows);
    }
}

static step_push *begin_step(wf_client *c, uint32_t step)
{
    step_push *s = &c->steps[step % WF_CLIENT_STEPS];

    if (s->step == step)
        return s;
    wf_assert(s->step == 0 && step == c->base.begun + 1);
    c->base.begun = step;
    s->step = step;
    s->parts_left = 0;
    s->ended = s->nothing = false;
    s->clock = s->records = 0;
    note_set(c, s);
    c->clock.made = s->clock;
    memset(s->acked, 0, c->n_slices);
    memset(s->left, 0, c->n_ps * sizeof(*s->left));
    memset(s->pushed, 0, c->n_variables * sizeof(*s->pushed));
    memset(s->codings, 0, c->n_slices * sizeof *s->codings);
    return s;
}

void wf_pushes_begin(wf_exchange *x, uint32_t step, uint32_t records)
{
    begin_step((wf_client *)x, step)->records = records;
}

static bool is_on_one_ps(const wf_client *c, uint32_t variable)
{
    uint32_t first = c->first_slice[variable], end = c->first_slice[variable + 1];

    for (uint32_t i = first; i < end; i++)
        if (c->slices[i].ps != c->slices[first].ps)
            return false;
    return true;
}

wf_buf *wf_pushes_new_buf(const wf_client *c, uint32_t variable, size_t bytes)
{
    uint32_t first = c->first_slice[variable];

    if (first == c->first_slice[variable + 1])
        return wf_buf_new(bytes);
    return is_on_one_ps(c, variable) ? wf_net_buf(c->ps[c->slices[first].ps], bytes)
                                     : wf_net_buf_for_several(c->ps[c->slices[first].ps], bytes);
}

/* What is sent in another form is not read from where it was computed. */
static wf_buf *new_gradient(const wf_client *c, uint32_t variable)
{
    const wf_client_variable *v = &c->variables[variable];
    size_t bytes = wf_rows_room(v) * sizeof(float);

    return v->push ? wf_buf_new(bytes) : wf_pushes_new_buf(c, variable, bytes);
}

float *wf_pushes_gradient(wf_exchange *x, uint32_t step, uint32_t variable)
{
    wf_client *c = (wf_client *)x;
    step_push *s = begin_step(c, step);
    wf_buf **b = &s->grads[variable];

    if (*b && wf_buf_refs(*b) > 1) /* the transport has not let go of the last use */
        wf_buf_unref(b);
    if (!*b)
        *b = new_gradient(c, variable);
    return *b ? (*b)->data : NULL;
}

static wf_push_body body_of(const wf_client *c, uint32_t step)
{
    const step_push *s = &c->steps[step % WF_CLIENT_STEPS];

    return (wf_push_body){s->clock, s->nothing ? 0 : s->records};
}

static wf_status flush_draft(wf_client *c, uint32_t ps, wf_err *err)
{
    draft *d = &c->drafts[ps];
    uint32_t step = d->step;
    wf_status rc;

    if (!d->msg)
        return WF_OK;
    d->msg->head.step = step;
    rc = wf_push_put(d->msg, body_of(c, step), d->parts, d->n, err);
    if (rc == WF_OK)
        rc = wf_client_send(c, ps, WF_LANE_DATA, push_key(step), &d->msg, err);
    wf_net_free_msg(c->net, &d->msg);
    d->n = d->entries = 0;
    d->bytes = 0;
    return rc;
}

/* The message that a part of this ps goes into, with room for one more, which may have two frames
 * and two entries. */
static wf_status open_draft(wf_client *c, const step_push *s, uint32_t ps, wf_err *err)
{
    draft *d = &c->drafts[ps];

    if (d->msg && (d->step != s->step || d->entries + 2 > WF_MAX_PARTS ||
                   d->msg->n_frames + 2 > WF_MAX_FRAMES || d->bytes >= PUSH_BYTES))
        WF_TRY(flush_draft(c, ps, err));
    d->step = s->step;
    return d->msg ? WF_OK : wf_net_msg(c->net, WF_PUSH, &d->msg, err);
}

/* The ids of the rows of a part. */
static wf_status add_ids(const wf_client *c, const step_push *s, uint32_t id, draft *d,
                         wf_part_range *out, wf_err *err)
{
    wf_buf *ids = s->rows.ids[c->slices[id].variable];
    const uint8_t *data =
        (const uint8_t *)ids->data + s->rows.of_slice[id].first * sizeof(uint64_t);
    size_t bytes = s->rows.of_slice[id].n * sizeof(uint64_t);
    uint32_t frame = 0;

    d->entries++;
    WF_TRY(wf_msg_add_bytes(d->msg, ids, data, bytes, &frame, err));
    *out = (wf_part_range){.frame = (uint8_t)frame,
                           .offset = (uint64_t)(data - d->msg->frames[frame].data),
                           .bytes = bytes,
                           .checksum = c->checksums ? wf_part_checksum(data, bytes) : 0};
    return WF_OK;
}

/* What is sent of a slice: where it lies, and the bytes up to where the next part may begin. */
typedef struct content {
    wf_buf *buf;
    const uint8_t *data;
    size_t bytes, room;
    wf_coding coding;
} content;

static content content_of(const wf_client *c, const step_push *s, uint32_t id)
{
    const wf_client_slice *slice = &c->slices[id];
    const wf_client_coding *coding = &s->codings[id];
    const struct wf_client_range *rows = wf_rows_has(c, id) ? &s->rows.of_slice[id] : NULL;
    uint64_t row = c->variables[slice->variable].row;
    content out = {.coding = coding->coding};

    if (out.coding) {
        out.buf = s->coded[slice->variable];
        out.data = (const uint8_t *)out.buf->data + coding->at;
        out.bytes = coding->bytes;
        out.room = wf_codings_room(coding->bytes);
        return out;
    }
    out.buf = s->grads[slice->variable];
    out.data =
        (const uint8_t *)out.buf->data + (rows ? rows->first * row : slice->offset) * sizeof(float);
    out.bytes = out.room = (rows ? rows->n * row : slice->count) * sizeof(float);
    return out;
}

static wf_status add_part(wf_client *c, const step_push *s, uint32_t id, wf_err *err)
{
    uint32_t ps = c->slices[id].ps;
    bool has_rows = wf_rows_has(c, id);
    draft *d = &c->drafts[ps];
    uint32_t frame = 0;
    content what;

    WF_TRY(open_draft(c, s, ps, err));
    d->entries++;
    if (s->nothing || (has_rows && s->rows.of_slice[id].n == 0)) {
        d->parts[d->n++] = (wf_part){.slice = id, .codec = WF_CODEC_NONE};
        return WF_OK;
    }
    what = content_of(c, s, id);
    /* Slices one behind the other share a frame, and ids, which come in turns with the rows. */
    WF_TRY(wf_msg_add_bytes(d->msg, what.buf, what.data, what.room, &frame, err));
    d->parts[d->n++] = (wf_part){
        .slice = id,
        .codec = has_rows ? WF_CODEC_ROWS : WF_CODEC_F32,
        .frame = (uint8_t)frame,
        .coding = (uint8_t)what.coding,
        .offset = (uint64_t)(what.data - d->msg->frames[frame].data),
        .bytes = what.bytes,
        .version = s->versions[id],
        .checksum = c->checksums ? wf_part_checksum(what.data, what.bytes) : 0,
    };
    d->bytes += what.bytes;
    return has_rows ? add_ids(c, s, id, d, &d->parts[d->n - 1].ids, err) : WF_OK;
}

/* What the parts of a variable come to, and would as float32; ids of rows are left out. */
static void count_bytes(wf_client *c, const step_push *s, uint32_t variable)
{
    for (uint32_t i = c->first_slice[variable]; !s->nothing && i < c->first_slice[variable + 1];
         i++) {
        uint64_t plain = wf_rows_has(c, i) ? s->rows.of_slice[i].n * c->variables[variable].row
                                           : c->slices[i].count;

        plain *= sizeof(float);
        c->base.plain_bytes += plain;
        c->base.pushed_bytes += s->codings[i].coding ? s->codings[i].bytes : plain;
    }
}

wf_status wf_pushes_push(wf_exchange *x, uint32_t step, uint32_t variable, wf_err *err)
{
    wf_client *c = (wf_client *)x;
    step_push *s = find_step(c, step);

    wf_assert(s && !s->pushed[variable]);
    s->pushed[variable] = true;
    for (uint32_t i = c->first_slice[variable]; i < c->first_slice[variable + 1]; i++) {
        s->left[c->slices[i].ps]++; /* of all parts, before one of them may fail */
        s->parts_left++;
    }
    WF_TRY(wf_codings_write(c, s, variable, err));
    count_bytes(c, s, variable);
    for (uint32_t i = c->first_slice[variable]; i < c->first_slice[variable + 1]; i++)
        WF_TRY(add_part(c, s, i, err));
    return WF_OK;
}

wf_status wf_pushes_drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    wf_client *c = (wf_client *)x;
    step_push *s = begin_step(c, step);

    s->nothing = true;
    for (uint32_t i = 0; i < c->n_variables; i++)
        if (c->variables[i].trainable)
            WF_TRY(wf_pushes_push(x, step, i, err));
    return WF_OK;
}

wf_status wf_pushes_end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    wf_client *c = (wf_client *)x;
    step_push *s = begin_step(c, step);

    for (uint32_t i = 0; i < c->n_ps; i++)
        WF_TRY(flush_draft(c, i, err));
    s->ended = true;
    move_acked(c);
    return WF_OK;
}

/* All parts of this ps that a step still waits for. */
static wf_status push_again(wf_client *c, uint32_t ps, const step_push *s, wf_err *err)
{
    WF_TRY(flush_draft(c, ps, err)); /* a message in the making may be of another step */
    for (uint32_t i = 0; i < c->n_slices; i++)
        if (c->slices[i].ps == ps && s->pushed[c->slices[i].variable] && !s->acked[i])
            WF_TRY(add_part(c, s, i, err));
    return flush_draft(c, ps, err);
}

wf_status wf_pushes_again(wf_client *c, uint32_t ps, wf_err *err)
{
    for (uint32_t step = c->base.acked + 1; step <= c->base.begun; step++) {
        step_push *s = find_step(c, step);

        if (s && s->left[ps] > 0)
            WF_TRY(push_again(c, ps, s, err));
    }
    return WF_OK;
}

uint32_t wf_pushes_late(const wf_client *c, uint32_t step)
{
    const step_push *s = &c->steps[step % WF_CLIENT_STEPS];

    for (uint32_t i = 0; s->step == step && i < c->n_ps; i++)
        if (s->left[i] > 0)
            return i;
    return c->n_ps;
}
