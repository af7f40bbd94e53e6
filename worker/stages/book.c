/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/book.c - what of a stage's values is known from the start of the job alone. */
#include "common/base/size.h"
#include "common/onnx/onnx.h"
#include "worker/stages/part.h"

#include <stdlib.h>
#include <string.h>

static int32_t find(const wf_stage_book *b, const char *name)
{
    for (uint32_t i = 0; i < b->n_values; i++)
        if (strcmp(b->values[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

/* A value of that name, new or not; there is room. */
static wf_stage_value *add(wf_stage_book *b, const char *name)
{
    int32_t at = find(b, name);

    if (at < 0) {
        at = (int32_t)b->n_values++;
        b->values[at] = (wf_stage_value){.name = name, .field = -1, .edge = -1, .result = -1};
    }
    return &b->values[at];
}

static wf_status decode(const ProtobufCBinaryData *from, wf_stage_part *p, wf_err *err)
{
    if (!from || from->len == 0)
        return WF_OK;
    return wf_onnx_decode(from->data, from->len, NULL, &p->graph, err);
}

static wf_status make_room(wf_stage_book *b, size_t n_outputs, wf_err *err)
{
    size_t most = b->n_edges + n_outputs + 1;

    for (int i = 0; i < WF_PARTS; i++)
        if (b->parts[i].graph)
            most += b->parts[i].graph->n_inputs + b->parts[i].graph->n_outputs;
    b->values = calloc(most, sizeof *b->values);
    return b->values ? WF_OK : wf_fail_nomem(err, most * sizeof *b->values);
}

static int32_t find_field(const wf_stage_book_spec *spec, const char *name)
{
    const wf_graph *g = spec->predicted;

    if (spec->data)
        return wf_dataset_find(spec->data, name);
    for (size_t i = 0; g && i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return (int32_t)i;
    return -1;
}

static void add_parts(wf_stage_book *b, const wf_stage_book_spec *spec)
{
    for (int i = 0; i < WF_PARTS; i++) {
        const wf_graph *g = b->parts[i].graph;

        for (size_t k = 0; g && k < g->n_inputs; k++) {
            wf_stage_value *v = add(b, g->inputs[k]->name);

            v->is_taken |= i == WF_PART_FORWARD;
            v->is_kept |= i == WF_PART_BACKWARD;
            if (i == WF_PART_FORWARD)
                v->field = find_field(spec, v->name);
        }
        for (size_t k = 0; g && k < g->n_outputs; k++)
            add(b, g->outputs[k]->name);
    }
}

static wf_status add_edges(wf_stage_book *b, wf_err *err)
{
    const Weft__Start *s = b->start;

    for (size_t i = 0; i < b->n_edges; i++) {
        const Weft__StageEdge *e = b->edges[i];
        int64_t ignored;

        if (e->from >= s->n_stages || e->to >= s->n_stages || e->from == e->to)
            return wf_fail(err, WF_PROTO, NULL, "an edge from stage %u to %u, of %zu", e->from,
                           e->to, s->n_stages);
        WF_TRY(wf_stage_edge_elems(e, 1, &ignored, err));
        if (e->to == s->stage)
            add(b, e->name)->edge = (int32_t)i;
        if (e->from == s->stage)
            add(b, e->name)->goes = true;
    }
    return WF_OK;
}

/* Whatever the graphs take is fed, comes in, or is made by the part before. */
static wf_status check(const wf_stage_book *b, wf_err *err)
{
    for (uint32_t i = 0; i < b->n_values; i++) {
        const wf_stage_value *v = &b->values[i];
        const wf_graph *made = b->parts[WF_PART_FORWARD].graph;
        bool is_made = false;

        for (size_t k = 0; made && k < made->n_outputs; k++)
            is_made |= strcmp(made->outputs[k]->name, v->name) == 0;
        if ((v->is_taken && v->field < 0 && v->edge < 0) ||
            (v->is_kept && v->field < 0 && v->edge < 0 && !is_made))
            return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                           "no stage gives \"%.200s\" to stage %u", v->name, b->start->stage);
    }
    return WF_OK;
}

wf_status wf_stage_book_open(wf_stage_book *b, const wf_stage_book_spec *spec, wf_err *err)
{
    b->start = spec->start;
    b->edges = spec->edges;
    b->n_edges = spec->n_edges;
    WF_TRY(decode(spec->forward, &b->parts[WF_PART_FORWARD], err));
    WF_TRY(decode(spec->backward, &b->parts[WF_PART_BACKWARD], err));
    WF_TRY(make_room(b, spec->n_outputs, err));
    add_parts(b, spec);
    WF_TRY(add_edges(b, err));
    for (size_t i = 0; spec->start->stage == 0 && i < spec->n_outputs; i++)
        add(b, spec->outputs[i]->name)->result = (int32_t)i;
    return check(b, err);
}

void wf_stage_book_close(wf_stage_book *b)
{
    for (int i = 0; i < WF_PARTS; i++) {
        wf_plans_close(&b->parts[i].plans);
        wf_graph_free(&b->parts[i].graph);
        free(b->parts[i].in);
        free(b->parts[i].out);
    }
    for (size_t i = 0; i < b->n_rooms; i++)
        wf_buf_unref(&b->rooms[i]);
    free(b->rooms);
    free(b->values);
    *b = (wf_stage_book){0};
}

wf_status wf_stage_edge_elems(const Weft__StageEdge *e, uint64_t records, int64_t *out, wf_err *err)
{
    uint64_t elems = 1;

    if (e->n_sizes > WF_MAX_RANK || wf_dtype_size((wf_dtype)e->dtype) == 0)
        return wf_fail(err, WF_PROTO, NULL, "edge \"%.200s\" has %zu axes of type %u", e->name,
                       e->n_sizes, e->dtype);
    for (size_t i = 0; i < e->n_sizes; i++) {
        uint64_t size = e->sizes[i] < 0 ? -(uint64_t)e->sizes[i] : (uint64_t)e->sizes[i];

        if (size > INT32_MAX || (e->sizes[i] < 0 && __builtin_mul_overflow(size, records, &size)) ||
            __builtin_mul_overflow(elems, size, &elems) || elems > INT32_MAX * UINT64_C(64))
            return wf_fail(err, WF_PROTO, NULL, "edge \"%.200s\" has no size that fits", e->name);
    }
    *out = (int64_t)elems;
    return WF_OK;
}
