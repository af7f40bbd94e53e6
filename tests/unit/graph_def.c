/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/graph_def.c - a graph as TensorBoard draws it: names that it can tell apart, edges to
 * second outputs, shapes, and nothing of the weights. */
#include "runtime/graph_def.h"
#include "runtime/event.pb-c.h"
#include "tests/unit/graph_test.h"

static const Tensorboard__NodeDef *find(const Tensorboard__GraphDef *def, const char *name)
{
    for (size_t i = 0; i < def->n_node; i++)
        if (strcmp(def->node[i]->name, name) == 0)
            return def->node[i];
    fail_msg("there is no node %s", name);
    return NULL;
}

static void names_can_be_told_apart(void **state)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x:0", 2, (int64_t[]){-1, 4}), *w = variable(g, "x_0", DIMS(4)), *y, *z;
    Tensorboard__GraphDef *def;
    const Tensorboard__NodeDef *n;
    wf_bytes out = {0};
    wf_err err;
    wf_emit e = wf_emit_begin(g, "/m", &err);

    (void)state;
    y = wf_emit_mul(&e, x, w);
    z = wf_emit_unary(&e, "Log", y);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_add_output(g, z, &err), err);
    assert_ok(wf_graph_def_write(g, &out, &err), err);
    assert_true(out.size < 400);
    def = tensorboard__graph_def__unpack(NULL, out.size, out.data);
    assert_non_null(def);
    assert_int_equal(def->n_node, 4);
    assert_string_equal(find(def, "x_0")->op, "Placeholder");
    assert_string_equal(find(def, "x_0_1")->op, "Variable");
    n = find(def, "m/Mul");
    assert_string_equal(n->op, "Mul");
    assert_int_equal(n->n_input, 2);
    assert_string_equal(n->input[0], "x_0");
    assert_string_equal(n->input[1], "x_0_1");
    assert_string_equal(find(def, "m/Log")->input[0], "m/Mul");
    assert_string_equal(n->attr[0]->key, "_output_shapes");
    assert_int_equal(n->attr[0]->value->list->shape[0]->n_dim, 2);
    assert_int_equal(n->attr[0]->value->list->shape[0]->dim[0]->size, -1);
    assert_int_equal(n->attr[0]->value->list->shape[0]->dim[1]->size, 4);
    tensorboard__graph_def__free_unpacked(def, NULL);
    wf_bytes_close(&out);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_can_be_told_apart)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
