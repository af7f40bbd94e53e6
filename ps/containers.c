/* SPDX-License-Identifier: Apache-2.0 */
/* ps/containers.c */
#include "ps/containers.h"
#include "common/base/clock.h"
#include "common/base/index.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "ps/contained_add.h"
#include "ps/sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct variable {
    char *container, *name;
    wf_tensor *value;
} variable;

/* A session that has changed something, or read: then its sequence is 0. */
typedef struct changer {
    uint64_t session, sequence;
    int64_t last_ns;
    char *container; /* that it asked about last */
    wf_sums sums;    /* what its last additions came to */
} changer;

struct wf_containers {
    size_t limit_bytes, bytes, sums_bytes;
    variable **variables; /* [n], by container and name */
    uint32_t n, room;
    changer *changers[WF_CONTAINERS_SESSIONS];
    uint32_t n_changers;
    wf_index by_session;
};

wf_status wf_containers_new(size_t limit_bytes, wf_containers **out, wf_err *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return wf_fail_nomem(err, sizeof **out);
    (*out)->limit_bytes = limit_bytes;
    return WF_OK;
}

static void free_variable(variable *v)
{
    if (!v)
        return;
    wf_tensor_free(&v->value);
    free(v->container);
    free(v->name);
    free(v);
}

static void free_changer(wf_containers *c, changer *it)
{
    c->sums_bytes -= wf_sums_drop(&it->sums, UINT64_MAX);
    free(it->container);
    free(it);
}

void wf_containers_free(wf_containers **c)
{
    if (!*c)
        return;
    for (uint32_t i = 0; i < (*c)->n; i++)
        free_variable((*c)->variables[i]);
    for (uint32_t i = 0; i < (*c)->n_changers; i++)
        free_changer(*c, (*c)->changers[i]);
    wf_index_close(&(*c)->by_session);
    free((*c)->variables);
    free(*c);
    *c = NULL;
}

size_t wf_containers_bytes(const wf_containers *c)
{
    return c->bytes;
}

size_t wf_containers_limit(const wf_containers *c)
{
    return c->limit_bytes;
}

uint32_t wf_containers_count(const wf_containers *c)
{
    return c->n;
}

/* ---- names ---- */

static int compare(const variable *v, const char *container, const char *name)
{
    int by_container = strcmp(v->container, container);

    return by_container ? by_container : strcmp(v->name, name);
}

/* The place of a variable, or where it would be. */
static uint32_t place_of(const wf_containers *c, const char *container, const char *name,
                         bool *is_there)
{
    uint32_t low = 0, high = c->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare(c->variables[middle], container, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *is_there = low < c->n && compare(c->variables[low], container, name) == 0;
    return low;
}

static const char *in_container(const char *container, char *text, size_t size)
{
    snprintf(text, size, container[0] ? " of container \"%s\"" : "", container);
    return text;
}

enum { SHOWN = 64 }; /* names that are compared with one that is not there */

/* Others of the container, where the name would be. */
static wf_status is_missing(const wf_containers *c, const wf_variable_change *change, uint32_t at,
                            wf_err *err)
{
    char where[WF_CONTAINER_NAME + 32], hint[WF_NEAREST_HINT];
    const char *names[SHOWN], *near;
    uint32_t from = at > SHOWN / 2 ? at - SHOWN / 2 : 0, n = 0;

    for (uint32_t i = from; i < c->n && n < SHOWN; i++)
        if (strcmp(c->variables[i]->container, change->container) == 0)
            names[n++] = c->variables[i]->name;
    near = wf_nearest(change->name, names, n);
    if (near)
        snprintf(hint, sizeof hint, "did you mean \"%.200s\"?", near);
    return wf_fail(
        err, WF_NOTFOUND,
        near ? hint : "create it first, or extend a new session: a ps that starts again has none",
        "there is no variable \"%.200s\"%s", change->name,
        in_container(change->container, where, sizeof where));
}

static wf_status check_names(const wf_variable_change *change, wf_err *err)
{
    if (change->name[0] == 0)
        return wf_fail(err, WF_INVALID, "give it a name", "a variable has no name");
    if (strlen(change->name) > WF_VARIABLE_NAME || strlen(change->container) > WF_CONTAINER_NAME)
        return wf_fail(err, WF_INVALID, "use a shorter one",
                       "a name of %zu bytes in a container's of %zu; they may have %d and %d",
                       strlen(change->name), strlen(change->container), WF_VARIABLE_NAME,
                       WF_CONTAINER_NAME);
    return WF_OK;
}

/* ---- once (C1) ---- */

static bool goes_before(const changer *a, const changer *b)
{
    if (!a->sequence != !b->sequence)
        return !a->sequence; /* of one that has only read nothing is lost */
    return a->last_ns < b->last_ns;
}

/* Of all that have rested for long, the one that did longest; UINT32_MAX when none has. */
static uint32_t find_rested(const wf_containers *c, int64_t now_ns)
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < c->n_changers; i++)
        if (goes_before(c->changers[i], c->changers[oldest]))
            oldest = i;
    if (!c->changers[oldest]->sequence)
        return oldest;
    return now_ns - c->changers[oldest]->last_ns > WF_CONTAINERS_REST_S * WF_NS_PER_S ? oldest
                                                                                      : UINT32_MAX;
}

