/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/expand/sequence.c - sequences: lists of tensors, as exporters write them for chunk,
 * split, unbind and stack.
 *
 * They are gone once a file is read. Which tensors a sequence holds follows from the nodes that
 * make it, as long as positions and counts do not depend on the run; SplitToSequence becomes Split,
 * ConcatFromSequence becomes Concat, and SequenceAt is the tensor that lies there.
 */
#include "common/onnx/sequence.h"
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/onnx/expand.h"
#include "common/onnx/known.h"
#include "common/onnx/proto.h"

#include <inttypes.h>

/* A node that is read, and where. */
typedef struct place {
    wf_graph *g;
    const Weft__Onnx__Node *p;
    wf_onnx_file *file;
    const wf_onnx_scope *scope;
} place;

/* Input i, which must be a sequence, or a tensor. */
static wf_status sequence_in(const place *at, size_t i, wf_onnx_sequence *out, wf_err *err)
{
    const wf_onnx_sequence *s = NULL;
    wf_value *v;

    *out = (wf_onnx_sequence){0};
    WF_TRY(wf_onnx_input(at->g, at->p, at->scope, i, &v, err));
    if (v)
        s = wf_onnx_sequence_of(at->file, v);
    if (!s)
        return wf_fail(err, WF_UNSUPPORTED, "build it in the graph, of tensors",
                       "its input %zu is no sequence that weft can follow", i);
    *out = *s;
    return WF_OK;
}

static wf_status tensor_in(const place *at, size_t i, wf_value **out, wf_err *err)
{
    WF_TRY(wf_onnx_input(at->g, at->p, at->scope, i, out, err));
    if (!*out || wf_onnx_sequence_of(at->file, *out))
        return wf_fail(err, WF_INVALID, NULL, "its input %zu is %s", i,
                       *out ? "a sequence, not a tensor" : "missing");
    return WF_OK;
}

/* A position in a sequence of `count`, 0 to `most`, which counts from the end when it is negative;
 * `otherwise` when the input is absent. */
static wf_status position(const place *at, size_t i, uint32_t count, int64_t most,
                          int64_t otherwise, uint32_t *out, wf_err *err)
{
    int64_t where = otherwise;
    wf_value *v;

    WF_TRY(wf_onnx_input(at->g, at->p, at->scope, i, &v, err));
    if (v) {
        WF_TRY(wf_onnx_catch_up(at->g, at->file, err));
        if (!wf_onnx_known(v, &where))
            return wf_fail(err, WF_UNSUPPORTED, "export it with a fixed position",
                           "the position in its sequence is known only during the run");
        where += where < 0 ? count : 0;
    }
    if (where < 0 || where > most)
        return wf_fail(err, WF_INVALID, NULL, "position %" PRId64 " of a sequence of %u", where,
                       count);
    *out = (uint32_t)where;
    return WF_OK;
}

static wf_status add_list(const place *at, uint32_t n, wf_value *const items[], wf_err *err)
{
    return wf_onnx_sequence_add(at->g, at->file, at->scope, at->p->output[0], n, items, err);
}

static wf_status construct(const place *at, wf_emit *e, wf_err *err)
{
    wf_value *items[WF_ONNX_MOST_ITEMS];
    size_t n = at->p->n_input;

    (void)e;
    if (n > WF_ONNX_MOST_ITEMS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it has %zu inputs; weft follows %d", n,
                       WF_ONNX_MOST_ITEMS);
    for (size_t i = 0; i < n; i++)
        WF_TRY(tensor_in(at, i, &items[i], err));
    return add_list(at, (uint32_t)n, items, err);
}

static wf_status empty(const place *at, wf_emit *e, wf_err *err)
{
    (void)e;
    return add_list(at, 0, NULL, err);
}

static wf_status insert(const place *at, wf_emit *e, wf_err *err)
{
    wf_value *items[WF_ONNX_MOST_ITEMS + 1];
    wf_onnx_sequence s;
    uint32_t where;

    (void)e;
    WF_TRY(sequence_in(at, 0, &s, err));
    /* The end is a position too, and -1 is before the last item. */
    WF_TRY(position(at, 2, s.n, s.n, s.n, &where, err));
    for (uint32_t i = 0; i < s.n; i++)
        items[i + (i >= where)] = s.items[i];
    WF_TRY(tensor_in(at, 1, &items[where], err));
    return add_list(at, s.n + 1, items, err);
}

