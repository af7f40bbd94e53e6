/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/rendezvous.c */
#include "worker/sessions/rendezvous.h"
#include "common/base/clock.h"
#include "common/base/index.h"
#include "common/base/size.h"
#include "common/wire/variables.h"

#include <stdlib.h>
#include <string.h>

/* A value: held, or given to a Recv that may ask again. */
typedef struct held {
    char *container, *key;
    uint32_t to;
    wf_tensor *value;
    bool is_given;
    wf_rendezvous_id id;       /* of the Recv */
    int64_t until_ns, rest_ns; /* when it is dropped; and when as long as nobody has it */
    struct held *next;
} held;

/* A Recv that waits, or whose wait has ended and nobody was told of. */
typedef struct wait {
    char *container, *key;
    wf_rendezvous_want want; /* its strings and dims are those here */
    int64_t dims[WF_MAX_RANK];
    bool is_over;
    wf_tensor *value;
    wf_err why;
    struct wait *next;
} wait;

/* A session that has sent something: which Sends of its last run were made, a bit for each. */
typedef struct sender {
    uint64_t client, run, made;
    int64_t last_ns;
} sender;

struct wf_rendezvous {
    wf_rendezvous_limits limits;
    held *values, **last_value;
    wait *waits, **last_wait;
    uint32_t n_values, n_waits, n_senders;
    size_t bytes;
    sender *senders[WF_RENDEZVOUS_CLIENTS];
    wf_index by_client;
};

wf_status wf_rendezvous_new(const wf_rendezvous_limits *limits, wf_rendezvous **out, wf_err *err)
{
    wf_rendezvous *r = calloc(1, sizeof *r);

    *out = r;
    if (!r)
        return wf_fail_nomem(err, sizeof *r);
    r->limits = *limits;
    r->last_value = &r->values;
    r->last_wait = &r->waits;
    return WF_OK;
}

/* Takes *at off the list, and frees it. */
static void end_value(wf_rendezvous *r, held **at)
{
    held *h = *at;

    *at = h->next;
    if (!h->next)
        r->last_value = at;
    r->n_values--;
    r->bytes -= wf_tensor_bytes(h->value);
    wf_tensor_free(&h->value);
    free(h->container);
    free(h->key);
    free(h);
}

static void end_wait(wf_rendezvous *r, wait **at)
{
    wait *w = *at;

    *at = w->next;
    if (!w->next)
        r->last_wait = at;
    r->n_waits--;
    wf_tensor_free(&w->value);
    free(w->container);
    free(w->key);
    free(w);
}

void wf_rendezvous_free(wf_rendezvous **at)
{
    wf_rendezvous *r = *at;

    *at = NULL;
    if (!r)
        return;
    while (r->values)
        end_value(r, &r->values);
    while (r->waits)
        end_wait(r, &r->waits);
    for (uint32_t i = 0; i < r->n_senders; i++)
        free(r->senders[i]);
    wf_index_close(&r->by_client);
    free(r);
}

uint32_t wf_rendezvous_count(const wf_rendezvous *r)
{
    return r->n_values;
}

size_t wf_rendezvous_bytes(const wf_rendezvous *r)
{
    return r->bytes;
}

/* ---- names and ids ---- */

static wf_status check(const wf_rendezvous_name *name, const wf_rendezvous_id *id, wf_err *err)
{
    if (name->key[0] == 0)
        return wf_fail(err, WF_INVALID, "give it a key", "a Send or Recv has no key");
    if (strlen(name->key) > WF_RENDEZVOUS_KEY || strlen(name->container) > WF_CONTAINER_NAME)
        return wf_fail(err, WF_INVALID, "use a shorter one",
                       "a key of %zu bytes in a container's of %zu; they may have %d and %d",
                       strlen(name->key), strlen(name->container), WF_RENDEZVOUS_KEY,
                       WF_CONTAINER_NAME);
    if (id->number >= WF_RENDEZVOUS_NUMBERS)
        return wf_fail(err, WF_PROTO, NULL, "number %u of the Sends and Recvs of a run",
                       id->number);
    return WF_OK;
}

