/* SPDX-License-Identifier: Apache-2.0 */
/* worker/dataset.c */
#include "worker/dataset.h"
#include "common/graph/op.h"

#include <stdio.h>
#include <string.h>

static const wf_conf_field *map_of(const wf_job_conf *job, const char *name)
{
    for (size_t i = 0; i < job->n_map; i++)
        if (strcmp(job->map[i].name, name) == 0)
            return &job->map[i];
    return NULL;
}

static void fill_step(const wf_conf_item *from, wf_map_step *to)
{
    *to = (wf_map_step){.type = from->type};
    for (size_t i = 0; i < from->n_options; i++) {
        const wf_conf_option *o = &from->options[i];

        if (o->kind == WF_CONF_INTS) {
            to->ints = o->ints;
            to->n_ints = o->n;
        } else if (o->kind == WF_CONF_TEXT) {
            to->text = o->text;
        } else {
            to->number = o->number;
        }
    }
}

static const wf_value *input_of(const wf_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    return NULL;
}

/* Whether a record of the field is one of the input, but for axes of one number. */
static bool same_but_ones(const wf_value *input, const wf_field_info *f)
{
    uint32_t i = 0, k = 1, rank = input->rank < 1 ? 0 : (uint32_t)input->rank;

    if (rank == 0)
        return false;
    while (true) {
        while (i < f->rank && f->dims[i] == 1)
            i++;
        while (k < rank && input->axes[k].size == 1)
            k++;
        if (i == f->rank || k == rank)
            return i == f->rank && k == rank;
        if (input->axes[k++].size != f->dims[i++])
            return false;
    }
}

void wf_worker_input_dims(const wf_value *input, const wf_field_info *f, uint64_t records,
                          uint32_t *rank, int64_t dims[])
{
    bool relaid = same_but_ones(input, f);

    *rank = relaid ? (uint32_t)input->rank : f->rank + 1;
    dims[0] = (int64_t)records;
    for (uint32_t i = 1; i < *rank; i++)
        dims[i] = relaid ? input->axes[i].size : f->dims[i - 1];
}

static wf_status check_record(const wf_dataset *d, const wf_value *input, wf_err *err)
{
    const wf_field_info *f = wf_dataset_field(d, (uint32_t)wf_dataset_find(d, input->name));
    char have[128], want[160];
    bool fits = input->rank == (int32_t)f->rank + 1;

    if (same_but_ones(input, f))
        return WF_OK;
    for (uint32_t i = 0; fits && i < f->rank; i++)
        fits = input->axes[i + 1].size < 0 || input->axes[i + 1].size == f->dims[i];
    if (fits)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "add a reshape to data.map, or mend the model's input",
                   "a record of \"%s\" in %s is %s%s, the model's input is %s", f->name, f->path,
                   wf_dtype_name(f->dtype), wf_dims_str(f->rank, f->dims, have, sizeof have),
                   wf_value_str(input, want, sizeof want));
}

/* The loss over class labels that `input` feeds, or NULL. */
static const wf_node *class_loss_of(const wf_graph *g, const wf_value *input)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        const wf_value *labels = n->n_in > 1 ? n->in[1] : NULL;

        while (labels && labels->producer && labels->producer->n_in > 0 &&
               (strcmp(labels->producer->op->name, "Cast") == 0 ||
                strcmp(labels->producer->op->name, "Reshape") == 0 ||
                strcmp(labels->producer->op->name, "Squeeze") == 0))
            labels = labels->producer->in[0];
        if (labels != input)
            continue;
        if (strcmp(n->op->name, "SoftmaxCrossEntropyLoss") == 0 ||
            strcmp(n->op->name, "NegativeLogLikelihoodLoss") == 0)
            return n;
    }
    return NULL;
}

/* The number of classes that a loss over class labels fed by `input` has; 0 when it has none. */
static int64_t classes_of(const wf_graph *g, const wf_value *input)
{
    const wf_node *n = class_loss_of(g, input);

    return n && n->in[0]->rank > 1 ? n->in[0]->axes[1].size : 0;
}

