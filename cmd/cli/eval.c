/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/eval.c - a checkpoint evaluated here, in this process: no cluster is needed. */
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"
#include "cmd/cli/weights.h"
#include "common/base/size.h"
#include "common/ckpt/pretrained.h"
#include "common/data/reader.h"
#include "common/exec/exec.h"
#include "common/session/job_data_conf.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 500 };

typedef struct evaluation {
    const wf_compiled *c;
    wf_dataset *data;
    wf_reader *reader;
    wf_pool *pool;
    wf_measure measures[WF_MEASURES_MOST]; /* one for each output of c */
} evaluation;

static wf_status make_plan(const evaluation *e, uint64_t records, wf_plan **out, wf_err *err)
{
    wf_plan_shape shapes[WF_DATA_MAX_FIELDS];
    wf_plan_options o = {.pool = e->pool, .shapes = shapes};

    for (uint32_t i = 0; i < wf_dataset_n_fields(e->data); i++) {
        const wf_field_info *f = wf_dataset_field(e->data, i);

        shapes[i] = (wf_plan_shape){.name = f->name};
        wf_job_data_dims(wf_graph_value(e->c->graph, f->name), f, records, &shapes[i].rank,
                         shapes[i].dims);
        o.n_shapes++;
    }
    return wf_plan_new(e->c->graph, &o, out, err);
}

static wf_status run_batch(evaluation *e, wf_plan *p, const wf_batch *b, wf_err *err)
{
    for (uint32_t i = 0; i < wf_dataset_n_fields(e->data); i++) {
        int64_t at = wf_plan_find_input(p, wf_dataset_field(e->data, i)->name);

        if (at >= 0)
            wf_plan_bind_input(p, (uint32_t)at, b->fields[i].data);
    }
    WF_TRY(wf_plan_run(p, &(wf_step_key){0, 0, 0, b->index}, NULL, NULL, err));
    for (size_t i = 0; i < e->c->n_outputs && i < WF_MEASURES_MOST; i++) {
        const wf_compiled_output *o = &e->c->outputs[i];
        uint32_t at = (uint32_t)wf_plan_find_output(p, o->name);
        const wf_port *port = wf_plan_output(p, at);

        if (o->metric)
            snprintf(e->measures[i].metric, sizeof e->measures[i].metric, "%s", o->metric);
        WF_TRY(wf_metric_add(&e->measures[i], o->meaning, o->per_record, b->n, port->dtype,
                             (size_t)port->elems, wf_plan_output_data(p, at), err));
    }
    return WF_OK;
}

static wf_status run_all(evaluation *e, wf_err *err)
{
    uint64_t n = wf_dataset_records(e->data), planned = 0;
    wf_plan *p = NULL;
    const wf_batch *b;
    wf_status rc;

    rc = wf_reader_open(e->reader, 0, 0, 0, n, 0, err);
    while (rc == WF_OK && (rc = wf_reader_next(e->reader, &b, err)) == WF_OK && b) {
        if (b->n != planned) {
            wf_plan_free(&p);
            rc = make_plan(e, b->n, &p, err);
            planned = b->n;
        }
        if (rc == WF_OK)
            rc = run_batch(e, p, b, err);
        wf_reader_release(e->reader, &b);
    }
    wf_plan_free(&p);
    return rc;
}

static wf_status put_weights(wf_compiled *c, const wf_weights *w, wf_err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        wf_tensor *copy = NULL;

        if (wf_compiled_find(c, w->named[i].name) < 0)
            continue; /* what the loss alone needs */
        WF_TRY(wf_tensor_copy(w->named[i].tensor, &copy, err));
        WF_TRY(wf_compiled_set_variable(c, w->named[i].name, &copy, err));
    }
    return WF_OK;
}

