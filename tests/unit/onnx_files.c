/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/onnx_files.c - good files there and back; bad ones get one sentence each. */
#include "common/base/file.h"
#include "common/onnx/onnx.h"
#include "common/onnx/onnx.pb-c.h"
#include "tests/unit/graph_test.h"
#include "tests/unit/skip.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* relu(x w + b) [batch, 3] with a loss, as weft writes it. */
static wf_bytes small_model(void)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(-1, 4)), *y;
    wf_value *w = variable(g, "w", DIMS(4, 3)), *b = variable(g, "b", DIMS(3));
    wf_bytes bytes = {0};
    wf_err err;
    wf_emit e = wf_emit_begin(g, "m", &err);

    y = wf_emit_gemm(&e, x, w, b, 1, 1, false, false);
    y = wf_emit_reshape(&e, wf_emit_unary(&e, "Relu", y), DIMS(-1, 3));
    y = wf_emit_reduce_mean(&e, wf_emit_scale(&e, y, 0.5), 0, NULL, false);
    y = wf_emit_add(&e, y, variable(g, "frozen", 0, NULL));
    assert_ok(wf_emit_end(&e), err);
    wf_graph_value(g, "frozen")->variable = WF_VAR_FROZEN;
    assert_ok(wf_graph_add_output(g, y, &err), err);
    g->nodes[0]->device = "cuda:1";
    assert_ok(wf_onnx_encode(g, &bytes, &err), err);
    wf_graph_free(&g);
    return bytes;
}

static void a_round_trip_keeps_everything(void **state)
{
    wf_bytes bytes = small_model(), again = {0};
    wf_graph *g = NULL;
    wf_err err;

    (void)state;
    assert_ok(wf_onnx_decode(bytes.data, bytes.size, NULL, &g, &err), err);
    assert_string_equal(g->name, "test");
    assert_type(wf_graph_value(g, "x"), "float32[batch, 4]");
    assert_int_equal(wf_graph_value(g, "w")->variable, WF_VAR_TRAINABLE);
    assert_int_equal(wf_graph_value(g, "frozen")->variable, WF_VAR_FROZEN);
    assert_true(wf_value_is_constant(wf_graph_node(g, "m/Mul")->in[1])); /* 0.5 */
    assert_string_equal(g->nodes[0]->device, "cuda:1");
    assert_true(wf_f32(wf_graph_value(g, "w")->known)[11] == 12.0f);
    assert_ok(wf_onnx_encode(g, &again, &err), err);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    wf_graph_free(&g);
    wf_bytes_close(&bytes);
    wf_bytes_close(&again);
}

/* The model as messages, to be spoilt by a test and packed. */
typedef struct spoilt {
    Weft__Onnx__Model *m;
    Weft__Onnx__Graph *g;
} spoilt;

static spoilt unpack(void)
{
    wf_bytes bytes = small_model();
    spoilt s = {.m = weft__onnx__model__unpack(NULL, bytes.size, bytes.data)};

    assert_non_null(s.m);
    s.g = s.m->graph;
    wf_bytes_close(&bytes);
    return s;
}

static void rename_to(char **at, const char *name)
{
    free(*at);
    *at = strdup(name);
}

/* Packs, frees, and reads what a test made of the model into *out. */
static wf_status decode(spoilt s, wf_graph **out, wf_err *err)
{
    size_t n = weft__onnx__model__get_packed_size(s.m);
    uint8_t *data = malloc(n);
    wf_status rc;

    weft__onnx__model__pack(s.m, data);
    weft__onnx__model__free_unpacked(s.m, NULL);
    rc = wf_onnx_decode(data, n, NULL, out, err);
    free(data);
    return rc;
}

static wf_status reads(spoilt s, const char *words)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc = decode(s, &g, &err);

    wf_graph_free(&g);
    if (rc != WF_OK)
        assert_says(err, words);
    return rc;
}