static wf_status make_place(wf_containers *c, int64_t now_ns, wf_err *err)
{
    uint32_t at;

    if (c->n_changers < WF_CONTAINERS_SESSIONS)
        return WF_OK;
    at = find_rested(c, now_ns);
    if (at == UINT32_MAX)
        return wf_fail(err, WF_AGAIN, "use one session for many calls",
                       "%d sessions have changed variables in the last hour, and no more may",
                       WF_CONTAINERS_SESSIONS);
    wf_index_remove(&c->by_session, c->changers[at]->session);
    free_changer(c, c->changers[at]);
    c->changers[at] = c->changers[--c->n_changers];
    return WF_OK;
}

/* The record of a session, made where there is none. */
static wf_status get_changer(wf_containers *c, uint64_t session, int64_t now_ns, changer **out,
                             wf_err *err)
{
    changer *it = wf_index_get(&c->by_session, session);
    wf_status rc;

    *out = it;
    if (it)
        return WF_OK;
    WF_TRY(make_place(c, now_ns, err));
    it = calloc(1, sizeof *it);
    if (!it)
        return wf_fail_nomem(err, sizeof *it);
    *it = (changer){.session = session, .last_ns = now_ns};
    rc = wf_index_put(&c->by_session, session, it, err);
    if (rc != WF_OK) {
        free(it);
        return rc;
    }
    c->changers[c->n_changers++] = *out = it;
    return WF_OK;
}

/* ---- changes ---- */

static wf_status check_room(const wf_containers *c, size_t bytes, wf_err *err)
{
    if (c->n >= WF_CONTAINERS_VARIABLES)
        return wf_fail(err, WF_FULL, "remove some", "this ps has %u variables of sessions", c->n);
    if (bytes > c->limit_bytes - c->bytes)
        return wf_fail(err, WF_FULL, "remove some, or start more ps",
                       "variables of sessions take %zu of %zu MiB on this ps, and %zu more are "
                       "wanted",
                       c->bytes >> 20, c->limit_bytes >> 20, bytes >> 20);
    return WF_OK;
}

static wf_status make_list_room(wf_containers *c, wf_err *err)
{
    uint32_t room = c->room ? 2 * c->room : 16;
    variable **more;

    if (c->n < c->room)
        return WF_OK;
    more = realloc(c->variables, room * sizeof(*more));
    if (!more)
        return wf_fail_nomem(err, room * sizeof(*more));
    c->variables = more;
    c->room = room;
    return WF_OK;
}

static wf_status create(wf_containers *c, const wf_variable_change *change, uint32_t at,
                        wf_tensor **content, wf_err *err)
{
    variable *v;

    WF_TRY(check_room(c, wf_tensor_bytes(*content), err));
    WF_TRY(make_list_room(c, err));
    v = calloc(1, sizeof *v);
    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    v->container = strdup(change->container);
    v->name = strdup(change->name);
    if (!v->container || !v->name) {
        free_variable(v);
        return wf_fail_nomem(err, strlen(change->name));
    }
    v->value = *content;
    *content = NULL;
    c->bytes += wf_tensor_bytes(v->value);
    memmove(&c->variables[at + 1], &c->variables[at], (c->n - at) * sizeof(*c->variables));
    c->variables[at] = v;
    c->n++;
    return WF_OK;
}