static bool is_named(const char *container, const char *key, uint32_t to,
                     const wf_rendezvous_name *name)
{
    return to == name->to && strcmp(key, name->key) == 0 && strcmp(container, name->container) == 0;
}

static bool is_same(const wf_rendezvous_id *a, const wf_rendezvous_id *b)
{
    return a->client == b->client && a->run == b->run && a->number == b->number;
}

static bool fits(const wf_tensor *t, const wf_rendezvous_want *w)
{
    bool same = t->dtype == w->dtype && t->rank == w->rank;

    for (uint32_t i = 0; same && i < t->rank; i++)
        same = t->dims[i] == w->dims[i];
    return same;
}

static wf_status misfits(const wf_tensor *t, const wf_rendezvous_want *w, wf_err *err)
{
    char has[128], wants[128];

    return wf_fail(err, WF_SHAPE, "receive it with its dtype and shape; it is still there",
                   "what was sent under key \"%.200s\" is %s %s, and the Recv wants %s %s",
                   w->name.key, wf_dtype_name(t->dtype),
                   wf_dims_str(t->rank, t->dims, has, sizeof has), wf_dtype_name(w->dtype),
                   wf_dims_str(w->rank, w->dims, wants, sizeof wants));
}

/* ---- Sends ---- */

static bool has_room(const wf_rendezvous *r, size_t bytes)
{
    return r->n_values < r->limits.values && bytes <= r->limits.bytes - r->bytes;
}

/* What was given is kept for one that asks again, as long as nothing else needs the room. */
static void make_room(wf_rendezvous *r, size_t bytes)
{
    for (held **at = &r->values; *at && !has_room(r, bytes);) {
        if ((*at)->is_given)
            end_value(r, at);
        else
            at = &(*at)->next;
    }
}

static wf_status check_room(const wf_rendezvous *r, size_t bytes, wf_err *err)
{
    if (r->n_values >= r->limits.values)
        return wf_fail(err, WF_FULL, "receive some first, or raise session_values in cluster.yaml",
                       "%u values were sent and not received; %u may be", r->n_values,
                       r->limits.values);
    if (bytes > r->limits.bytes - r->bytes)
        return wf_fail(err, WF_FULL,
                       "receive some first, or raise session_values_mib in cluster.yaml",
                       "values of %zu bytes were sent and not received, and %zu more are to be; "
                       "%zu may be",
                       r->bytes, bytes, r->limits.bytes);
    return WF_OK;
}

/* The one that was silent for longest makes room. */
static void drop_sender(wf_rendezvous *r)
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < r->n_senders; i++)
        if (r->senders[i]->last_ns < r->senders[oldest]->last_ns)
            oldest = i;
    wf_index_remove(&r->by_client, r->senders[oldest]->client);
    free(r->senders[oldest]);
    r->senders[oldest] = r->senders[--r->n_senders];
}

static wf_status get_sender(wf_rendezvous *r, uint64_t client, sender **out, wf_err *err)
{
    sender *s = wf_index_get(&r->by_client, client);
    wf_status rc;

    *out = s;
    if (s)
        return WF_OK;
    if (r->n_senders == WF_RENDEZVOUS_CLIENTS)
        drop_sender(r);
    s = calloc(1, sizeof *s);
    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->client = client;
    rc = wf_index_put(&r->by_client, client, s, err);
    if (rc != WF_OK) {
        free(s);
        return rc;
    }
    r->senders[r->n_senders++] = *out = s;
    return WF_OK;
}

/* Of a run before the session's last one, or made by it. */
static bool is_made(const sender *s, const wf_rendezvous_id *id)
{
    return id->run < s->run || (id->run == s->run && s->made >> id->number & 1);
}

static void note_made(sender *s, const wf_rendezvous_id *id, int64_t now_ns)
{
    if (id->run > s->run)
        s->made = 0;
    s->run = id->run;
    s->made |= UINT64_C(1) << id->number;
    s->last_ns = now_ns;
}

