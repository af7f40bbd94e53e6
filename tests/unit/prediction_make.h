/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/prediction_make.h - a model, records for it, and what is asked for: of tests of
 * predictions. */
#ifndef WF_TESTS_UNIT_PREDICTION_MAKE_H
#define WF_TESTS_UNIT_PREDICTION_MAKE_H

#include "common/onnx/onnx.h"
#include "common/session/prediction.h"
#include "tests/unit/files.h"
#include "tests/unit/graph_test.h"

enum { RECORDS = 23, BATCH = 2, SPLIT = 6, SPLITS = 4 };

static test_folder folder;
static wf_pool *pool;
static char model[PATH_MAX], x[PATH_MAX];
static const char *const paths[] = {x};

/* Two outputs: y = Relu(x) and z = x + x. */
static inline void write_model(void)
{
    static const int64_t dims[] = {-1, 3};
    wf_graph *g = new_graph();
    wf_value *in = input(g, "x", 2, dims);
    wf_err err = {0};
    wf_emit e = wf_emit_begin(g, "m", &err);
    wf_value *y = wf_emit_unary(&e, "Relu", in), *z = wf_emit_add(&e, in, in);

    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_add_output(g, y, &err), err);
    assert_ok(wf_graph_add_output(g, z, &err), err);
    assert_ok(wf_onnx_write(g, test_path(&folder, "m.onnx"), &err), err);
    snprintf(model, sizeof model, "%s", folder.file);
    wf_graph_free(&g);
}

static inline void write_records(uint64_t n, float first)
{
    char head[129] = "\x93NUMPY\x01", dict[100];
    float row[3];
    FILE *f = fopen(test_path(&folder, "x.npy"), "wb");

    snprintf(x, sizeof x, "%s", folder.file);
    assert_non_null(f);
    snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3), }",
             (int)n);
    snprintf(head + 10, sizeof head - 10, "%-117s\n", dict);
    head[8] = 118;
    fwrite(head, 1, 128, f);
    for (uint64_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++)
            row[k] = first + (float)i * 1.5f - (float)(k * 10);
        fwrite(row, sizeof row[0], 3, f);
    }
    assert_int_equal(fclose(f), 0);
}

static inline wf_prediction_ask ask_for(const char *out)
{
    return (wf_prediction_ask){.model = model,
                               .inputs = {{"x", paths, 1}},
                               .n_inputs = 1,
                               .out = out,
                               .batch = BATCH,
                               .split_records = SPLIT};
}

#endif
