/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/presets.c - what `schema: criteo` says for a job, and what a job says of its own. */
#include "common/conf/conf.h"
#include "tests/unit/conf.h"
#include "tests/unit/datasets.h"

#define JOB(data_)                                                                                 \
    "job: j\n"                                                                                     \
    "model: {input: {numbers: [13]}, layers: [dense: 1]}\n"                                        \
    "data: {format: csv, train: a.tsv, " data_ "}\n"                                               \
    "loss: binary_crossentropy\nbatch: 8\noptimizer: sgd\n"

static wf_status parse(const char *text, wf_job_conf **j, wf_err *err)
{
    return wf_job_parse(text, strlen(text), "/jobs/j.yaml", j, err);
}

static wf_job_conf *parsed(const char *text)
{
    wf_job_conf *j = NULL;
    wf_err err = {0};

    if (parse(text, &j, &err) != WF_OK)
        fail_msg("%s", err.what);
    return j;
}

static const wf_conf_field *field(const wf_conf_field fields[], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    fail_msg("no field %s", name);
    return NULL;
}

static void criteo_needs_only_the_bins(void **state)
{
    wf_job_conf *j = parsed(JOB("schema: criteo, eval: b.tsv, map: {ids: [{hash: 9}]}"));
    const wf_conf_field *dense = field(j->map, j->n_map, "numbers");
    char name[8];

    (void)state;
    assert_int_equal(j->delimiter, '\t');
    assert_false(j->header);
    assert_int_equal(j->n_schema, 40);
    assert_string_equal(j->schema[0].name, "label");
    for (int i = 1; i < 40; i++) {
        snprintf(name, sizeof name, i < 14 ? "I%d" : "C%d", i < 14 ? i : i - 13);
        assert_string_equal(j->schema[i].name, name);
        assert_int_equal(j->schema[i].dtype, i < 14 ? WF_F32 : WF_U8);
    }
    assert_int_equal(field(j->columns, j->n_columns, "numbers")->n_columns, 13);
    assert_int_equal(field(j->eval.fields, j->eval.n, "ids")->n_columns, 26);
    assert_false(field(j->train.fields, j->train.n, "y")->is_row);
    assert_int_equal(dense->n_steps, 3);
    assert_string_equal(dense->steps[0].type, "fill");
    assert_string_equal(dense->steps[1].type, "clip");
    assert_string_equal(dense->steps[2].type, "log1p");
    assert_int_equal(field(j->map, j->n_map, "ids")->n_steps, 1);
    wf_job_free(&j);
}

static void what_the_job_says_stays(void **state)
{
    wf_job_conf *j = parsed(JOB("schema: criteo, header: true, delimiter: ',', "
                                "map: {numbers: [{fill: -1}]}"));

    (void)state;
    assert_true(j->header);
    assert_int_equal(j->delimiter, ',');
    assert_int_equal(j->n_map, 1);
    assert_int_equal(j->map[0].n_steps, 1);
    wf_job_free(&j);
    j = parsed(JOB("schema: criteo, columns: {numbers: [I1, I2], clicked: label}"));
    assert_int_equal(j->n_columns, 2);
    assert_int_equal(j->n_map, 0);
    assert_int_equal(j->n_schema, 40);
    wf_job_free(&j);
}

static void an_unknown_preset_is_named(void **state)
{
    static const bad_text bad[] = {
        {JOB("schema: cirteo"), WF_USAGE,
         "*/jobs/j.yaml:3: unknown preset of a schema \"cirteo\"; did you mean \"criteo\"?"},
        {JOB("schema: []"), WF_USAGE, "*or name a preset: criteo"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(bad); i++) {
        wf_job_conf *j = NULL;
        wf_err err = {0};
        wf_status rc = parse(bad[i].text, &j, &err);

        check_bad(&bad[i], rc, &err);
    }
}

/* A row of 40 cells, of which cell `at` is `text`, and `more` behind the last. */
static void put_row(FILE *f, int at, const char *text, const char *more)
{
    for (int i = 0; i < 40; i++)
        fprintf(f, "%s%s", i ? "\t" : "", i == at ? text : i ? "" : "1");
    fprintf(f, "%s\n", more);
}

static wf_err refused_row(int at, const char *cell, const char *more)
{
    wf_job_conf *j = parsed(JOB("schema: criteo"));
    const wf_conf_field *dense = field(j->columns, j->n_columns, "numbers");
    const wf_map_step fill = {.type = "fill"};
    const wf_field_spec x = {.name = "numbers",
                             .columns = dense->columns,
                             .n_columns = dense->n_columns,
                             .is_row = true,
                             .steps = &fill,
                             .n_steps = 1,
                             .want = WF_F32};
    const char *path = test_path(&folder, "bad.tsv");
    FILE *f = fopen(path, "w");
    float out[13];
    uint64_t second = 1;
    wf_dataset *d = NULL;
    wf_err err = {0};

    assert_non_null(f);
    put_row(f, 0, "0", "");
    put_row(f, at, cell, more);
    assert_int_equal(fclose(f), 0);
    if (wf_dataset_open(&(wf_dataset_spec){.format = "csv",
                                           .fields = &x,
                                           .n_fields = 1,
                                           .files = &path,
                                           .n_files = 1,
                                           .schema = j->schema,
                                           .n_schema = j->n_schema,
                                           .delimiter = j->delimiter},
                        &d, &err) != WF_OK)
        fail_msg("%s", err.what);
    assert_int_equal(wf_dataset_gather(d, 0, (uint64_t[]){0}, 1, out, NULL), WF_OK);
    assert_int_equal(wf_dataset_gather(d, 0, &second, 1, out, &err), WF_INVALID);
    wf_dataset_free(&d);
    wf_job_free(&j);
    return err;
}

static void bad_rows_are_named_with_file_and_line(void **state)
{
    (void)state;
    assert_non_null(strstr(refused_row(13, "12x", "").what,
                           "bad.tsv:2: column \"I13\": \"12x\" is not a number"));
    assert_non_null(strstr(refused_row(39, "", "\tff").what,
                           "bad.tsv:2: a row of 41 columns, where there are 40"));
    assert_non_null(strstr(refused_row(39, "68fd\"\"64", "").what, "bad.tsv:2: a quote stands"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(criteo_needs_only_the_bins),
        cmocka_unit_test(what_the_job_says_stays),
        cmocka_unit_test(an_unknown_preset_is_named),
        cmocka_unit_test(bad_rows_are_named_with_file_and_line),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