static bool is_like(const wf_tensor *a, const wf_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

static wf_status check_like(const variable *v, const wf_tensor *content, wf_err *err)
{
    char its[128], given[128];

    if (is_like(v->value, content))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "give a value of the variable's dtype and shape",
                   "variable \"%.200s\" is %s %s, and what is given is %s %s", v->name,
                   wf_dtype_name(v->value->dtype),
                   wf_dims_str(v->value->rank, v->value->dims, its, sizeof its),
                   wf_dtype_name(content->dtype),
                   wf_dims_str(content->rank, content->dims, given, sizeof given));
}

/* One that an answer still borrows is not written. */
static wf_status own_value(variable *v, wf_err *err)
{
    wf_tensor *copy = NULL;

    if (!v->value->buf || wf_buf_refs(v->value->buf) == 1)
        return WF_OK;
    WF_TRY(wf_tensor_copy(v->value, &copy, err));
    wf_tensor_free(&v->value);
    v->value = copy;
    return WF_OK;
}

static wf_status add(variable *v, const wf_tensor *content, wf_err *err)
{
    if (v->value->dtype == WF_BOOL)
        return wf_fail(err, WF_UNSUPPORTED, "assign to it",
                       "variable \"%.200s\" is bool, and has "
                       "no sums",
                       v->name);
    WF_TRY(own_value(v, err));
    wf_contained_add(v->value, content);
    return WF_OK;
}

static void remove_at(wf_containers *c, uint32_t at)
{
    c->bytes -= wf_tensor_bytes(c->variables[at]->value);
    free_variable(c->variables[at]);
    c->n--;
    memmove(&c->variables[at], &c->variables[at + 1], (c->n - at) * sizeof(*c->variables));
}

/* Of a variable that is there. */
static wf_status change_at(wf_containers *c, uint32_t at, wf_variable_action action,
                           wf_tensor **content, wf_err *err)
{
    variable *v = c->variables[at];

    if (wf_variable_brings(action))
        WF_TRY(check_like(v, *content, err));
    if (action == WF_VARIABLE_ASSIGN) {
        wf_tensor_free(&v->value);
        v->value = *content;
        *content = NULL;
    } else if (action == WF_VARIABLE_ADD) {
        return add(v, *content, err);
    } else if (action == WF_VARIABLE_REMOVE) {
        remove_at(c, at);
    }
    return WF_OK;
}

static wf_status apply(wf_containers *c, const wf_variable_change *change, wf_tensor **content,
                       bool *was_there, wf_err *err)
{
    uint32_t at = place_of(c, change->container, change->name, was_there);

    if (*was_there)
        return change_at(c, at, change->action, content, err);
    if (change->action == WF_VARIABLE_CREATE)
        return create(c, change, at, content, err);
    return is_missing(c, change, at, err);
}

/* For whom the session is listed; without memory it is not. */
static void note_container(changer *who, const char *container)
{
    if (who->container && strcmp(who->container, container) == 0)
        return;
    free(who->container);
    who->container = strdup(container);
}

/* ---- sums (C4) ---- */

/* Sums of sessions that were silent for longest make room. */
static void make_sums_room(wf_containers *c, size_t bytes)
{
    while (c->sums_bytes && bytes > c->limit_bytes / 8 - c->sums_bytes) {
        changer *oldest = NULL;

        for (uint32_t i = 0; i < c->n_changers; i++)
            if (c->changers[i]->sums.first &&
                (!oldest || c->changers[i]->last_ns < oldest->last_ns))
                oldest = c->changers[i];
        if (!oldest)
            return;
        c->sums_bytes -= wf_sums_drop(&oldest->sums, UINT64_MAX);
    }
}

/* One that is not kept is told so to whoever asks again. */
static void keep_sum(wf_containers *c, changer *who, uint64_t sequence, const wf_tensor *value)
{
    size_t bytes = wf_sums_bytes(value);

    if (bytes > c->limit_bytes / 8)
        return;
    make_sums_room(c, bytes);
    if (wf_sums_keep(&who->sums, sequence, value, NULL) == WF_OK)
        c->sums_bytes += bytes;
}

