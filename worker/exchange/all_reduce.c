/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/all_reduce.c */
#include "worker/exchange/all_reduce.h"
#include "common/base/cc.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

enum {
    RING_LEAST = 64 << 10, /* bytes: below, the number of rounds costs more than the bytes */
    LINE = 64 / sizeof(float),
    PIECE = 1 << 12 /* elements: 16 KiB */
};

const char *wf_reduce_way_name(wf_reduce_way way)
{
    static const char *const names[] = {"size", "ring", "halving", "pair", "direct"};

    return names[way];
}

/* ---- plans ---- */

/* Where part `i` of `parts` of an array begins; parts differ by one element at most. */
static uint64_t part_at(uint64_t count, uint32_t parts, uint64_t i)
{
    uint64_t each = count / parts, more = count % parts;

    return i * each + WF_MIN(i, more);
}

static void plan_ring(uint32_t members, uint32_t me, uint64_t count, wf_reduce_plan *p)
{
    for (uint32_t k = 0; k < p->n_rounds; k++) {
        /* Chunk c begins at member c + 1 and is complete at member c: the order of its sum. */
        uint32_t step = k % (members - 1), gathers = k >= members - 1;
        uint32_t sent = (me + 2 * members - 1 - step + gathers) % members;
        uint32_t taken = (sent + members - 1) % members;
        wf_reduce_round *r = &p->rounds[k];

        r->sends = r->takes = true;
        r->adds = !gathers;
        r->to = (me + 1) % members;
        r->from = (me + members - 1) % members;
        r->send_at = part_at(count, members, sent);
        r->send_n = part_at(count, members, sent + 1ull) - r->send_at;
        r->take_at = part_at(count, members, taken);
        r->take_n = part_at(count, members, taken + 1ull) - r->take_at;
    }
}

/* Log2 of the largest power of two that is not above n. */
static uint32_t log_of(uint32_t n)
{
    return 31 - (uint32_t)__builtin_clz(n);
}

/* The member that has place i among the power of two: the first `folded` pairs have one each. */
static uint32_t member_at(uint32_t i, uint32_t folded)
{
    return i < folded ? 2 * i : i + folded;
}

static void set_send(wf_reduce_round *r, uint32_t to, uint64_t begin, uint64_t end)
{
    r->sends = true;
    r->to = to;
    r->send_at = begin;
    r->send_n = end - begin;
}

static void set_take(wf_reduce_round *r, uint32_t from, uint64_t begin, uint64_t end, bool adds)
{
    r->takes = true;
    r->from = from;
    r->take_at = begin;
    r->take_n = end - begin;
    r->adds = adds;
}

/* Halves, and on the way back the same ranges the other way round. `first` is the round of the
 * first half. */
static void plan_halves(uint32_t logs, uint32_t place, uint32_t folded, uint64_t count,
                        uint32_t first, wf_reduce_plan *p)
{
    uint64_t begin = 0, end = count;

    for (uint32_t k = 0; k < logs; k++) {
        uint32_t bit = 1u << (logs - 1 - k), other = member_at(place ^ bit, folded);
        uint64_t middle = begin + (end - begin) / 2;
        bool upper = place & bit;
        uint64_t mine = upper ? middle : begin, mine_end = upper ? end : middle;
        uint64_t theirs = upper ? begin : middle, theirs_end = upper ? middle : end;
        wf_reduce_round *down = &p->rounds[first + k];
        wf_reduce_round *up = &p->rounds[first + 2 * logs - 1 - k];

        set_send(down, other, theirs, theirs_end);
        set_take(down, other, mine, mine_end, true);
        set_send(up, other, mine, mine_end);
        set_take(up, other, theirs, theirs_end, false);
        begin = mine;
        end = mine_end;
    }
}

