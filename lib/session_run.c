/* SPDX-License-Identifier: Apache-2.0 */
/* lib/session_run.c - runs of a session's graph: compiled here, computed by a worker. */
#include "common/onnx/onnx.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "lib/run.h"
#include "lib/session.h"

#include <stdlib.h>
#include <string.h>

/* ---- compiled runs ---- */

static void forget(wf_lib_prepared *p)
{
    free(p->key);
    wf_remote_free(&p->remote);
    *p = (wf_lib_prepared){0};
}

void wf_lib_session_close_runs(weft_session *s)
{
    for (int i = 0; i < WF_LIB_SESSION_RUNS; i++)
        forget(&s->prepared[i]);
    wf_graph_free(&s->graph);
}

/* Names may hold anything but a zero, which ends them. */
static void add_word(wf_bytes *key, char kind, const char *word)
{
    wf_bytes_printf(key, "%c%zu:%s", kind, strlen(word), word);
}

/* What a compiled run depends on; the caller's. */
static wf_status make_key(const wf_remote_run *run, wf_bytes *key, wf_err *err)
{
    char dims[256];

    wf_bytes_printf(key, "w%u", run->worker);
    for (size_t i = 0; i < run->n_fetches; i++)
        add_word(key, 'f', run->fetches[i]);
    for (size_t i = 0; i < run->n_targets; i++)
        add_word(key, 't', run->targets[i]);
    for (size_t i = 0; i < run->n_feeds; i++) {
        const wf_tensor *t = run->feeds[i].content;

        add_word(key, 'i', run->feeds[i].name);
        wf_bytes_printf(key, "%d%s", (int)t->dtype,
                        wf_dims_str(t->rank, t->dims, dims, sizeof dims));
    }
    return wf_bytes_check(key, err);
}

static wf_lib_prepared *find_prepared(weft_session *s, const char *key)
{
    wf_lib_prepared *oldest = &s->prepared[0];

    for (int i = 0; i < WF_LIB_SESSION_RUNS; i++) {
        wf_lib_prepared *p = &s->prepared[i];

        if (p->remote && strcmp(p->key, key) == 0)
            return p;
        if (!p->remote || (oldest->remote && p->used < oldest->used))
            oldest = p;
    }
    forget(oldest);
    return oldest;
}

static wf_status prepare(weft_session *s, const wf_remote_run *run, wf_lib_prepared **out,
                         char unfed[WF_UNFED_NAME], wf_err *err)
{
    wf_lib_prepared *p;
    wf_bytes key = {0};
    wf_status rc = make_key(run, &key, err);

    if (rc != WF_OK) {
        wf_bytes_close(&key);
        return rc;
    }
    *out = p = find_prepared(s, wf_bytes_str(&key));
    p->used = ++s->runs;
    if (!p->remote) {
        p->key = strdup(wf_bytes_str(&key));
        rc = p->key ? wf_remote_prepare(s->graph, run, &p->remote, unfed, err)
                    : wf_fail_nomem(err, key.size);
        p->handle = ++s->handles;
    }
    wf_bytes_close(&key);
    if (rc != WF_OK)
        forget(p);
    return rc;
}

/* ---- the plan, once ---- */

/* What a plan's body points to; in the arena, but for graphs. */
typedef struct lists {
    wf_arena *arena;
    wf_bytes graphs[WF_REMOTE_FRAGMENTS];
    Weft__SessionFragment **fragments;
    Weft__SessionWrite **writes;
    Weft__SessionResult **results;
} lists;

/* [n] structs of `size` bytes and pointers to them. */
static wf_status make_list(lists *l, size_t n, size_t size, void *out, wf_err *err)
{
    void **list = wf_arena_array(l->arena, n + 1, sizeof *list);
    char *rows = wf_arena_array(l->arena, n + 1, size);

    if (!list || !rows)
        return wf_fail_nomem(err, n * size);
    for (size_t i = 0; i < n; i++)
        list[i] = rows + i * size;
    *(void ***)out = list;
    return WF_OK;
}