/* Whether labels may be of a class that is left out; the kernel then looks at each. */
static bool may_ignore(const wf_graph *g, const wf_value *input)
{
    const wf_node *n = class_loss_of(g, input);

    return n && wf_node_attr(n, "ignore_index");
}

static wf_status check_inputs(const wf_dataset *d, const wf_graph *g, wf_err *err)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const wf_value *input = g->inputs[i];
        int64_t classes = classes_of(g, input);
        int field = wf_dataset_find(d, input->name);

        if (field < 0)
            return wf_fail(err, WF_INVALID, "name it in data.train and data.eval",
                           "no data for the model's input \"%s\"", input->name);
        WF_TRY(check_record(d, input, err));
        if (classes > 0 && !may_ignore(g, input))
            WF_TRY(wf_dataset_check_labels(d, (uint32_t)field, classes, err));
    }
    return WF_OK;
}

typedef struct fields {
    wf_field_spec specs[WF_DATA_MAX_FIELDS];
    wf_map_step steps[WF_DATA_MAX_FIELDS][WF_DATA_MAX_STEPS + 1];
    size_t n;
} fields;

/* The fields of the files that are inputs of the graph; one step too many is kept, for
 * wf_dataset_open to refuse. */
static void fields_of_files(const wf_job_conf *job, const wf_conf_field from[], size_t n,
                            const wf_graph *graph, fields *out)
{
    for (size_t i = 0; i < n; i++) {
        const wf_conf_field *map = map_of(job, from[i].name);
        const wf_value *input = input_of(graph, from[i].name);
        wf_field_spec *f = &out->specs[out->n];

        if (!input) /* the graph has no use for it */
            continue;
        *f = (wf_field_spec){.name = from[i].name,
                             .path = from[i].path,
                             .steps = out->steps[out->n],
                             .want = input->dtype};
        for (size_t k = 0; map && k < map->n_steps && k <= WF_DATA_MAX_STEPS; k++)
            fill_step(&map->steps[k], &out->steps[out->n][f->n_steps++]);
        out->n++;
    }
}

/* Drawn records of the very shapes that the graph's inputs have. */
static wf_status fields_of_inputs(const wf_graph *graph, fields *out, wf_err *err)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const wf_value *input = graph->inputs[i];
        wf_field_spec *f = &out->specs[out->n++];

        if (input->rank < 1 || graph->n_inputs > WF_DATA_MAX_FIELDS)
            return wf_fail(err, WF_UNSUPPORTED, "use data of a file",
                           "synthetic data for the input \"%s\"", input->name);
        *f = (wf_field_spec){.name = input->name,
                             .want = input->dtype,
                             .rank = (uint32_t)input->rank - 1,
                             .classes = classes_of(graph, input)};
        for (int32_t k = 1; k < input->rank; k++)
            f->dims[k - 1] = input->axes[k].size;
    }
    return WF_OK;
}

wf_status wf_worker_open_data(const wf_job_conf *job, const wf_conf_field from[], size_t n,
                              const wf_graph *graph, wf_dataset **out, wf_err *err)
{
    wf_dataset_spec spec = {
        .format = job->format, .records = job->synthetic_records, .seed = job->seed};
    fields f = {.n = 0};
    wf_status rc;

    if (n > WF_DATA_MAX_FIELDS)
        return wf_fail(err, WF_USAGE, NULL, "%s:%d: %zu data fields, %d are allowed", job->path,
                       job->data_line, n, WF_DATA_MAX_FIELDS);
    if (job->synthetic_records)
        WF_TRY(fields_of_inputs(graph, &f, err));
    else
        fields_of_files(job, from, n, graph, &f);
    spec.fields = f.specs;
    spec.n_fields = f.n;
    rc = wf_dataset_open(&spec, out, err);
    if (rc == WF_OK)
        rc = check_inputs(*out, graph, err);
    if (rc != WF_OK)
        wf_dataset_free(out);
    /* What the job file says does not fit what the data files hold. */
    if (rc == WF_SHAPE || rc == WF_USAGE)
        return wf_err_wrap(err, rc, "%s:%d", job->path, job->data_line);
    return rc;
}