static void plan_halving(uint32_t members, uint32_t me, uint64_t count, wf_reduce_plan *p)
{
    uint32_t logs = log_of(members), folded = members - (1u << logs);
    bool is_paired = me < 2 * folded;
    uint32_t last = p->n_rounds - 1;

    if (is_paired && me % 2 == 1) {
        set_send(&p->rounds[0], me - 1, 0, count);
        set_take(&p->rounds[last], me - 1, 0, count, false);
        return;
    }
    if (is_paired) {
        set_take(&p->rounds[0], me + 1, 0, count, true);
        set_send(&p->rounds[last], me + 1, 0, count);
    }
    plan_halves(logs, is_paired ? me / 2 : me - folded, folded, count, folded ? 1 : 0, p);
}

static void plan_pair(uint32_t me, uint64_t count, wf_reduce_plan *p)
{
    set_send(&p->rounds[0], 1 - me, 0, count);
    set_take(&p->rounds[0], 1 - me, 0, count, false);
    p->rounds[0].keeps = true;
}

/* The same with parts of whole cache lines: what a transport lends lies at such an address. */
static uint64_t lines_at(uint64_t count, uint32_t parts, uint64_t i)
{
    return WF_MIN(count, LINE * part_at((count + LINE - 1) / LINE, parts, i));
}

/* In round k all send to the k-th member behind them, so that none is sent to by all at a time. */
static void plan_direct(uint32_t members, uint32_t me, uint64_t count, wf_reduce_plan *p)
{
    p->own_at = lines_at(count, members, me);
    p->own_n = lines_at(count, members, me + 1ull) - p->own_at;
    for (uint32_t k = 0; k < p->n_rounds; k++) {
        uint32_t by = k % (members - 1) + 1;
        uint32_t to = (me + by) % members, from = (me + members - by) % members;
        bool of_sum = k >= members - 1;
        uint32_t sent = of_sum ? me : to, taken = of_sum ? from : me;
        wf_reduce_round *r = &p->rounds[k];

        set_send(r, to, lines_at(count, members, sent), lines_at(count, members, sent + 1ull));
        set_take(r, from, lines_at(count, members, taken), lines_at(count, members, taken + 1ull),
                 false);
        r->keeps = true;
        r->of_sum = of_sum;
    }
}

static uint32_t count_rounds(wf_reduce_way way, uint32_t members)
{
    uint32_t logs = log_of(members);

    if (way == WF_REDUCE_PAIR)
        return 1;
    if (way == WF_REDUCE_RING || way == WF_REDUCE_DIRECT)
        return 2 * (members - 1);
    return 2 * logs + (members > 1u << logs ? 2 : 0);
}

wf_status wf_reduce_plan_make(wf_reduce_way way, uint32_t members, uint32_t me, uint64_t count,
                              wf_reduce_plan *out, wf_err *err)
{
    *out = (wf_reduce_plan){.members = members, .me = me};
    if (members == 0 || members > WF_REDUCE_MEMBERS_MOST || me >= members ||
        (way == WF_REDUCE_PAIR && members != 2))
        return wf_fail(err, WF_INVALID, NULL, "member %u of %u; %d may be", me, members,
                       WF_REDUCE_MEMBERS_MOST);
    if (way == WF_REDUCE_BY_SIZE)
        way = count >= RING_LEAST / sizeof(float) ? WF_REDUCE_RING : WF_REDUCE_HALVING;
    out->n_rounds = count_rounds(way, members);
    out->rounds = calloc(out->n_rounds + (size_t)1, sizeof *out->rounds);
    if (!out->rounds)
        return wf_fail_nomem(err, out->n_rounds * sizeof *out->rounds);
    if (way == WF_REDUCE_PAIR)
        plan_pair(me, count, out);
    else if (members > 1 && way == WF_REDUCE_RING)
        plan_ring(members, me, count, out);
    else if (members > 1 && way == WF_REDUCE_DIRECT)
        plan_direct(members, me, count, out);
    else if (members > 1)
        plan_halving(members, me, count, out);
    for (uint32_t k = 0; k < out->n_rounds; k++)
        out->keeps[out->rounds[k].of_sum] += out->rounds[k].keeps;
    return WF_OK;
}

