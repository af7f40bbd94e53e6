/* SPDX-License-Identifier: Apache-2.0 */
/* lib/session.c - sessions on a cluster, and their variables one by one. */
#include "lib/session.h"
#include "common/base/rng.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000 };

/* ---- beginning and end ---- */

static wf_status check_cluster(const wf_client *c, wf_err *err)
{
    if (wf_client_count(c, WF_ROLE_PS) > 0)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "name a ps in cluster.yaml",
                   "the cluster has no ps, where variables of sessions live");
}

/* The one that the session was opened at; or sessions are spread over all. */
static void choose_worker(weft_session *s)
{
    wf_task entry = wf_client_entry(s->client);

    s->worker = entry.role == WF_ROLE_WORKER
                    ? entry.index
                    : (uint32_t)(s->id % wf_client_count(s->client, WF_ROLE_WORKER));
}

static wf_status open_session(const char *address, const weft_session_options *o,
                              weft_session **out, wf_err *err)
{
    weft_session *s = calloc(1, sizeof *s);
    const char *container = o->container ? o->container : "";
    wf_status rc;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    s->pid = getpid();
    s->id = wf_random_id();
    s->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
    s->container = strdup(container);
    rc = s->container ? WF_OK : wf_fail_nomem(err, strlen(container));
    if (rc == WF_OK && strlen(container) > WF_CONTAINER_NAME)
        rc = wf_fail(err, WF_INVALID, "use a shorter one",
                     "the container's name has %zu bytes; it may have %d", strlen(container),
                     WF_CONTAINER_NAME);
    if (rc == WF_OK)
        rc = wf_client_open(address, s->timeout_ms, &s->client, err);
    if (rc == WF_OK)
        rc = check_cluster(s->client, err);
    if (rc == WF_OK)
        choose_worker(s);
    if (rc != WF_OK)
        weft_session_free(&s);
    *out = s;
    return rc;
}

weft_code weft_session_open(const char *address, const weft_session_options *options,
                            weft_session **out, weft_error *error)
{
    static const weft_session_options defaults;
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(address);
    return wf_lib_end(open_session(address, options ? options : &defaults, out, &err), &err, error);
}

void weft_session_free(weft_session **s)
{
    if (!s || !*s)
        return;
    if ((*s)->pid != getpid()) { /* its sockets, and what locks hold, are the parent's */
        *s = NULL;
        return;
    }
    pthread_mutex_lock(&(*s)->lock); /* for a call that is under way */
    pthread_mutex_unlock(&(*s)->lock);
    wf_lib_session_close_runs(*s);
    wf_client_close(&(*s)->client);
    pthread_mutex_destroy(&(*s)->lock);
    free((*s)->container);
    free(*s);
    *s = NULL;
}

void weft_session_task(const weft_session *s, char *text, size_t size)
{
    wf_task task;

    if (!text || !size)
        return;
    text[0] = 0;
    if (!s)
        return;
    task = wf_client_entry(s->client);
    snprintf(text, size, task.role == WF_ROLE_MASTER ? "%s" : "%s %u", wf_role_name(task.role),
             task.index);
}

wf_status wf_lib_session_enter(weft_session *s, wf_err *err)
{
    if (s->pid != getpid())
        return wf_fail(err, WF_INVALID, "open a session in the child",
                       "the session was opened by process %ld, and process %ld is its child",
                       (long)s->pid, (long)getpid());
    pthread_mutex_lock(&s->lock);
    return WF_OK;
}

void wf_lib_session_leave(weft_session *s)
{
    pthread_mutex_unlock(&s->lock);
}

/* ---- variables ---- */

static wf_status fill(const weft_session *s, wf_variable_action action, const char *name,
                      const wf_tensor *content, bool wants, wf_msg *m, wf_err *err)
{
    Weft__VariableAsk body = WEFT__VARIABLE_ASK__INIT;
    Weft__TensorHead head;
    int64_t dims[WF_MAX_RANK];

    body.action = action;
    body.session = s->id;
    body.sequence = s->sequence;
    body.since = s->sequence;
    body.container = s->container;
    body.name = (char *)name;
    body.wants_value = wants;
    body.n_ps = wf_client_count(s->client, WF_ROLE_PS);
    if (content) {
        wf_tensor_head(content, &head, dims);
        body.tensor = &head;
    }
    return wf_tensors_put(m, &body.base, content ? 1 : 0, &content, true, err);
}

