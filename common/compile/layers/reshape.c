/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/reshape.c - layers that move elements of a record: flatten, reshape,
 * permute, repeat_vector. */
#include "common/base/size.h"
#include "common/compile/layers/layer.h"

static wf_flow flatten(wf_layer *l)
{
    wf_value *x = wf_layer_plain(l, l->in[0]);
    wf_attr axis = wf_attr_int("axis", 1);

    if (x && x->rank != 2)
        x = wf_emit_op(&l->e, "Flatten", 1, &x, 1, &axis);
    return wf_layer_give(x);
}

/* Elements of a record of v. */
static int64_t record_elems(const wf_value *v)
{
    int64_t n = 1;

    for (int32_t i = 1; i < v->rank; i++)
        if (!wf_mul_i64(n, v->axes[i].size, &n))
            return -1;
    return n;
}

static wf_flow reshape(wf_layer *l)
{
    const wf_conf_option *shape = wf_conf_find(l->item, "target_shape");
    wf_value *x = wf_layer_plain(l, l->in[0]);
    int64_t dims[WF_MAX_RANK] = {0}, have, rest = 1, free_axis = -1;

    if (!x)
        return (wf_flow){0};
    have = record_elems(x);
    if (!shape || shape->n + 1 > WF_MAX_RANK)
        return wf_layer_refuse(l, WF_USAGE, NULL, "\"target_shape\" must have 0 to %d extents",
                               WF_MAX_RANK - 1);
    for (size_t i = 0; i < shape->n; i++) {
        dims[i + 1] = shape->ints[i];
        if (dims[i + 1] == -1 && free_axis < 0)
            free_axis = (int64_t)i + 1;
        else if (dims[i + 1] < 1 || !wf_mul_i64(rest, dims[i + 1], &rest))
            return wf_layer_refuse(l, WF_USAGE, "one extent may be -1, all others are at least 1",
                                   "\"target_shape\" has an extent of %lld",
                                   (long long)dims[i + 1]);
    }
    if (free_axis < 0 ? have != rest : have % rest != 0)
        return wf_layer_refuse(l, WF_USAGE, "make the products agree",
                               "\"target_shape\" holds %lld elements, a record before it %lld",
                               (long long)rest, (long long)have);
    if (free_axis > 0)
        dims[free_axis] = have / rest;
    /* dims[0] == 0: the batch */
    return wf_layer_give(wf_emit_reshape(&l->e, x, (uint32_t)shape->n + 1, dims));
}

static wf_flow permute(wf_layer *l)
{
    const wf_conf_option *order = wf_conf_find(l->item, "dims");
    wf_value *x = wf_layer_plain(l, l->in[0]);
    int64_t perm[WF_MAX_RANK] = {0};
    uint32_t seen = 1;
    char text[128];

    if (!x)
        return (wf_flow){0};
    for (size_t i = 0; order && i < order->n && i + 1 < WF_MAX_RANK; i++) {
        perm[i + 1] = order->ints[i];
        seen |= order->ints[i] > 0 && order->ints[i] < x->rank ? 1u << order->ints[i] : 0;
    }
    if (!order || (int32_t)order->n + 1 != x->rank || seen != (1u << x->rank) - 1)
        return wf_layer_refuse(l, WF_USAGE, "name each axis once, counted from 1",
                               "\"dims\" does not put the axes of %s in an order",
                               wf_layer_shape(wf_layer_give(x), text, sizeof(text)));
    return wf_layer_give(wf_emit_transpose(&l->e, x, perm));
}

static wf_flow repeat_vector(wf_layer *l)
{
    static const int64_t second[] = {1};
    wf_value *in[2] = {wf_layer_plain(l, l->in[0]), NULL};
    int64_t shape[3] = {1, wf_conf_int(l->item, "n", 1), 1};
    char text[128];

    if (!in[0])
        return (wf_flow){0};
    if (in[0]->rank != 2)
        return wf_layer_refuse(l, WF_USAGE, "put a flatten before it",
                               "it takes records of one axis; what comes is %s",
                               wf_layer_shape(wf_layer_give(in[0]), text, sizeof(text)));
    in[0] = wf_emit_unsqueeze(&l->e, in[0], 1, second);
    in[1] = wf_emit_ints(&l->e, 3, shape);
    return wf_layer_give(wf_emit_op(&l->e, "Expand", 2, in, 0, NULL));
}

const wf_layer_row wf_layer_flatten = {"flatten", 1, 1, flatten};
const wf_layer_row wf_layer_permute = {"permute", 1, 1, permute};
const wf_layer_row wf_layer_repeat_vector = {"repeat_vector", 1, 1, repeat_vector};
const wf_layer_row wf_layer_reshape = {"reshape", 1, 1, reshape};
