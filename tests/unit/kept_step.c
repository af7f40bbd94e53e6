/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/kept_step.c - a step in a folder is run again as it was, and a damaged one is said. */
#include "common/session/kept_step.h"
#include "common/base/file.h"
#include "common/onnx/onnx.h"
#include "tests/unit/files.h"
#include "tests/unit/graph_test.h"

static const int64_t four[] = {4};
static const float first[] = {1, 2, -3, 4}, second[] = {2, 2, 2, 2};
static const uint64_t records[] = {7, 9};

/* y = Log(a/b * a_b): two names of one file name. */
typedef struct kept {
    test_folder dir;
    wf_bytes graph;
    wf_plan *plan;
    wf_kept_step step;
    char path[PATH_MAX];
    wf_err err;
} kept;

static const void *const inputs[] = {first, second};

static void make(kept *k)
{
    wf_graph *g = new_graph();
    wf_value *a = input(g, "a/b", 1, four), *b = input(g, "a_b", 1, four), *y;
    wf_emit e = wf_emit_begin(g, "m", &k->err);

    test_folder_make(&k->dir);
    y = wf_emit_unary(&e, "Log", wf_emit_mul(&e, a, b));
    assert_ok(wf_emit_end(&e), k->err);
    assert_ok(wf_graph_add_output(g, y, &k->err), k->err);
    assert_ok(wf_onnx_encode(g, &k->graph, &k->err), k->err);
    assert_ok(wf_plan_new(g, &(wf_plan_options){0}, &k->plan, &k->err), k->err);
    wf_graph_free(&g);
    k->step = (wf_kept_step){.graph = k->graph.data,
                             .graph_bytes = k->graph.size,
                             .plan = k->plan,
                             .inputs = inputs,
                             .key = {.seed = UINT64_MAX},
                             .what = "the loss is NaN",
                             .records = records,
                             .n_records = 2,
                             .step = 12};
}

static void end(kept *k)
{
    wf_plan_free(&k->plan);
    wf_bytes_close(&k->graph);
    assert_ok(wf_remove_tree(k->dir.path, &k->err), k->err);
}

static void a_step_is_run_again(void **state)
{
    kept k = {0};
    wf_replay r;

    (void)state;
    make(&k);
    assert_ok(wf_kept_step_write(&k.step, k.dir.path, k.path, &k.err), k.err);
    assert_string_equal(k.path, test_path(&k.dir, "nan-12"));
    assert_ok(wf_replay_open(k.path, NULL, &r, &k.err), k.err);
    assert_string_equal(r.said,
                        "the loss is NaN; first bad value: Log \"m/Log\", input min -6 max 8");
    wf_replay_close(&r);
    end(&k);
}

static void the_newest_are_kept(void **state)
{
    kept k = {0};

    (void)state;
    make(&k);
    for (uint32_t i = 0; i < 2 + WF_KEPT_STEPS; i++) {
        k.step.step = 12 + i;
        assert_ok(wf_kept_step_write(&k.step, k.dir.path, k.path, &k.err), k.err);
    }
    assert_false(wf_file_exists(test_path(&k.dir, "nan-12")));
    assert_false(wf_file_exists(test_path(&k.dir, "nan-13")));
    assert_true(wf_file_exists(test_path(&k.dir, "nan-14")));
    k.step.worker = 3; /* another worker's step of that number */
    assert_ok(wf_kept_step_write(&k.step, k.dir.path, k.path, &k.err), k.err);
    assert_string_equal(k.path, test_path(&k.dir, "nan-16-3"));
    assert_true(wf_file_exists(test_path(&k.dir, "nan-16")));
    end(&k);
}

static void write_text(kept *k, const char *name, const char *text)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", k->path, name);
    assert_ok(wf_file_write(path, text, strlen(text), &k->err), k->err);
}

static void assert_refused(kept *k, wf_status status, const char *says)
{
    wf_replay r;

    assert_int_equal(wf_replay_open(k->path, NULL, &r, &k->err), status);
    assert_says(k->err, says);
    wf_replay_close(&r);
}

#define WHOLE "\"what\": \"w\", \"compute\": \"float32\", "

static void a_damaged_step_is_refused(void **state)
{
    kept k = {0};

    (void)state;
    make(&k);
    assert_ok(wf_kept_step_write(&k.step, k.dir.path, k.path, &k.err), k.err);
    write_text(&k, "step.json",
               "{" WHOLE "\"inputs\": [{\"name\": \"a/b\", \"file\": "
               "\"../x.npy\"}]}");
    assert_refused(&k, WF_CORRUPT, "does not name an input's file");
    write_text(&k, "step.json",
               "{" WHOLE "\"inputs\": [{\"name\": \"other\", \"file\": "
               "\"inputs/a_b.npy\"}]}");
    assert_refused(&k, WF_CORRUPT, "an input does not fit its graph");
    write_text(&k, "step.json", "{" WHOLE "\"inputs\": [], \"output\": 1}");
    assert_refused(&k, WF_CORRUPT, "does not name its bad output");
    write_text(&k, "step.json", "{" WHOLE "\"inputs\": [], \"output\": 0}");
    assert_refused(&k, WF_INVALID, "a/b"); /* the plan has an input without content */
    write_text(&k, "step.json", "{\"what\": \"w\", \"compute\": \"int4\", \"inputs\": []}");
    assert_refused(&k, WF_CORRUPT, "does not name what it is computed in");
    write_text(&k, "step.json", "{}");
    assert_refused(&k, WF_CORRUPT, "does not name its inputs");
    write_text(&k, "step.json", "{");
    assert_refused(&k, WF_CORRUPT, "step.json");
    end(&k);
}

static void one_that_is_too_large_is_not_kept(void **state)
{
    kept k = {0};

    (void)state;
    make(&k);
    k.step.graph_bytes = WF_KEPT_BYTES;
    assert_int_equal(wf_kept_step_write(&k.step, k.dir.path, k.path, &k.err), WF_FULL);
    assert_says(k.err, "1024 are allowed");
    end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_run_again),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(a_damaged_step_is_refused),
        cmocka_unit_test(one_that_is_too_large_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