static wf_status read_answer(const wf_msg *m, wf_tensor **value, wf_err *err)
{
    Weft__VariableAnswer *body = NULL;
    wf_status rc;

    WF_TRY(wf_tensors_body(m, &weft__variable_answer__descriptor, &body, err));
    rc = (wf_status)body->status;
    if (rc != WF_OK)
        wf_fail(err, rc, body->hint, "%s", body->what);
    else if (value && body->tensor)
        rc = wf_tensors_take(m, 0, body->tensor, value, err);
    else if (value)
        rc = wf_fail(err, WF_PROTO, "upgrade the ps", "a ps answers without the variable's value");
    wf_control_free(&body);
    return rc;
}

static wf_status check_name(const char *name, wf_err *err)
{
    if (name[0] == 0 || strlen(name) > WF_VARIABLE_NAME)
        return wf_fail(err, WF_INVALID, "give it another name",
                       "a variable's name has 1 to %d bytes, not %zu", WF_VARIABLE_NAME,
                       strlen(name));
    return WF_OK;
}

wf_status wf_lib_variable(weft_session *s, wf_variable_action action, const char *name,
                          const wf_tensor *content, wf_tensor **value, wf_err *err)
{
    wf_msg *m = NULL, *answer = NULL;
    wf_task home = {WF_ROLE_PS, 0};
    wf_status rc;

    WF_TRY(check_name(name, err));
    home.index = wf_variable_home(s->container, name, wf_client_count(s->client, WF_ROLE_PS));
    if (wf_variable_changes(action))
        s->sequence++;
    WF_TRY(wf_client_msg(s->client, WF_VARIABLE, &m, err));
    rc = fill(s, action, name, content, value != NULL, m, err);
    if (rc == WF_OK)
        rc = wf_client_call(s->client, home, &m, &answer, err);
    if (rc == WF_OK)
        rc = read_answer(answer, value, err);
    wf_client_free_msg(s->client, &m);
    wf_client_free_msg(s->client, &answer);
    return rc;
}

/* One of the calls of weft.h: `given` comes with it, and *out is the variable afterwards; either
 * may be NULL. */
static weft_code act(weft_session *s, wf_variable_action action, const char *name,
                     const weft_tensor *given, weft_tensor **out, weft_error *error)
{
    wf_tensor *content = NULL, *value = NULL;
    wf_err err = {0};
    wf_status rc = given ? wf_lib_take(given, name, &content, &err) : WF_OK;

    if (rc == WF_OK)
        rc = wf_lib_session_enter(s, &err);
    if (rc == WF_OK) {
        rc = wf_lib_variable(s, action, name, content, out ? &value : NULL, &err);
        wf_lib_session_leave(s);
    }
    if (rc == WF_OK && out)
        rc = wf_lib_give(&value, out, &err);
    wf_tensor_free(&content);
    return wf_lib_end(rc, &err, error);
}

weft_code weft_session_create(weft_session *s, const char *name, const weft_tensor *first,
                              weft_error *error)
{
    WF_LIB_NEED(s);
    WF_LIB_NEED(name);
    WF_LIB_NEED(first);
    return act(s, WF_VARIABLE_CREATE, name, first, NULL, error);
}

weft_code weft_session_assign(weft_session *s, const char *name, const weft_tensor *value,
                              weft_error *error)
{
    WF_LIB_NEED(s);
    WF_LIB_NEED(name);
    WF_LIB_NEED(value);
    return act(s, WF_VARIABLE_ASSIGN, name, value, NULL, error);
}

weft_code weft_session_assign_add(weft_session *s, const char *name, const weft_tensor *value,
                                  weft_tensor **sum, weft_error *error)
{
    if (sum)
        *sum = NULL;
    WF_LIB_NEED(s);
    WF_LIB_NEED(name);
    WF_LIB_NEED(value);
    return act(s, WF_VARIABLE_ADD, name, value, sum, error);
}

weft_code weft_session_read(weft_session *s, const char *name, weft_tensor **out, weft_error *error)
{
    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(s);
    WF_LIB_NEED(name);
    return act(s, WF_VARIABLE_READ, name, NULL, out, error);
}

weft_code weft_session_remove(weft_session *s, const char *name, weft_error *error)
{
    WF_LIB_NEED(s);
    WF_LIB_NEED(name);
    return act(s, WF_VARIABLE_REMOVE, name, NULL, NULL, error);
}