static wf_status erase(const place *at, wf_emit *e, wf_err *err)
{
    wf_value *items[WF_ONNX_MOST_ITEMS];
    wf_onnx_sequence s;
    uint32_t where;

    (void)e;
    WF_TRY(sequence_in(at, 0, &s, err));
    WF_TRY(position(at, 1, s.n, (int64_t)s.n - 1, (int64_t)s.n - 1, &where, err));
    for (uint32_t i = 0; i + 1 < s.n; i++)
        items[i] = s.items[i + (i >= where)];
    return add_list(at, s.n - 1, items, err);
}

static wf_status item(const place *at, wf_emit *e, wf_err *err)
{
    wf_onnx_sequence s;
    uint32_t where;

    (void)e;
    WF_TRY(sequence_in(at, 0, &s, err));
    WF_TRY(position(at, 1, s.n, (int64_t)s.n - 1, -1, &where, err));
    return wf_onnx_bind(at->g, at->file, at->scope, at->p->output[0], s.items[where], err);
}

static wf_status length(const place *at, wf_emit *e, wf_err *err)
{
    wf_onnx_sequence s;
    wf_value *n;

    WF_TRY(sequence_in(at, 0, &s, err));
    n = wf_emit_scalar(e, WF_I64, s.n);
    WF_TRY(wf_emit_end(e));
    return wf_onnx_bind(at->g, at->file, at->scope, at->p->output[0], n, err);
}

static wf_status concat(const place *at, wf_emit *e, wf_err *err)
{
    int64_t along = wf_onnx_int(at->p, "axis", 0);
    wf_attr axis = wf_attr_int("axis", along);
    wf_value *items[WF_ONNX_MOST_ITEMS], *y;
    wf_onnx_sequence s;

    WF_TRY(sequence_in(at, 0, &s, err));
    if (s.n == 0)
        return wf_fail(err, WF_INVALID, NULL, "there is nothing in its sequence");
    WF_TRY(wf_onnx_sequence_count(at->file, s.n, err));
    WF_TRY(wf_onnx_catch_up(at->g, at->file, err));
    for (uint32_t i = 0; i < s.n; i++)
        items[i] = wf_onnx_int(at->p, "new_axis", 0) ? wf_emit_unsqueeze(e, s.items[i], 1, &along)
                                                     : s.items[i];
    WF_TRY(wf_emit_end(e));
    y = wf_emit_op(e, "Concat", s.n, items, 1, &axis);
    WF_TRY(wf_emit_end(e));
    return wf_onnx_bind(at->g, at->file, at->scope, at->p->output[0], y, err);
}

/* The sizes of parts along an axis of `whole` elements, -1 if that depends on the run: those of
 * input 1; of the size that is there, the last smaller; or, without it, *ones. */
static wf_status part_sizes(const place *at, int64_t whole, int64_t sizes[WF_MAX_CARRIED],
                            uint32_t *n, bool *ones, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count;
    wf_value *v;

    WF_TRY(wf_onnx_input(at->g, at->p, at->scope, 1, &v, err));
    *ones = !v;
    if (v && (v->rank < 0 || !wf_value_elems(v, elems, &count)))
        return wf_fail(err, WF_UNSUPPORTED, "export it with fixed sizes",
                       "the sizes of its parts are known only during the run");
    if (v && v->rank == 1) {
        for (*n = 0; *n < count && elems[*n].is_known; ++*n)
            sizes[*n] = elems[*n].value;
        return *n == count ? WF_OK
                           : wf_fail(err, WF_UNSUPPORTED, "export it with fixed sizes",
                                     "the size of part %u is known only during the run", *n);
    }
    if (whole < 0 || (v && !elems[0].is_known))
        return wf_fail(err, WF_UNSUPPORTED, "export it with that axis fixed",
                       "how many parts it makes is known only during the run");
    if (!v) {
        *n = whole <= WF_ONNX_MOST_ITEMS ? (uint32_t)whole : WF_ONNX_MOST_ITEMS + 1;
        return WF_OK;
    }
    if (elems[0].value < 1 || (whole - 1) / elems[0].value >= WF_MAX_CARRIED)
        return wf_fail(err, WF_UNSUPPORTED, NULL,
                       "an axis of %" PRId64 " in parts of %" PRId64 "; weft makes 1 to %d of them",
                       whole, elems[0].value, WF_MAX_CARRIED);
    for (*n = 0; whole > 0; whole -= elems[0].value)
        sizes[(*n)++] = WF_MIN(whole, elems[0].value);
    return WF_OK;
}

