/* SPDX-License-Identifier: Apache-2.0 */
/* ps/answer.c */
#include "ps/answer.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_BYTES = 1 << 20,
    ROWS_BYTES = 128 << 10,     /* gathering takes longer than copying: the worker begins early */
    ROWS_ROOM_BYTES = 64 << 20, /* an evaluation may ask for gigabytes */
    CHUNK = 64 << 10            /* that one thread copies at a time */
};

/* Memory that weights are written into for one pull. */
struct wf_answer_room {
    wf_buf *rows; /* of tables, one behind the other */
    size_t used;
    uint32_t table; /* whose rows are the last in it */
    uint32_t n;     /* variables */
    struct whole {
        wf_buf *values; /* [count]; NULL: its slices are answered one by one */
        bool decided;
    } wholes[];
};

void wf_answer_drop_room(wf_ps_pull *pull)
{
    struct wf_answer_room *room = pull->into;

    pull->into = NULL;
    if (!room)
        return;
    wf_buf_unref(&room->rows);
    for (uint32_t v = 0; v < room->n; v++)
        wf_buf_unref(&room->wholes[v].values);
    free(room);
}

static wf_status open_room(wf_answer *a, struct wf_answer_room **out, wf_err *err)
{
    size_t bytes = sizeof **out + a->ps->n_variables * sizeof(struct whole);

    if (!a->pull->into) {
        a->pull->into = calloc(1, bytes);
        if (!a->pull->into)
            return wf_fail_nomem(err, bytes);
        a->pull->into->n = a->ps->n_variables;
    }
    *out = a->pull->into;
    return WF_OK;
}

wf_status wf_answer_send(wf_answer *a, wf_err *err)
{
    wf_status rc;

    if (!a->msg)
        return WF_OK;
    a->msg->head.request = a->pull->request;
    a->msg->head.step = a->pull->step;
    rc = wf_parts_put(a->msg, a->ps->parts, a->n, err);
    if (rc == WF_OK)
        rc = wf_ps_send(a->ps, a->w->peer, WF_LANE_DATA, a->pull->step, &a->msg, err);
    wf_net_free_msg(a->ps->net, &a->msg);
    a->n = 0;
    return rc;
}

/* The frame that bytes of a buffer extend, if they lie just behind it. */
static wf_frame *find_frame(const wf_answer *a, const wf_buf *buf, const uint8_t *data)
{
    wf_frame *last = a->msg->n_frames ? &a->msg->frames[a->msg->n_frames - 1] : NULL;

    if (!last || last->buf != buf || last->data + last->bytes > data ||
        last->data + last->bytes + WF_BUF_ALIGN <= data)
        return NULL;
    return last;
}

/* Adds a part, whose bytes lie in a buffer. */
static wf_status put(wf_answer *a, wf_slice *s, wf_buf *buf, const uint8_t *data, size_t bytes,
                     wf_coding coding, wf_err *err)
{
    wf_frame *frame;

    if (!a->msg)
        WF_TRY(wf_net_msg(a->ps->net, WF_WEIGHTS, &a->msg, err));
    frame = find_frame(a, buf, data);
    if (frame) {
        size_t more = (size_t)(data - frame->data) + bytes - frame->bytes;

        frame->bytes += more;
        a->msg->payload_bytes += more;
    } else {
        WF_TRY(wf_msg_add_frame(a->msg, buf, data, bytes, err));
        frame = &a->msg->frames[a->msg->n_frames - 1];
    }
    a->ps->parts[a->n++] =
        (wf_part){.slice = s->id,
                  .codec = WF_CODEC_F32,
                  .coding = (uint8_t)coding,
                  .frame = (uint8_t)(a->msg->n_frames - 1),
                  .offset = (uint64_t)(data - frame->data),
                  .bytes = bytes,
                  .version = s->updates,
                  .checksum = a->ps->conf.checksums ? wf_part_checksum(data, bytes) : 0};
    s->load.pulled_bytes += bytes;
    s->load.parts++;
    return WF_OK;
}

/* ---- rows of tables ---- */

/* What rows take that the pull asks for from a place of its list on, up to `most`. */
static size_t bytes_from(const wf_answer *a, uint32_t at, size_t most)
{
    const wf_ps_list *list = &a->w->lists[a->pull->list];
    size_t bytes = 0;

    for (; at < list->n && bytes < most; at++)
        bytes += a->pull->rows[at].n * a->ps->slices[list->slices[at]]->row * sizeof(float) +
                 WF_BUF_ALIGN;
    return WF_MIN(bytes, most);
}

/* Room behind the rows that were gathered last. */
static wf_status find_rows_room(wf_answer *a, const wf_slice *s, uint32_t at, size_t bytes,
                                uint8_t **out, wf_err *err)
{
    size_t most = wf_net_lends(a->w->peer, ROWS_ROOM_BYTES) ? ROWS_ROOM_BYTES : ROWS_BYTES;
    struct wf_answer_room *room = NULL;

    WF_TRY(open_room(a, &room, err));
    if (room->table != s->variable)
        room->used = wf_align_up(room->used, WF_BUF_ALIGN);
    room->table = s->variable;
    if (!room->rows || room->used > room->rows->bytes || bytes > room->rows->bytes - room->used) {
        size_t size = WF_MAX(bytes, bytes_from(a, at, most));

        wf_buf_unref(&room->rows);
        room->rows = wf_net_buf(a->w->peer, size);
        room->used = 0;
        if (!room->rows)
            return wf_fail_nomem(err, size);
    }
    *out = (uint8_t *)room->rows->data + room->used;
    return WF_OK;
}

