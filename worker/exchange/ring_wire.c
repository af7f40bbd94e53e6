/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_wire.c - the messages of workers that add up gradients. Of a header, `view`
 * and `map` are the round of steps: the number of the master's view and of the attempt
 * (ring_members.c).
 *
 *   ring_place   where a member is when a round begins: `step` is its clock, `request` 1 if it has
 *                the variables' values
 *   ring_values  a piece of an array of the variables, `request`: a part, whose version is how many
 *                updates the variable has had
 *   ring_sums    a range of a bucket: `step` is the common step, `request` the bucket, `cut` the
 *                round of its sum; a part table with the one part, in the bucket's coding or as
 *                float32, or with none for an empty range; its version is how many records the
 *                sender gives
 *   ring_given   a member has given all of its part of a step: `request` is how many records; the
 *                control bytes have a bit for each variable of which it has given a gradient
 *   ring_weights weights of variable `request`, which the sender has updated in common step `step`,
 *                as its piece `cut` of WF_RING_PIECE elements
 *   ring_done    a member has applied the step
 *   cut_save     to a member: a file of a checkpoint, of the step `step`, is to be written
 *   cut_saved    it is written, or cannot be
 */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/parts.h"
#include "worker/exchange/ring_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- sending ---- */

static wf_status new_message(wf_ring *r, uint16_t kind, uint32_t step, wf_msg **out, wf_err *err)
{
    const wf_exchange_conf *c = &r->local.conf;

    WF_TRY(wf_net_msg(c->net, kind, out, err));
    (*out)->head.job = c->job;
    (*out)->head.generation = c->generation;
    (*out)->head.view = r->view;
    (*out)->head.map = r->attempt;
    (*out)->head.step = step;
    return WF_OK;
}