static wf_status fill_receives(const wf_remote_fragment *from, lists *l, Weft__SessionFragment *to,
                               wf_err *err)
{
    Weft__TensorHead **heads = NULL;

    WF_TRY(make_list(l, from->n_receives, sizeof(Weft__SessionReceive), &to->receives, err));
    WF_TRY(make_list(l, from->n_receives, sizeof(Weft__TensorHead), &heads, err));
    to->n_receives = from->n_receives;
    for (size_t i = 0; i < from->n_receives; i++) {
        wf_remote_receive *r = &from->receives[i];

        weft__tensor_head__init(heads[i]);
        heads[i]->dtype = r->dtype;
        heads[i]->dims = r->dims;
        heads[i]->n_dims = r->rank;
        weft__session_receive__init(to->receives[i]);
        to->receives[i]->key = (char *)r->key;
        to->receives[i]->from = r->from;
        to->receives[i]->value = (char *)r->value;
        to->receives[i]->head = heads[i];
        to->receives[i]->number = r->number;
    }
    return WF_OK;
}

static wf_status fill_sends(const wf_remote_fragment *from, lists *l, Weft__SessionFragment *to,
                            wf_err *err)
{
    WF_TRY(make_list(l, from->n_sends, sizeof(Weft__SessionSend), &to->sends, err));
    to->n_sends = from->n_sends;
    for (size_t i = 0; i < from->n_sends; i++) {
        weft__session_send__init(to->sends[i]);
        to->sends[i]->key = (char *)from->sends[i].key;
        to->sends[i]->to = from->sends[i].to;
        to->sends[i]->value = (char *)from->sends[i].value;
        to->sends[i]->number = from->sends[i].number;
    }
    return WF_OK;
}

static wf_status fill_fragment(const wf_remote_fragment *from, wf_bytes *graph, lists *l,
                               Weft__SessionFragment *to, wf_err *err)
{
    weft__session_fragment__init(to);
    if (from->compiled)
        WF_TRY(wf_onnx_encode(from->compiled->graph, graph, err));
    WF_TRY(make_list(l, from->n_outputs, sizeof(Weft__SessionOutput), &to->outputs, err));
    to->worker = from->worker;
    to->graph = (ProtobufCBinaryData){.len = graph->size, .data = graph->data};
    to->inputs = (char **)from->inputs;
    to->n_inputs = from->n_inputs;
    to->n_outputs = from->n_outputs;
    for (size_t i = 0; i < from->n_outputs; i++) {
        weft__session_output__init(to->outputs[i]);
        to->outputs[i]->output = (char *)from->outputs[i];
        to->outputs[i]->value = (char *)from->values[i];
    }
    WF_TRY(fill_receives(from, l, to, err));
    return fill_sends(from, l, to, err);
}

static wf_status fill_lists(const wf_remote *r, lists *l, wf_err *err)
{
    l->arena = wf_arena_new(0);
    if (!l->arena)
        return wf_fail_nomem(err, sizeof *r);
    WF_TRY(make_list(l, r->n_fragments, sizeof(Weft__SessionFragment), &l->fragments, err));
    WF_TRY(make_list(l, r->n_writes, sizeof(Weft__SessionWrite), &l->writes, err));
    WF_TRY(make_list(l, r->n_results, sizeof(Weft__SessionResult), &l->results, err));
    for (size_t i = 0; i < r->n_fragments; i++)
        WF_TRY(fill_fragment(&r->fragments[i], &l->graphs[i], l, l->fragments[i], err));
    for (size_t i = 0; i < r->n_writes; i++) {
        weft__session_write__init(l->writes[i]);
        l->writes[i]->action = r->writes[i].action;
        l->writes[i]->variable = (char *)r->writes[i].variable;
        l->writes[i]->value = (char *)r->writes[i].value;
        if (r->writes[i].after)
            l->writes[i]->after = (char *)r->writes[i].after;
    }
    for (size_t i = 0; i < r->n_results; i++) {
        weft__session_result__init(l->results[i]);
        if (r->results[i].value)
            l->results[i]->value = (char *)r->results[i].value;
        else
            l->results[i]->write = r->results[i].write + 1;
    }
    return WF_OK;
}

