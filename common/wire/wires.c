/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/wires.c */
#include "common/wire/wires.h"
#include "common/base/size.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const wf_wire_kind *const kinds[] = {&wf_wire_kind_mem, &wf_wire_kind_ipc,
                                            &wf_wire_kind_tcp};

struct wf_wires {
    uint32_t connections;
    pthread_mutex_t lock;             /* of what follows */
    void *libraries[WF_COUNT(kinds)]; /* NULL: not opened */
};

wf_status wf_wires_new(uint32_t connections, wf_wires **out, wf_err *err)
{
    wf_wires *w = calloc(1, sizeof *w);

    *out = w;
    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->connections = connections;
    pthread_mutex_init(&w->lock, NULL);
    return WF_OK;
}

void wf_wires_free(wf_wires **w)
{
    if (!*w)
        return;
    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        if ((*w)->libraries[i])
            kinds[i]->close((*w)->libraries[i]);
    pthread_mutex_destroy(&(*w)->lock);
    free(*w);
    *w = NULL;
}

static wf_status no_kind(const char *address, wf_err *err)
{
    char forms[128] = "";
    size_t at = 0;

    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        at += (size_t)snprintf(forms + at, sizeof forms - at, "%s%s", i ? " or " : "write ",
                               kinds[i]->form);
    return wf_fail(err, WF_INVALID, forms, "the address %.200s is malformed", address);
}

/* The kind of an address, with its library opened. */
static wf_status find_kind(wf_wires *w, const char *address, const wf_wire_kind **kind,
                           void **library, wf_err *err)
{
    size_t i = 0;
    wf_status rc = WF_OK;

    while (i < WF_COUNT(kinds) && strncmp(address, kinds[i]->scheme, strlen(kinds[i]->scheme)) != 0)
        i++;
    if (i == WF_COUNT(kinds))
        return no_kind(address, err);
    pthread_mutex_lock(&w->lock);
    if (!w->libraries[i])
        rc = kinds[i]->open(w->connections, &w->libraries[i], err);
    *library = w->libraries[i];
    pthread_mutex_unlock(&w->lock);
    *kind = kinds[i];
    return rc;
}

wf_status wf_wires_listen(wf_wires *w, const char *address, wf_transport **out, wf_err *err)
{
    const wf_wire_kind *kind;
    void *library;

    WF_TRY(find_kind(w, address, &kind, &library, err));
    return kind->listen(library, address, out, err);
}

wf_status wf_wires_dial(wf_wires *w, const char *address, wf_transport **out, wf_err *err)
{
    const wf_wire_kind *kind;
    void *library;

    WF_TRY(find_kind(w, address, &kind, &library, err));
    return kind->dial(library, address, out, err);
}
