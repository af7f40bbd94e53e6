/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/graph_test.h - short words for building graphs in tests. */
#ifndef WF_TESTS_GRAPH_TEST_H
#define WF_TESTS_GRAPH_TEST_H

#include "common/graph/emit.h"
#include "common/graph/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if ((call) != WF_OK)                                                                       \
            fail_msg("%s", (err).what);                                                            \
    } while (0)
#define assert_says(err, text)                                                                     \
    do {                                                                                           \
        if (!strstr((err).what, (text)))                                                           \
            fail_msg("\"%s\" does not say \"%s\"", (err).what, (text));                            \
    } while (0)

static inline wf_graph *new_graph(void)
{
    wf_graph *g = NULL;
    wf_err err;

    assert_ok(wf_graph_new("test", &g, &err), err);
    return g;
}

/* A float32 input; a dimension of -1 is the symbol "batch". */
static inline wf_value *input(wf_graph *g, const char *name, uint32_t rank, const int64_t dims[])
{
    wf_value *v = NULL;
    wf_err err;

    assert_ok(wf_graph_add_value(g, name, &v, &err), err);
    wf_value_set_type(v, WF_F32, rank, dims);
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            v->axes[i].symbol = "batch";
    assert_ok(wf_graph_add_input(g, v, &err), err);
    return v;
}

/* A trainable float32 variable of ones and more. */
static inline wf_value *variable(wf_graph *g, const char *name, uint32_t rank, const int64_t dims[])
{
    wf_value *v = NULL;
    wf_tensor *t = NULL;
    wf_err err;

    assert_ok(wf_tensor_new(WF_F32, rank, dims, &t, &err), err);
    for (int64_t i = 0; i < wf_elems(t); i++)
        wf_f32_mut(t)[i] = 1.0f + (float)i;
    assert_ok(wf_graph_add_variable(g, name, WF_VAR_TRAINABLE, &t, &v, &err), err);
    return v;
}

#define DIMS(...)                                                                                  \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[])                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Checks "float32[batch, 10]" and the like. */
static inline void assert_type(const wf_value *v, const char *type)
{
    char text[200];

    assert_non_null(v);
    assert_string_equal(wf_value_str(v, text, sizeof text), type);
}

#endif