static void a_cycle_is_refused(void **state)
{
    spoilt s = unpack();

    (void)state;
    rename_to(&s.g->node[0]->input[0], s.g->node[1]->output[0]);
    assert_int_equal(reads(s, "cycle through"), WF_INVALID);
}

static void unknown_operations_are_named_together(void **state)
{
    spoilt s = unpack();

    (void)state;
    rename_to(&s.g->node[0]->op_type, "Gem");
    rename_to(&s.g->node[1]->op_type, "Frobnicate");
    rename_to(&s.g->node[0]->name, "first");
    rename_to(&s.g->node[1]->name, "odd");
    assert_int_equal(reads(s,
                           "2 operations of opset 18 that weft does not have: Gem \"first\" (did "
                           "you mean Gemm?), Frobnicate \"odd\""),
                     WF_UNSUPPORTED);
}

static void unknown_opsets_are_refused(void **state)
{
    spoilt s = unpack();

    (void)state;
    s.m->opset_import[0]->version = 6;
    assert_int_equal(reads(s, "opset 6; weft reads 7 to 25"), WF_UNSUPPORTED);
    s = unpack();
    s.m->opset_import[0]->version = 25;
    assert_int_equal(reads(s, ""), WF_OK);
    s = unpack();
    s.m->opset_import[0]->version = 26;
    assert_int_equal(reads(s, "opset 26; weft reads 7 to 25"), WF_UNSUPPORTED);
    s = unpack();
    rename_to(&s.m->opset_import[0]->domain, "com.example");
    assert_int_equal(reads(s, "which opset"), WF_INVALID);
}

static void names_that_clash_are_named(void **state)
{
    spoilt s = unpack();

    (void)state;
    rename_to(&s.g->initializer[0]->name, s.g->initializer[1]->name);
    assert_int_equal(reads(s, "two initializers are called"), WF_INVALID);
    s = unpack();
    rename_to(&s.g->node[1]->output[0], "x");
    assert_int_equal(reads(s, "output \"x\" has the name of a graph input"), WF_INVALID);
    s = unpack();
    rename_to(&s.g->node[1]->output[0], s.g->node[0]->output[0]);
    assert_int_equal(reads(s, "is made by both"), WF_INVALID);
    s = unpack();
    rename_to(&s.g->node[1]->input[0], "nobody");
    assert_int_equal(reads(s, "nothing makes its input 0, \"nobody\""), WF_INVALID);
    s = unpack();
    rename_to(&s.g->output[0]->name, "nobody");
    assert_int_equal(reads(s, "graph output \"nobody\""), WF_INVALID);
    s = unpack();
    rename_to(&s.g->node[0]->input[0], "bad\033[31m");
    assert_int_equal(reads(s, "control character"), WF_INVALID);
}

static void an_input_that_is_an_initializer_too_is_one(void **state)
{
    spoilt s = unpack();

    (void)state;
    rename_to(&s.g->input[0]->name, s.g->initializer[0]->name);
    /* Then nobody feeds x. */
    assert_int_equal(reads(s, "\"x\""), WF_INVALID);
}

static void nodes_are_held_to_their_row(void **state)
{
    spoilt s = unpack();

    (void)state;
    s.g->node[0]->n_input = 1;
    free(s.g->node[0]->input[1]);
    free(s.g->node[0]->input[2]);
    assert_int_equal(reads(s, "1 inputs, and takes 2 to 3"), WF_INVALID);
    s = unpack();
    rename_to(&s.g->node[0]->input[0], "");
    assert_int_equal(reads(s, "its input 0 is missing"), WF_INVALID);
    s = unpack();
    rename_to(&s.g->node[4]->attribute[0]->name, "keepdim");
    assert_int_equal(reads(s, "did you mean \"keepdims\"?"), WF_UNSUPPORTED);
    s = unpack();
    s.g->node[4]->attribute[0]->type = 1;
    assert_int_equal(reads(s, "wrong kind"), WF_INVALID);
    s = unpack();
    s.g->node[4]->attribute[0]->type = 5;
    assert_int_equal(reads(s, "it is a graph"), WF_UNSUPPORTED);
}