static wf_status put_plan(const weft_session *s, const wf_lib_prepared *p, wf_msg *m, wf_err *err)
{
    Weft__SessionPlan body = WEFT__SESSION_PLAN__INIT;
    const wf_remote *r = p->remote;
    lists *l = calloc(1, sizeof *l);
    wf_status rc = l ? fill_lists(r, l, err) : wf_fail_nomem(err, sizeof *l);

    body.session = s->id;
    body.handle = p->handle;
    body.container = s->container;
    body.reads = (char **)r->reads;
    body.n_reads = r->n_reads;
    body.n_fragments = r->n_fragments;
    body.n_writes = r->n_writes;
    body.n_results = r->n_results;
    if (rc == WF_OK) {
        body.fragments = l->fragments;
        body.writes = l->writes;
        body.results = l->results;
        rc = wf_control_put(m, &body.base, err);
    }
    for (int i = 0; l && i < WF_REMOTE_FRAGMENTS; i++)
        wf_bytes_close(&l->graphs[i]);
    if (l)
        wf_arena_free(&l->arena);
    free(l);
    return rc;
}

static wf_status read_outcome(const wf_msg *m, wf_err *err)
{
    Weft__Outcome *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(m, &weft__outcome__descriptor, &body, err));
    rc = (wf_status)body->status;
    if (rc != WF_OK)
        wf_fail(err, rc, body->hint, "%s", body->what);
    wf_control_free(&body);
    return rc;
}

static wf_status call_worker(weft_session *s, wf_msg **m, wf_msg **answer, wf_err *err)
{
    wf_status rc = wf_client_call(s->client, (wf_task){WF_ROLE_WORKER, s->worker}, m, answer, err);

    s->worker_is_away = rc == WF_TIMEOUT;
    return rc;
}

static wf_status send_plan(weft_session *s, wf_lib_prepared *p, wf_err *err)
{
    wf_msg *m = NULL, *answer = NULL;
    wf_status rc = wf_client_msg(s->client, WF_PLAN, &m, err);

    if (rc == WF_OK)
        rc = put_plan(s, p, m, err);
    if (rc == WF_OK)
        rc = call_worker(s, &m, &answer, err);
    if (rc == WF_OK)
        rc = read_outcome(answer, err);
    p->is_sent = rc == WF_OK;
    wf_client_free_msg(s->client, &m);
    wf_client_free_msg(s->client, &answer);
    return rc;
}

/* ---- a run ---- */

/* What the compiled graph is fed. */
typedef struct fed {
    wf_fed placed;
    Weft__SessionFeed feeds[WF_TENSORS_MOST], *list[WF_TENSORS_MOST];
    Weft__TensorHead heads[WF_TENSORS_MOST];
    int64_t dims[WF_TENSORS_MOST][WF_MAX_RANK];
    const wf_tensor *tensors[WF_TENSORS_MOST];
    uint32_t n;
} fed;

static bool takes(const wf_remote *r, const char *name)
{
    for (size_t i = 0; i < r->n_feeds; i++)
        if (strcmp(r->feeds[i]->name, name) == 0)
            return true;
    return false;
}

/* What nothing needs, or the compiler took for a constant, does not travel. */
static wf_status place_feeds(const wf_remote *r, const wf_remote_run *run, fed *f, wf_err *err)
{
    wf_feed *needed = calloc(run->n_feeds + 1, sizeof *needed);
    size_t n = 0;
    wf_status rc;

    if (!needed)
        return wf_fail_nomem(err, run->n_feeds * sizeof *needed);
    for (size_t i = 0; i < run->n_feeds; i++)
        if (takes(r, run->feeds[i].name))
            needed[n++] = run->feeds[i];
    rc = wf_fed_place(r->graph, "the session's graph", n, needed, &f->placed, err);
    free(needed);
    return rc;
}

