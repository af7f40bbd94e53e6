/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_util.h - what the tests of common/compile share: small models and compiling
 * them with a word when that fails. */
#ifndef WF_TESTS_UNIT_COMPILE_UTIL_H
#define WF_TESTS_UNIT_COMPILE_UTIL_H

#include "common/base/cc.h"
#include "common/compile/compile.h"
#include "common/graph/emit.h"
#include "common/graph/op.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define INT_OPTION(key, value)                                                                     \
    {                                                                                              \
        .name = (key), .kind = WF_CONF_INT, .i = (value), .number = (double)(value), .line = 7     \
    }
#define TEXT_OPTION(key, value)                                                                    \
    {                                                                                              \
        .name = (key), .kind = WF_CONF_TEXT, .text = (value), .line = 7                            \
    }
#define LAYER(type_name, ...)                                                                      \
    {                                                                                              \
        .type = (type_name), .options = (const wf_conf_option[]){__VA_ARGS__},                     \
        .n_options = WF_COUNT(((const wf_conf_option[]){__VA_ARGS__})), .line = 6                  \
    }

static inline void must(wf_status rc, const wf_err *err)
{
    if (rc != WF_OK)
        fail_msg("%s (%s) at %s:%d", err->what, err->hint, err->file, err->line);
}

static inline wf_compiled *compile(const wf_compile_spec *spec)
{
    wf_err err = {0};
    wf_compiled *c = NULL;

    must(wf_compile(spec, &c, &err), &err);
    return c;
}

/* The status and sentence of a spec that must not compile. */
static inline wf_status refused(const wf_compile_spec *spec, wf_err *err)
{
    wf_compiled *c = NULL;
    wf_status rc = wf_compile(spec, &c, err);

    assert_null(c);
    assert_int_not_equal(rc, WF_OK);
    return rc;
}

#define assert_says(err, part)                                                                     \
    do {                                                                                           \
        if (!strstr((err).what, (part)) && !strstr((err).hint, (part)))                            \
            fail_msg("\"%s; %s\" does not say \"%s\"", (err).what, (err).hint, (part));            \
    } while (0)

/* input 784 -> dense 128 relu -> dense 10 */
static inline wf_model mlp(void)
{
    static const wf_conf_input x[] = {{.name = "x", .dims = {784}, .rank = 1, .line = 3}};
    static const wf_conf_option first[] = {INT_OPTION("units", 128),
                                           TEXT_OPTION("activation", "relu")};
    static const wf_conf_option second[] = {INT_OPTION("units", 10)};
    static const wf_conf_item layers[] = {
        {.type = "dense", .options = first, .n_options = 2, .line = 5},
        {.type = "dense", .options = second, .n_options = 1, .line = 6},
    };

    return (wf_model){
        .file = "job.yaml", .inputs = x, .n_inputs = 1, .layers = layers, .n_layers = 2};
}

static inline wf_compile_spec train_spec(const wf_model *m, uint32_t n_ps)
{
    return (wf_compile_spec){.model = m,
                             .mode = WF_COMPILE_TRAIN,
                             .strategy = wf_strategy_find("parameter_server"),
                             .loss = "sparse_categorical_crossentropy",
                             .batch = 32,
                             .seed = 1,
                             .n_ps = n_ps};
}

static inline size_t count_op(const wf_graph *g, const char *op)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        n += !strcmp(g->nodes[i]->op->name, op);
    return n;
}

static inline bool warned(const wf_compiled *c, const char *part)
{
    for (size_t i = 0; i < c->n_warnings; i++)
        if (strstr(c->warnings[i], part))
            return true;
    return false;
}

/* A float32 input with a leading batch axis. */
static inline wf_value *add_input(wf_graph *g, const char *name, wf_dtype dtype, uint32_t rank,
                                  const int64_t dims[])
{
    wf_err err = {0};
    wf_value *v = NULL;

    must(wf_graph_add_value(g, name, &v, &err), &err);
    wf_value_set_type(v, dtype, rank, dims);
    if (rank && dims[0] < 0)
        v->axes[0].symbol = "batch";
    must(wf_graph_add_input(g, v, &err), &err);
    return v;
}

/* A trainable variable whose element i is a small number that depends on i. */
static inline wf_value *add_typed_variable(wf_graph *g, const char *name, wf_dtype dtype,
                                           uint32_t rank, const int64_t dims[])
{
    wf_err err = {0};
    wf_tensor *t = NULL;
    wf_value *v = NULL;

    must(wf_tensor_new(dtype, rank, dims, &t, &err), &err);
    for (int64_t i = 0; i < wf_elems(t); i++) {
        float x = (float)((i * 7 + 3) % 11) / 11.0f - 0.4f;

        if (dtype == WF_F64)
            ((double *)t->data)[i] = (double)x;
        else
            wf_f32_mut(t)[i] = x;
    }
    must(wf_graph_add_variable(g, name, WF_VAR_TRAINABLE, &t, &v, &err), &err);
    return v;
}

static inline wf_value *add_variable(wf_graph *g, const char *name, uint32_t rank,
                                     const int64_t dims[])
{
    return add_typed_variable(g, name, WF_F32, rank, dims);
}

#endif