/* Without a link nothing is sent: when there is one again a new round begins. */
static wf_status send(wf_ring *r, uint32_t to, wf_lane lane, wf_msg **m, wf_err *err)
{
    wf_status rc = WF_OK;

    if (r->members[to].peer)
        rc = wf_net_send(r->local.conf.net, r->members[to].peer, lane, ++r->order, m, err);
    wf_net_free_msg(r->local.conf.net, m);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

wf_status wf_ring_send(wf_ring *r, uint32_t to, uint16_t kind, uint32_t cut,
                       const ProtobufCMessage *body, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(new_message(r, kind, r->clock, &m, err));
    m->head.cut = cut;
    rc = wf_control_put(m, body, err);
    if (rc == WF_OK)
        rc = send(r, to, WF_LANE_CONTROL, &m, err);
    wf_net_free_msg(r->local.conf.net, &m);
    return rc;
}

/* One part of n elements, which are in `buf`. `version` is what else there is to say of them. */
static wf_status put_floats(const wf_ring *r, wf_buf *buf, const float *from, uint64_t n,
                            uint64_t version, wf_msg *m, wf_err *err)
{
    wf_part part = {.codec = WF_CODEC_F32, .bytes = n * sizeof(float), .version = version};

    if (n == 0)
        return wf_parts_put(m, NULL, 0, err);
    if (r->local.conf.checksums)
        part.checksum = wf_part_checksum(from, part.bytes);
    WF_TRY(wf_parts_put(m, &part, 1, err));
    return wf_msg_add_frame(m, buf, from, part.bytes, err);
}

/* The same in fewer bytes. What is sent is what stays here: all members add up the same numbers.
 * One that the coding cannot say has all of the range sent as it is. */
static wf_status put_coded(const wf_ring *r, uint32_t to, wf_coding coding, wf_buf *buf, float *x,
                           uint64_t n, uint64_t version, wf_msg *m, wf_err *err)
{
    wf_part part = {.codec = WF_CODEC_F32, .coding = (uint8_t)coding, .version = version};
    wf_buf *coded;
    wf_status rc;

    part.bytes = wf_coding_bytes(coding, n, 0);
    coded = wf_net_buf(r->members[to].peer, part.bytes);
    if (!coded)
        return wf_fail_nomem(err, part.bytes);
    if (!wf_coding_write(coding, 0, x, NULL, n, coded->data)) {
        wf_buf_unref(&coded);
        return put_floats(r, buf, x, n, version, m, err);
    }
    wf_coded_read(&(wf_coded){coding, coded->data, part.bytes, n}, 0, n, x);
    if (r->local.conf.checksums)
        part.checksum = wf_part_checksum(coded->data, part.bytes);
    rc = wf_parts_put(m, &part, 1, err);
    if (rc == WF_OK)
        rc = wf_msg_add_frame(m, coded, coded->data, part.bytes, err);
    wf_buf_unref(&coded);
    return rc;
}

wf_status wf_ring_send_sums(wf_ring *r, uint32_t bucket, const wf_reduce_message *what, wf_err *err)
{
    uint32_t slot = wf_ring_slot(r->clock + 1);
    const wf_ring_bucket *b = &r->buckets[bucket];
    wf_buf *sums = what->of_sum ? r->own_sums[slot] : r->sums[slot];
    float *from = (float *)sums->data + (what->of_sum ? b->own_at : b->at) + what->at;
    wf_coding coding = what->n < WF_CODING_LEAST ? WF_CODING_F32 : b->coding;
    uint64_t records = (uint64_t)what->weight;
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(new_message(r, WF_RING_SUMS, r->clock + 1, &m, err));
    m->head.request = bucket;
    m->head.cut = what->round;
    rc = coding ? put_coded(r, what->to, coding, sums, from, what->n, records, m, err)
                : put_floats(r, sums, from, what->n, records, m, err);
    if (rc == WF_OK)
        rc = send(r, what->to, WF_LANE_DATA, &m, err);
    wf_net_free_msg(r->local.conf.net, &m);
    return rc;
}

/* The weights stay as they are until all have them (R2), also those of the host that a device has
 * given. */
wf_status wf_ring_send_weights(wf_ring *r, uint32_t to, uint32_t variable, uint64_t at, uint64_t n,
                               wf_err *err)
{
    const wf_local_variable *v = &r->local.variables[variable];
    wf_buf *weights = v->device->is_host ? v->weights : r->weights;
    uint64_t first = v->device->is_host ? at : r->variables[variable].at + at;
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(new_message(r, WF_RING_WEIGHTS, r->clock + 1, &m, err));
    m->head.request = variable;
    m->head.cut = (uint32_t)(at / WF_RING_PIECE);
    rc = put_floats(r, weights, (const float *)weights->data + first, n, 0, m, err);
    if (rc == WF_OK)
        rc = send(r, to, WF_LANE_DATA, &m, err);
    wf_net_free_msg(r->local.conf.net, &m);
    return rc;
}

wf_status wf_ring_send_values(wf_ring *r, uint32_t to, uint32_t array, uint64_t updates,
                              wf_buf *piece, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(new_message(r, WF_RING_VALUES, r->clock, &m, err));
    m->head.request = array;
    rc = put_floats(r, piece, piece->data, piece->bytes / sizeof(float), updates, m, err);
    if (rc == WF_OK)
        rc = send(r, to, WF_LANE_DATA, &m, err);
    wf_net_free_msg(r->local.conf.net, &m);
    return rc;
}

static wf_status send_given(wf_ring *r, uint32_t to, wf_err *err)
{
    uint32_t n = r->local.n_variables;
    wf_msg *m = NULL;
    uint8_t *bits;

    WF_TRY(new_message(r, WF_RING_GIVEN, r->clock + 1, &m, err));
    m->head.request = r->own_records;
    bits = wf_msg_control(m, (n + 7) / 8);
    if (!bits && n > 0) {
        wf_net_free_msg(r->local.conf.net, &m);
        return wf_fail_nomem(err, (n + 7) / 8);
    }
    if (n > 0)
        memset(bits, 0, (n + 7) / 8);
    for (uint32_t i = 0; i < n; i++)
        if (r->variables[i].pushed)
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    return send(r, to, WF_LANE_CONTROL, &m, err);
}

wf_status wf_ring_say_given(wf_ring *r, wf_err *err)
{
    uint32_t slot = wf_ring_slot(r->clock + 1);

    r->members[r->me].words[slot] = (wf_ring_word){true, r->own_records};
    for (uint32_t i = 0; i < r->local.n_variables; i++)
        r->given[slot][i] |= r->variables[i].pushed;
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me)
            WF_TRY(send_given(r, i, err));
    return WF_OK;
}