static wf_status list_feeds(const wf_remote *r, fed *f, wf_err *err)
{
    if (r->n_feeds > WF_TENSORS_MOST)
        return wf_fail(err, WF_FULL, "join some of them", "%zu feeds; a run takes %d", r->n_feeds,
                       WF_TENSORS_MOST);
    for (size_t i = 0; i < r->n_feeds; i++) {
        const wf_tensor *t = wf_fed_find(&f->placed, r->feeds[i]->name);
        uint32_t at = f->n++;

        wf_assert(t); /* wf_remote_prepare has looked: the key has the names of feeds */
        weft__session_feed__init(f->list[at] = &f->feeds[at]);
        wf_tensor_head(t, &f->heads[at], f->dims[at]);
        f->feeds[at].name = (char *)r->feeds[i]->name;
        f->feeds[at].tensor = &f->heads[at];
        f->tensors[at] = t;
    }
    return WF_OK;
}

static wf_status read_results(const wf_remote *r, const wf_msg *m, const Weft__RunAnswer *body,
                              wf_named_list *out, wf_err *err)
{
    if (body->n_results != r->n_results)
        return wf_fail(err, WF_PROTO, "upgrade the worker", "a worker gives %zu results for %zu",
                       body->n_results, r->n_results);
    for (size_t i = 0; i < r->n_results; i++) {
        wf_tensor *t = NULL;
        wf_status rc = wf_tensors_take(m, (uint32_t)i, body->results[i], &t, err);

        if (rc == WF_OK)
            rc = wf_named_add(out, r->results[i].label, &t, false, err);
        wf_tensor_free(&t);
        WF_TRY(rc);
    }
    return WF_OK;
}

static wf_status read_answer(const wf_remote *r, const wf_msg *m, bool *unknown, wf_named_list *out,
                             wf_err *err)
{
    Weft__RunAnswer *body = NULL;
    wf_status rc;

    WF_TRY(wf_tensors_body(m, &weft__run_answer__descriptor, &body, err));
    *unknown = body->unknown_plan;
    rc = (wf_status)body->status;
    if (rc != WF_OK)
        wf_fail(err, rc, body->hint, "%s", body->what);
    else
        rc = read_results(r, m, body, out, err);
    wf_control_free(&body);
    return rc;
}

static wf_status send_run(weft_session *s, const wf_lib_prepared *p, const fed *f,
                          uint64_t sequence, bool *unknown, wf_named_list *out, wf_err *err)
{
    Weft__RunAsk body = WEFT__RUN_ASK__INIT;
    wf_msg *m = NULL, *answer = NULL;
    wf_status rc;

    body.session = s->id;
    body.handle = p->handle;
    body.sequence = sequence;
    body.timeout_ms = (uint32_t)(s->timeout_ms * 4 / 5); /* its error is to arrive in time */
    body.seed = s->runs;
    body.run = s->runs;
    body.feeds = (Weft__SessionFeed **)f->list;
    body.n_feeds = f->n;
    WF_TRY(wf_client_msg(s->client, WF_RUN, &m, err));
    rc = wf_tensors_put(m, &body.base, f->n, f->tensors, true, err);
    if (rc == WF_OK)
        rc = call_worker(s, &m, &answer, err);
    if (rc == WF_OK)
        rc = read_answer(p->remote, answer, unknown, out, err);
    wf_client_free_msg(s->client, &m);
    wf_client_free_msg(s->client, &answer);
    return rc;
}

/* A worker forgets plans, and has none when it has started again: a run that it does not know has
 * changed nothing. */
static wf_status run_prepared(weft_session *s, wf_lib_prepared *p, const fed *f, wf_named_list *out,
                              wf_err *err)
{
    enum { TRIES = 3 };
    uint64_t sequence = s->sequence + 1;
    bool unknown = false;
    wf_status rc = WF_OK;

    s->sequence += p->remote->n_writes;
    for (int i = 0; i < TRIES; i++) {
        if (!p->is_sent)
            WF_TRY(send_plan(s, p, err));
        unknown = false;
        rc = send_run(s, p, f, sequence, &unknown, out, err);
        if (!unknown)
            return rc;
        p->is_sent = false;
    }
    return rc;
}

