/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_buckets.c - all gradients lie in one array, the last variable first: a
 * backward pass comes to the gradients of the last layers first. Those that are sent in fewer bytes
 * come before the others. The array is cut into buckets, and each is a sum of its own, so that many
 * small variables share messages and the parts of a large one are under way at once. */
#include "common/base/cc.h"
#include "common/base/clock.h"
#include "common/base/copy_past.h"
#include "common/base/machine.h"
#include "common/base/size.h"
#include "worker/exchange/ring_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 64,
    LINE = LINE_BYTES / sizeof(float), /* where what is sent begins, so that it can be lent */
    TIMED_BYTES = 64 << 10,            /* a copy that is worth two looks at the clock */
    SLOW_LINE_NS = 12, /* on a Zen 4 a line takes 7 to a near core, and 25 to a far one */
    SLOW_COPIES = 4,   /* one after the other: the thread may have been away in one */
    PLAIN_EVERY = 64
};

static void keep(void *data, void *hint)
{
    (void)data, (void)hint; /* the array's own buffer frees it */
}

/* ---- layout ---- */

static bool has_gradient(const wf_local_variable *v)
{
    return !wf_local_is_frozen(v) && v->count > 0;
}

static const wf_coding codings[] = {WF_CODING_BF16, WF_CODING_F16, WF_CODING_F32};

/* Sums are rounded where they are sent: there is no residual, and without one other codings lose
 * too much. */
static wf_coding coding_of(const wf_local_variable *v)
{
    uint32_t coding = wf_local_is_trainable(v) ? v->row->push_coding : WF_CODING_F32;

    return coding == WF_CODING_BF16 || coding == WF_CODING_F16 ? (wf_coding)coding : WF_CODING_F32;
}

uint64_t wf_ring_bytes_of(const wf_ring *r, uint32_t variable)
{
    const wf_local_variable *v = &r->local.variables[variable];

    return wf_coding_bytes(r->n_members > 1 ? coding_of(v) : WF_CODING_F32, v->count, 0);
}

static void lay_out_group(wf_ring *r, wf_coding coding)
{
    const wf_local *l = &r->local;

    for (uint32_t i = l->n_variables; i > 0; i--) {
        wf_ring_variable *v = &r->variables[i - 1];

        if (!has_gradient(&l->variables[i - 1]) || coding_of(&l->variables[i - 1]) != coding)
            continue;
        v->is_in = true;
        v->at = r->n_gradients;
        r->n_gradients += l->variables[i - 1].count;
    }
}

static wf_status lay_out_variables(wf_ring *r, wf_err *err)
{
    size_t bytes;

    for (size_t k = 0; k < WF_COUNT(codings); k++) {
        r->groups[k].at = r->n_gradients = wf_align_up(r->n_gradients, LINE);
        lay_out_group(r, codings[k]);
        r->groups[k].n = r->n_gradients - r->groups[k].at;
    }
    if (!wf_mul_size((size_t)r->n_gradients, sizeof(float), &bytes))
        return wf_fail(err, WF_PROTO, NULL, "variables of %lu elements have no size that fits",
                       (unsigned long)r->n_gradients);
    if (r->local.on.device)
        return wf_ring_device_open(r, bytes, err);
    r->means = wf_buf_new(bytes);
    return r->means ? WF_OK : wf_fail_nomem(err, bytes);
}

/* The exchange of a worker's own variables reads means as if they were its gradients. */
static wf_status lend_means(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        wf_local_variable *v = &r->local.variables[i];
        const wf_buf *from = v->device->is_host ? r->means : r->brought;

        if (!r->variables[i].is_in)
            continue;
        v->gradient = wf_buf_wrap((float *)from->data + r->variables[i].at,
                                  v->count * sizeof(float), keep, NULL);
        if (!v->gradient)
            return wf_fail_nomem(err, sizeof *v->gradient);
        v->gradient->device = from->device;
    }
    return WF_OK;
}

/* The bucket of an element. */
static uint32_t bucket_of(const wf_ring *r, uint64_t at)
{
    const struct wf_ring_group *g = r->groups;

    while (at >= g->at + g->n)
        g++;
    return g->first + (uint32_t)((at - g->at) / WF_RING_BUCKET);
}