static wf_status add_value(wf_rendezvous *r, const wf_rendezvous_name *name, const wf_tensor *value,
                           int64_t now_ns, held **out, wf_err *err)
{
    held *h = calloc(1, sizeof *h);
    wf_status rc;

    if (!h)
        return wf_fail_nomem(err, sizeof *h);
    h->container = strdup(name->container);
    h->key = strdup(name->key);
    h->to = name->to;
    h->until_ns = h->rest_ns = now_ns + WF_RENDEZVOUS_REST_S * WF_NS_PER_S;
    rc = h->container && h->key ? wf_tensor_share(value, &h->value, err)
                                : wf_fail_nomem(err, strlen(name->key));
    if (rc != WF_OK) {
        free(h->container);
        free(h->key);
        free(h);
        return rc;
    }
    *r->last_value = *out = h;
    r->last_value = &h->next;
    r->n_values++;
    r->bytes += wf_tensor_bytes(h->value);
    return WF_OK;
}

static wf_status give(held *h, const wf_rendezvous_want *w, wf_tensor **out, wf_err *err)
{
    WF_TRY(wf_tensor_share(h->value, out, err));
    h->is_given = true; /* V2 */
    h->id = w->id;
    h->until_ns = w->until_ns + WF_RENDEZVOUS_GIVEN_S * WF_NS_PER_S;
    return WF_OK;
}

/* To the first that waits for it. One that wants another dtype or shape hears so. */
static void offer(const wf_rendezvous *r, held *h)
{
    for (wait *w = r->waits; w && !h->is_given; w = w->next) {
        if (w->is_over || !is_named(w->container, w->key, w->want.name.to,
                                    &(wf_rendezvous_name){h->container, h->key, h->to}))
            continue;
        w->is_over = true;
        if (fits(h->value, &w->want))
            (void)(give(h, &w->want, &w->value, &w->why) == WF_OK);
        else
            misfits(h->value, &w->want, &w->why);
    }
}

wf_status wf_rendezvous_put(wf_rendezvous *r, const wf_rendezvous_name *name,
                            const wf_rendezvous_id *id, const wf_tensor *value, int64_t now_ns,
                            wf_err *err)
{
    sender *s = NULL;
    held *h = NULL;

    WF_TRY(check(name, id, err));
    WF_TRY(get_sender(r, id->client, &s, err));
    if (is_made(s, id))
        return WF_OK;
    make_room(r, wf_tensor_bytes(value));
    WF_TRY(check_room(r, wf_tensor_bytes(value), err)); /* V1 */
    WF_TRY(add_value(r, name, value, now_ns, &h, err));
    note_made(s, id, now_ns);
    offer(r, h);
    return WF_OK;
}

/* ---- Recvs ---- */

/* What that Recv was given, or the first that it may have; NULL: nothing. */
static held *find_value(const wf_rendezvous *r, const wf_rendezvous_want *w)
{
    for (held *h = r->values; h; h = h->next)
        if (h->is_given && is_same(&h->id, &w->id) &&
            is_named(h->container, h->key, h->to, &w->name))
            return h;
    for (held *h = r->values; h; h = h->next)
        if (!h->is_given && is_named(h->container, h->key, h->to, &w->name))
            return h;
    return NULL;
}

static wf_status begin_wait(wf_rendezvous *r, const wf_rendezvous_want *want, wf_err *err)
{
    wait *w;

    if (r->n_waits >= WF_RENDEZVOUS_WAITS)
        return wf_fail(err, WF_FULL, "try again later", "%d Recvs wait here", WF_RENDEZVOUS_WAITS);
    w = calloc(1, sizeof *w);
    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->container = strdup(want->name.container);
    w->key = strdup(want->name.key);
    if (!w->container || !w->key) {
        free(w->container);
        free(w->key);
        free(w);
        return wf_fail_nomem(err, strlen(want->name.key));
    }
    w->want = *want;
    for (uint32_t i = 0; i < want->rank; i++)
        w->dims[i] = want->dims[i];
    w->want.name = (wf_rendezvous_name){w->container, w->key, want->name.to};
    w->want.dims = w->dims;
    *r->last_wait = w;
    r->last_wait = &w->next;
    r->n_waits++;
    return WF_OK;
}

