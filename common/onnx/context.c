/* SPDX-License-Identifier: Apache-2.0 */
/* common/onnx/context.c - see context.h. */
#include "common/onnx/context.h"
#include "common/graph/infer.h"
#include "common/onnx/proto.h"
#include "common/onnx/tensor.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 8 };

/* A name with the scope's prefix; NULL when it is too long for any value to have. */
static const char *prefixed(const wf_onnx_scope *scope, const char *name, char *text, size_t size)
{
    int n = snprintf(text, size, "%s%s", scope->prefix, name);

    return n >= 0 && (size_t)n < size ? text : NULL;
}

wf_value *wf_onnx_find(const wf_graph *g, const wf_onnx_scope *scope, const char *name)
{
    char text[WF_GRAPH_LONGEST_NAME + 2];

    for (; scope; scope = scope->around) {
        const char *full = prefixed(scope, name, text, sizeof text);
        wf_value *v = full ? wf_graph_value(g, full) : NULL;

        if (v)
            return v;
    }
    return wf_graph_value(g, name);
}

wf_status wf_onnx_made(wf_graph *g, const wf_onnx_scope *scope, const char *name, wf_value **out,
                       wf_err *err)
{
    char text[WF_GRAPH_LONGEST_NAME + 2];

    if (scope) {
        const char *full = prefixed(scope, name, text, sizeof text);

        /* What the length is held against is the name that it would get. */
        name = full ? full : text;
    }
    *out = wf_graph_value(g, name);
    if (!*out) {
        WF_TRY(wf_onnx_check_name(name, "value", err));
        return wf_graph_add_value(g, name, out, err);
    }
    if ((*out)->is_input || (*out)->known)
        return wf_fail(err, WF_INVALID, "give one of them another name",
                       "its output \"%s\" has the name of %s", (*out)->name,
                       (*out)->is_input ? "a graph input" : "an initializer");
    return WF_OK;
}

wf_status wf_onnx_enter(wf_graph *g, const wf_onnx_scope *around, const char *prefix,
                        bool tentative, wf_onnx_scope *scope, wf_err *err)
{
    *scope = (wf_onnx_scope){.around = around,
                             .depth = around ? around->depth + 1 : 1,
                             .tentative = tentative || (around && around->tentative)};
    if (scope->depth > DEEPEST)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "branches within branches, more than %d deep",
                       DEEPEST);
    scope->prefix = wf_arena_printf(g->arena, "%s%s/", around ? around->prefix : "", prefix);
    return scope->prefix ? WF_OK : wf_fail_nomem(err, strlen(prefix));
}

wf_status wf_onnx_initializer(wf_graph *g, const Weft__Onnx__Tensor *p, const char *folder,
                              const char *prefix, wf_err *err)
{
    wf_value *v = NULL;
    wf_tensor *t = NULL;
    const char *name;

    if (!p->name || !p->name[0])
        return wf_fail(err, WF_INVALID, NULL, "an initializer has no name");
    name = wf_arena_printf(g->arena, "%s%s", prefix, p->name);
    if (!name)
        return wf_fail_nomem(err, strlen(p->name));
    WF_TRY(wf_onnx_check_name(name, "initializer", err));
    if (wf_graph_value(g, name))
        return wf_fail(err, WF_INVALID, NULL, "two initializers are called \"%s\"", name);
    WF_TRY(wf_graph_add_value(g, name, &v, err));
    WF_TRY(wf_onnx_tensor(p, folder, &t, err));
    wf_value_set_type(v, t->dtype, t->rank, t->dims);
    wf_value_set_known(v, &t);
    return WF_OK;
}

wf_status wf_onnx_input(const wf_graph *g, const Weft__Onnx__Node *p, const wf_onnx_scope *scope,
                        size_t i, wf_value **out, wf_err *err)
{
    *out = NULL;
    if (i >= p->n_input || !p->input[i][0])
        return WF_OK;
    *out = wf_onnx_find(g, scope, p->input[i]);
    return *out ? WF_OK
                : wf_fail(err, WF_INVALID, NULL, "nothing before it makes its input \"%.200s\"",
                          p->input[i]);
}

wf_status wf_onnx_results(wf_graph *g, const Weft__Onnx__Graph *body, const wf_onnx_scope *scope,
                          wf_value *results[], wf_err *err)
{
    for (size_t i = 0; i < body->n_output; i++) {
        results[i] = body->output[i]->name ? wf_onnx_find(g, scope, body->output[i]->name) : NULL;
        if (!results[i])
            return wf_fail(err, WF_INVALID, NULL, "nothing makes its output %zu", i);
    }
    return WF_OK;
}

wf_status wf_onnx_catch_up(wf_graph *g, wf_onnx_file *file, wf_err *err)
{
    for (; file->n_inferred < g->n_nodes; file->n_inferred++)
        WF_TRY(wf_infer_node(g, g->nodes[file->n_inferred], err));
    return WF_OK;
}
