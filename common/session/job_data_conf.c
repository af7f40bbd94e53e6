/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data_conf.c */
#include "common/session/job_data_conf.h"

#include <string.h>

static const wf_conf_field *map_of(const wf_job_conf *job, const char *name)
{
    for (size_t i = 0; i < job->n_map; i++)
        if (strcmp(job->map[i].name, name) == 0)
            return &job->map[i];
    return NULL;
}

static const wf_compiled_feed *feed_of(const wf_compiled *c, const char *name)
{
    for (size_t i = 0; i < c->n_feeds; i++)
        if (strcmp(c->feeds[i].name, name) == 0)
            return &c->feeds[i];
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

size_t wf_job_data_steps(const wf_job_conf *job, const char *field,
                         wf_map_step steps[static WF_DATA_MAX_STEPS + 1])
{
    const wf_conf_field *map = map_of(job, field);
    size_t n = 0;

    for (; map && n < map->n_steps && n <= WF_DATA_MAX_STEPS; n++)
        fill_step(&map->steps[n], &steps[n]);
    return n;
}

static wf_field_spec *add_field(wf_job_data *d, const wf_compiled_feed *feed)
{
    size_t at = d->spec.n_fields++;

    d->fields[at] = (wf_field_spec){.name = feed->name,
                                    .steps = d->steps[at],
                                    .want = feed->dtype,
                                    .classes = feed->classes,
                                    .may_ignore = feed->may_ignore,
                                    .loss = feed->loss,
                                    .is_share = feed->is_share};
    return &d->fields[at];
}

static void add_files(const wf_job_conf *job, const wf_conf_records *from, const wf_compiled *c,
                      wf_job_data *d)
{
    d->spec.files = from->files;
    d->spec.n_files = from->n_files;
    for (size_t i = 0; i < from->n; i++) {
        const wf_conf_field *it = &from->fields[i];
        const wf_compiled_feed *feed = feed_of(c, it->name);
        wf_map_step *steps = d->steps[d->spec.n_fields];
        wf_field_spec *f;

        if (!feed) /* the graph has no use for it */
            continue;
        f = add_field(d, feed);
        f->path = it->path;
        f->more = it->more;
        f->n_more = it->n_more;
        f->columns = it->columns;
        f->n_columns = it->n_columns;
        f->is_row = it->is_row;
        f->n_steps = wf_job_data_steps(job, it->name, steps);
    }
}

/* Evaluation standardises by the numbers of the training data. */
static void refer_to_training(const wf_job_conf *job, wf_job_data *d)
{
    bool wanted = strcmp(job->format, "images") == 0; /* whose classes are counted there */

    d->trained = d->spec;
    d->trained.fields = d->trained_fields;
    d->trained.files = job->train.files;
    d->trained.n_files = job->train.n_files;
    d->trained.is_held_out = false;
    for (size_t i = 0; i < d->spec.n_fields; i++) {
        d->trained_fields[i] = d->fields[i];
        for (size_t k = 0; k < d->fields[i].n_steps; k++)
            wanted |= strcmp(d->fields[i].steps[k].type, "standardise") == 0;
        for (size_t k = 0; k < job->train.n; k++) {
            const wf_conf_field *f = &job->train.fields[k];

            if (strcmp(f->name, d->fields[i].name) != 0)
                continue;
            d->trained_fields[i].path = f->path;
            d->trained_fields[i].more = f->more;
            d->trained_fields[i].n_more = f->n_more;
        }
    }
    d->spec.reference = wanted ? &d->trained : NULL;
}

/* Whether a record has a shape: all axes but that of the batch are numbers. */
static bool is_sized(const wf_compiled_feed *feed)
{
    for (uint32_t k = 1; k < feed->rank; k++)
        if (feed->axes[k].size < 0)
            return false;
    return feed->rank > 0;
}

/* Synthetic records of the very shapes that the graph's inputs have. */
static wf_status add_inputs(const wf_compiled *c, wf_job_data *d, wf_err *err)
{
    for (size_t i = 0; i < c->n_feeds; i++) {
        const wf_compiled_feed *feed = &c->feeds[i];
        wf_field_spec *f;

        if (!is_sized(feed) || c->n_feeds > WF_DATA_MAX_FIELDS)
            return wf_fail(err, WF_UNSUPPORTED, "use data of a file",
                           "synthetic data for the input \"%s\"", feed->name);
        f = add_field(d, feed);
        f->rank = feed->rank - 1;
        for (uint32_t k = 0; k < f->rank; k++)
            f->dims[k] = feed->axes[k + 1].size;
    }
    return WF_OK;
}

wf_status wf_job_data_of(const wf_job_conf *job, const wf_conf_records *from, const wf_compiled *c,
                         wf_job_data *out, wf_err *err)
{
    *out = (wf_job_data){.spec = {.format = job->format,
                                  .records = job->synthetic_records,
                                  .seed = job->seed,
                                  .header = job->header,
                                  .delimiter = job->delimiter,
                                  .held_out = job->validation_split,
                                  .is_held_out = from == &job->eval,
                                  .is_random = from == &job->train,
                                  .schema = job->schema,
                                  .n_schema = job->n_schema,
                                  .fields = out->fields},
                         .batch = job->batch,
                         .shuffle = job->shuffle,
                         .path = job->path,
                         .line = from->line ? from->line : job->data_line};
    if (from->n > WF_DATA_MAX_FIELDS)
        return wf_fail(err, WF_USAGE, NULL, "%s:%d: %zu data fields, %d are allowed", job->path,
                       job->data_line, from->n, WF_DATA_MAX_FIELDS);
    if (job->synthetic_records)
        return add_inputs(c, out, err);
    add_files(job, from, c, out);
    if (from == &job->eval)
        refer_to_training(job, out);
    return WF_OK;
}
