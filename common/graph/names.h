/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/names.h - names to things: a hash table that borrows its keys. For graph.c. */
#ifndef WF_GRAPH_NAMES_H
#define WF_GRAPH_NAMES_H

#include "common/base/status.h"
#include <stddef.h>

/* Open addressing, linear probing, at most half full. A zeroed one is empty. */
typedef struct wf_name_table {
    struct wf_name_slot {
        const char *name; /* NULL: free */
        void *thing;
    } * slots;
    size_t room, used;
} wf_name_table;

/* The two name spaces of a graph (G2). */
struct wf_names {
    wf_name_table values, nodes;
};

void wf_names_close(wf_name_table *t);
/* NULL when the name is not there. */
void *wf_names_find(const wf_name_table *t, const char *name);
/* The name must not be there yet, and must live as long as its entry. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_names_add(wf_name_table *t, const char *name, void *thing, wf_err *err);
/* It is fine when the name is not there. */
void wf_names_remove(wf_name_table *t, const char *name);

#endif
