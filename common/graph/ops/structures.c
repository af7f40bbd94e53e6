/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/structures.c - Loop, Scan and the operations of sequences, for the listing:
 * reading a file puts what they mean in their place (onnx_loop.c, onnx_sequence.c), so that no
 * graph has one. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "%s is gone once a file is read", n->op->name);
}

/* For the listing: gradients are those of what comes in its place. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)g;
    return wf_fail(err, WF_UNSUPPORTED, NULL, "%s is gone once a file is read", n->op->name);
}

static const wf_attr_row concat[] = {
    {"axis", WF_ATTR_INT, true}, {"new_axis", WF_ATTR_INT, false}, {0}};
static const wf_attr_row loop[] = {{"body", WF_ATTR_GRAPH, true}, {0}};
static const wf_attr_row scan[] = {{"body", WF_ATTR_GRAPH, true},
                                   {"num_scan_inputs", WF_ATTR_INT, true},
                                   {"scan_input_axes", WF_ATTR_INTS, false},
                                   {"scan_input_directions", WF_ATTR_INTS, false},
                                   {"scan_output_axes", WF_ATTR_INTS, false},
                                   {"scan_output_directions", WF_ATTR_INTS, false},
                                   {0}};
static const wf_attr_row empty[] = {{"dtype", WF_ATTR_INT, false}, {0}};
static const wf_attr_row split[] = {
    {"axis", WF_ATTR_INT, false}, {"keepdims", WF_ATTR_INT, false}, {0}};

#define ROW(id, name_, since_, least_in, most_in, most_out, note_, ...)                            \
    const wf_op wf_op_##id = {.name = name_,                                                       \
                              .domain = WF_DOMAIN_ONNX,                                            \
                              .since = since_,                                                     \
                              .n_in_min = least_in,                                                \
                              .n_in_max = most_in,                                                 \
                              .n_out_min = 1,                                                      \
                              .n_out_max = most_out,                                               \
                              .flags = WF_OP_READ_AWAY,                                            \
                              .note = note_,                                                       \
                              .infer = infer,                                                      \
                              __VA_ARGS__};
#define UNROLLED "its turns become part of the graph; their number must be known when it is read"
#define FOLLOWED "sequences are gone once a file is read; positions and counts must be known then"

ROW(concat_from_sequence, "ConcatFromSequence", 11, 1, 1, 1, FOLLOWED, .grad = grad,
    .attrs = concat)
ROW(loop, "Loop", 16, 2, WF_ANY_NUMBER, WF_ANY_NUMBER, UNROLLED, .grad = grad, .attrs = loop)
ROW(scan, "Scan", 16, 1, WF_ANY_NUMBER, WF_ANY_NUMBER, UNROLLED, .grad = grad, .attrs = scan)
ROW(sequence_at, "SequenceAt", 11, 2, 2, 1, FOLLOWED, .grad = grad)
ROW(sequence_construct, "SequenceConstruct", 11, 1, WF_ANY_NUMBER, 1, FOLLOWED, .grad = grad)
ROW(sequence_empty, "SequenceEmpty", 11, 0, 0, 1, FOLLOWED, .no_grad_in = 1, .attrs = empty)
ROW(sequence_erase, "SequenceErase", 11, 1, 2, 1, FOLLOWED, .grad = grad)
ROW(sequence_insert, "SequenceInsert", 11, 2, 3, 1, FOLLOWED, .grad = grad)
ROW(sequence_length, "SequenceLength", 11, 1, 1, 1, FOLLOWED, .no_grad_in = 1)
ROW(split_to_sequence, "SplitToSequence", 11, 1, 2, 1, FOLLOWED, .grad = grad, .attrs = split)
