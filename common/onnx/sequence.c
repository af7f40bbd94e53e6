/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/sequence.c - see sequence.h. */
#include "common/onnx/sequence.h"
#include "common/base/size.h"
#include "common/graph/op.h"

#include <string.h>

/* Items of one sequence are bounded by WF_ONNX_MOST_ITEMS; these are those that all nodes of a file
 * take or give: lists are copied, and some nodes add one for each item. */
enum { MOST_IN_ALL = 1 << 17 };

const wf_onnx_sequence *wf_onnx_sequence_of(const wf_onnx_file *file, const wf_value *v)
{
    size_t low = 0, high = file->n_sequences;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t name = file->sequences[middle].name;

        if (name == v->index)
            return &file->sequences[middle];
        if (v->index < name)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static wf_status make_room(wf_graph *g, wf_onnx_file *file, wf_err *err)
{
    size_t room = WF_MAX(2 * file->sequences_room, (size_t)16);
    wf_onnx_sequence *more;

    if (file->n_sequences < file->sequences_room)
        return WF_OK;
    more = wf_arena_array(g->arena, room, sizeof more[0]);
    if (!more)
        return wf_fail_nomem(err, room * sizeof more[0]);
    if (file->n_sequences)
        memcpy(more, file->sequences, file->n_sequences * sizeof more[0]);
    file->sequences = more;
    file->sequences_room = room;
    return WF_OK;
}

wf_status wf_onnx_sequence_count(wf_onnx_file *file, uint32_t n, wf_err *err)
{
    if (n > WF_ONNX_MOST_ITEMS || file->n_items + n > MOST_IN_ALL)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "a sequence of %u tensors; weft follows %d, and %d in all sequences", n,
                       WF_ONNX_MOST_ITEMS, MOST_IN_ALL);
    file->n_items += n;
    return WF_OK;
}

wf_status wf_onnx_sequence_add(wf_graph *g, wf_onnx_file *file, const wf_onnx_scope *scope,
                               const char *name, uint32_t n, wf_value *const items[], wf_err *err)
{
    size_t n_values = g->n_values;
    wf_onnx_sequence s = {.n = n};
    wf_value *v;

    if (!name[0])
        return WF_OK;
    WF_TRY(wf_onnx_sequence_count(file, n, err));
    WF_TRY(wf_onnx_made(g, scope, name, &v, err));
    /* A new value, so that indices ascend. */
    if (g->n_values == n_values)
        return wf_fail(err, WF_INVALID, NULL,
                       "\"%.200s\" is a sequence, and has another use before", name);
    WF_TRY(make_room(g, file, err));
    s.name = v->index;
    s.items = wf_arena_array(g->arena, WF_MAX(n, 1u), sizeof s.items[0]);
    if (!s.items)
        return wf_fail_nomem(err, n * sizeof s.items[0]);
    if (n)
        memcpy(s.items, items, n * sizeof s.items[0]);
    file->sequences[file->n_sequences++] = s;
    return WF_OK;
}

wf_status wf_onnx_bind(wf_graph *g, wf_onnx_file *file, const wf_onnx_scope *scope,
                       const char *name, wf_value *v, wf_err *err)
{
    const wf_onnx_sequence *s = wf_onnx_sequence_of(file, v);
    wf_value *out;
    wf_node *n;

    if (!name[0])
        return WF_OK;
    if (s)
        return wf_onnx_sequence_add(g, file, scope, name, s->n, s->items, err);
    WF_TRY(wf_onnx_made(g, scope, name, &out, err));
    WF_TRY(wf_graph_add_node_like(g, wf_op_find(WF_DOMAIN_ONNX, "Identity"), out->name, 1, &v, 1,
                                  &out, &n, err));
    n->is_tentative = scope && scope->tentative;
    return WF_OK;
}
