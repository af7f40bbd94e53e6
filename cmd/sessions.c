/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/sessions.c */
#include "cmd/sessions.h"
#include "cmd/fellows.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "worker/sessions/sessions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct wf_session_server {
    wf_shell *shell;
    wf_net *net, *to_ps;
    wf_sessions *sessions;
    wf_transport **transports; /* [room]: of both nets */
    size_t room;
    atomic_bool stop;
    int fd; /* an eventfd: stop */
    pthread_t thread;
    bool has_thread;
};

/* The net is made before the sessions that judge hellos. */
static wf_status admit(void *arg, const wf_hello *hello, wf_err *err)
{
    const wf_session_server *s = arg;

    return wf_sessions_admit(s->sessions, hello, err);
}

static wf_status listen_everywhere(wf_session_server *s, wf_err *err)
{
    const char *rest = s->shell->me->address;
    char one[WF_ADDRESSES_MAX];

    while (wf_wires_next(&rest, one)) {
        wf_transport *t = NULL;

        WF_TRY(wf_wires_listen(s->shell->wires, one, &t, err));
        wf_net_listen(s->net, &t);
    }
    return WF_OK;
}

static wf_status make_nets(wf_session_server *s, wf_err *err)
{
    const wf_cluster_conf *cluster = s->shell->conf;
    wf_net_conf conf = wf_net_defaults();

    conf.self = s->shell->self;
    conf.incarnation = wf_random_id();
    conf.pid = (uint64_t)getpid();
    conf.cluster = s->shell->conf->name;
    conf.admit = admit;
    conf.admit_arg = s;
    WF_TRY(wf_net_new(&conf, &s->net, err));
    conf.self = (wf_task){WF_ROLE_CLIENT, s->shell->self.index};
    conf.incarnation = wf_random_id();
    conf.admit = NULL;
    WF_TRY(wf_net_new(&conf, &s->to_ps, err));
    WF_TRY(wf_sessions_new(&(wf_sessions_conf){.index = s->shell->self.index,
                                               .tasks = &s->shell->tasks,
                                               .net = s->net,
                                               .to_ps = s->to_ps,
                                               .dial = wf_shell_dial,
                                               .dial_arg = s->shell,
                                               .threads = s->shell->me->threads,
                                               .checksums = !s->shell->one_host,
                                               .sent = {(size_t)cluster->session_values_mib << 20,
                                                        cluster->session_values}},
                           &s->sessions, err));
    return listen_everywhere(s, err);
}

/* ---- the loop ---- */

static wf_status turn(wf_session_server *s, int64_t now_ns, wf_err *err)
{
    wf_event ev;

    wf_net_poll(s->net, now_ns);
    while (wf_net_event(s->net, now_ns, &ev))
        WF_TRY(wf_sessions_on_client(s->sessions, &ev, now_ns, err));
    wf_net_poll(s->to_ps, now_ns);
    while (wf_net_event(s->to_ps, now_ns, &ev))
        WF_TRY(wf_sessions_on_ps(s->sessions, &ev, now_ns, err));
    WF_TRY(wf_sessions_advance(s->sessions, now_ns, err));
    wf_net_flush(s->net, now_ns);
    wf_net_flush(s->to_ps, now_ns);
    return WF_OK;
}

/* The transports of both nets, *n of them. */
static wf_status list_transports(wf_session_server *s, size_t *n, wf_err *err)
{
    size_t here, there;
    wf_transport *const *clients = wf_net_transports(s->net, &here);
    wf_transport *const *ps = wf_net_transports(s->to_ps, &there);
    wf_transport **more;

    *n = here + there;
    if (*n > s->room) {
        more = realloc(s->transports, *n * sizeof(*more));
        if (!more)
            return wf_fail_nomem(err, *n * sizeof(*more));
        s->transports = more;
        s->room = *n;
    }
    memcpy(s->transports, clients, here * sizeof(*clients));
    if (there)
        memcpy(s->transports + here, ps, there * sizeof(*ps));
    return WF_OK;
}

static wf_status wait(wf_session_server *s, wf_err *err)
{
    enum { LONGEST_MS = 1000 };
    int64_t now_ns = wf_now_ns(), until_ns = wf_sessions_deadline(s->sessions), ms;
    size_t n;

    until_ns = WF_MIN(until_ns, wf_net_deadline(s->net, now_ns));
    until_ns = WF_MIN(until_ns, wf_net_deadline(s->to_ps, now_ns));
    ms = until_ns <= now_ns ? 0 : (until_ns - now_ns - 1) / WF_NS_PER_MS + 1;
    WF_TRY(list_transports(s, &n, err));
    wf_wait(s->transports, n, s->fd, WF_MIN(ms, (int64_t)LONGEST_MS), NULL);
    return WF_OK;
}

/* Sessions end, and training goes on. */
static void *serve(void *arg)
{
    wf_session_server *s = arg;
    wf_status rc = WF_OK;
    wf_err err;

    while (rc == WF_OK && !atomic_load(&s->stop)) {
        rc = turn(s, wf_now_ns(), &err);
        if (rc == WF_OK)
            rc = wait(s, &err);
    }
    if (rc != WF_OK)
        WF_LOG_ERROR("sessions.end", "why=\"%s\"", err.what);
    return NULL;
}

/* ---- beginning and end ---- */

static void free_server(wf_session_server **at)
{
    wf_session_server *s = *at;

    *at = NULL;
    if (!s)
        return;
    wf_sessions_free(&s->sessions);
    wf_net_free(&s->net, 0);
    wf_net_free(&s->to_ps, 0);
    if (s->fd >= 0)
        close(s->fd);
    free(s->transports);
    free(s);
}

static wf_status start(wf_session_server *s, wf_err *err)
{
    int rc;

    s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->fd < 0)
        return wf_fail(err, WF_IO, NULL, "the system gives no eventfd");
    WF_TRY(make_nets(s, err));
    rc = pthread_create(&s->thread, NULL, serve, s);
    if (rc != 0)
        return wf_fail_errno(err, rc, NULL, "the system gives no thread for sessions");
    s->has_thread = true;
    return WF_OK;
}

void wf_session_server_start(wf_shell *shell, wf_session_server **out)
{
    wf_session_server *s;
    wf_err err = {0};
    wf_status rc;

    *out = NULL;
    if (wf_fellows_at_addresses(shell->conf))
        return;
    s = calloc(1, sizeof *s);
    rc = s ? WF_OK : wf_fail_nomem(&err, sizeof *s);
    if (s) {
        s->shell = shell;
        s->fd = -1;
        rc = start(s, &err);
    }
    if (rc != WF_OK) {
        WF_LOG_WARN("sessions.off", "why=\"%s\"", err.what);
        free_server(&s);
    }
    *out = s;
}

void wf_session_server_stop(wf_session_server **s)
{
    uint64_t one = 1;

    if (!*s)
        return;
    atomic_store(&(*s)->stop, true);
    if (write((*s)->fd, &one, sizeof one) < 0)
        WF_LOG_DEBUG("sessions.unsaid", "its thread looks each second anyway");
    if ((*s)->has_thread)
        pthread_join((*s)->thread, NULL);
    free_server(s);
}
