/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lib_process.c - libweft changes nothing of the process around it, unless it is asked.
 */
#include "tests/unit/lib_stage.h"

#include <cblas.h>
#include <float.h>

/* Of the libgomp that oneDNN runs on. */
void omp_set_num_threads(int n);
int omp_get_max_threads(void);

static const char text[] =
    "job: j\n"
    "model: {input: {x: [16, 16, 8]}, layers: [{conv2d: {filters: 16, kernel_size: 3}}, flatten, "
    "{dense: 10}]}\n"
    "loss: mse\n"
    "data: {format: synthetic, records: 64}\n"
    "batch: 16\n"
    "optimizer: sgd\n";

/* Whether the calling thread has numbers below the least normal one. */
static bool has_subnormals(void)
{
    volatile float least = FLT_MIN;

    return least / 2 > 0;
}

static void predict(weft_model *m)
{
    static float numbers[4 * 16 * 16 * 8];
    int64_t shape[4] = {4, 16, 16, 8};
    weft_tensor x = {numbers, WEFT_F32, 4, shape, NULL, NULL};
    const weft_feed feed = {"x", &x, NULL};
    const weft_run_options two = {.threads = 2};
    weft_list *out = NULL;

    assert_works(weft_model_predict(m, 1, &feed, &two, &out, &error));
    weft_list_free(&out);
}

static void use(void)
{
    weft_model *m = NULL;
    weft_job *j = NULL;
    weft_evaluation e;

    assert_works(weft_job_parse(text, strlen(text), NULL, &j, &error));
    assert_works(weft_model_of_job(j, NULL, &m, &error));
    predict(m);
    assert_works(weft_job_evaluate(j, NULL, NULL, &e, &error));
    weft_model_free(&m);
    weft_job_free(&j);
}

static void a_call_changes_no_setting(void **state)
{
    int threads;

    (void)state;
    openblas_set_num_threads(2);
    threads = openblas_get_num_threads();
    omp_set_num_threads(3);
    use();
    assert_int_equal(openblas_get_num_threads(), threads);
    assert_int_equal(omp_get_max_threads(), 3);
    assert_true(has_subnormals());
}

static void settings_are_made_on_request(void **state)
{
    (void)state;
    weft_process_settings();
    assert_int_equal(openblas_get_num_threads(), 1);
#if defined(__x86_64__) || defined(__aarch64__)
    assert_false(has_subnormals());
#endif
    use();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_changes_no_setting),
        cmocka_unit_test(settings_are_made_on_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