static wf_status print_json(evaluation *e, const wf_ckpt *from, wf_err *err)
{
    json_t *row = json_pack("{s:s, s:I}", "checkpoint", wf_ckpt_name(from), "records",
                            (json_int_t)wf_dataset_records(e->data));
    char *text;

    for (size_t i = 0; i < e->c->n_outputs && i < WF_MEASURES_MOST; i++) {
        double value = wf_metric_value(&e->measures[i]);
        json_t *number = isfinite(value) ? json_real(value) : json_null(); /* JSON has no NaN */

        json_object_set_new(row, e->c->outputs[i].label, number);
    }
    text = json_dumps(row, JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    json_decref(row);
    if (!text)
        return wf_fail_nomem(err, 0);
    wf_term_print(stdout, "%s\n", text);
    free(text);
    return WF_OK;
}

static void print_results(evaluation *e, const wf_ckpt *from)
{
    wf_term_print(stdout, "%s: %lu records", wf_ckpt_name(from),
                  (unsigned long)wf_dataset_records(e->data));
    for (size_t i = 0; i < e->c->n_outputs && i < WF_MEASURES_MOST; i++)
        wf_term_print(stdout, "  %s %.4f", e->c->outputs[i].label,
                      wf_metric_value(&e->measures[i]));
    wf_term_print(stdout, "\n");
}

static wf_status open_data(const wf_job_conf *job, const wf_compiled *c, wf_dataset **out,
                           wf_err *err)
{
    wf_job_data d;

    WF_TRY(wf_job_data_of(job, &job->eval, c, &d, err));
    return wf_job_data_open(&d, c->graph, out, err);
}

static wf_status evaluate(const wf_job_conf *job, const wf_weights *w, const wf_ckpt *from,
                          bool json, wf_err *err)
{
    wf_compile_spec spec;
    wf_compiled *c = NULL;
    evaluation e = {0};
    wf_model model;
    wf_status rc;

    wf_compile_spec_of_job(job, WF_COMPILE_EVAL, NULL, 0, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    spec.batch = BATCH;
    rc = wf_compile(&spec, &c, err);
    if (rc == WF_OK)
        rc = put_weights(c, w, err);
    if (rc == WF_OK)
        rc = open_data(job, c, &e.data, err);
    if (rc == WF_OK)
        rc = wf_reader_new(&(wf_reader_spec){.dataset = e.data, .batch = BATCH}, &e.reader, err);
    if (rc == WF_OK)
        rc = wf_pool_new((uint32_t)WF_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), &e.pool, err);
    e.c = c;
    if (rc == WF_OK)
        rc = run_all(&e, err);
    if (rc == WF_OK && json)
        rc = print_json(&e, from, err);
    else if (rc == WF_OK)
        print_results(&e, from);
    wf_measures_close(e.measures, WF_MEASURES_MOST);
    wf_reader_free(&e.reader);
    wf_dataset_free(&e.data);
    wf_pool_free(&e.pool);
    wf_compiled_free(&c);
    return rc;
}

static wf_status eval_job(const wf_cluster_conf *conf, const wf_job_conf *job, const char *from,
                          bool json, wf_err *err)
{
    wf_weights w = {0};
    wf_ckpt *c = NULL;
    wf_status rc;

    if (job->eval.n == 0 && !job->synthetic_records)
        return wf_fail(err, WF_USAGE, "name its files under data.eval",
                       "%s:%d: the job has no data to evaluate on", job->path, job->data_line);
    rc = wf_weights_read(conf, job, from, &c, &w, err);
    if (rc == WF_OK)
        rc = evaluate(job, &w, c, json, err);
    wf_weights_close(&w);
    wf_ckpt_close(&c);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *from = NULL;
    wf_cluster_conf *conf = NULL;
    wf_job_conf *job = NULL;
    bool json = false;
    wf_words words;
    const wf_flag flags[] = {{"from", 0, .value = &from},
                             {"json", 0, .set = &json},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    rc = wf_place_job(conf, words.word[0], &job, err);
    if (rc == WF_OK)
        rc = eval_job(conf, job, from, json, err);
    wf_job_free(&job);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_eval = {
    .name = "eval",
    .help = "evaluate a checkpoint on the job's eval data",
    .usage = "weft eval JOB|JOB.yaml [--from STEP] [--json] [--cluster FILE]\n\n"
             "Computes loss and metrics of the newest checkpoint that verifies, in this process;\n"
             "the cluster need not be up.\n"
             "  --from STEP   that checkpoint, and no other; \"best\": the one a callback chose\n"
             "  --json        for programs\n\n"
             "  weft eval digits\n",
    .run = run,
};
