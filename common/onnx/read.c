/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/read.c - ModelProto to wf_graph. */
#include "common/base/bytes.h"
#include "common/base/file.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/op.h"
#include "common/onnx/expand.h"
#include "common/onnx/node.h"
#include "common/onnx/onnx.h"
#include "common/onnx/proto.h"
#include "common/onnx/sequence.h"
#include "common/onnx/variables.h"
#include "common/pb/pb.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 512 };

/* The opset of the ONNX domain, 0 when the file names none. */
static wf_status find_opset(const Weft__Onnx__Model *model, int64_t *opset, wf_err *err)
{
    *opset = 0;
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Weft__Onnx__OperatorSet *set = model->opset_import[i];
        const char *domain = set->domain ? set->domain : "";

        if (domain[0] == 0 || strcmp(domain, "ai.onnx") == 0)
            *opset = set->version;
        else if (strcmp(domain, WF_DOMAIN_WEFT) == 0 && set->version != 1)
            return wf_fail(err, WF_UNSUPPORTED, "read it with the weft that wrote it",
                           "version %" PRId64 " of ai.weft; this weft has version 1", set->version);
    }
    if (*opset && (*opset < WF_OPSET_OLDEST || *opset > WF_OPSET_NEWEST))
        return wf_fail(err, WF_UNSUPPORTED,
                       "export it with opset_version=17, or convert it with "
                       "onnx.version_converter",
                       "opset %" PRId64 "; weft reads %d to %d", *opset, WF_OPSET_OLDEST,
                       WF_OPSET_NEWEST);
    return WF_OK;
}

/* True when an earlier node has the same operation: each is reported once. */
static bool seen_before(const Weft__Onnx__Graph *graph, size_t at)
{
    const Weft__Onnx__Node *p = graph->node[at];

    /* Names repeat early; looking further back would be quadratic in a file of unknown nodes. */
    for (size_t i = at > 1000 ? at - 1000 : 0; i < at; i++)
        if (strcmp(wf_onnx_op(graph->node[i]), wf_onnx_op(p)) == 0 &&
            strcmp(wf_onnx_domain(graph->node[i]), wf_onnx_domain(p)) == 0)
            return true;
    return false;
}

/* Operations that weft does not have. */
typedef struct unknown {
    char list[600];
    size_t used, n;
} unknown;

static void add_text(unknown *u, const char *fmt, ...) WF_PRINTF(2, 3);
static void add_text(unknown *u, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    u->used += (size_t)vsnprintf(u->list + u->used, sizeof u->list - u->used, fmt, args);
    va_end(args);
    if (u->used >= sizeof u->list)
        u->used = sizeof u->list - 1;
}

/* The name among all that files may hold, or NULL. */
static const char *nearest(const char *name)
{
    const char *names[MOST_NAMES];
    size_t n = 0;

    for (const wf_op *op; n < MOST_NAMES && (op = wf_op_at(n)); n++)
        names[n] = op->name;
    for (size_t i = 0; n < MOST_NAMES && wf_expansion_at(i); i++)
        names[n++] = wf_expansion_at(i)->op.name;
    return wf_nearest(name, names, n);
}

/* By operation and the first node that has it. */
static void add_unknown(unknown *u, const Weft__Onnx__Node *p)
{
    const char *domain = wf_onnx_domain(p), *near = nearest(wf_onnx_op(p));

    add_text(u, "%s%.40s%s%.60s", u->n++ ? ", " : "", domain, domain[0] ? "." : "", wf_onnx_op(p));
    if (p->name && p->name[0])
        add_text(u, " \"%.60s\"", p->name);
    if (near && strcmp(near, wf_onnx_op(p)) == 0)
        add_text(u, " (it is of another domain: see the list)");
    else if (near)
        add_text(u, " (did you mean %s?)", near);
}