static void wrong_shapes_are_shown_with_the_node(void **state)
{
    spoilt s = unpack();

    (void)state;
    s.g->input[0]->type->tensor_type->shape->dim[1]->dim_value = 5;
    assert_int_equal(reads(s, "Gemm \"m/Gemm\": A is float32[batch, 5], B is float32[4, 3]"),
                     WF_SHAPE);
    s = unpack();
    s.g->input[0]->type->tensor_type->shape->dim[1]->dim_value = -5;
    assert_int_equal(reads(s, "graph input \"x\": a dimension is -5"), WF_INVALID);
}

static void tensors_hold_what_they_say(void **state)
{
    spoilt s = unpack();

    (void)state;
    s.g->initializer[0]->dims[0] = 1000;
    assert_int_equal(reads(s, "bytes are there, its shape needs"), WF_INVALID);
    s = unpack();
    s.g->initializer[0]->dims[0] = INT64_C(1) << 62;
    assert_int_equal(reads(s, "larger than any memory"), WF_INVALID);
    s = unpack();
    s.g->initializer[0]->dims[0] = -1;
    assert_int_equal(reads(s, "its shape is negative"), WF_INVALID);
    s = unpack();
    s.g->initializer[0]->data_type = 8;
    assert_int_equal(reads(s, "no element type of ONNX's number 8"), WF_UNSUPPORTED);
    s = unpack();
    s.g->initializer[0]->has_raw_data = 0;
    assert_int_equal(reads(s, "0 elements are there"), WF_INVALID);
}

/* Makes the first initializer external; the caller owns the bytes. */
static wf_bytes external(const char *location, const char *offset, const char *length)
{
    const char *const keys[] = {"location", "offset", "length"};
    const char *const values[] = {location, offset, length};
    spoilt s = unpack();
    Weft__Onnx__Tensor *t = s.g->initializer[0];
    wf_bytes bytes = {0};

    free(t->raw_data.data);
    t->raw_data = (ProtobufCBinaryData){0};
    t->has_raw_data = 0;
    t->has_data_location = 1;
    t->data_location = 1;
    t->external_data = calloc(3, sizeof t->external_data[0]);
    for (size_t i = 0; i < 3 && values[i]; i++) {
        Weft__Onnx__StringStringEntry *e = calloc(1, sizeof *e);

        weft__onnx__string_string_entry__init(e);
        e->key = strdup(keys[i]);
        e->value = strdup(values[i]);
        t->external_data[t->n_external_data++] = e;
    }
    weft__onnx__model__pack(s.m, wf_bytes_extend(&bytes, weft__onnx__model__get_packed_size(s.m)));
    weft__onnx__model__free_unpacked(s.m, NULL);
    return bytes;
}

