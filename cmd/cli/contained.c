/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/contained.c - asks the ps for variables of sessions, and puts them into one list. */
#include "cmd/cli/contained.h"
#include "cmd/cli/picture.h"
#include "common/base/text.h"
#include "common/wire/control.h"
#include "common/wire/tensors.h"
#include "common/wire/variables.h"
#include "lib/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 3000 };

/* ---- what a ps says ---- */

/* The object of a container, made if there is none; borrowed. Names may be any bytes, and json has
 * UTF-8. */
static json_t *get_container(json_t *by_name, const char *container)
{
    char name[4 * WF_CONTAINER_NAME + 1];
    json_t *o;

    wf_text_escape(container, false, name, sizeof name);
    o = json_object_get(by_name, name);
    if (o)
        return o;
    o = json_pack("{s:s, s:{}, s:[]}", "container", name, "users", "variables");
    json_object_set_new(by_name, name, o);
    return o;
}

static wf_status add_row(json_t *by_name, uint32_t ps, const Weft__ContainedRow *row, wf_err *err)
{
    json_t *dims = json_array(), *c = get_container(by_name, row->container), *it;
    char task[32], name[4 * WF_VARIABLE_NAME + 1];
    size_t bytes = 0;
    wf_status rc = row->tensor ? wf_tensor_head_check(row->tensor, &bytes, err)
                               : wf_fail(err, WF_PROTO, NULL, "a variable without a shape");

    for (size_t i = 0; rc == WF_OK && i < row->tensor->n_dims; i++)
        json_array_append_new(dims, json_integer(row->tensor->dims[i]));
    if (rc != WF_OK) {
        json_decref(dims);
        return rc;
    }
    snprintf(task, sizeof task, "ps/%u", ps);
    wf_text_escape(row->name, false, name, sizeof name);
    it = json_pack("{s:s, s:s, s:o, s:I, s:s}", "name", name, "dtype",
                   wf_dtype_name((wf_dtype)row->tensor->dtype), "shape", dims, "bytes",
                   (json_int_t)bytes, "ps", task);
    if (!c || !it || json_array_append_new(json_object_get(c, "variables"), it) != 0)
        return wf_fail_nomem(err, 0);
    return WF_OK;
}

static void add_user(json_t *by_name, const Weft__ContainedUser *user)
{
    char id[24], name[4 * WF_CONTAINER_NAME + 1];
    json_t *c;

    wf_text_escape(user->container, false, name, sizeof name);
    c = json_object_get(by_name, name); /* one whose variables are gone is not listed */
    snprintf(id, sizeof id, "%" PRIx64, user->session);
    if (c)
        json_object_set_new(json_object_get(c, "users"), id, json_true());
}

static wf_status add_answer(json_t *by_name, uint32_t ps, const Weft__Contained *body, wf_err *err)
{
    for (size_t i = 0; i < body->n_rows; i++)
        WF_TRY(add_row(by_name, ps, body->rows[i], err));
    for (size_t i = 0; i < body->n_users; i++)
        add_user(by_name, body->users[i]);
    return WF_OK;
}

/* The rows behind that one; *answer is the caller's. */
static wf_status ask(wf_client *c, uint32_t ps, const char *container, const char *name,
                     Weft__Contained **answer, wf_err *err)
{
    Weft__ContainedAsk body = WEFT__CONTAINED_ASK__INIT;
    wf_msg *m = NULL, *said = NULL;
    wf_status rc = wf_client_msg(c, WF_CONTAINED_ASK, &m, err);

    body.container = (char *)container;
    body.name = (char *)name;
    body.any = !name[0];
    if (rc == WF_OK)
        rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_client_call(c, (wf_task){WF_ROLE_PS, ps}, &m, &said, err);
    if (rc == WF_OK)
        rc = wf_control_get(said, &weft__contained__descriptor, answer, err);
    wf_client_free_msg(c, &m);
    wf_client_free_msg(c, &said);
    return rc;
}