wf_status wf_ring_say_done(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->n_members; i++) {
        wf_msg *m = NULL;

        if (i == r->me)
            continue;
        WF_TRY(new_message(r, WF_RING_DONE, r->clock, &m, err));
        WF_TRY(send(r, i, WF_LANE_CONTROL, &m, err));
    }
    return WF_OK;
}

wf_status wf_ring_say_place(wf_ring *r, uint32_t to, wf_err *err)
{
    wf_msg *m = NULL;

    if (to == r->me || !r->members[to].peer)
        return WF_OK;
    WF_TRY(new_message(r, WF_RING_PLACE, r->clock, &m, err));
    m->head.request = r->has_values;
    return send(r, to, WF_LANE_CONTROL, &m, err);
}

/* ---- receiving ---- */

/* The floats of a message, of which there may be none, in one of the codings up to `most`. */
static wf_status get_floats(const wf_ring *r, uint32_t from, const wf_msg *m, wf_coding most,
                            wf_part *part, const uint8_t **bytes, wf_err *err)
{
    wf_part parts[WF_MAX_PARTS];
    uint32_t n;

    WF_TRY(wf_parts_get(m, parts, &n, err));
    if (n > 1 || (n == 1 && (parts[0].codec != WF_CODEC_F32 || parts[0].coding > most)))
        return wf_fail(err, WF_PROTO, NULL, "worker %u: %u parts of no float32",
                       r->members[from].index, n);
    *part = n ? parts[0] : (wf_part){0};
    *bytes = n ? wf_part_data(m, &parts[0]) : NULL;
    return WF_OK;
}

/* What arrives before all have agreed where they begin is of the first step then. */
static wf_status check_step(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    uint32_t step = m->head.step, ahead = step - WF_MAX(r->clock, r->start);

    if (!r->is_agreed && !r->early)
        r->early = step;
    if (r->is_agreed ? ahead >= 1 && ahead <= WF_RING_AT_ONCE : step == r->early)
        return WF_OK;
    return wf_fail(err, WF_PROTO, NULL, "worker %u: %s of step %u, after step %u",
                   r->members[from].index, wf_kind_name(m->head.kind), step, r->clock);
}

/* Numbers in fewer bytes, as floats of their own. */
static wf_status put_decoded(const wf_ring *r, wf_reduce *sum, uint32_t from, const wf_msg *m,
                             const wf_part *part, wf_err *err)
{
    wf_coded coded = wf_part_coded(m, part);
    wf_buf *floats;
    wf_status rc;

    if (coded.n > r->n_gradients)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: a part of %lu numbers",
                       r->members[from].index, (unsigned long)coded.n);
    WF_TRY(wf_coded_check(&coded, err));
    floats = wf_buf_new(coded.n * sizeof(float));
    if (!floats)
        return wf_fail_nomem(err, coded.n * sizeof(float));
    wf_coded_read(&coded, 0, coded.n, floats->data);
    rc = wf_reduce_put(sum, from, m->head.cut,
                       &(wf_reduce_arrival){floats, floats->data, coded.n, (float)part->version},
                       err);
    wf_buf_unref(&floats);
    return rc;
}

