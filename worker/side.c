/* SPDX-License-Identifier: Apache-2.0 */
/* worker/side.c */
#include "worker/side.h"
#include "common/graph/op.h"
#include "common/log/log.h"
#include "common/onnx/onnx.h"
#include "common/session/job_data_message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const wf_device *first_device(const wf_side *s)
{
    return s->spec.replicas[0].devices[0];
}

/* Each node that a layer has put on a device finds it here, and each replica has all nodes. */
static wf_status check_devices(const wf_side *s, wf_err *err)
{
    const wf_side_replica *r = &s->spec.replicas[0];

    for (size_t i = 0; i < s->graph->n_nodes; i++) {
        const wf_node *n = s->graph->nodes[i];
        bool found = !n->device;

        if (n->device && s->spec.n_replicas > 1 && wf_exchange_mirrors(s->spec.start))
            return wf_fail(
                err, WF_INVALID, "leave out \"device\" of the layer, or take another strategy",
                "%s \"%s\" is for the device %s, and strategy %s has each layer on every "
                "device",
                n->op->name, n->name, n->device, s->spec.start->strategy);
        for (size_t k = 0; !found && k < r->n_devices; k++)
            found = strcmp(r->devices[k]->name, n->device) == 0;
        if (!found)
            return wf_fail(err, WF_INVALID, "list it under devices in cluster.yaml",
                           "%s \"%s\" is for the device %s, which this worker has not", n->op->name,
                           n->name, n->device);
    }
    return WF_OK;
}

static void warn_of_skipped(const wf_dataset *d)
{
    const char *path;
    uint64_t line, n = wf_dataset_skipped(d, &path, &line);

    if (n)
        WF_LOG_WARN("data.lines_skipped",
                    "lines=%" PRIu64 " first=\"%s:%" PRIu64 "\" why=\"another number of columns\"",
                    n, path, line);
}

static void share(void *pool, int64_t n, int64_t grain,
                  void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    wf_pool_for(pool, n, grain, fn, arg);
}

static wf_status new_reader(const wf_side_spec *spec, const wf_job_data *from, wf_dataset *data,
                            wf_data_reader **out, wf_err *err)
{
    const wf_device *device = spec->replicas[0].devices[0];

    return wf_data_reader_new(
        &(wf_data_reader_spec){.dataset = data,
                               .batch = from->batch,
                               .seed = spec->start->seed,
                               .shuffle = from->shuffle,
                               .device = device->is_host ? NULL : device,
                               .depth = wf_data_reader_depth_for(data, from->batch),
                               .threads = {spec->replicas[0].pool, share}},
        out, err);
}

/* Names the variables that live on the device. */
static wf_status find_resident(wf_side *s, wf_err *err)
{
    const Weft__Start *start = s->spec.start;

    s->resident = calloc(start->n_variables + 1, sizeof(*s->resident));
    if (!s->resident)
        return wf_fail_nomem(err, start->n_variables * sizeof(*s->resident));
    for (uint32_t i = 0; i < start->n_variables; i++)
        if (!wf_exchange_home(start, s->spec.place, i)->is_host)
            s->resident[s->n_resident++] = start->variables[i]->name;
    return WF_OK;
}

static wf_status open_side(wf_side *s, const wf_side_spec *spec, wf_arena *a, wf_err *err)
{
    wf_job_data data;

    WF_TRY(wf_job_data_get(spec->data, spec->start->seed, a, &data, err));
    data.spec.memory = data.trained.memory = spec->memory;
    if (spec->round)
        WF_TRY(wf_job_data_take_round(&data, spec->round, a, err));
    if (spec->learnt)
        WF_TRY(wf_job_data_give(&data, spec->learnt, err));
    s->batch = data.batch;
    s->plans = calloc(spec->n_replicas, sizeof *s->plans);
    if (!s->plans)
        return wf_fail_nomem(err, spec->n_replicas * sizeof *s->plans);
    WF_TRY(find_resident(s, err));
    WF_TRY(wf_onnx_decode(spec->graph->data, spec->graph->len, NULL, &s->graph, err));
    WF_TRY(check_devices(s, err));
    WF_TRY(wf_job_data_open(&data, s->graph, &s->data, err));
    warn_of_skipped(s->data);
    WF_TRY(wf_tables_open(&s->tables,
                          &(wf_tables_spec){.start = spec->start,
                                            .graph = spec->ids,
                                            .uses = spec->uses,
                                            .n_uses = spec->n_uses,
                                            .data = s->data,
                                            .device = first_device(s),
                                            .pool = spec->replicas[0].pool},
                          err));
    if (wf_tables_any(&s->tables))
        WF_TRY(wf_job_data_check(&data, s->tables.graph, s->data, err));
    return new_reader(spec, &data, s->data, &s->reader, err);
}