void wf_reduce_plan_close(wf_reduce_plan *p)
{
    free(p->rounds);
    *p = (wf_reduce_plan){0};
}

/* ---- a sum ---- */

wf_status wf_reduce_init(wf_reduce *r, const wf_reduce_plan *plan, wf_err *err)
{
    *r = (wf_reduce){.plan = plan};
    r->held = calloc(plan->n_rounds + (size_t)1, sizeof *r->held);
    return r->held ? WF_OK : wf_fail_nomem(err, plan->n_rounds * sizeof *r->held);
}

void wf_reduce_close(wf_reduce *r)
{
    for (uint32_t i = 0; r->held && i < r->plan->n_rounds; i++)
        wf_buf_unref(&r->held[i].buf);
    free(r->held);
    *r = (wf_reduce){0};
}

void wf_reduce_begin(wf_reduce *r, float *data, float weight, float *sum)
{
    wf_assert(!r->data && r->round == 0 && data);
    r->data = data;
    r->weight = weight;
    r->sum = sum;
}

/* Whether a message of a round came before: it is held, or used. */
static bool has_come(const wf_reduce *r, uint32_t round)
{
    const wf_reduce_round *of = &r->plan->rounds[round];

    if (r->held[round].buf)
        return true;
    return of->keeps ? !of->of_sum && r->is_summed : round < r->round;
}

wf_status wf_reduce_put(wf_reduce *r, uint32_t from, uint32_t round, const wf_reduce_arrival *what,
                        wf_err *err)
{
    const wf_reduce_round *of = round < r->plan->n_rounds ? &r->plan->rounds[round] : NULL;

    if (!of || !of->takes || of->from != from || of->take_n != what->n)
        return wf_fail(err, WF_PROTO, NULL, "%lu elements of member %u in round %u of a sum",
                       (unsigned long)what->n, from, round);
    if (has_come(r, round))
        return wf_fail(err, WF_PROTO, NULL, "member %u sends round %u of a sum twice", from, round);
    r->held[round] = (struct wf_reduce_held){wf_buf_ref(what->buf), what->bytes, what->weight};
    r->kept[of->of_sum] += of->keeps;
    return WF_OK;
}

/* What arrived may lie at any address. */
static void use(wf_reduce *r, const wf_reduce_round *of, struct wf_reduce_held *from)
{
    float *to = r->data + of->take_at;

    if (of->take_n == 0) { /* of which there are no bytes */
        wf_buf_unref(&from->buf);
        return;
    }
    if (!of->adds) {
        memcpy(to, from->bytes, of->take_n * sizeof *to);
    } else if ((uintptr_t)from->bytes % sizeof *to == 0) {
        const float *values = (const float *)(const void *)from->bytes;

        for (uint64_t i = 0; i < of->take_n; i++)
            to[i] += values[i];
    } else {
        for (uint64_t i = 0; i < of->take_n; i++) {
            float value;

            memcpy(&value, from->bytes + i * sizeof value, sizeof value);
            to[i] += value;
        }
    }
    wf_buf_unref(&from->buf);
}

/* Elements of a member, at any address, times its weight. */
WF_MULTIVERSION static void weigh(const uint8_t *restrict x, float by, uint64_t n,
                                  float *restrict to)
{
    for (uint64_t i = 0; i < n; i++) {
        float value;

        memcpy(&value, x + i * sizeof value, sizeof value);
        to[i] = value * by;
    }
}

WF_MULTIVERSION static void add_weighed(const uint8_t *restrict x, float by, uint64_t n,
                                        float *restrict to)
{
    for (uint64_t i = 0; i < n; i++) {
        float value;

        memcpy(&value, x + i * sizeof value, sizeof value);
        to[i] += value * by;
    }
}

/* Of a member's array in the own part, and its weight. */
static struct wf_reduce_held own_part_of(const wf_reduce *r, uint32_t member)
{
    const wf_reduce_plan *p = r->plan;

