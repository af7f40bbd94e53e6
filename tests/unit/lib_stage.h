/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_stage.h - what the tests of libweft share: a small model, and checks of errors. */
#ifndef WF_TESTS_UNIT_LIB_STAGE_H
#define WF_TESTS_UNIT_LIB_STAGE_H

#include "common/graph/emit.h"
#include "common/onnx/onnx.h"
#include "lib/weft.h"
#include "tests/unit/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A call that must fail so, with a sentence that has `part` in it or in its hint. */
#define assert_fails(call, wanted, part)                                                           \
    do {                                                                                           \
        weft_error error = {0};                                                                    \
        weft_code code = (call);                                                                   \
        if (code != (wanted) || error.code != code ||                                              \
            (!strstr(error.message, (part)) && !strstr(error.hint, (part))))                       \
            fail_msg("%s: \"%s; %s\", wanted %s with \"%s\"", weft_code_name(code), error.message, \
                     error.hint, weft_code_name(wanted), (part));                                  \
    } while (0)

/* A call that must not. */
#define assert_works(call)                                                                         \
    do {                                                                                           \
        weft_error error = {0};                                                                    \
        if ((call) != WEFT_OK)                                                                     \
            fail_msg("%s: %s; %s", weft_code_name(error.code), error.message, error.hint);         \
    } while (0)

static inline wf_status add_parts(wf_graph *g, wf_err *err)
{
    wf_emit e = wf_emit_begin(g, "model", err);
    const wf_attr no_axes = {.name = "keepdims", .kind = WF_ATTR_INT, .i = 0};
    wf_value *x, *w, *y, *loss;
    wf_tensor *t = NULL;

    WF_TRY(wf_graph_add_value(g, "x", &x, err));
    wf_value_set_type(x, WF_F32, 2, (int64_t[]){-1, 3});
    x->axes[0].symbol = "batch";
    WF_TRY(wf_graph_add_input(g, x, err));
    WF_TRY(wf_tensor_new(WF_F32, 1, (int64_t[]){3}, &t, err));
    memcpy(t->data, (float[]){0.5f, 1.5f, 2.5f}, 3 * sizeof(float));
    WF_TRY(wf_graph_add_variable(g, "w", WF_VAR_TRAINABLE, &t, &w, err));
    y = wf_emit_op(&e, "Mul", 2, (wf_value *[]){x, w}, 0, NULL);
    loss = wf_emit_op(&e, "ReduceSum", 1, &y, 1, (wf_attr[]){no_axes});
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_graph_rename_value(g, y, "y", err));
    WF_TRY(wf_graph_rename_value(g, loss, "loss", err));
    WF_TRY(wf_graph_add_output(g, y, err));
    WF_TRY(wf_graph_add_output(g, loss, err));
    return wf_infer(g, err);
}

/* y [batch, 3] = x * w, with w = 0.5, 1.5, 2.5; loss = the sum of y; as ONNX. */
static inline void write_model(wf_bytes *out)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc = wf_graph_new("model", &g, &err);

    if (rc == WF_OK)
        rc = add_parts(g, &err);
    if (rc == WF_OK)
        rc = wf_onnx_encode(g, out, &err);
    if (rc != WF_OK)
        fail_msg("%s", err.what);
    wf_graph_free(&g);
}

#endif