/* Of a graph and the subgraphs in it; protobuf's guard has bounded how deep they nest. */
static void find_unknown(const Weft__Onnx__Graph *graph, int64_t opset, unknown *u)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Weft__Onnx__Node *p = graph->node[i];
        const Weft__Onnx__Graph *inner[2];
        size_t n_inner = wf_onnx_subgraphs(p, inner);

        for (size_t k = 0; k < n_inner; k++)
            find_unknown(inner[k], opset, u);
        if (!wf_op_find(wf_onnx_domain(p), wf_onnx_op(p)) &&
            !wf_expansion_find(wf_onnx_domain(p), wf_onnx_op(p), opset) && !seen_before(graph, i))
            add_unknown(u, p);
    }
}

/* All of them in one sentence. */
static wf_status check_operations(const Weft__Onnx__Graph *graph, int64_t opset, wf_err *err)
{
    unknown u = {.n = 0};

    find_unknown(graph, opset, &u);
    if (!u.n)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "weft help operators lists those that it has",
                   "%zu operation%s of opset %" PRId64 " that weft does not have: %s", u.n,
                   u.n == 1 ? "" : "s", opset, u.list);
}

static wf_status set_axis(wf_graph *g, const Weft__Onnx__Dimension *p, wf_axis *axis, wf_err *err)
{
    *axis = wf_axis_unknown(-1);
    if (p->has_dim_value) {
        if (p->dim_value < 0)
            return wf_fail(err, WF_INVALID, NULL, "a dimension is %" PRId64, p->dim_value);
        *axis = wf_axis_of(p->dim_value);
    } else if (p->dim_param && p->dim_param[0]) {
        WF_TRY(wf_onnx_check_name(p->dim_param, "dimension", err));
        axis->symbol = p->dim_param;
        return wf_copy_symbol(g, &axis->symbol, err);
    }
    return WF_OK;
}

static wf_status set_type(wf_graph *g, wf_value *v, const Weft__Onnx__ValueInfo *p, wf_err *err)
{
    const Weft__Onnx__TensorType *type = p->type ? p->type->tensor_type : NULL;
    wf_axis axes[WF_MAX_RANK];

    if (!type)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it is no tensor");
    if (type->elem_type <= 0 || type->elem_type > 64 ||
        !wf_dtype_computes((wf_dtype)type->elem_type))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "weft has no element type of ONNX's number %d",
                       (int)type->elem_type);
    v->dtype = (wf_dtype)type->elem_type;
    v->rank = -1;
    if (!type->shape)
        return WF_OK;
    if (type->shape->n_dim > WF_MAX_RANK)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it has %zu axes, and weft has %d at most",
                       type->shape->n_dim, WF_MAX_RANK);
    for (size_t i = 0; i < type->shape->n_dim; i++)
        WF_TRY(set_axis(g, type->shape->dim[i], &axes[i], err));
    v->rank = (int32_t)type->shape->n_dim;
    memcpy(v->axes, axes, type->shape->n_dim * sizeof axes[0]);
    return WF_OK;
}

/* What is fed to the inputs; none unless the model is read for that alone. */
typedef struct feeds {
    size_t n;
    const wf_onnx_feed *all;
} feeds;

/* Its content, as inference follows it: small integers. */
static wf_status follow(wf_graph *g, wf_value *v, wf_tensor *t, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];
    wf_tensor *shared = NULL;
    uint32_t n = 0;
    bool small;

    WF_TRY(wf_tensor_share(t, &shared, err));
    wf_value_set_known(v, &shared);
    small = wf_value_elems(v, elems, &n);
    wf_tensor_free(&v->known);
    if (!small)
        return WF_OK;
    v->carried = wf_arena_array(g->arena, (size_t)n + 1, sizeof elems[0]);
    if (!v->carried)
        return wf_fail_nomem(err, n * sizeof elems[0]);
    v->n_carried = n;
    if (n)
        memcpy(v->carried, elems, n * sizeof elems[0]);
    return WF_OK;
}

static wf_status know_feed(wf_graph *g, wf_value *v, const feeds *f, wf_err *err)
{
    wf_tensor *t = NULL;

    for (size_t i = 0; i < f->n && !t; i++)
        if (strcmp(f->all[i].name, v->name) == 0)
            t = f->all[i].content;
    if (!t || t->dtype != v->dtype || (v->rank >= 0 && (uint32_t)v->rank != t->rank))
        return WF_OK;
    for (uint32_t i = 0; v->rank >= 0 && i < t->rank; i++)
        if (v->axes[i].size >= 0 && v->axes[i].size != t->dims[i])
            return WF_OK;
    wf_value_set_type(v, t->dtype, t->rank, t->dims);
    return follow(g, v, t, err);
}