static wf_status split(const place *at, wf_emit *e, wf_err *err)
{
    int64_t along = wf_onnx_int(at->p, "axis", 0), sizes[WF_MAX_CARRIED];
    wf_attr attrs[] = {wf_attr_int("axis", along), wf_attr_int("num_outputs", 0)};
    wf_value *items[WF_ONNX_MOST_ITEMS], *x;
    uint32_t n = 0;
    bool ones;

    WF_TRY(tensor_in(at, 0, &x, err));
    WF_TRY(wf_onnx_catch_up(at->g, at->file, err));
    if (x->rank < 0)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "the shape of its input is not known");
    if (along < -x->rank || along >= x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "axis %" PRId64 " of a tensor of %d", along, x->rank);
    WF_TRY(
        part_sizes(at, x->axes[along < 0 ? along + x->rank : along].size, sizes, &n, &ones, err));
    if (n < 1 || n > WF_ONNX_MOST_ITEMS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it makes %s parts; weft follows 1 to %d",
                       n ? "more" : "no", WF_ONNX_MOST_ITEMS);
    WF_TRY(wf_onnx_sequence_count(at->file, n, err));
    attrs[1].i = n;
    wf_emit_node(e, "Split", ones ? 1 : 2,
                 (wf_value *[]){x, ones ? NULL : wf_emit_ints(e, n, sizes)}, ones ? 2 : 1, attrs, n,
                 items);
    for (uint32_t i = 0; ones && !wf_onnx_int(at->p, "keepdims", 1) && i < n; i++)
        items[i] = wf_emit_binary(e, "Squeeze", items[i], wf_emit_ints(e, 1, &along));
    WF_TRY(wf_emit_end(e));
    return add_list(at, n, items, err);
}

/* What the rows below share: a place for the node, and nodes named after it. */
static wf_status add(wf_status (*node)(const place *at, wf_emit *e, wf_err *err), place at,
                     wf_err *err)
{
    const Weft__Onnx__Node *p = at.p;
    wf_emit e;

    if (p->n_output != 1)
        return wf_fail(err, WF_INVALID, NULL, "it has %zu outputs, and makes one", p->n_output);
    e = wf_emit_begin(at.g, p->name && p->name[0] ? p->name : p->output[0], err);
    return node(&at, &e, err);
}

static const wf_attr_row concat_attrs[] = {
    {"axis", WF_ATTR_INT, true}, {"new_axis", WF_ATTR_INT, false}, {0}};
static const wf_attr_row empty_attrs[] = {{"dtype", WF_ATTR_INT, false}, {0}};
static const wf_attr_row split_attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"keepdims", WF_ATTR_INT, false}, {0}};

#define FOLLOWED "sequences are gone once a file is read; positions and counts must be known then"
/* A row, and its function, since a row has no other place for which of them it is. */
#define SEQUENCE(id, name_, least, most, node, ...)                                                \
    static wf_status add_##id(wf_graph *g, const Weft__Onnx__Node *p, wf_onnx_file *file,          \
                              const wf_onnx_scope *scope, wf_err *err)                             \
    {                                                                                              \
        return add(node, (place){g, p, file, scope}, err);                                         \
    }                                                                                              \
    const wf_expansion wf_expansion_##id = {.op = {.name = name_,                                  \
                                                   .domain = WF_DOMAIN_ONNX,                       \
                                                   .since = 11,                                    \
                                                   .n_in_min = least,                              \
                                                   .n_in_max = most,                               \
                                                   .n_out_min = 1,                                 \
                                                   .n_out_max = 1,                                 \
                                                   .note = FOLLOWED,                               \
                                                   __VA_ARGS__},                                   \
                                            .add = add_##id};

SEQUENCE(concat_from_sequence, "ConcatFromSequence", 1, 1, concat, .attrs = concat_attrs)
SEQUENCE(sequence_at, "SequenceAt", 2, 2, item)
SEQUENCE(sequence_construct, "SequenceConstruct", 1, WF_ANY_NUMBER, construct)
SEQUENCE(sequence_empty, "SequenceEmpty", 0, 0, empty, .attrs = empty_attrs, .no_grad_in = 1)
SEQUENCE(sequence_erase, "SequenceErase", 1, 2, erase)
SEQUENCE(sequence_insert, "SequenceInsert", 2, 3, insert)
SEQUENCE(sequence_length, "SequenceLength", 1, 1, length, .no_grad_in = 1)
SEQUENCE(split_to_sequence, "SplitToSequence", 1, 2, split, .attrs = split_attrs)