    if (member == p->me)
        return (struct wf_reduce_held){.bytes = (const uint8_t *)(r->data + p->own_at),
                                       .weight = r->weight};
    return r->held[(p->me + p->members - member - 1) % p->members];
}

/* Whether the sum of the own part is there, by pieces that stay in the first cache. */
static bool sum_up(wf_reduce *r)
{
    const wf_reduce_plan *p = r->plan;

    if (r->is_summed || r->kept[0] < p->keeps[0])
        return r->is_summed;
    for (uint64_t at = 0, n; at < p->own_n; at += n) {
        n = WF_MIN(p->own_n - at, (uint64_t)PIECE);
        for (uint32_t m = 0; m < p->members; m++) {
            struct wf_reduce_held of = own_part_of(r, m);
            const uint8_t *x = of.bytes + at * sizeof(float);

            if (m == 0)
                weigh(x, of.weight, n, r->sum + at);
            else
                add_weighed(x, of.weight, n, r->sum + at);
        }
    }
    for (uint32_t k = 0; k < p->keeps[0]; k++)
        wf_buf_unref(&r->held[k].buf);
    r->is_summed = true;
    return true;
}

bool wf_reduce_next(wf_reduce *r, wf_reduce_message *out)
{
    if (!r->data)
        return false;
    for (; r->round < r->plan->n_rounds; r->round++, r->sent = false) {
        const wf_reduce_round *of = &r->plan->rounds[r->round];

        if (of->of_sum && !sum_up(r))
            return false;
        if (of->sends && !r->sent) {
            r->sent = true;
            *out = (wf_reduce_message){.to = of->to,
                                       .round = r->round,
                                       .at = of->of_sum ? 0 : of->send_at,
                                       .n = of->send_n,
                                       .of_sum = of->of_sum,
                                       .weight = r->weight};
            return true;
        }
        if (!of->takes || of->keeps)
            continue;
        if (!r->held[r->round].buf)
            return false;
        use(r, of, &r->held[r->round]);
    }
    return false;
}

bool wf_reduce_is_done(const wf_reduce *r)
{
    const wf_reduce_plan *p = r->plan;

    return r->data && r->round == p->n_rounds && (r->is_summed || r->kept[0] == p->keeps[0]) &&
           r->kept[1] == p->keeps[1];
}

const uint8_t *wf_reduce_kept(const wf_reduce *r)
{
    wf_assert(wf_reduce_is_done(r) && r->plan->rounds[0].keeps);
    return r->held[0].bytes;
}

const uint8_t *wf_reduce_sum_at(const wf_reduce *r, uint64_t at, uint64_t *n)
{
    const wf_reduce_plan *p = r->plan;

    wf_assert(wf_reduce_is_done(r));
    if (at - p->own_at < p->own_n) {
        *n = p->own_at + p->own_n - at;
        return (const uint8_t *)(r->sum + (at - p->own_at));
    }
    for (uint32_t k = p->keeps[0];; k++) {
        const wf_reduce_round *of = &p->rounds[k];

        wf_assert(k < p->n_rounds);
        if (at - of->take_at < of->take_n) {
            *n = of->take_at + of->take_n - at;
            return r->held[k].bytes + (at - of->take_at) * sizeof(float);
        }
    }
}

uint32_t wf_reduce_late(const wf_reduce *r)
{
    for (uint32_t k = 0; r->data && k <= r->round && k < r->plan->n_rounds; k++) {
        const wf_reduce_round *of = &r->plan->rounds[k];

        if (of->takes && !has_come(r, k))
            return of->from;
    }
    return UINT32_MAX;
}

void wf_reduce_again(wf_reduce *r)
{
    wf_assert(wf_reduce_is_done(r));
    for (uint32_t k = 0; k < r->plan->n_rounds; k++)
        wf_buf_unref(&r->held[k].buf);
    r->data = r->sum = NULL;
    r->round = 0;
    r->sent = r->is_summed = false;
    r->kept[0] = r->kept[1] = 0;
}