wf_status wf_side_open(wf_side *s, const wf_side_spec *spec, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    wf_status rc;

    s->spec = *spec;
    rc = a ? open_side(s, spec, a, err) : wf_fail_nomem(err, sizeof *s);
    wf_arena_free(&a);
    return rc;
}

static void warn_of_cut(const wf_dataset *d)
{
    uint64_t n = d ? wf_dataset_cut(d) : 0;

    if (n)
        WF_LOG_WARN("data.bags_cut", "bags=%" PRIu64 " why=\"longer than the model's input\"", n);
}

/* Plans are bound to records of one layout. */
static wf_status check_layout(const wf_dataset *now, const wf_dataset *before, wf_err *err)
{
    char have[128], had[128];

    for (uint32_t i = 0; i < wf_dataset_n_fields(before); i++) {
        const wf_field_info *a = wf_dataset_field(now, i), *b = wf_dataset_field(before, i);

        if (a->dtype != b->dtype || a->rank != b->rank ||
            memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0)
            return wf_fail(err, WF_SHAPE, "all files of a job hold records of one shape",
                           "a record of \"%s\" in %s is %s%s, and was %s%s before", a->name,
                           a->path, wf_dtype_name(a->dtype),
                           wf_dims_str(a->rank, a->dims, have, sizeof have),
                           wf_dtype_name(b->dtype), wf_dims_str(b->rank, b->dims, had, sizeof had));
    }
    return WF_OK;
}

static wf_status open_round(wf_side *s, const Weft__Round *round, wf_arena *a, wf_dataset **d,
                            wf_data_reader **reader, wf_err *err)
{
    wf_job_data data;

    WF_TRY(wf_job_data_get(s->spec.data, s->spec.start->seed, a, &data, err));
    WF_TRY(wf_job_data_take_round(&data, round, a, err));
    WF_TRY(wf_job_data_open(&data, s->graph, d, err));
    WF_TRY(check_layout(*d, s->data, err));
    if (wf_tables_any(&s->tables))
        WF_TRY(wf_job_data_check(&data, s->tables.graph, *d, err));
    return new_reader(&s->spec, &data, *d, reader, err);
}

wf_status wf_side_renew(wf_side *s, const Weft__Round *round, wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    wf_data_reader *reader = NULL;
    wf_dataset *d = NULL;
    wf_status rc = a ? open_round(s, round, a, &d, &reader, err) : wf_fail_nomem(err, sizeof *s);

    wf_arena_free(&a);
    if (rc != WF_OK) {
        wf_dataset_free(&d);
        return rc;
    }
    warn_of_skipped(d);
    wf_data_reader_free(&s->reader);
    warn_of_cut(s->data);
    wf_dataset_free(&s->data);
    s->tables.data = d;
    s->data = d;
    s->reader = reader;
    return WF_OK;
}

void wf_side_close(wf_side *s)
{
    warn_of_cut(s->data);
    for (uint32_t i = 0; s->plans && i < s->spec.n_replicas; i++)
        wf_plans_close(&s->plans[i]);
    free(s->plans);
    wf_tables_close(&s->tables);
    wf_data_reader_free(&s->reader);
    wf_dataset_free(&s->data);
    wf_graph_free(&s->graph);
    free(s->resident);
    free(s->inputs);
    free(s->outputs);
    *s = (wf_side){0};
}