static uint64_t count_buckets(wf_ring *r)
{
    uint64_t n = 0;

    for (size_t k = 0; k < WF_COUNT(codings); k++) {
        r->groups[k].first = (uint32_t)n;
        n += (r->groups[k].n + WF_RING_BUCKET - 1) / WF_RING_BUCKET;
    }
    return n;
}

static void cut_group(wf_ring *r, const struct wf_ring_group *g, wf_coding coding)
{
    for (uint64_t at = 0; at < g->n; at += WF_RING_BUCKET)
        r->buckets[r->n_buckets++] = (wf_ring_bucket){
            .at = g->at + at, .n = WF_MIN(g->n - at, (uint64_t)WF_RING_BUCKET), .coding = coding};
}

/* Which buckets a variable has a part in. Those with an element are not empty. */
static void find_buckets(wf_ring *r)
{
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        wf_ring_variable *v = &r->variables[i];

        if (!v->is_in)
            continue;
        v->first = bucket_of(r, v->at);
        v->last = bucket_of(r, v->at + r->local.variables[i].count - 1);
        for (uint32_t b = v->first; b <= v->last; b++)
            r->buckets[b].missing = ++r->buckets[b].variables;
    }
}

static void close_sums(wf_ring_bucket *b)
{
    for (int k = 0; k < WF_RING_AT_ONCE; k++)
        if (b->sums[k].held)
            wf_reduce_close(&b->sums[k]);
}

static wf_status plan_bucket(const wf_ring *r, wf_ring_bucket *b, wf_err *err)
{
    close_sums(b);
    wf_reduce_plan_close(&b->plan);
    return wf_reduce_plan_make(r->way, r->n_members, r->me, b->n, &b->plan, err);
}

/* Between hosts a ring sends to one neighbour at a time, and few numbers are sent in fewer messages
 * by halving. */
static wf_reduce_way choose_way(const wf_ring *r)
{
    if (r->n_members == 2)
        return WF_REDUCE_PAIR;
    return r->n_members > 2 && r->on_one_host ? WF_REDUCE_DIRECT : WF_REDUCE_BY_SIZE;
}

/* Whether gradients are computed in the array that is sent from. A core takes lines that another
 * one has read one by one as a product writes its tiles, and many at a time where it copies them:
 * an array that fits into a core's cache is computed elsewhere and copied. Not one that is rounded
 * where it is sent (ring_wire.c): all members add up what was sent. */
static bool computes_where_sent(const wf_ring *r)
{
    if (r->n_members == 1)
        return r->brought;
    return wf_ring_keeps(r) &&
           (r->brought || r->local.opt.rule->whole || r->groups[0].n + r->groups[1].n > 0 ||
            r->means->bytes > wf_machine_core_cache());
}

wf_status wf_ring_plan(wf_ring *r, wf_err *err)
{
    r->way = choose_way(r);
    r->in_sums = computes_where_sent(r);
    r->n_own_sums = 0;
    WF_TRY(wf_ring_device_plan(r, err));
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        WF_TRY(plan_bucket(r, &r->buckets[b], err));
        r->buckets[b].own_at = r->n_own_sums;
        r->n_own_sums += wf_align_up(r->buckets[b].plan.own_n, LINE);
    }
    return WF_OK;
}

static wf_status restart_bucket(wf_ring_bucket *b, wf_err *err)
{
    close_sums(b);
    for (int k = 0; k < WF_RING_AT_ONCE; k++)
        WF_TRY(wf_reduce_init(&b->sums[k], &b->plan, err));
    return WF_OK;
}

wf_status wf_ring_restart(wf_ring *r, wf_err *err)
{
    WF_TRY(wf_ring_device_wait(r, err)); /* it may read the sums of one member */
    for (uint32_t b = 0; b < r->n_buckets; b++)
        WF_TRY(restart_bucket(&r->buckets[b], err));
    for (int k = 0; k < WF_RING_AT_ONCE; k++) {
        memset(r->given[k], 0, r->local.n_variables);
        wf_buf_unref(&r->sums[k]);
        wf_buf_unref(&r->own_sums[k]);
        r->is_lent[k] = false;
    }
    return WF_OK;
}

/* All of a ring, and of a pair, goes to the next member: where that maps memory of this process
 * nothing is copied. */
static const wf_peer *next_member(const wf_ring *r)
{
    return r->members[(r->me + 1) % r->n_members].peer;
}

