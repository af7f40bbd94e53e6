/* SPDX-License-Identifier: Apache-2.0 */
/* ps/on_contained.c - which variables of sessions there are, and who uses them, for `weft status`:
 * in the order of container and name, a message's worth at a time. */
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "ps/state.h"

#include <stdlib.h>

enum { ROWS = 1024, USERS = 4096 };

/* What a body points to; it borrows names and dims of the containers. */
typedef struct lists {
    Weft__ContainedRow rows[ROWS], *row_list[ROWS];
    Weft__TensorHead heads[ROWS];
    int64_t dims[ROWS][WF_MAX_RANK];
    Weft__ContainedUser users[USERS], *user_list[USERS];
} lists;

static void list_rows(const wf_containers *c, const Weft__ContainedAsk *ask, lists *l,
                      Weft__Contained *body)
{
    uint32_t first = wf_containers_behind(c, ask->container, ask->name, ask->any);
    wf_contained it;

    for (uint32_t i = 0; i < ROWS && wf_containers_at(c, first + i, &it); i++) {
        weft__contained_row__init(l->row_list[i] = &l->rows[i]);
        wf_tensor_head(it.value, &l->heads[i], l->dims[i]);
        l->rows[i].container = (char *)it.container;
        l->rows[i].name = (char *)it.name;
        l->rows[i].tensor = &l->heads[i];
        body->n_rows++;
    }
    body->rows = l->row_list;
    body->more = wf_containers_at(c, first + ROWS, &it);
}

static void list_users(const wf_ps *ps, lists *l, Weft__Contained *body)
{
    const char *container;
    uint64_t session;
    bool uses;

    for (uint32_t i = 0; body->n_users < USERS && wf_containers_user(ps->containers, i, ps->now_ns,
                                                                     &session, &container, &uses);
         i++) {
        Weft__ContainedUser *it = &l->users[body->n_users];

        if (!uses)
            continue;
        weft__contained_user__init(l->user_list[body->n_users++] = it);
        it->session = session;
        it->container = (char *)container;
    }
    body->users = l->user_list;
}

static wf_status answer(wf_ps *ps, wf_peer *to, const wf_msg *m, const Weft__ContainedAsk *ask,
                        wf_err *err)
{
    Weft__Contained body = WEFT__CONTAINED__INIT;
    lists *l = malloc(sizeof *l);
    wf_msg *out = NULL;
    wf_status rc = l ? wf_net_msg(ps->net, WF_CONTAINED, &out, err) : wf_fail_nomem(err, sizeof *l);

    if (rc == WF_OK) {
        list_rows(ps->containers, ask, l, &body);
        if (ask->any)
            list_users(ps, l, &body);
        body.bytes = wf_containers_bytes(ps->containers);
        body.limit_bytes = wf_containers_limit(ps->containers);
        rc = wf_control_put(out, &body.base, err);
    }
    if (rc == WF_OK) {
        out->head.request = m->head.request;
        rc = wf_ps_send(ps, to, WF_LANE_CONTROL, 0, &out, err);
    }
    wf_net_free_msg(ps->net, &out);
    free(l);
    return rc;
}

wf_status wf_ps_on_contained(wf_ps *ps, wf_peer *from, const wf_msg *m, wf_err *err)
{
    Weft__ContainedAsk *ask = NULL;
    wf_err why;
    wf_status rc = wf_control_get(m, &weft__contained_ask__descriptor, &ask, &why);

    if (rc != WF_OK)
        return WF_OK; /* what cannot be read is not answered */
    rc = answer(ps, from, m, ask, err);
    wf_control_free(&ask);
    return rc;
}