/* One that asks again does not wait twice, and what earlier runs of its session were given they
 * have. */
static void end_earlier(wf_rendezvous *r, const wf_rendezvous_want *want)
{
    for (held **at = &r->values; *at;) {
        if ((*at)->is_given && (*at)->id.client == want->id.client && (*at)->id.run < want->id.run)
            end_value(r, at);
        else
            at = &(*at)->next;
    }
    for (wait **at = &r->waits; *at;) {
        if (is_same(&(*at)->want.id, &want->id))
            end_wait(r, at);
        else
            at = &(*at)->next;
    }
}

wf_status wf_rendezvous_take(wf_rendezvous *r, const wf_rendezvous_want *want, wf_tensor **out,
                             wf_err *err)
{
    held *h;

    *out = NULL;
    WF_TRY(check(&want->name, &want->id, err));
    wf_assert(want->rank <= WF_MAX_RANK);
    end_earlier(r, want);
    h = find_value(r, want);
    if (!h)
        return begin_wait(r, want, err);
    return fits(h->value, want) ? give(h, want, out, err) : misfits(h->value, want, err);
}

bool wf_rendezvous_next(wf_rendezvous *r, wf_rendezvous_end *out)
{
    wait **at = &r->waits;

    while (*at && !(*at)->is_over)
        at = &(*at)->next;
    if (!*at)
        return false;
    *out = (wf_rendezvous_end){.user = (*at)->want.user,
                               .request = (*at)->want.request,
                               .id = (*at)->want.id,
                               .value = (*at)->value,
                               .why = (*at)->why};
    (*at)->value = NULL;
    end_wait(r, at);
    return true;
}

/* What that Recv was given is held again. */
static void take_back(wf_rendezvous *r, const wf_rendezvous_id *id)
{
    for (held *h = r->values; h; h = h->next) {
        if (!h->is_given || !is_same(&h->id, id))
            continue;
        h->is_given = false;
        h->until_ns = h->rest_ns;
        offer(r, h);
    }
}

void wf_rendezvous_give_up(wf_rendezvous *r, const wf_rendezvous_id *id)
{
    for (wait **at = &r->waits; *at;) {
        if (is_same(&(*at)->want.id, id))
            end_wait(r, at);
        else
            at = &(*at)->next;
    }
    take_back(r, id);
}

void wf_rendezvous_forget(wf_rendezvous *r, const void *user)
{
    for (wait *w = r->waits; w;) {
        wf_rendezvous_id id = w->want.id;

        if (w->want.user != user) {
            w = w->next;
            continue;
        }
        wf_rendezvous_give_up(r, &id);
        w = r->waits; /* others may have ended with it */
    }
}

/* ---- time ---- */

void wf_rendezvous_advance(wf_rendezvous *r, int64_t now_ns)
{
    for (held **at = &r->values; *at;) {
        if (now_ns >= (*at)->until_ns)
            end_value(r, at);
        else
            at = &(*at)->next;
    }
    for (wait **at = &r->waits; *at;) {
        if (now_ns >= (*at)->want.until_ns && !(*at)->is_over)
            end_wait(r, at);
        else
            at = &(*at)->next;
    }
}

int64_t wf_rendezvous_deadline(const wf_rendezvous *r)
{
    int64_t soonest_ns = INT64_MAX;

    for (const held *h = r->values; h; h = h->next)
        soonest_ns = WF_MIN(soonest_ns, h->until_ns);
    for (const wait *w = r->waits; w; w = w->next)
        soonest_ns = WF_MIN(soonest_ns, w->want.until_ns);
    return soonest_ns;
}