/* Memory that is sent from; NULL when there is none. */
static wf_buf *new_sent(const wf_ring *r, size_t bytes)
{
    return r->way == WF_REDUCE_DIRECT ? wf_net_buf_for_several(next_member(r), bytes)
                                      : wf_net_buf(next_member(r), bytes);
}

/* The array that is sent from in the step under way, or of one member: that a device reads. NULL
 * without memory. */
static wf_buf *sent_from(wf_ring *r)
{
    wf_buf **b = &r->sums[wf_ring_slot(r->clock + 1)];

    if (!*b)
        *b = r->n_members > 1 ? new_sent(r, r->means->bytes)
                              : wf_buf_new_pinned(r->local.on.device, r->means->bytes);
    return *b;
}

/* Room for the sums of own parts; NULL without memory. */
static wf_buf *own_sums(wf_ring *r)
{
    wf_buf **b = &r->own_sums[wf_ring_slot(r->clock + 1)];

    if (!*b)
        *b = new_sent(r, r->n_own_sums * sizeof(float));
    return *b;
}

/* Whether the one member's sums are where its means are. */
static bool is_in_place(const wf_ring *r)
{
    return r->n_members == 1 && !r->brought;
}

/* Whether those who are sent sums read them where they lie. */
static bool lends(const wf_ring *r)
{
    if (r->way != WF_REDUCE_DIRECT)
        return wf_net_lends(next_member(r), r->means->bytes);
    for (uint32_t i = 0; i < r->n_members; i++)
        if (i != r->me && !wf_net_lends(r->members[i].peer, r->means->bytes))
            return false;
    return true;
}

/* The memory that is lent may have come to be since a link is up. */
static void choose_memory(wf_ring *r)
{
    uint32_t slot = wf_ring_slot(r->clock + 1);
    bool now = lends(r);

    if (now && !r->is_lent[slot]) {
        wf_buf_unref(&r->sums[slot]);
        wf_buf_unref(&r->own_sums[slot]);
    }
    r->is_lent[slot] = now;
}

void wf_ring_take_array(wf_ring *r)
{
    wf_buf *b = r->brought ? r->own : NULL;

    if (r->n_members > 1)
        choose_memory(r);
    if (r->in_sums)
        b = sent_from(r);
    wf_buf_unref(&r->gradients);
    r->gradients = wf_buf_ref(b ? b : r->means);
}

wf_status wf_ring_buckets_open(wf_ring *r, wf_err *err)
{
    uint64_t n;

    r->variables = calloc(r->local.n_variables + (size_t)1, sizeof *r->variables);
    if (!r->variables)
        return wf_fail_nomem(err, r->local.n_variables * sizeof *r->variables);
    WF_TRY(lay_out_variables(r, err));
    WF_TRY(lend_means(r, err));
    n = count_buckets(r);
    if (n > UINT32_MAX)
        return wf_fail(err, WF_PROTO, NULL, "variables of %lu elements", (unsigned long)n);
    r->buckets = calloc(n + 1, sizeof *r->buckets);
    if (!r->buckets)
        return wf_fail_nomem(err, n * sizeof *r->buckets);
    for (size_t k = 0; k < WF_COUNT(codings); k++)
        cut_group(r, &r->groups[k], codings[k]);
    find_buckets(r);
    return WF_OK;
}

void wf_ring_buckets_close(wf_ring *r)
{
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        close_sums(&r->buckets[b]);
        wf_reduce_plan_close(&r->buckets[b].plan);
    }
    free(r->buckets);
    free(r->variables);
    wf_ring_device_close(r);
    wf_buf_unref(&r->gradients);
    wf_buf_unref(&r->means);
    for (int k = 0; k < WF_RING_AT_ONCE; k++) {
        wf_buf_unref(&r->sums[k]);
        wf_buf_unref(&r->own_sums[k]);
    }
}

/* ---- sums ---- */

static wf_reduce *sum_of(const wf_ring *r, uint32_t bucket)
{
    return &r->buckets[bucket].sums[wf_ring_slot(r->clock + 1)];
}

wf_status wf_ring_pump(wf_ring *r, uint32_t bucket, wf_err *err)
{
    wf_reduce_message m;

    while (wf_reduce_next(sum_of(r, bucket), &m))
        WF_TRY(wf_ring_send_sums(r, bucket, &m, err));
    return WF_OK;
}

