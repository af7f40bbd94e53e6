/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_digest.c - the digest names the model's structure, and nothing else. */
#include "tests/unit/compile_util.h"

static uint64_t digest(const wf_compile_spec *spec)
{
    wf_compiled *c = compile(spec);
    uint64_t d = c->digest;

    wf_compiled_free(&c);
    return d;
}

static void it_does_not_depend_on_cluster_seed_batch_or_mode(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    uint64_t d = digest(&spec);

    (void)state;
    assert_true(digest(&spec) == d);
    spec.n_ps = 5;
    spec.seed = 77;
    spec.batch = 512;
    spec.slice_bytes = 1 << 16;
    assert_true(digest(&spec) == d);
    spec.mode = WF_COMPILE_EVAL;
    assert_true(digest(&spec) == d);
    spec.mode = WF_COMPILE_INFER;
    assert_true(digest(&spec) == d);
    spec.stop_after = "import";
    assert_true(digest(&spec) == d);
}

static void another_model_or_loss_is_another_digest(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    uint64_t d = digest(&spec);
    wf_conf_option units[] = {INT_OPTION("units", 10), TEXT_OPTION("activation", "softmax")};
    wf_conf_item layers[2];

    (void)state;
    layers[0] = m.layers[0];
    layers[1] = (wf_conf_item){.type = "dense", .options = units, .n_options = 2};
    m.layers = layers;
    assert_true(digest(&spec) != d); /* an activation more */
    layers[1].n_options = 1;
    assert_true(digest(&spec) == d);
    units[0].i = 11;
    assert_true(digest(&spec) != d);
    units[0].i = 10;
    spec.loss = "mse";
    assert_true(digest(&spec) != d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_does_not_depend_on_cluster_seed_batch_or_mode),
        cmocka_unit_test(another_model_or_loss_is_another_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