static void external_data_stay_in_the_folder(void **state)
{
    static const struct {
        const char *location, *offset, *length;
        wf_status rc;
        const char *words;
    } rows[] = {
        {"w.bin", "8", "48", WF_OK, ""},
        {"./w.bin", "0", NULL, WF_OK, ""},
        {"../w.bin", NULL, NULL, WF_INVALID, "outside"},
        {"a/../../w.bin", NULL, NULL, WF_INVALID, "outside"},
        {"/etc/passwd", NULL, NULL, WF_INVALID, "outside"},
        {"link", NULL, NULL, WF_INVALID, "outside"},
        {"absent.bin", NULL, NULL, WF_NOTFOUND, "absent.bin"},
        {".", NULL, NULL, WF_INVALID, "outside"},
        {"pipe", NULL, NULL, WF_INVALID, "no file"},
        {"w.bin", "16", "48", WF_INVALID, "48 bytes at 16"},
        {"w.bin", "18446744073709551615", "48", WF_INVALID, "48 bytes at"},
        {"w.bin", "99999999999999999999999", "48", WF_INVALID, "offset"},
        {"w.bin", "-1", "48", WF_INVALID, "offset"},
        {"w.bin", "0", "47", WF_INVALID, "its shape needs 48"},
        {"", NULL, NULL, WF_INVALID, "no location"},
    };
    char folder[] = "/tmp/weft-onnx-XXXXXX", path[64];
    char data[56] = {0};
    wf_err err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.bin", folder);
    assert_ok(wf_file_write(path, data, sizeof data, &err), err);
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wf_bytes bytes = external(rows[i].location, rows[i].offset, rows[i].length);
        wf_graph *g = NULL;
        wf_status rc = wf_onnx_decode(bytes.data, bytes.size, folder, &g, &err);

        if (rc != rows[i].rc)
            fail_msg("row %zu: %d, %s", i, rc, rc ? err.what : "read");
        if (rc != WF_OK)
            assert_says(err, rows[i].words);
        wf_graph_free(&g);
        assert_int_equal(wf_onnx_decode(bytes.data, bytes.size, NULL, &g, &err), WF_INVALID);
        wf_bytes_close(&bytes);
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, (const char *[]){"w.bin", "link", "pipe"}[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Whether the small model's "frozen", a scalar that is added, is trained under this name in a file
 * of `producer` that does not list its variables. */
static bool is_trained(const char *producer, const char *name)
{
    spoilt s = unpack();
    wf_graph *g = NULL;
    wf_err err;
    bool trained;

    for (size_t i = 0; i < s.g->n_initializer; i++)
        if (strcmp(s.g->initializer[i]->name, "frozen") == 0)
            rename_to(&s.g->initializer[i]->name, name);
    for (size_t i = 0; i < s.g->n_node; i++)
        for (size_t k = 0; k < s.g->node[i]->n_input; k++)
            if (strcmp(s.g->node[i]->input[k], "frozen") == 0)
                rename_to(&s.g->node[i]->input[k], name);
    rename_to(&s.m->producer_name, producer);
    for (size_t i = 0; i < s.m->n_metadata_props; i++)
        rename_to(&s.m->metadata_props[i]->key, "other");
    assert_ok(decode(s, &g, &err), err);
    trained = wf_graph_value(g, name)->variable == WF_VAR_TRAINABLE;
    assert_string_equal(g->origin.producer, producer);
    assert_int_equal(g->origin.opset, 18);
    assert_int_equal(wf_graph_value(g, "w")->variable, WF_VAR_TRAINABLE);
    assert_int_equal(wf_graph_value(g, "b")->variable, WF_VAR_TRAINABLE);
    /* 0.5, which weft wrote as an initializer, is one of them unless it came from PyTorch. */
    assert_int_equal(g->origin.n_numbers, !trained + (strcmp(producer, "pytorch") != 0));
    wf_graph_free(&g);
    return trained;
}

static void numbers_of_formulas_are_not_trained(void **state)
{
    (void)state;
    assert_true(is_trained("pytorch", "temperature"));
    assert_false(is_trained("pytorch", "val_69"));
    assert_false(is_trained("pytorch", "onnx::Mul_12"));
    assert_true(is_trained("pytorch", "val_idation"));
    assert_false(is_trained("tf2onnx", "ln/add/y:0"));
    assert_true(is_trained("tf2onnx", "prelu/ReadVariableOp:0"));
    assert_false(is_trained("someone", "temperature"));
}

static void every_prefix_fails_or_is_whole(void **state)
{
    wf_bytes bytes = small_model();

    (void)state;
    for (size_t n = 0; n < bytes.size; n++) {
        /* On the heap in its own length, so that the sanitizer sees a read beyond it. */
        uint8_t *prefix = malloc(n ? n : 1);
        wf_graph *g = NULL;
        wf_err err = {0};

        memcpy(prefix, bytes.data, n);
        if (wf_onnx_decode(prefix, n, NULL, &g, &err) != WF_OK)
            assert_true(err.what[0] != 0);
        wf_graph_free(&g);
        free(prefix);
    }
    wf_bytes_close(&bytes);
}

/* Whatever was read can be differentiated, or says why not. */
static void try_to_differentiate(wf_graph *g)
{
    wf_value **wrt = calloc(g->n_values + 1, sizeof(*wrt));
    wf_value **grads = calloc(g->n_values + 1, sizeof(*grads));
    wf_err err = {0};
    size_t n = 0;

    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i]->variable == WF_VAR_TRAINABLE)
            wrt[n++] = g->values[i];
    if (g->n_outputs && wf_graph_differentiate(g, g->outputs[0], wrt, n, grads, &err) != WF_OK)
        assert_true(err.what[0] != 0);
    assert_ok(wf_graph_check(g, &err), err);
    free(wrt);
    free(grads);
}

