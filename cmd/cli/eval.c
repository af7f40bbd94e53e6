/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/eval.c - a checkpoint evaluated here, in this process: no cluster is needed. */
#include "cmd/cli/cli.h"
#include "cmd/cli/json.h"
#include "cmd/cli/library.h"
#include "cmd/cli/term.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static wf_status print_json(const weft_evaluation *e, const char *checkpoint, wf_err *err)
{
    json_t *row =
        json_pack("{s:s, s:I}", "checkpoint", checkpoint, "records", (json_int_t)e->records);

    for (uint32_t i = 0; i < e->n_metrics; i++) {
        double value = e->metrics[i].value;
        json_t *number = isfinite(value) ? json_real(value) : json_null(); /* JSON has no NaN */

        json_object_set_new(row, e->metrics[i].name, number);
    }
    return wf_json_print(row, JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII, err);
}

static void print_results(const weft_evaluation *e, const char *checkpoint)
{
    wf_term_print(stdout, "%s: %lu records", checkpoint, (unsigned long)e->records);
    for (uint32_t i = 0; i < e->n_metrics; i++)
        wf_term_print(stdout, "  %s %.4f", e->metrics[i].name, e->metrics[i].value);
    wf_term_print(stdout, "\n");
}

static wf_status evaluate(const wf_trained *t, bool json, wf_err *err)
{
    const char *checkpoint = weft_list_origin(t->weights);
    weft_evaluation result;
    weft_error e;

    if (weft_job_evaluate(t->job, t->weights, NULL, &result, &e) != WEFT_OK)
        return wf_library_fail(&e, err);
    if (json)
        return print_json(&result, checkpoint, err);
    print_results(&result, checkpoint);
    return WF_OK;
}

/* FIELD=FILE, or FILE of a format whose files hold all fields. */
static wf_status take_files(weft_job *job, const wf_words *data, wf_err *err)
{
    char fields[WF_COUNT(data->word)][64];
    const char *names[WF_COUNT(data->word)], *paths[WF_COUNT(data->word)];
    weft_error e;

    for (size_t i = 0; i < data->n; i++) {
        const char *equals = strchr(data->word[i], '=');

        if (equals && (equals == data->word[i] ||
                       (size_t)(equals - data->word[i]) >= sizeof fields[0] || !equals[1]))
            return wf_fail(err, WF_USAGE, "write --data FIELD=FILE", "\"%.64s\" names no file",
                           data->word[i]);
        snprintf(fields[i], sizeof fields[0], "%.*s", (int)(equals ? equals - data->word[i] : 0),
                 data->word[i]);
        names[i] = equals ? fields[i] : NULL;
        paths[i] = equals ? equals + 1 : data->word[i];
    }
    if (weft_job_eval_files(job, data->n, names, paths, &e) != WEFT_OK)
        return wf_library_fail(&e, err);
    return WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *from = NULL;
    wf_trained t = {0};
    bool json = false;
    wf_words words, data = {0};
    const wf_flag flags[] = {{"from", 0, .value = &from},
                             {"json", 0, .set = &json},
                             {"data", 0, .words = &data},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    rc = wf_trained_job(cluster, words.word[0], &t, err);
    if (rc == WF_OK)
        rc = take_files(t.job, &data, err);
    if (rc == WF_OK)
        rc = wf_trained_weights(&t, from, err);
    if (rc == WF_OK)
        rc = evaluate(&t, json, err);
    wf_trained_close(&t);
    return rc;
}

const wf_cmd wf_cmd_eval = {
    .name = "eval",
    .help = "evaluate a checkpoint on the job's eval data",
    .usage =
        "weft eval JOB|JOB.yaml [--data FIELD=FILE ...] [--from STEP] [--json]\n"
        "\n"
        "Computes loss and metrics of the newest intact checkpoint, in this process. The cluster\n"
        "need not be up.\n"
        "  --data FIELD=FILE   use other data, in the job's format; fields that are not named "
        "keep\n"
        "                their files. A csv file contains all fields: --data FILE\n"
        "  --from STEP   use the checkpoint of that step; \"best\": the one a callback chose\n"
        "  --json        for programs\n"
        "  --cluster FILE   the cluster; otherwise ./cluster.yaml, or the local one\n"
        "\n"
        "  weft eval digits\n"
        "  weft eval digits --data x=new-images.gz --data y=new-labels.gz\n",
    .run = run,
};