static wf_status add_input(wf_graph *g, const Weft__Onnx__ValueInfo *p, const feeds *f, wf_err *err)
{
    wf_value *v;

    if (!p->name || !p->name[0])
        return wf_fail(err, WF_INVALID, NULL, "a graph input has no name");
    v = wf_graph_value(g, p->name);
    if (v && v->is_input)
        return wf_fail(err, WF_INVALID, NULL, "two graph inputs are called \"%s\"", p->name);
    if (v)
        return WF_OK; /* an initializer is one, also when it is listed as an input */
    WF_TRY(wf_onnx_check_name(p->name, "graph input", err));
    WF_TRY(wf_graph_add_value(g, p->name, &v, err));
    WF_TRY(wf_err_wrap(err, set_type(g, v, p, err), "graph input \"%s\"", p->name));
    WF_TRY(know_feed(g, v, f, err));
    return wf_graph_add_input(g, v, err);
}

/* What has no inputs has its type from the file (Pull). */
static wf_status take_type(wf_graph *g, wf_value *v, const Weft__Onnx__ValueInfo *p, wf_err *err)
{
    if (!v || !v->producer || v->producer->n_in > 0)
        return WF_OK;
    return wf_err_wrap(err, set_type(g, v, p, err), "value \"%s\"", v->name);
}

static wf_status add_output(wf_graph *g, const wf_onnx_file *file, const Weft__Onnx__ValueInfo *p,
                            wf_err *err)
{
    wf_value *v = p->name ? wf_graph_value(g, p->name) : NULL;

    if (v && wf_onnx_sequence_of(file, v))
        return wf_fail(err, WF_UNSUPPORTED, "let its tensors be outputs, or concatenate them",
                       "the graph output \"%s\" is a sequence, and weft gives tensors", v->name);

    if (!v)
        return wf_fail(err, WF_INVALID, NULL, "nothing makes the graph output \"%.200s\"",
                       p->name ? p->name : "");
    if (v->producer && v->producer->op->flags & WF_OP_SOURCE) /* value_info lists no outputs */
        WF_TRY(take_type(g, v, p, err));
    return wf_graph_add_output(g, v, err);
}

static wf_status add_all(wf_graph *g, const Weft__Onnx__Graph *graph, int64_t opset,
                         const char *folder, const feeds *f, wf_err *err)
{
    wf_onnx_file file = {.opset = opset, .folder = folder, .add_node = wf_onnx_node};

    for (size_t i = 0; i < graph->n_initializer; i++)
        WF_TRY(wf_onnx_initializer(g, graph->initializer[i], folder, "", err));
    for (size_t i = 0; i < graph->n_input; i++)
        WF_TRY(add_input(g, graph->input[i], f, err));
    for (size_t i = 0; i < graph->n_node; i++)
        WF_TRY(wf_onnx_node(g, graph->node[i], &file, NULL, err));
    for (size_t i = 0; i < graph->n_output; i++)
        WF_TRY(add_output(g, &file, graph->output[i], err));
    for (size_t i = 0; i < graph->n_value_info; i++) {
        const Weft__Onnx__ValueInfo *p = graph->value_info[i];

        WF_TRY(take_type(g, p->name ? wf_graph_value(g, p->name) : NULL, p, err));
    }
    return WF_OK;
}

/* Constant nodes have done their work once they are inferred. */
static wf_status drop_constant_nodes(wf_graph *g, wf_err *err)
{
    bool *keep = calloc(g->n_nodes + 1, sizeof keep[0]);

    if (!keep)
        return wf_fail_nomem(err, g->n_nodes);
    for (size_t i = 0; i < g->n_nodes; i++)
        keep[i] = strcmp(g->nodes[i]->op->name, "Constant") != 0;
    wf_graph_keep_nodes(g, keep);
    free(keep);
    return WF_OK;
}

enum { LONGEST_PRODUCER = 64 };