/* One that does not answer is passed over by the next run, unless the session was opened at it. */
static void pass_worker(weft_session *s)
{
    if (wf_client_entry(s->client).role == WF_ROLE_WORKER)
        return;
    s->worker = (s->worker + 1) % wf_client_count(s->client, WF_ROLE_WORKER);
    for (int i = 0; i < WF_LIB_SESSION_RUNS; i++)
        s->prepared[i].is_sent = false;
}

static wf_status run(weft_session *s, const wf_remote_run *what, wf_named_list *out,
                     char unfed[WF_UNFED_NAME], wf_err *err)
{
    wf_lib_prepared *p = NULL;
    fed *f = calloc(1, sizeof *f);
    wf_status rc;

    if (!f)
        return wf_fail_nomem(err, sizeof *f);
    s->worker_is_away = false;
    rc = s->graph
             ? WF_OK
             : wf_fail(err, WF_USAGE, "extend it by a model first", "the session has no graph");
    if (rc == WF_OK)
        rc = prepare(s, what, &p, unfed, err);
    if (rc == WF_OK)
        rc = place_feeds(p->remote, what, f, err);
    if (rc == WF_OK)
        rc = list_feeds(p->remote, f, err);
    if (rc == WF_OK)
        rc = run_prepared(s, p, f, out, err);
    if (rc == WF_TIMEOUT && s->worker_is_away)
        pass_worker(s);
    if (p && p->remote && p->remote->is_for_once)
        forget(p);
    wf_fed_close(&f->placed);
    free(f);
    return rc;
}

static wf_status check_names(const char *what, size_t n, const char *const names[], wf_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!names || !names[i])
            return wf_fail(err, WF_INVALID, NULL, "name %zu of the %s is NULL", i, what);
    return WF_OK;
}

static wf_status run_listed(weft_session *s, size_t n_feeds, const weft_feed feeds[],
                            wf_remote_run *what, weft_list **out, char unfed[WF_UNFED_NAME],
                            wf_err *err)
{
    wf_named_list results = {0};
    wf_lib_feeds taken = {0};
    wf_status rc = wf_lib_feeds_take(n_feeds, feeds, &taken, err);

    what->n_feeds = taken.n;
    what->feeds = taken.feeds;
    if (rc == WF_OK)
        rc = wf_lib_session_enter(s, err);
    if (rc == WF_OK) {
        what->worker = s->worker;
        what->n_workers = wf_client_count(s->client, WF_ROLE_WORKER);
        rc = run(s, what, &results, unfed, err);
        wf_lib_session_leave(s);
    }
    if (rc == WF_OK && out)
        rc = wf_lib_list(&results, "", out, err);
    wf_named_close(&results);
    wf_lib_feeds_close(&taken);
    return rc;
}

weft_code weft_session_run(weft_session *s, size_t n_feeds, const weft_feed feeds[],
                           size_t n_fetches, const char *const fetches[], size_t n_targets,
                           const char *const targets[], weft_list **out, weft_error *error)
{
    wf_remote_run what = {
        .n_fetches = n_fetches, .fetches = fetches, .n_targets = n_targets, .targets = targets};
    char unfed[WF_UNFED_NAME] = "";
    wf_err err = {0};
    wf_status rc;

    if (out)
        *out = NULL;
    WF_LIB_NEED(s);
    if (n_feeds)
        WF_LIB_NEED(feeds);
    if (n_fetches)
        WF_LIB_NEED(out);
    rc = check_names("fetches", n_fetches, fetches, &err);
    if (rc == WF_OK)
        rc = check_names("targets", n_targets, targets, &err);
    if (rc == WF_OK)
        rc = run_listed(s, n_feeds, feeds, &what, out, unfed, &err);
    return wf_lib_run_end(rc, unfed, &err, error);
}