WF_MULTIVERSION static void multiply(const float *restrict x, float by, uint64_t n,
                                     float *restrict to)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = x[i] * by;
}

/* What another member has sent may lie at any address. */
WF_MULTIVERSION static void divide(const uint8_t *restrict x, float by, uint64_t n,
                                   float *restrict to)
{
    for (uint64_t i = 0; i < n; i++) {
        float value;

        memcpy(&value, x + i * sizeof value, sizeof value);
        to[i] = value / by;
    }
}

WF_MULTIVERSION static void weigh_two(const float *restrict x, float by_x,
                                      const uint8_t *restrict y, float by_y, uint64_t n,
                                      float *restrict to)
{
    for (uint64_t i = 0; i < n; i++) {
        float other;

        memcpy(&other, y + i * sizeof other, sizeof other);
        to[i] = x[i] * by_x + other * by_y;
    }
}

/* To memory that another member reads where it lies, if it is lent. How far that one's core is goes
 * by the processors that a virtual machine has now: where lines come slowly, what leaves goes past
 * the cache, and where they come fast it is read faster from there. A plain copy now and then
 * tells. */
static void copy(wf_ring *r, const float *from, size_t bytes, float *to)
{
    int64_t began_ns;
    bool slow;

    if (!r->is_lent[wf_ring_slot(r->clock + 1)] || bytes < TIMED_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    if (r->slow_copies >= SLOW_COPIES && ++r->copies_past % PLAIN_EVERY > 0) {
        wf_copy_past_cache(to, from, bytes);
        return;
    }
    began_ns = wf_now_ns();
    memcpy(to, from, bytes);
    slow = wf_now_ns() - began_ns > (int64_t)(bytes / LINE_BYTES) * SLOW_LINE_NS;
    r->slow_copies = slow ? WF_MIN(r->slow_copies + 1, (uint32_t)SLOW_COPIES) : 0;
}

/* What leaves: gradients as they are where they are kept, else times the records that they are
 * means over. */
static void fill(wf_ring *r, const wf_ring_bucket *b, float *to)
{
    const float *from = (const float *)r->gradients->data + b->at;

    if (r->n_members > 2 && !wf_ring_keeps(r))
        multiply(from, (float)r->own_records, b->n, to);
    else if (from != to)
        copy(r, from, b->n * sizeof *to, to);
}

/* Begins a sum, if all of its gradients are there. */
static wf_status begin(wf_ring *r, uint32_t bucket, wf_err *err)
{
    const wf_ring_bucket *b = &r->buckets[bucket];
    wf_buf *array, *own = NULL;

    if (b->missing > 0 || !wf_ring_is_current(r))
        return WF_OK;
    array = is_in_place(r) ? r->means : sent_from(r);
    if (array && r->way == WF_REDUCE_DIRECT)
        own = own_sums(r);
    if (!array || (r->way == WF_REDUCE_DIRECT && !own))
        return wf_fail_nomem(err, r->means->bytes);
    fill(r, b, (float *)array->data + b->at);
    wf_reduce_begin(sum_of(r, bucket), (float *)array->data + b->at, (float)r->own_records,
                    own ? (float *)own->data + b->own_at : NULL);
    return wf_ring_pump(r, bucket, err);
}

wf_status wf_ring_give_again(wf_ring *r, wf_err *err)
{
    for (uint32_t b = 0; r->under_way && b < r->n_buckets; b++)
        WF_TRY(begin(r, b, err));
    return r->is_given ? wf_ring_say_given(r, err) : WF_OK;
}

float *wf_ring_gradient(const wf_ring *r, uint32_t variable)
{
    return (float *)r->gradients->data + r->variables[variable].at;
}

wf_status wf_ring_give(wf_ring *r, uint32_t variable, wf_err *err)
{
    wf_ring_variable *v = &r->variables[variable];

    wf_assert(v->is_in && !v->pushed);
    v->pushed = true;
    for (uint32_t b = v->first; b <= v->last; b++) {
        r->buckets[b].missing--;
        WF_TRY(begin(r, b, err));
    }
    return WF_OK;
}

wf_status wf_ring_give_rest(wf_ring *r, wf_err *err)
{
    for (uint32_t i = 0; i < r->local.n_variables; i++) {
        const wf_ring_variable *v = &r->variables[i];

        if (!v->is_in || v->pushed)
            continue;
        memset(wf_ring_gradient(r, i), 0, r->local.variables[i].count * sizeof(float));
        WF_TRY(wf_ring_give(r, i, err));
        r->variables[i].pushed = false;
    }
    return WF_OK;
}

bool wf_ring_sums_are_in(const wf_ring *r)
{
    for (uint32_t b = 0; b < r->n_buckets; b++)
        if (!wf_reduce_is_done(sum_of(r, b)))
            return false;
    return true;
}

/* Elements [at, at + n) of a bucket of a pair. Both make the same sum, whichever is the first: an
 * addition commutes. */
static void weigh(const wf_ring *r, uint32_t bucket, uint64_t at, uint64_t n, float *to)
{
    const wf_buf *from = r->in_sums ? r->sums[wf_ring_slot(r->clock + 1)] : r->gradients;
    const float *own = from->data;
    const uint8_t *others = wf_reduce_kept(sum_of(r, bucket));

    weigh_two(own + r->buckets[bucket].at + at, r->weighs[0], others + at * sizeof(float),
              r->weighs[1], n, to);
}

/* The same of direct sums, which lie in as many pieces as there are members. */
static void divide_direct(const wf_ring *r, uint32_t bucket, uint64_t at, uint64_t n, float *to)
{
    for (uint64_t done = 0, some; done < n; done += some) {
        const uint8_t *sum = wf_reduce_sum_at(sum_of(r, bucket), at + done, &some);

        some = WF_MIN(some, n - done);
        divide(sum, (float)r->records, some, to + done);
    }
}

void wf_ring_make_means(const wf_ring *r, uint32_t bucket, uint64_t at, uint64_t n, float to[])
{
    const float *sums = r->sums[wf_ring_slot(r->clock + 1)]->data;

    if (r->way == WF_REDUCE_PAIR)
        weigh(r, bucket, at, n, to);
    else if (r->way == WF_REDUCE_DIRECT)
        divide_direct(r, bucket, at, n, to);
    else
        divide((const uint8_t *)(sums + r->buckets[bucket].at + at), (float)r->records, n, to);
}

/* What is kept becomes means where they are used, and these lie nowhere else: they are as large as
 * the variables, which then fit into a cache more often. */
static void make_means(const wf_local *l, const wf_local_variable *v, uint64_t at, uint64_t n,
                       float out[])
{
    const wf_ring *r = (const wf_ring *)l;
    uint64_t from = r->variables[v - l->variables].at + at;

    for (uint64_t done = 0, some; done < n; done += some) {
        uint32_t bucket = bucket_of(r, from + done);
        uint64_t in = from + done - r->buckets[bucket].at;

        some = WF_MIN(n - done, r->buckets[bucket].n - in);
        wf_ring_make_means(r, bucket, in, some, out + done);
    }
}

static void weigh_members(wf_ring *r)
{
    uint32_t slot = wf_ring_slot(r->clock + 1);
    float records = (float)r->records;

    r->weighs[0] = (float)r->members[r->me].words[slot].records / records;
    r->weighs[1] = (float)r->members[1 - r->me].words[slot].records / records;
}

wf_status wf_ring_take_means(wf_ring *r, uint64_t records, wf_err *err)
{
    if (records == 0)
        return WF_OK;
    r->records = records;
    if (r->way == WF_REDUCE_PAIR)
        weigh_members(r);
    if (r->brought)
        return wf_err_wrap(err, wf_ring_bring_means(r, err), "bringing means");
    if (wf_ring_keeps(r) && !r->local.opt.rule->whole) {
        r->local.make_gradient = make_means;
        return WF_OK;
    }
    for (uint32_t b = 0; r->n_members > 1 && b < r->n_buckets; b++)
        wf_ring_make_means(r, b, 0, r->buckets[b].n, (float *)r->means->data + r->buckets[b].at);
    return WF_OK;
}

void wf_ring_drop_means(wf_ring *r)
{
    r->local.make_gradient = NULL;
    for (uint32_t b = 0; b < r->n_buckets; b++)
        wf_reduce_again(sum_of(r, b));
}

void wf_ring_end_sums(wf_ring *r)
{
    for (uint32_t b = 0; b < r->n_buckets; b++)
        r->buckets[b].missing = r->buckets[b].variables;
    for (uint32_t i = 0; i < r->local.n_variables; i++)
        r->variables[i].pushed = false;
}
