/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/near.c */
#include "common/session/near.h"
#include "common/base/nearest.h"

#include <stdio.h>
#include <stdlib.h>

bool wf_is_weight(const wf_value *v)
{
    return v->known && !v->producer && !v->is_input;
}

const char *wf_near_text(const wf_graph *g, bool inputs, bool weights, const char *name,
                         char text[WF_NEAR_TEXT])
{
    const char **names = calloc(g->n_values + 1, sizeof *names), *near = NULL;
    size_t n = 0;

    for (size_t i = 0; names && i < g->n_values; i++)
        if ((inputs && g->values[i]->is_input) || (weights && wf_is_weight(g->values[i])))
            names[n++] = g->values[i]->name;
    if (names)
        near = wf_nearest(name, names, n);
    free(names);
    text[0] = 0;
    if (near)
        snprintf(text, WF_NEAR_TEXT, "did you mean \"%.100s\"?", near);
    return text;
}
