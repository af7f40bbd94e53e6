/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/fellows.c */
#include "cmd/fellows.h"
#include "common/conf/ports.h"
#include "common/log/log.h"

#include <stdio.h>
#include <string.h>

/* Another process may take a port between its draw and the listening. */
enum { TRIES = 8 };

bool wf_fellows_at_addresses(const wf_cluster_conf *c)
{
    return c->n_ps == 0 && c->n_workers > 1;
}

/* An address beside `one`; false if that has no room. */
static bool beside(const char *one, uint32_t port, char out[WF_ADDRESSES_MAX])
{
    const char *colon = strrchr(one, ':');
    int n = strncmp(one, "ipc://", 6) == 0
                ? snprintf(out, WF_ADDRESSES_MAX, "%s.w", one)
                : snprintf(out, WF_ADDRESSES_MAX, "%.*s:%u", (int)(colon - one), one, port);

    return n > 0 && n < WF_ADDRESSES_MAX;
}

static wf_status listen_beside(wf_shell *s, const char *one, char at[WF_ADDRESSES_MAX], wf_err *err)
{
    wf_transport *t = NULL;
    wf_status rc = WF_AGAIN;
    uint32_t port;

    for (int i = 0; rc != WF_OK && i < TRIES; i++) {
        WF_TRY(wf_ports_draw(&port, 1, err));
        if (!beside(one, port, at))
            return wf_fail(err, WF_INVALID, NULL, "the address \"%.100s\" is too long", one);
        rc = wf_wires_listen(s->wires, at, &t, err);
    }
    WF_TRY(rc);
    wf_net_listen(s->net, &t);
    return WF_OK;
}

void wf_fellows_listen(wf_shell *s, char out[WF_ADDRESSES_MAX])
{
    const char *rest = s->me->address;
    char one[WF_ADDRESSES_MAX], at[WF_ADDRESSES_MAX];
    size_t n = 0;

    out[0] = 0;
    if (s->conf->n_ps == 0 || s->conf->n_workers < 2)
        return;
    while (wf_wires_next(&rest, one)) {
        wf_err why;

        if (listen_beside(s, one, at, &why) != WF_OK)
            WF_LOG_WARN("worker.no_links", "beside=%s why=\"%s\"", one, why.what);
        else if (n + strlen(at) + 2 <= WF_ADDRESSES_MAX)
            n += (size_t)snprintf(out + n, WF_ADDRESSES_MAX - n, "%s%s", n ? "|" : "", at);
    }
}
