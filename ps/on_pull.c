/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_pull.c - a worker's pull: the weights of a list of slices, each as soon as the worker's own
 * pushes that it counts on are applied.
 *
 * The answer leaves in messages of about ANSWER_BYTES, so that the worker copies one while the next
 * is on its way, and while later slices are still being updated.
 */
#include "common/wire/control.h"
#include "common/wire/control.pb-c.h"
#include "ps/state.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES = 1 << 20 };

/* A pull marks what it has answered by places in its list: it ends with the list. */
static void close_pulls(wf_ps_worker *w, uint32_t list)
{
    for (int i = 0; i < WF_PS_MAX_PULLS; i++)
        if (w->pulls[i].list == list)
            w->pulls[i].open = false;
}

wf_status wf_ps_on_list(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    uint32_t number = m->head.request;
    Weft__List *body = NULL;
    wf_ps_list *list;
    wf_status rc;

    if (number >= WF_PS_MAX_LISTS)
        return wf_fail(err, WF_PROTO, NULL, "list number %u", number);
    WF_TRY(wf_control_get(m, &weft__list__descriptor, &body, err));
    list = &w->lists[number];
    close_pulls(w, number);
    free(list->slices);
    *list = (wf_ps_list){.slices = calloc(body->n_slices + 1, sizeof(uint32_t))};
    rc = list->slices ? WF_OK : wf_fail_nomem(err, body->n_slices * sizeof(uint32_t));
    for (size_t i = 0; rc == WF_OK && i < body->n_slices; i++) {
        if (!wf_ps_slice(ps, body->slices[i]))
            rc = wf_fail(err, WF_PROTO, NULL, "a list names slice %u, which is not on ps %u",
                         body->slices[i], ps->conf.index);
        else
            list->slices[list->n++] = ps->place[body->slices[i]];
    }
    if (rc != WF_OK)
        list->n = 0;
    wf_control_free(&body);
    return rc;
}

/* The message under construction. */
typedef struct answer {
    wf_ps *ps;
    wf_ps_worker *w;
    const wf_ps_pull *pull;
    wf_msg *msg;
    uint32_t n;
} answer;

static wf_status send_answer(answer *a, wf_err *err)
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

static wf_status add_slice(answer *a, const wf_slice *s, wf_err *err)
{
    wf_part *p;

    if (!a->msg)
        WF_TRY(wf_net_msg(a->ps->net, WF_WEIGHTS, &a->msg, err));
    p = &a->ps->parts[a->n];
    *p = (wf_part){
        .slice = s->id,
        .codec = WF_CODEC_F32,
        .frame = (uint8_t)a->msg->n_frames,
        .bytes = s->weights->bytes,
        .checksum =
            a->ps->conf.checksums ? wf_part_checksum(s->weights->data, s->weights->bytes) : 0,
    };
    WF_TRY(wf_msg_add_frame(a->msg, s->weights, s->weights->data, s->weights->bytes, err));
    a->n++;
    if (a->msg->payload_bytes >= ANSWER_BYTES || a->msg->n_frames == WF_MAX_FRAMES)
        return send_answer(a, err);
    return WF_OK;
}

/* Answers the slices of a pull that are ready and were not answered before. */
static wf_status answer_ready(wf_ps *ps, wf_ps_worker *w, wf_ps_pull *pull, wf_err *err)
{
    const wf_ps_list *list = &w->lists[pull->list];
    answer a = {.ps = ps, .w = w, .pull = pull};
    wf_status rc = WF_OK;

    for (uint32_t i = 0; rc == WF_OK && i < list->n; i++) {
        const wf_slice *s = &ps->slices[list->slices[i]];

        if (pull->answered[i] || ((s->trainable || s->statistic) &&
                                  !wf_seen_all(&s->seen, w->peer->incarnation, pull->after)))
            continue;
        rc = add_slice(&a, s, err);
        pull->answered[i] = 1;
        pull->left--;
    }
    if (rc == WF_OK)
        rc = send_answer(&a, err);
    wf_net_free_msg(ps->net, &a.msg);
    if (pull->left == 0)
        pull->open = false;
    return rc;
}

wf_status wf_ps_answer_waiting(wf_ps *ps, wf_ps_worker *w, wf_err *err)
{
    for (int i = 0; i < WF_PS_MAX_PULLS; i++)
        if (w->pulls[i].open)
            WF_TRY(answer_ready(ps, w, &w->pulls[i], err));
    return WF_OK;
}

static wf_status open_pull(wf_ps_worker *w, const wf_msg *m, const wf_pull_body *body,
                           wf_ps_pull **out, wf_err *err)
{
    const wf_ps_list *list = &w->lists[body->list];
    wf_ps_pull *pull = NULL;

    for (int i = 0; i < WF_PS_MAX_PULLS && !pull; i++) /* a pull that is asked again goes on */
        if (w->pulls[i].open && w->pulls[i].request == m->head.request)
            pull = &w->pulls[i];
    for (int i = 0; i < WF_PS_MAX_PULLS && !pull; i++)
        if (!w->pulls[i].open)
            pull = &w->pulls[i];
    if (!pull)
        return wf_fail(err, WF_PROTO, NULL, "worker %u has %d pulls open, and sends one more",
                       w->peer->task.index, WF_PS_MAX_PULLS);
    if (pull->room < list->n) {
        uint8_t *answered = realloc(pull->answered, list->n);

        if (!answered)
            return wf_fail_nomem(err, list->n);
        pull->answered = answered;
        pull->room = list->n;
    }
    if (list->n)
        memset(pull->answered, 0, list->n);
    pull->open = true;
    pull->list = body->list;
    pull->request = m->head.request;
    pull->step = m->head.step;
    pull->after = body->after;
    pull->left = list->n;
    *out = pull;
    return WF_OK;
}

wf_status wf_ps_on_pull(wf_ps *ps, wf_ps_worker *w, const wf_msg *m, wf_err *err)
{
    wf_ps_pull *pull = NULL;
    wf_pull_body body;

    WF_TRY(wf_pull_get(m, &body, err));
    if (body.list >= WF_PS_MAX_LISTS)
        return wf_fail(err, WF_PROTO, NULL, "a pull of list %u", body.list);
    WF_TRY(open_pull(w, m, &body, &pull, err));
    return answer_ready(ps, w, pull, err);
}
