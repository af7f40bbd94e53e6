/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/write.c - wf_graph to ModelProto. Messages are built in an arena and borrow the
 * graph's names and tensors. */
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/graph/op.h"
#include "common/onnx/onnx.h"
#include "common/onnx/variables.h"
#include "common/pb/pb.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { IR_VERSION = 8, ML_OPSET = 2 /* of LabelEncoder */ };

/* The first want of memory is kept, as in wf_bytes. */
typedef struct writer {
    const wf_graph *g;
    wf_arena *arena;
    bool failed;
    bool *used, *listed; /* by value: somebody reads it; it is a graph output */
} writer;

static void *take(writer *w, size_t n, size_t size)
{
    void *p = wf_arena_array(w->arena, n, size);

    if (!p)
        w->failed = true;
    return p;
}

/* A new message, or NULL. */
#define NEW(w, var, type, init)                                                                    \
    type *var = take((w), 1, sizeof(type));                                                        \
    if (var)                                                                                       \
    init(var)

/* protobuf-c has no const; packing only reads. */
static char *text(const char *s)
{
    return (char *)s;
}

/* As a node's doc_string; NULL for none. */
static char *device_text(writer *w, const char *device)
{
    bool is_task = device && strncmp(device, WF_ONNX_TASK, strlen(WF_ONNX_TASK)) == 0;
    char *s =
        device ? wf_arena_printf(w->arena, "%s%s", is_task ? "" : WF_ONNX_DEVICE, device) : NULL;

    w->failed = w->failed || (device && !s);
    return s;
}

static Weft__Onnx__StringStringEntry *entry(writer *w, const char *prefix, const char *key,
                                            const char *value)
{
    NEW(w, e, Weft__Onnx__StringStringEntry, weft__onnx__string_string_entry__init);

    if (!e)
        return NULL;
    e->key = wf_arena_printf(w->arena, "%s%s", prefix, key);
    e->value = text(value);
    w->failed = w->failed || !e->key;
    return e;
}

static Weft__Onnx__Tensor *tensor(writer *w, const wf_tensor *t, const char *name)
{
    NEW(w, p, Weft__Onnx__Tensor, weft__onnx__tensor__init);

    if (!p)
        return NULL;
    p->name = text(name);
    p->has_data_type = 1;
    p->data_type = (int32_t)t->dtype;
    p->n_dims = t->rank;
    p->dims = (int64_t *)t->dims;
    p->has_raw_data = 1;
    p->raw_data.len = wf_tensor_bytes(t);
    p->raw_data.data = t->data;
    return p;
}

static Weft__Onnx__Dimension *dimension(writer *w, const wf_axis *axis)
{
    NEW(w, p, Weft__Onnx__Dimension, weft__onnx__dimension__init);

    if (!p)
        return NULL;
    if (axis->size >= 0) {
        p->has_dim_value = 1;
        p->dim_value = axis->size;
    } else {
        p->dim_param = text(axis->symbol);
    }
    return p;
}

static Weft__Onnx__TensorShape *shape(writer *w, const wf_value *v)
{
    NEW(w, p, Weft__Onnx__TensorShape, weft__onnx__tensor_shape__init);

    if (!p)
        return NULL;
    p->dim = take(w, (size_t)v->rank, sizeof p->dim[0]);
    if (!p->dim)
        return NULL;
    p->n_dim = (size_t)v->rank;
    for (int32_t i = 0; i < v->rank; i++)
        p->dim[i] = dimension(w, &v->axes[i]);
    return p;
}

static Weft__Onnx__ValueInfo *value_info(writer *w, const wf_value *v)
{
    NEW(w, p, Weft__Onnx__ValueInfo, weft__onnx__value_info__init);
    NEW(w, type, Weft__Onnx__Type, weft__onnx__type__init);
    NEW(w, of, Weft__Onnx__TensorType, weft__onnx__tensor_type__init);

    if (!p || !type || !of)
        return NULL;
    p->name = text(v->name);
    p->type = type;
    type->tensor_type = of;
    of->has_elem_type = 1;
    of->elem_type = (int32_t)v->dtype;
    if (v->rank >= 0)
        of->shape = shape(w, v);
    return p;
}

static void put_text(ProtobufCBinaryData *to, const char *s)
{
    to->len = strlen(s);
    to->data = (uint8_t *)text(s);
}

static void put_strings(writer *w, Weft__Onnx__Attribute *p, const wf_attr *a)
{
    p->strings = take(w, a->n, sizeof p->strings[0]);
    if (!p->strings)
        return;
    p->n_strings = a->n;
    for (size_t i = 0; i < a->n; i++)
        put_text(&p->strings[i], a->strings[i]);
}