static wf_status on_sums(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    uint32_t bucket = m->head.request;
    wf_reduce *sum;
    const uint8_t *bytes;
    wf_part part;

    WF_TRY(check_step(r, from, m, err));
    if (bucket >= r->n_buckets)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: bucket %u, of %u", r->members[from].index,
                       bucket, r->n_buckets);
    WF_TRY(get_floats(r, from, m, r->buckets[bucket].coding, &part, &bytes, err));
    sum = &r->buckets[bucket].sums[wf_ring_slot(m->head.step)];
    if (part.coding)
        WF_TRY(put_decoded(r, sum, from, m, &part, err));
    else
        WF_TRY(
            wf_reduce_put(sum, from, m->head.cut,
                          &(wf_reduce_arrival){bytes ? m->frames[part.frame].buf : r->means, bytes,
                                               part.bytes / sizeof(float), (float)part.version},
                          err));
    return r->under_way && wf_ring_is_current(r) && m->head.step == r->clock + 1
               ? wf_ring_pump(r, bucket, err)
               : WF_OK;
}

static wf_status on_given(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    uint32_t slot = wf_ring_slot(m->head.step), n = r->local.n_variables;
    wf_ring_word *word = &r->members[from].words[slot];

    WF_TRY(check_step(r, from, m, err));
    if (word->in || m->head.control_bytes != (n + 7) / 8)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: step %u is given twice, or with %u bytes",
                       r->members[from].index, m->head.step, m->head.control_bytes);
    *word = (wf_ring_word){true, m->head.request};
    for (uint32_t i = 0; i < n; i++)
        r->given[slot][i] |= r->variables[i].is_in && (m->control[i / 8] >> i % 8 & 1);
    return WF_OK;
}

static wf_status on_values(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    const uint8_t *bytes;
    wf_part part;

    WF_TRY(get_floats(r, from, m, WF_CODING_F32, &part, &bytes, err));
    return wf_ring_on_values(r, from, m->head.request, part.version, bytes,
                             part.bytes / sizeof(float), err);
}

static wf_status on_weights(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    const uint8_t *bytes;
    wf_part part;

    WF_TRY(get_floats(r, from, m, WF_CODING_F32, &part, &bytes, err));
    if (!wf_ring_is_current(r) || m->head.step != r->clock + 1 || !bytes)
        return wf_fail(err, WF_PROTO, NULL, "worker %u: weights of step %u, after step %u",
                       r->members[from].index, m->head.step, r->clock);
    return wf_ring_on_weights(r, from, m->head.request, (uint64_t)m->head.cut * WF_RING_PIECE,
                              bytes, part.bytes / sizeof(float), err);
}

/* Whoever lacks values does not know yet what others have applied. */
static wf_status on_done(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    wf_ring_member *member = &r->members[from];

    if (m->head.step < member->done || (wf_ring_is_current(r) && m->head.step > r->clock + 1))
        return wf_fail(err, WF_PROTO, NULL, "worker %u has applied step %u, after step %u",
                       member->index, m->head.step, r->clock);
    member->done = m->head.step;
    return WF_OK;
}

static wf_status take(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err)
{
    if (m->head.view != r->view)
        return WF_OK;
    if (m->head.kind == WF_RING_PLACE)
        return wf_ring_on_place(r, from, m->head.map, m->head.step, m->head.request != 0, err);
    if (m->head.map != r->attempt)
        return WF_OK;
    switch (m->head.kind) {
    case WF_RING_SUMS:
        return on_sums(r, from, m, err);
    case WF_RING_GIVEN:
        return on_given(r, from, m, err);
    case WF_RING_VALUES:
        return on_values(r, from, m, err);
    case WF_RING_WEIGHTS:
        return on_weights(r, from, m, err);
    case WF_RING_DONE:
        return on_done(r, from, m, err);
    case WF_CUT_SAVE:
        return wf_ring_on_save(r, from, m, err);
    case WF_CUT_SAVED:
        return wf_ring_on_saved(r, from, m, err);
    default:
        return WF_OK;
    }
}

wf_status wf_ring_on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m, int64_t now_ns,
                             wf_err *err)
{
    wf_ring *r = (wf_ring *)x;
    uint32_t i = wf_ring_place_of(r, from);

    (void)now_ns;
    if (i == r->n_members)
        return WF_OK;
    WF_TRY(take(r, i, m, err));
    return wf_ring_advance(r, err);
}
