/* SPDX-License-Identifier: Apache-2.0 */
/* lib/list.c - tensors by name. */
#include "common/ckpt/pretrained.h"
#include "lib/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status reserve(weft_list *l, size_t n, wf_err *err)
{
    weft_tensor *all = realloc(l->tensors, (n + 1) * sizeof *all);

    if (!all)
        return wf_fail_nomem(err, (n + 1) * sizeof *all);
    l->tensors = all;
    return WF_OK;
}

/* Tensor i as weft.h has it. */
static void show(weft_list *l, size_t i)
{
    wf_tensor *t = l->named.rows[i].tensor;

    l->tensors[i] = (weft_tensor){
        .data = t->data, .dtype = (weft_dtype)t->dtype, .rank = (int32_t)t->rank, .shape = t->dims};
}

wf_status wf_lib_list(wf_named_list *named, const char *origin, weft_list **out, wf_err *err)
{
    weft_list *l = calloc(1, sizeof *l);
    wf_status rc;

    if (!l) {
        wf_named_close(named);
        return wf_fail_nomem(err, sizeof *l);
    }
    l->named = *named;
    *named = (wf_named_list){0};
    snprintf(l->origin, sizeof l->origin, "%s", origin);
    rc = reserve(l, l->named.n, err);
    if (rc != WF_OK)
        weft_list_free(&l);
    for (size_t i = 0; rc == WF_OK && i < l->named.n; i++)
        show(l, i);
    *out = l;
    return rc;
}

weft_code weft_list_new(weft_list **out, weft_error *error)
{
    wf_named_list none = {0};
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    return wf_lib_end(wf_lib_list(&none, "", out, &err), &err, error);
}

static wf_status read(const char *path, weft_list **out, wf_err *err)
{
    wf_named_list named = {0};
    wf_status rc = wf_pretrained_read(path, &named, err);

    if (rc == WF_OK)
        rc = wf_lib_list(&named, "", out, err);
    wf_named_close(&named);
    return rc;
}

weft_code weft_list_read(const char *path, weft_list **out, weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(path);
    return wf_lib_end(read(path, out, &err), &err, error);
}

static wf_status add(weft_list *l, const char *name, const weft_tensor *from, wf_err *err)
{
    wf_tensor *t = NULL, *copy = NULL;
    wf_status rc;

    if (wf_named_find(&l->named, name))
        return wf_fail(err, WF_EXISTS, NULL, "the list has \"%.200s\" already", name);
    rc = wf_lib_take(from, name, &t, err);
    if (rc == WF_OK)
        rc = wf_tensor_copy(t, &copy, err);
    if (rc == WF_OK)
        rc = reserve(l, l->named.n + 1, err);
    if (rc == WF_OK)
        rc = wf_named_add(&l->named, name, &copy, true, err);
    wf_tensor_free(&t);
    wf_tensor_free(&copy);
    if (rc == WF_OK)
        show(l, l->named.n - 1);
    return rc;
}

weft_code weft_list_add(weft_list *l, const char *name, const weft_tensor *t, weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(l);
    WF_LIB_NEED(name);
    WF_LIB_NEED(t);
    return wf_lib_end(add(l, name, t, &err), &err, error);
}

size_t weft_list_count(const weft_list *l)
{
    return l ? l->named.n : 0;
}

const char *weft_list_name(const weft_list *l, size_t i)
{
    return i < weft_list_count(l) ? l->named.rows[i].name : NULL;
}

const weft_tensor *weft_list_tensor(const weft_list *l, size_t i)
{
    return i < weft_list_count(l) ? &l->tensors[i] : NULL;
}

const weft_tensor *weft_list_find(const weft_list *l, const char *name)
{
    for (size_t i = 0; name && i < weft_list_count(l); i++)
        if (strcmp(l->named.rows[i].name, name) == 0)
            return &l->tensors[i];
    return NULL;
}

const char *weft_list_origin(const weft_list *l)
{
    return l ? l->origin : "";
}

void weft_list_free(weft_list **l)
{
    if (!l || !*l)
        return;
    wf_named_close(&(*l)->named);
    wf_learnt_close(&(*l)->learnt);
    free((*l)->tensors);
    free(*l);
    *l = NULL;
}