static Weft__Onnx__Attribute *attribute(writer *w, const wf_attr *a)
{
    enum { FLOAT = 1, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS };
    static const int types[] = {
        [WF_ATTR_INT] = INT,         [WF_ATTR_FLOAT] = FLOAT, [WF_ATTR_STRING] = STRING,
        [WF_ATTR_TENSOR] = TENSOR,   [WF_ATTR_INTS] = INTS,   [WF_ATTR_FLOATS] = FLOATS,
        [WF_ATTR_STRINGS] = STRINGS, [WF_ATTR_GRAPH] = GRAPH};
    NEW(w, p, Weft__Onnx__Attribute, weft__onnx__attribute__init);

    if (!p)
        return NULL;
    p->name = text(a->name);
    p->has_type = 1;
    p->type = types[a->kind];
    switch (a->kind) {
    case WF_ATTR_INT:
        p->has_i = 1;
        p->i = a->i;
        break;
    case WF_ATTR_FLOAT:
        p->has_f = 1;
        p->f = a->f;
        break;
    case WF_ATTR_STRING:
        p->has_s = 1;
        put_text(&p->s, a->s);
        break;
    case WF_ATTR_TENSOR:
        p->t = tensor(w, a->t, a->name);
        break;
    case WF_ATTR_INTS:
        p->n_ints = a->n;
        p->ints = (int64_t *)a->ints;
        break;
    case WF_ATTR_FLOATS:
        p->n_floats = a->n;
        p->floats = (float *)a->floats;
        break;
    case WF_ATTR_STRINGS:
        put_strings(w, p, a);
        break;
    case WF_ATTR_GRAPH:
        break;
    }
    return p;
}

static char **names(writer *w, uint32_t n, wf_value *const values[])
{
    char **list = take(w, n, sizeof list[0]);

    for (uint32_t i = 0; list && i < n; i++)
        list[i] = text(values[i] ? values[i]->name : "");
    return list;
}

static Weft__Onnx__Node *node(writer *w, const wf_node *n)
{
    NEW(w, p, Weft__Onnx__Node, weft__onnx__node__init);

    if (!p)
        return NULL;
    p->name = text(n->name);
    p->op_type = text(n->op->name);
    if (n->op->domain[0])
        p->domain = text(n->op->domain);
    p->doc_string = device_text(w, n->device);
    p->input = names(w, n->n_in, n->in);
    p->output = names(w, n->n_out, n->out);
    p->attribute = take(w, n->n_attrs, sizeof p->attribute[0]);
    if (w->failed)
        return NULL;
    p->n_input = n->n_in;
    p->n_output = n->n_out;
    p->n_attribute = n->n_attrs;
    for (uint32_t i = 0; i < n->n_attrs; i++)
        p->attribute[i] = attribute(w, &n->attrs[i]);
    return p;
}

static void mark_used(writer *w)
{
    for (size_t i = 0; i < w->g->n_nodes; i++)
        for (uint32_t k = 0; k < w->g->nodes[i]->n_in; k++)
            if (w->g->nodes[i]->in[k])
                w->used[w->g->nodes[i]->in[k]->index] = true;
    for (size_t i = 0; i < w->g->n_outputs; i++)
        w->used[w->g->outputs[i]->index] = w->listed[w->g->outputs[i]->index] = true;
}

/* Initializers, and value_info of what nodes make but outputs do not list. */
static void put_values(writer *w, Weft__Onnx__Graph *p)
{
    const wf_graph *g = w->g;

    p->initializer = take(w, g->n_values, sizeof p->initializer[0]);
    p->value_info = take(w, g->n_values, sizeof p->value_info[0]);
    for (size_t i = 0; i < g->n_values && !w->failed; i++) {
        const wf_value *v = g->values[i];

        if (!v->producer && v->known && !v->is_input &&
            (v->variable != WF_VAR_NOT || w->used[v->index]))
            p->initializer[p->n_initializer++] = tensor(w, v->known, v->name);
        else if (v->producer && !w->listed[v->index] && v->dtype != WF_NONE && v->rank >= 0)
            p->value_info[p->n_value_info++] = value_info(w, v);
    }
}

static Weft__Onnx__Graph *graph(writer *w)
{
    const wf_graph *g = w->g;
    NEW(w, p, Weft__Onnx__Graph, weft__onnx__graph__init);

    if (!p)
        return NULL;
    p->name = text(g->name);
    p->node = take(w, g->n_nodes, sizeof p->node[0]);
    p->input = take(w, g->n_inputs, sizeof p->input[0]);
    p->output = take(w, g->n_outputs, sizeof p->output[0]);
    if (w->failed)
        return NULL;
    p->n_node = g->n_nodes;
    p->n_input = g->n_inputs;
    p->n_output = g->n_outputs;
    for (size_t i = 0; i < g->n_nodes; i++)
        p->node[i] = node(w, g->nodes[i]);
    for (size_t i = 0; i < g->n_inputs; i++)
        p->input[i] = value_info(w, g->inputs[i]);
    for (size_t i = 0; i < g->n_outputs; i++)
        p->output[i] = value_info(w, g->outputs[i]);
    put_values(w, p);
    return p;
}

