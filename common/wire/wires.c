/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/wires.c */
#include "common/wire/wires.h"
#include "common/base/size.h"
#include "common/wire/shm.h"
#include "common/wire/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const wf_wire_kind *const kinds[] = {&wf_wire_kind_mem, &wf_wire_kind_ipc,
                                            &wf_wire_kind_tcp};

struct wf_wires {
    uint32_t connections;
    bool shares;                      /* memory with other processes of this host */
    bool streams;                     /* has TCP connections of its own beside ZeroMQ's */
    pthread_mutex_t lock;             /* of what follows */
    void *libraries[WF_COUNT(kinds)]; /* NULL: not opened */
};

wf_status wf_wires_new(uint32_t connections, wf_wires **out, wf_err *err)
{
    const char *shm = getenv("WEFT_SHM"), *streams = getenv("WEFT_STREAMS");
    wf_wires *w = calloc(1, sizeof *w);

    *out = w;
    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->connections = connections;
    w->shares = !shm || strcmp(shm, "0") != 0;
    w->streams = !streams || strcmp(streams, "0") != 0;
    pthread_mutex_init(&w->lock, NULL);
    return WF_OK;
}

void wf_wires_share(wf_wires *w, bool shares)
{
    w->shares &= shares;
}

void wf_wires_stream(wf_wires *w, bool streams)
{
    w->streams &= streams;
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

static const wf_wire_kind *kind_of(const char *address, size_t *number)
{
    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        if (strncmp(address, kinds[i]->scheme, strlen(kinds[i]->scheme)) == 0) {
            *number = i;
            return kinds[i];
        }
    return NULL;
}

/* The kind of an address, with its library opened. */
static wf_status find_kind(wf_wires *w, const char *address, const wf_wire_kind **kind,
                           void **library, wf_err *err)
{
    size_t i;
    wf_status rc = WF_OK;

    *kind = kind_of(address, &i);
    if (!*kind)
        return no_kind(address, err);
    pthread_mutex_lock(&w->lock);
    if (!w->libraries[i])
        rc = (*kind)->open(w->connections, &w->libraries[i], err);
    *library = w->libraries[i];
    pthread_mutex_unlock(&w->lock);
    return rc;
}

wf_status wf_wires_listen(wf_wires *w, const char *address, wf_transport **out, wf_err *err)
{
    const wf_wire_kind *kind;
    wf_transport *far = NULL;
    void *library = NULL;

    WF_TRY(find_kind(w, address, &kind, &library, err));
    WF_TRY(kind->listen(library, address, out, err));
    if (w->streams && kind == &wf_wire_kind_tcp) {
        far = *out;
        wf_stream_listen(address, &far, out);
    }
    if (w->shares && kind->crosses) {
        far = *out;
        wf_shm_listen(address, &far, out);
    }
    return WF_OK;
}

/* Where the next address begins, or the end: a path may have a bar in it. */
static const char *end_of(const char *address)
{
    size_t i;

    for (; *address; address++)
        if (*address == '|' && kind_of(address + 1, &i))
            break;
    return address;
}

bool wf_wires_next(const char **addresses, char one[WF_ADDRESSES_MAX])
{
    const char *from = *addresses + (**addresses == '|'), *end = end_of(from);
    size_t n = (size_t)(end - from);

    if (n == 0 || n >= WF_ADDRESSES_MAX)
        return false;
    memcpy(one, from, n);
    one[n] = 0;
    *addresses = end;
    return true;
}

/* The address of the nearest kind that can be reached. */
static bool find_near(wf_wires *w, const char *addresses, char one[WF_ADDRESSES_MAX])
{
    for (size_t i = 0; i < WF_COUNT(kinds); i++) {
        const wf_wire_kind *kind;
        const char *rest = addresses;
        void *library = NULL;

        while (wf_wires_next(&rest, one))
            if (find_kind(w, one, &kind, &library, NULL) == WF_OK && kind == kinds[i] &&
                kind->can_reach && kind->can_reach(library, one))
                return true;
    }
    return false;
}

wf_status wf_wires_dial(wf_wires *w, const char *addresses, wf_transport **out, wf_err *err)
{
    const char *rest = addresses;
    const wf_wire_kind *kind;
    char one[WF_ADDRESSES_MAX] = "";
    wf_transport *far = NULL;
    void *library = NULL;

    if (!*end_of(addresses) || !find_near(w, addresses, one))
        (void)wf_wires_next(&rest, one); /* of none it is "", which has no kind */
    WF_TRY(find_kind(w, one, &kind, &library, err));
    WF_TRY(kind->dial(library, one, out, err));
    if (w->streams && kind == &wf_wire_kind_tcp) {
        far = *out;
        wf_stream_dial(one, &far, out);
    }
    if (w->shares && kind->crosses) {
        far = *out;
        wf_shm_dial(one, &far, out);
    }
    return WF_OK;
}