/* At most so much of a text of the file, or "". */
static const char *said(wf_arena *a, const char *text)
{
    return wf_arena_printf(a, "%.*s", LONGEST_PRODUCER, text ? text : "");
}

static wf_status keep_origin(const Weft__Onnx__Model *model, int64_t opset, wf_graph *g,
                             wf_err *err)
{
    g->origin.producer = said(g->arena, model->producer_name);
    g->origin.version = said(g->arena, model->producer_version);
    g->origin.opset = opset;
    return g->origin.producer && g->origin.version ? WF_OK : wf_fail_nomem(err, LONGEST_PRODUCER);
}

static wf_status import(const Weft__Onnx__Model *model, const char *folder, const feeds *f,
                        wf_graph *g, wf_err *err)
{
    int64_t opset;

    WF_TRY(find_opset(model, &opset, err));
    if (model->graph->n_sparse_initializer)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "it has sparse initializers");
    WF_TRY(check_operations(model->graph, opset ? opset : WF_OPSET, err));
    for (size_t i = 0; opset == 0 && i < model->graph->n_node; i++)
        if (wf_onnx_domain(model->graph->node[i])[0] == 0)
            return wf_fail(err, WF_INVALID, NULL, "it does not say which opset it is written for");
    WF_TRY(keep_origin(model, opset ? opset : WF_OPSET, g, err));
    WF_TRY(add_all(g, model->graph, opset ? opset : WF_OPSET, folder, f, err));
    WF_TRY(wf_graph_sort(g, err));
    WF_TRY(wf_graph_check(g, err));
    WF_TRY(wf_infer(g, err));
    WF_TRY(drop_constant_nodes(g, err));
    return wf_onnx_find_variables(g, model, err);
}

/* `file`, unless NULL, holds the data, and is closed as soon as they are unpacked: there is a copy
 * of all weights in the message, and another one is made of them. */
static wf_status decode(const void *data, size_t n, wf_bytes *file, const char *folder,
                        const feeds *f, wf_graph **out, wf_err *err)
{
    ProtobufCMessage *message = NULL;
    const Weft__Onnx__Model *model;
    wf_arena *arena = NULL;
    wf_graph *g = NULL;
    wf_status rc;

    rc = wf_pb_unpack(&weft__onnx__model__descriptor, data, n, &wf_pb_model, &arena, &message, err);
    if (file)
        wf_bytes_close(file);
    wf_err_hint(err, rc, "check the path, or export or copy the model again");
    wf_err_wrap(err, rc, "not an ONNX model");
    if (rc != WF_OK)
        goto out;
    model = (const Weft__Onnx__Model *)message;
    if (!model->graph) {
        rc = wf_fail(err, WF_INVALID, NULL, "not an ONNX model: it has no graph");
        goto out;
    }
    rc = wf_graph_new(model->graph->name, &g, err);
    if (rc == WF_OK)
        rc = import(model, folder, f, g, err);
    if (rc != WF_OK)
        goto out;
    *out = g;
    g = NULL;
out:
    wf_graph_free(&g);
    wf_arena_free(&arena);
    return rc;
}

wf_status wf_onnx_decode(const void *data, size_t n, const char *folder, wf_graph **out,
                         wf_err *err)
{
    return decode(data, n, NULL, folder, &(feeds){0}, out, err);
}

wf_status wf_onnx_read_fed(const char *path, size_t n, const wf_onnx_feed all[], wf_graph **out,
                           wf_err *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    wf_bytes bytes = {0};

    if (slash &&
        snprintf(folder, sizeof folder, "%.*s", (int)WF_MAX(slash - path, 1), path) >= PATH_MAX)
        return wf_fail(err, WF_INVALID, NULL, "the path of the model is too long");
    WF_TRY(wf_file_read(path, wf_pb_model.max_bytes, &bytes, err));
    return wf_err_wrap(err,
                       decode(bytes.data, bytes.size, &bytes, folder, &(feeds){n, all}, out, err),
                       "%s", path);
}

wf_status wf_onnx_read(const char *path, wf_graph **out, wf_err *err)
{
    return wf_onnx_read_fed(path, 0, NULL, out, err);
}