static Weft__Onnx__OperatorSet *opset(writer *w, const char *domain, int64_t version)
{
    NEW(w, p, Weft__Onnx__OperatorSet, weft__onnx__operator_set__init);

    if (!p)
        return NULL;
    p->domain = text(domain);
    p->has_version = 1;
    p->version = version;
    return p;
}

static bool uses_domain(const wf_graph *g, const char *domain)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i]->op->domain, domain) == 0)
            return true;
    return false;
}

/* The oldest opset that has all operations: the inner one, unless some came later (Gelu, 20).
 * Others mean the same there, or their row would be of that opset too. */
static int64_t opset_of(const wf_graph *g)
{
    int64_t least = WF_OPSET;

    for (size_t i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i]->op->domain, WF_DOMAIN_ONNX) == 0)
            least = WF_MAX(least, (int64_t)g->nodes[i]->op->since);
    return least;
}

static Weft__Onnx__Model *model(writer *w)
{
    static const char *const kinds[] = {[WF_VAR_TRAINABLE] = "trainable",
                                        [WF_VAR_STATISTIC] = "statistic",
                                        [WF_VAR_FROZEN] = "frozen"};
    const wf_graph *g = w->g;
    NEW(w, p, Weft__Onnx__Model, weft__onnx__model__init);

    if (!p)
        return NULL;
    p->has_ir_version = 1;
    p->ir_version = IR_VERSION;
    p->producer_name = text(WF_ONNX_PRODUCER);
    p->producer_version = text(WEFT_VERSION);
    p->graph = graph(w);
    p->opset_import = take(w, 3, sizeof p->opset_import[0]);
    p->metadata_props = take(w, g->n_values, sizeof p->metadata_props[0]);
    if (w->failed)
        return NULL;
    p->opset_import[p->n_opset_import++] = opset(w, WF_DOMAIN_ONNX, opset_of(g));
    if (uses_domain(g, WF_DOMAIN_WEFT))
        p->opset_import[p->n_opset_import++] = opset(w, WF_DOMAIN_WEFT, 1);
    if (uses_domain(g, WF_DOMAIN_ML))
        p->opset_import[p->n_opset_import++] = opset(w, WF_DOMAIN_ML, ML_OPSET);
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i]->variable != WF_VAR_NOT)
            p->metadata_props[p->n_metadata_props++] =
                entry(w, WF_ONNX_VARIABLE_KEY, g->values[i]->name, kinds[g->values[i]->variable]);
    return p;
}

static wf_status pack(writer *w, wf_bytes *out, wf_err *err)
{
    Weft__Onnx__Model *m;
    uint8_t *to;
    size_t n;

    mark_used(w);
    m = model(w);
    if (w->failed)
        return wf_fail_nomem(err, wf_arena_used(w->arena));
    n = weft__onnx__model__get_packed_size(m);
    if (n > INT_MAX)
        return wf_fail(err, WF_UNSUPPORTED, "keep the weights as a checkpoint",
                       "the model takes %zu bytes, and an ONNX file holds less than 2 GiB", n);
    to = wf_bytes_extend(out, n);
    if (to)
        weft__onnx__model__pack(m, to);
    return wf_bytes_check(out, err);
}

wf_status wf_onnx_encode(const wf_graph *g, wf_bytes *out, wf_err *err)
{
    writer w = {.g = g};
    wf_status rc;

    w.arena = wf_arena_new(0);
    w.used = calloc(g->n_values + 1, sizeof w.used[0]);
    w.listed = calloc(g->n_values + 1, sizeof w.listed[0]);
    if (w.arena && w.used && w.listed)
        rc = pack(&w, out, err);
    else
        rc = wf_fail_nomem(err, g->n_values);
    wf_arena_free(&w.arena);
    free(w.used);
    free(w.listed);
    return rc;
}

wf_status wf_onnx_write(const wf_graph *g, const char *path, wf_err *err)
{
    wf_bytes bytes = {0};
    wf_status rc = wf_onnx_encode(g, &bytes, err);

    if (rc == WF_OK)
        rc = wf_file_write(path, bytes.data, bytes.size, err);
    wf_bytes_close(&bytes);
    return rc;
}
