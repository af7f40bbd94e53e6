/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/named.c */
#include "common/tensor/named.h"

#include <stdlib.h>
#include <string.h>

wf_status wf_named_add(wf_named_list *l, const char *name, wf_tensor **t, bool is_weight,
                       wf_err *err)
{
    char *copy;

    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 32;
        wf_named *rows = realloc(l->rows, room * sizeof *rows);

        if (!rows)
            return wf_fail_nomem(err, room * sizeof *rows);
        l->rows = rows;
        l->room = room;
    }
    copy = strdup(name);
    if (!copy)
        return wf_fail_nomem(err, strlen(name));
    l->rows[l->n++] = (wf_named){copy, *t, is_weight};
    *t = NULL;
    return WF_OK;
}

const wf_named *wf_named_find(const wf_named_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->rows[i].name, name) == 0)
            return &l->rows[i];
    return NULL;
}

void wf_named_close(wf_named_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->rows[i].name);
        wf_tensor_free(&l->rows[i].tensor);
    }
    free(l->rows);
    *l = (wf_named_list){0};
}