static bool is_scale(const wf_side *s, const char *input)
{
    return s->spec.loss_scale && strcmp(s->spec.start->loss_scale, input) == 0;
}

/* The symbolic leading axis of the inputs gets the number of records. */
static wf_status shape_input(wf_side *s, const wf_value *v, uint64_t records, wf_plan_shape *out,
                             wf_err *err)
{
    int32_t use = wf_tables_find(&s->tables, v->name), field = wf_dataset_find(s->data, v->name);

    out->name = v->name;
    out->rank = 0;
    if (is_scale(s, v->name)) {
        if (v->dtype == WF_F32 && v->rank == 0)
            return WF_OK;
        return wf_fail(err, WF_PROTO, NULL,
                       "the scale of the loss is one number, and not \"%.200s\"", v->name);
    }
    if (use >= 0)
        return wf_tables_shape(&s->tables, (uint32_t)use, records, &out->rank, out->dims, err);
    if (field < 0)
        return wf_fail(err, WF_PROTO, NULL, "the graph takes \"%.200s\", which no field is",
                       v->name);
    wf_job_data_dims(v, wf_dataset_field(s->data, (uint32_t)field), records, &out->rank, out->dims);
    return WF_OK;
}

static wf_status plan_for(wf_side *s, const wf_side_replica *on, uint64_t records,
                          bool measure_only, wf_plan **out, wf_err *err)
{
    wf_plan_shape *shapes = calloc(s->graph->n_inputs + 1, sizeof *shapes);
    wf_plan_options options = {.device = on->devices[0],
                               .devices = on->devices + 1,
                               .n_devices = on->n_devices - 1,
                               .pool = on->pool,
                               .shapes = shapes,
                               .n_resident = s->n_resident,
                               .resident = s->resident,
                               .outputs_on_host = wf_exchange_sends(s->spec.start),
                               .measure_only = measure_only,
                               .compute = (wf_compute)s->spec.start->compute,
                               .deterministic = s->spec.start->deterministic};
    wf_status rc = WF_OK;

    if (!shapes)
        return wf_fail_nomem(err, s->graph->n_inputs * sizeof *shapes);
    for (size_t i = 0; rc == WF_OK && i < s->graph->n_inputs; i++)
        rc = shape_input(s, s->graph->inputs[i], records, &shapes[options.n_shapes++], err);
    if (rc == WF_OK)
        rc = wf_plan_new(s->graph, &options, out, err);
    free(shapes);
    return rc;
}

static bool fits(wf_side *s, const wf_side_replica *on, uint64_t records)
{
    size_t left = wf_device_memory_left(on->devices[0]);
    wf_plan *p = NULL;
    bool fits = plan_for(s, on, records, true, &p, NULL) == WF_OK && s->apart <= left &&
                wf_plan_memory(p).device_bytes <= left - s->apart;

    wf_plan_free(&p);
    return fits;
}

/* The largest number of records below one that does not fit; 0: not even one does. */
static uint64_t most_that_fit(wf_side *s, const wf_side_replica *on, uint64_t too_many)
{
    uint64_t fit = 0;

    while (too_many - fit > 1) {
        uint64_t middle = fit + (too_many - fit) / 2;

        if (fits(s, on, middle))
            fit = middle;
        else
            too_many = middle;
    }
    return fit;
}

typedef struct wanted {
    wf_side *side;
    const wf_side_replica *on;
} wanted;

static wf_status make_plan(void *arg, uint64_t records, wf_plan **out, wf_err *err)
{
    const wanted *w = arg;
    wf_status rc = plan_for(w->side, w->on, records, false, out, err);
    uint64_t fit;

    if (rc != WF_NOMEM || w->on->devices[0]->is_host)
        return rc;
    wf_plan_free(out); /* it has memory of the device */
    fit = most_that_fit(w->side, w->on, records) * w->side->spec.n_replicas;
    if (fit)
        snprintf(err->hint, sizeof err->hint, "a batch of %" PRIu64 " fits", fit);
    return rc;
}

static int32_t find_variable(const Weft__Start *start, const char *name)
{
    for (size_t i = 0; name && i < start->n_variables; i++)
        if (strcmp(start->variables[i]->name, name) == 0)
            return (int32_t)i;
    return -1;
}