static wf_status find_sum(const changer *who, const wf_variable_change *change,
                          const wf_tensor **value, wf_err *err)
{
    *value = wf_sums_find(&who->sums, change->sequence);
    if (*value)
        return WF_OK;
    return wf_fail(err, WF_AGAIN, "it is made; read the variable",
                   "what the addition to \"%.200s\" came to is not kept any more", change->name);
}

/* ---- asks ---- */

/* Whether a change is to be made: it is not if it was (C1). */
static wf_status begin_change(wf_containers *c, const wf_variable_change *change, int64_t now_ns,
                              changer **who, bool *is_made, wf_err *err)
{
    WF_TRY(get_changer(c, change->session, now_ns, who, err));
    (*who)->last_ns = now_ns;
    note_container(*who, change->container);
    c->sums_bytes -= wf_sums_drop(&(*who)->sums, WF_MIN(change->since, UINT64_MAX - 1));
    *is_made = change->sequence <= (*who)->sequence;
    return WF_OK;
}

static bool gives_sum(const wf_variable_change *change)
{
    return change->action == WF_VARIABLE_ADD && change->wants_value;
}

static wf_status value_of(const wf_containers *c, const wf_variable_change *change,
                          const wf_tensor **value, wf_err *err)
{
    bool is_there;
    uint32_t at = place_of(c, change->container, change->name, &is_there);

    if (is_there)
        *value = c->variables[at]->value;
    return is_there || wf_variable_changes(change->action) ? WF_OK : is_missing(c, change, at, err);
}

static wf_status change_once(wf_containers *c, const wf_variable_change *change,
                             wf_tensor **content, int64_t now_ns, const wf_tensor **value,
                             bool *was_there, wf_err *err)
{
    changer *who = NULL;
    bool is_made = false;

    WF_TRY(begin_change(c, change, now_ns, &who, &is_made, err));
    if (is_made)
        return gives_sum(change) ? find_sum(who, change, value, err)
                                 : value_of(c, change, value, err);
    WF_TRY(apply(c, change, content, was_there, err));
    who->sequence = change->sequence;
    WF_TRY(value_of(c, change, value, err));
    if (gives_sum(change))
        keep_sum(c, who, change->sequence, *value);
    return WF_OK;
}

/* A session that reads is known as long as there is room. */
static void note_reader(wf_containers *c, const wf_variable_change *change, int64_t now_ns)
{
    changer *who = NULL;

    if (!change->session ||
        (c->n_changers == WF_CONTAINERS_SESSIONS && !wf_index_get(&c->by_session, change->session)))
        return;
    if (get_changer(c, change->session, now_ns, &who, NULL) != WF_OK)
        return;
    who->last_ns = now_ns;
    note_container(who, change->container);
}

wf_status wf_containers_act(wf_containers *c, const wf_variable_change *change, wf_tensor **content,
                            int64_t now_ns, const wf_tensor **value, bool *was_there, wf_err *err)
{
    *value = NULL;
    *was_there = false;
    wf_assert(!wf_variable_brings(change->action) || *content);
    WF_TRY(check_names(change, err));
    if (wf_variable_changes(change->action))
        return change_once(c, change, content, now_ns, value, was_there, err);
    WF_TRY(value_of(c, change, value, err));
    note_reader(c, change, now_ns);
    return WF_OK;
}

/* ---- listing ---- */

uint32_t wf_containers_behind(const wf_containers *c, const char *container, const char *name,
                              bool any)
{
    bool is_there = false;
    uint32_t at = any ? 0 : place_of(c, container, name, &is_there);

    return at + is_there;
}

bool wf_containers_at(const wf_containers *c, uint32_t at, wf_contained *out)
{
    if (at >= c->n)
        return false;
    *out = (wf_contained){c->variables[at]->container, c->variables[at]->name,
                          c->variables[at]->value};
    return true;
}

bool wf_containers_user(const wf_containers *c, uint32_t i, int64_t now_ns, uint64_t *session,
                        const char **container, bool *uses)
{
    if (i >= c->n_changers)
        return false;
    *session = c->changers[i]->session;
    *container = c->changers[i]->container;
    *uses = *container && now_ns - c->changers[i]->last_ns <= WF_CONTAINERS_USED_S * WF_NS_PER_S;
    return true;
}
