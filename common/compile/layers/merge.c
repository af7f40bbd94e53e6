/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/merge.c - layers that make one of several inputs, element by element or
 * side by side. */
#include "common/compile/layers/layer.h"

enum { MOST_INPUTS = 64 };

/* All inputs in one form: with channels second when each of them has them there. False after a
 * failure. */
static bool alike(wf_layer *l, wf_flow f[])
{
    bool second = true;
    char a[128], b[128];

    for (size_t i = 0; i < l->n_in; i++) {
        f[i] = wf_layer_float(l, i);
        if (!f[i].value)
            return false;
        second = second && f[i].channels_second;
        if (f[i].value->rank == f[0].value->rank)
            continue;
        wf_layer_refuse(l, WF_USAGE, "give them as many axes", "input 1 is %s and input %zu %s",
                        wf_layer_shape(f[0], a, sizeof(a)), i + 1,
                        wf_layer_shape(f[i], b, sizeof(b)));
        return false;
    }
    for (size_t i = 0; !second && i < l->n_in; i++)
        f[i] = wf_layer_give(wf_layer_plain(l, f[i]));
    return l->e.rc == WF_OK;
}

/* Whether all extents but that of axis `but` agree; an extent of 1 goes with any when `spreads`. */
static bool same_extents(wf_layer *l, const wf_flow f[], int64_t but, bool spreads)
{
    char a[128], b[128];

    for (size_t i = 1; i < l->n_in; i++)
        for (int32_t k = 1; k < f[0].value->rank; k++) {
            int64_t x = f[0].value->axes[k].size, y = f[i].value->axes[k].size;

            if (k == but || x == y || (spreads && (x == 1 || y == 1)))
                continue;
            wf_layer_refuse(l, WF_USAGE, "make their extents agree",
                            "input 1 is %s and input %zu %s", wf_layer_shape(f[0], a, sizeof(a)),
                            i + 1, wf_layer_shape(f[i], b, sizeof(b)));
            return false;
        }
    return true;
}

static wf_flow merge(wf_layer *l, const char *op)
{
    wf_flow f[MOST_INPUTS];

    if (!alike(l, f) || !same_extents(l, f, -1, true))
        return (wf_flow){0};
    for (size_t i = 1; i < l->n_in; i++)
        f[0].value = wf_emit_binary(&l->e, op, f[0].value, f[i].value);
    return f[0];
}

static wf_flow add(wf_layer *l)
{
    return merge(l, "Add");
}

static wf_flow subtract(wf_layer *l)
{
    return merge(l, "Sub");
}

static wf_flow multiply(wf_layer *l)
{
    return merge(l, "Mul");
}

static wf_flow average(wf_layer *l)
{
    wf_flow f = merge(l, "Add");

    f.value = wf_emit_scale(&l->e, f.value, 1.0 / (double)l->n_in);
    return f;
}

static wf_flow maximum(wf_layer *l)
{
    return merge(l, "Max");
}

static wf_flow minimum(wf_layer *l)
{
    return merge(l, "Min");
}

static wf_flow concatenate(wf_layer *l)
{
    wf_flow f[MOST_INPUTS] = {0};
    wf_value *in[MOST_INPUTS];
    int64_t at;
    wf_attr axis;

    if (!alike(l, f))
        return (wf_flow){0};
    at = wf_layer_axis(l, f[0], wf_conf_int(l->item, "axis", -1));
    if (at < 0 || !same_extents(l, f, at, false))
        return (wf_flow){0};
    for (size_t i = 0; i < l->n_in; i++)
        in[i] = f[i].value;
    axis = wf_attr_int("axis", at);
    f[0].value = wf_emit_op(&l->e, "Concat", (uint32_t)l->n_in, in, 1, &axis);
    return f[0];
}

const wf_layer_row wf_layer_add = {"add", 2, MOST_INPUTS, add};
const wf_layer_row wf_layer_average = {"average", 2, MOST_INPUTS, average};
const wf_layer_row wf_layer_concatenate = {"concatenate", 2, MOST_INPUTS, concatenate};
const wf_layer_row wf_layer_maximum = {"maximum", 2, MOST_INPUTS, maximum};
const wf_layer_row wf_layer_minimum = {"minimum", 2, MOST_INPUTS, minimum};
const wf_layer_row wf_layer_multiply = {"multiply", 2, MOST_INPUTS, multiply};
const wf_layer_row wf_layer_subtract = {"subtract", 2, 2, subtract};