static wf_status map_ports(wf_side *s, const wf_plan *p, wf_err *err)
{
    s->n_inputs = wf_plan_n_inputs(p);
    s->n_outputs = wf_plan_n_outputs(p);
    s->inputs = calloc(s->n_inputs + 1, sizeof *s->inputs);
    s->outputs = calloc(s->n_outputs + 1, sizeof *s->outputs);
    if (!s->inputs || !s->outputs)
        return wf_fail_nomem(err, s->n_inputs * sizeof *s->inputs);
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        const wf_port *in = wf_plan_input(p, i);

        s->inputs[i] = (wf_side_port){in->variable ? -1 : wf_dataset_find(s->data, in->name),
                                      find_variable(s->spec.start, in->variable),
                                      in->variable ? -1 : wf_tables_find(&s->tables, in->name),
                                      is_scale(s, in->name)};
    }
    for (uint32_t i = 0; i < s->n_outputs; i++)
        s->outputs[i] = (wf_side_port){
            -1, find_variable(s->spec.start, wf_plan_output(p, i)->variable), -1, false};
    return WF_OK;
}

wf_status wf_side_plan(wf_side *s, uint32_t replica, uint64_t records, wf_plan **out, wf_err *err)
{
    wanted w = {s, &s->spec.replicas[replica]};

    WF_TRY(wf_plans_get(&s->plans[replica], records, make_plan, &w, out, err));
    return s->inputs ? WF_OK : map_ports(s, *out, err);
}

const void *wf_side_input(const wf_side *s, uint32_t i, const wf_exchange *x, int set,
                          const wf_batch *batch)
{
    if (s->inputs[i].use >= 0)
        return wf_named_rows_places(s->rows, &s->tables, (uint32_t)s->inputs[i].use, s->rows_batch);
    if (s->inputs[i].is_scale)
        return s->spec.loss_scale;
    if (s->inputs[i].field >= 0)
        return batch->fields[s->inputs[i].field].data;
    return s->inputs[i].variable < 0 ? NULL
                                     : wf_exchange_weights(x, set, (uint32_t)s->inputs[i].variable);
}

wf_status wf_side_bind(const wf_side *s, wf_plan *p, const wf_exchange *x, int set,
                       const wf_batch *batch, wf_err *err)
{
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        const void *data = wf_side_input(s, i, x, set, batch);

        if (data)
            wf_plan_bind_input(p, i, data);
    }
    return x->written ? wf_plan_after_event(p, x->written, err) : WF_OK;
}

wf_status wf_side_bring_ahead(const wf_side *s, wf_plan *p, const wf_batch *batch, uint64_t begin,
                              wf_err *err)
{
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        const int32_t field = s->inputs[i].field;
        const char *data;

        if (field < 0)
            continue;
        data = batch->fields[field].data;
        data += begin * wf_dataset_field(s->data, (uint32_t)field)->record_bytes;
        WF_TRY(wf_plan_bring_ahead(p, i, data, err));
    }
    return WF_OK;
}

wf_status wf_side_measure(const wf_side *s, const wf_plan *p, uint64_t n, wf_measure m[],
                          uint32_t *used, wf_err *err)
{
    *used = 0;
    for (size_t i = 0; i < s->spec.n_fetches && *used < WF_MEASURES_MOST; i++) {
        const Weft__Output *o = s->spec.meanings[i];
        int64_t at = wf_plan_find_output(p, o->name);
        const wf_port *out;

        if (at < 0)
            continue;
        out = wf_plan_output(p, (uint32_t)at);
        snprintf(m[*used].name, sizeof m[*used].name, "%s", o->label);
        snprintf(m[*used].metric, sizeof m[*used].metric, "%s", o->metric);
        WF_TRY(wf_metric_add(&m[*used], (wf_meaning)o->meaning, o->per_record, n, out->dtype,
                             (size_t)out->elems, wf_plan_output_data(p, (uint32_t)at), err));
        ++*used;
    }
    return WF_OK;
}