static void flipped_bytes_never_harm(void **state)
{
    wf_bytes bytes = small_model();
    uint8_t *copy = malloc(bytes.size);
    uint64_t seeded = 1;

    (void)state;
    for (int round = 0; round < 4000; round++) {
        wf_graph *g = NULL;
        wf_err err = {0};

        memcpy(copy, bytes.data, bytes.size);
        for (int k = 0; k <= round % 4; k++) {
            seeded = seeded * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            copy[(seeded >> 33) % bytes.size] = (uint8_t)(seeded >> 25);
        }
        if (wf_onnx_decode(copy, bytes.size, NULL, &g, &err) == WF_OK) {
            wf_bytes again = {0};

            assert_ok(wf_graph_check(g, &err), err);
            assert_ok(wf_onnx_encode(g, &again, &err), err);
            wf_bytes_close(&again);
            try_to_differentiate(g);
        } else {
            assert_true(err.what[0] != 0);
        }
        wf_graph_free(&g);
    }
    free(copy);
    wf_bytes_close(&bytes);
}

/* The same with what PyTorch writes, when it is at hand. */
static void flipped_bytes_of_exports_never_harm(void **state)
{
    const char *shared = getenv("WEFT_SHARED");
    uint64_t seeded = 7;
    char path[4096];
    wf_bytes bytes = {0};
    wf_err err;

    (void)state;
    snprintf(path, sizeof path, "%s/models/dlrm.dynamo.onnx", shared ? shared : "../shared");
    if (!wf_file_exists(path)) {
        print_message("no %s; set WEFT_SHARED\n", path);
        skip_file();
    }
    assert_ok(wf_file_read(path, 1 << 20, &bytes, &err), err);
    for (int round = 0; round < 3000; round++) {
        size_t at;
        uint8_t was;
        wf_graph *g = NULL;

        seeded = seeded * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        at = (seeded >> 33) % bytes.size;
        was = bytes.data[at];
        bytes.data[at] = (uint8_t)(seeded >> 25);
        if (wf_onnx_decode(bytes.data, bytes.size, NULL, &g, &err) == WF_OK)
            try_to_differentiate(g);
        wf_graph_free(&g);
        bytes.data[at] = was;
    }
    wf_bytes_close(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_trip_keeps_everything),
        cmocka_unit_test(a_cycle_is_refused),
        cmocka_unit_test(unknown_operations_are_named_together),
        cmocka_unit_test(unknown_opsets_are_refused),
        cmocka_unit_test(names_that_clash_are_named),
        cmocka_unit_test(an_input_that_is_an_initializer_too_is_one),
        cmocka_unit_test(nodes_are_held_to_their_row),
        cmocka_unit_test(wrong_shapes_are_shown_with_the_node),
        cmocka_unit_test(tensors_hold_what_they_say),
        cmocka_unit_test(external_data_stay_in_the_folder),
        cmocka_unit_test(numbers_of_formulas_are_not_trained),
        cmocka_unit_test(every_prefix_fails_or_is_whole),
        cmocka_unit_test(flipped_bytes_never_harm),
        cmocka_unit_test(flipped_bytes_of_exports_never_harm),
    };

    return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