static wf_status add_rows(wf_answer *a, wf_slice *s, uint32_t at, wf_err *err)
{
    const wf_rows *rows = &a->pull->rows[at];
    size_t bytes = rows->n * s->row * sizeof(float);
    uint8_t *to = NULL;

    WF_TRY(find_rows_room(a, s, at, bytes, &to, err));
    s->ops->answer_rows(s, rows, (float *)(void *)to);
    a->pull->into->used += bytes;
    return put(a, s, a->pull->into->rows, to, bytes, WF_CODING_F32, err);
}

/* Rows whose coded form travels. */
static wf_status gather_rows(const wf_slice *s, const wf_rows *rows, wf_buf **out, wf_err *err)
{
    size_t bytes = rows->n * s->row * sizeof(float);

    *out = wf_buf_new(bytes);
    if (!*out)
        return wf_fail_nomem(err, bytes);
    s->ops->answer_rows(s, rows, (*out)->data);
    return WF_OK;
}

/* ---- whole slices ---- */

static uint64_t count_elements(const wf_ps_variable *v)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < v->rank; i++)
        n *= (uint64_t)v->dims[i];
    return n;
}

/* Whether the slices beside a place of the list are all of a variable, and more than one. */
static bool is_whole(const wf_answer *a, uint32_t at)
{
    const wf_ps_list *list = &a->w->lists[a->pull->list];
    const wf_slice *s = a->ps->slices[list->slices[at]];
    uint64_t all = count_elements(&a->ps->variables[s->variable]), n = 0;
    uint32_t begin = at;

    while (begin > 0 && a->ps->slices[list->slices[begin - 1]]->variable == s->variable)
        begin--;
    for (; begin < list->n; begin++) {
        const wf_slice *other = a->ps->slices[list->slices[begin]];

        if (other->variable != s->variable)
            break;
        n += other->count;
    }
    return s->count < all && n == all;
}

/* Where a slice goes among the others of its variable; *out NULL: it leaves by itself. What is too
 * large for the room of a worker (P6) does. */
static wf_status find_place(wf_answer *a, const wf_slice *s, uint32_t at, wf_buf **of,
                            uint8_t **out, wf_err *err)
{
    size_t bytes = count_elements(&a->ps->variables[s->variable]) * sizeof(float);
    struct wf_answer_room *room = NULL;
    struct whole *w;

    *out = NULL;
    if (bytes > a->ps->answer_room || !wf_net_lends(a->w->peer, bytes))
        return WF_OK;
    WF_TRY(open_room(a, &room, err));
    w = &room->wholes[s->variable];
    if (!w->decided && is_whole(a, at))
        w->values = wf_net_buf(a->w->peer, bytes); /* NULL is fine */
    w->decided = true;
    *of = w->values;
    if (w->values)
        *out = (uint8_t *)w->values->data + s->offset * sizeof(float);
    return WF_OK;
}

typedef struct copying {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
} copying;

static void copy_chunks(void *arg, int64_t begin, int64_t end)
{
    const copying *c = arg;
    size_t first = (size_t)begin * CHUNK, last = WF_MIN((size_t)end * CHUNK, c->bytes);

    memcpy(c->to + first, c->from + first, last - first);
}

static wf_status add_whole(wf_answer *a, wf_slice *s, uint32_t at, wf_err *err)
{
    wf_coding coding = WF_CODING_F32;
    wf_buf *values = NULL, *of = NULL;
    uint8_t *place = NULL;
    bool coded;
    wf_status rc;

    if (s->ops->answer_rows)
        WF_TRY(gather_rows(s, &a->pull->rows[at], &values, err));
    else
        WF_TRY(s->ops->answer(s, &values, err));
    coded = wf_weights_coding(a->ps, s, values->bytes / sizeof(float));
    rc = coded ? wf_weights_write(a->ps, s, a->w->peer, &values, &coding, err)
               : find_place(a, s, at, &of, &place, err);
    if (rc == WF_OK && place) {
        copying c = {place, values->data, values->bytes};

        wf_pool_for(a->ps->pool, (int64_t)wf_ceil_div((int64_t)c.bytes, CHUNK), 1, copy_chunks, &c);
        rc = put(a, s, of, place, c.bytes, coding, err);
    } else if (rc == WF_OK) {
        rc = put(a, s, values, values->data, values->bytes, coding, err);
    }
    wf_buf_unref(&values);
    return rc;
}

wf_status wf_answer_add(wf_answer *a, wf_slice *s, uint32_t at, wf_err *err)
{
    bool plain_rows =
        s->ops->answer_rows && !wf_weights_coding(a->ps, s, a->pull->rows[at].n * s->row);

    WF_TRY(plain_rows ? add_rows(a, s, at, err) : add_whole(a, s, at, err));
    if (a->msg->payload_bytes >= (plain_rows ? ROWS_BYTES : ANSWER_BYTES) ||
        a->msg->n_frames == WF_MAX_FRAMES || a->n == WF_MAX_PARTS)
        return wf_answer_send(a, err);
    return WF_OK;
}