static wf_status ask_all(wf_client *c, uint32_t ps, bool all, json_t *by_name, wf_err *err)
{
    Weft__Contained *page = NULL, *next = NULL;
    wf_status rc = ask(c, ps, "", "", &page, err);

    while (rc == WF_OK) {
        rc = add_answer(by_name, ps, page, err);
        if (rc != WF_OK || !all || !page->more || page->n_rows == 0)
            break;
        rc = ask(c, ps, page->rows[page->n_rows - 1]->container, page->rows[page->n_rows - 1]->name,
                 &next, err);
        wf_control_free(&page);
        page = next;
        next = NULL;
    }
    wf_control_free(&page);
    return rc;
}

/* ---- one list ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(wf_text_of(*(json_t *const *)a, "name"), wf_text_of(*(json_t *const *)b, "name"));
}

/* A ps gives its own in order; those of several are put together here. */
static wf_status sort_variables(json_t *c, wf_err *err)
{
    json_t *list = json_object_get(c, "variables"), *sorted = json_array();
    size_t n = json_array_size(list);
    json_t **rows = calloc(n + 1, sizeof(*rows));

    if (!rows || !sorted) {
        free(rows);
        json_decref(sorted);
        return wf_fail_nomem(err, n * sizeof(*rows));
    }
    for (size_t i = 0; i < n; i++)
        rows[i] = json_array_get(list, i);
    qsort(rows, n, sizeof(*rows), compare_names);
    for (size_t i = 0; i < n; i++)
        json_array_append(sorted, rows[i]);
    json_object_set_new(c, "variables", sorted);
    free(rows);
    return WF_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static wf_status put_list(json_t *by_name, json_t *picture, wf_err *err)
{
    const char **names = calloc(json_object_size(by_name) + 1, sizeof *names), *name;
    json_t *list = json_array(), *c;
    wf_status rc = names && list ? WF_OK : wf_fail_nomem(err, sizeof *names);
    size_t n = 0;

    json_object_foreach(by_name, name, c)
    {
        if (rc == WF_OK)
            names[n++] = name;
    }
    if (rc == WF_OK)
        qsort(names, n, sizeof *names, compare_texts);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        c = json_object_get(by_name, names[i]);
        json_object_set_new(
            c, "sessions", json_integer((json_int_t)json_object_size(json_object_get(c, "users"))));
        json_object_del(c, "users");
        rc = sort_variables(c, err);
        json_array_append(list, c);
    }
    json_object_set_new(picture, "containers", list);
    free(names);
    return rc;
}

static bool has_some(const json_t *task)
{
    return wf_number_of(task, "session_variables") > 0;
}

static void add_missing(json_t *picture, const json_t *task, const wf_err *why)
{
    json_t *list = json_object_get(picture, "containers_missing");

    if (!list) {
        list = json_array();
        json_object_set_new(picture, "containers_missing", list);
    }
    json_array_append_new(
        list, json_pack("{s:s, s:s}", "ps", wf_text_of(task, "task"), "why", why->what));
}

static bool is_any(const json_t *picture)
{
    json_t *task;
    size_t i;

    json_array_foreach(json_object_get(picture, "tasks"), i, task)
    {
        if (has_some(task))
            return true;
    }
    return false;
}

wf_status wf_contained_add(const wf_cluster_conf *conf, bool all, json_t *picture, wf_err *err)
{
    json_t *by_name = json_object(), *task;
    wf_client *c = NULL;
    wf_err why = {0};
    wf_status opened = WF_OK, rc;
    size_t i;

    if (is_any(picture))
        opened = wf_client_open(conf->master.address, ANSWER_MS, &c, &why);
    json_array_foreach(json_object_get(picture, "tasks"), i, task)
    {
        uint32_t ps = 0;

        if (!has_some(task) || sscanf(wf_text_of(task, "task"), "ps/%u", &ps) != 1)
            continue;
        rc = opened;
        if (rc == WF_OK && ps < wf_client_count(c, WF_ROLE_PS))
            rc = ask_all(c, ps, all, by_name, &why);
        if (rc != WF_OK)
            add_missing(picture, task, &why);
    }
    wf_client_close(&c);
    rc = put_list(by_name, picture, err);
    json_decref(by_name);
    return rc;
}
