/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data_conf.c */
#include "common/session/job_data_conf.h"

#include "common/base/size.h"

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

/* Options of words as Keras has them: both punctuation and capitals go, unless bytes are tokens. */
static void fill_tokens(const wf_conf_item *from, wf_map_step *to)
{
    const char *by = wf_conf_text(from, "split", "whitespace");
    wf_split split = strcmp(by, "bytes") == 0       ? WF_SPLIT_BYTES
                     : strcmp(by, "character") == 0 ? WF_SPLIT_CHARACTER
                                                    : WF_SPLIT_WHITESPACE;
    const char *form = wf_conf_text(
        from, "standardize", split == WF_SPLIT_BYTES ? "none" : "lower_and_strip_punctuation");

    *to =
        (wf_map_step){.type = from->type,
                      .number = wf_conf_number(from, "max_tokens", 0),
                      .text = wf_conf_text(from, "vocabulary", NULL),
                      .tokens = {.split = split,
                                 .lowers = strncmp(form, "lower", 5) == 0,
                                 .strips = strstr(form, "strip_punctuation") != NULL,
                                 .length = (uint64_t)wf_conf_int(from, "output_sequence_length", 0),
                                 .bins = (uint64_t)wf_conf_int(from, "hash", 0)}};
}

static void fill_step(const wf_conf_item *from, wf_map_step *to)
{
    if (strcmp(from->type, "text_vectorization") == 0) {
        fill_tokens(from, to);
        return;
    }
    *to = (wf_map_step){.type = from->type};
    for (size_t i = 0; i < from->n_options; i++) {
        const wf_conf_option *o = &from->options[i];

        if (o->kind == WF_CONF_INTS) {
            to->ints = o->ints;
            to->n_ints = o->n;
        } else if (o->kind == WF_CONF_NUMBERS) {
            to->numbers = o->numbers;
            to->n_numbers = o->n;
        } else if (o->kind == WF_CONF_TEXT) {
            to->text = o->text;
        } else {
            to->number = o->number;
        }
    }
}

static bool is_tokens(const wf_map_step *step)
{
    return strcmp(step->type, "text_vectorization") == 0;
}

/* The numbers of a record of an input of layers; 0: that is not known. */
static uint64_t width_of_input(const wf_job_conf *job, const char *name)
{
    uint64_t width = 0;

    for (size_t i = 0; i < job->n_inputs; i++) {
        if (strcmp(job->inputs[i].name, name) != 0)
            continue;
        width = 1;
        for (uint32_t k = 0; k < job->inputs[i].rank; k++)
            if (__builtin_mul_overflow(width, (uint64_t)job->inputs[i].dims[k], &width))
                return 0;
    }
    return width;
}

/* The field whose tokens a field has, moved by one: that of the column "text". NULL: it has none of
 * another. */
static const wf_conf_field *moved_from(const wf_job_conf *job, const char *field)
{
    bool moved = false;

    for (size_t i = 0; job->sequence_length && i < job->n_columns; i++)
        moved |= strcmp(job->columns[i].name, field) == 0 && job->columns[i].n_columns &&
                 strcmp(job->columns[i].columns[0], "next") == 0;
    for (size_t i = 0; moved && i < job->n_columns; i++)
        if (job->columns[i].n_columns && strcmp(job->columns[i].columns[0], "text") == 0)
            return map_of(job, job->columns[i].name);
    return NULL;
}

/* Where the job file does not say how many tokens a record has, the model's input does. */
static void give_length(const wf_job_conf *job, const char *field, uint64_t width,
                        wf_map_step steps[], size_t n)
{
    if (n == 0 || !is_tokens(&steps[0]) || steps[0].tokens.length || job->sequence_length)
        return;
    for (size_t i = 0; i < job->n_bags; i++)
        if (strcmp(job->bags[i].ids, field) == 0)
            return;
    steps[0].tokens.length = width;
}

size_t wf_job_data_steps(const wf_job_conf *job, const char *field,
                         wf_map_step steps[static WF_DATA_MAX_STEPS + 1])
{
    const wf_conf_field *map = map_of(job, field), *from = moved_from(job, field);
    size_t n = 0, k = 0;

    if (from && from->n_steps)
        fill_step(&from->steps[0], &steps[n++]);
    for (; map && k < map->n_steps && n <= WF_DATA_MAX_STEPS; k++)
        fill_step(&map->steps[k], &steps[n++]);
    give_length(job, field, width_of_input(job, field), steps, n);
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

/* The numbers of one record; 0: that is not known. */
static uint64_t width_of(const wf_compiled_feed *feed)
{
    uint64_t width = 1;

    for (uint32_t k = 1; k < feed->rank; k++)
        if (feed->axes[k].size <= 0 ||
            __builtin_mul_overflow(width, (uint64_t)feed->axes[k].size, &width))
            return 0;
    return feed->rank > 1 ? width : 0;
}

void wf_job_data_mark_bag(const wf_job_conf *job, uint64_t width, wf_field_spec *f)
{
    bool pairs = strcmp(job->format, "libsvm") == 0 && f->n_columns == 1 &&
                 (strcmp(f->columns[0], "indices") == 0 || strcmp(f->columns[0], "values") == 0);

    f->is_bag = pairs;
    for (size_t i = 0; i < job->n_bags; i++) {
        bool weighs = job->bags[i].weights && strcmp(job->bags[i].weights, f->name) == 0;

        f->is_bag |= weighs || strcmp(job->bags[i].ids, f->name) == 0;
        if (weighs)
            f->bag_ids = job->bags[i].ids;
    }
    if (f->is_bag && width == 0)
        width = width_of_input(job, f->name);
    f->bag_most = f->is_bag ? WF_MIN(width, (uint64_t)WF_DATA_MOST_OF_BAG + 1) : 0;
}

static void add_files(const wf_job_conf *job, const wf_conf_records *from, const wf_compiled *c,
                      wf_job_data *d)
{
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
        give_length(job, it->name, width_of(feed), steps, f->n_steps);
        wf_job_data_mark_bag(job, width_of(feed), f);
        if (d->spec.features == 0 && it->n_columns == 1 && strcmp(it->columns[0], "features") == 0)
            d->spec.features = width_of(feed);
    }
}

/* A field as the training data has it: only its files differ. */
static void name_training_files(const wf_job_conf *job, wf_field_spec *f)
{
    for (size_t i = 0; i < job->train.n; i++) {
        const wf_conf_field *from = &job->train.fields[i];

        if (strcmp(from->name, f->name) != 0)
            continue;
        f->path = from->path;
        f->more = from->more;
        f->n_more = from->n_more;
        f->columns = from->columns;
        f->n_columns = from->n_columns;
        f->is_row = from->is_row;
    }
}

bool wf_job_data_learns(const wf_field_spec *f)
{
    for (size_t i = 0; i < f->n_steps; i++)
        if (strcmp(f->steps[i].type, "standardise") == 0 ||
            strcmp(f->steps[i].type, "vocabulary") == 0 || is_tokens(&f->steps[i]))
            return true;
    return false;
}

/* What data sets of a job have in common. */
static wf_dataset_spec spec_of(const wf_job_conf *job, const wf_conf_records *from)
{
    bool parted = from == &job->train || from->is_held_out;

    return (wf_dataset_spec){.format = job->format,
                             .records = job->synthetic_records,
                             .memory = job->memory,
                             .seed = job->seed,
                             .header = job->header,
                             .delimiter = job->delimiter,
                             .skips_bad_lines = job->skips_bad_lines,
                             .features = job->features,
                             .zero_based = job->zero_based,
                             .separator = job->separator,
                             .cuts_bags = job->cuts_bags,
                             .labelled = job->labelled,
                             .sequence_length = job->sequence_length,
                             .sequence_stride = job->sequence_stride,
                             .held_out = parted ? job->validation_split : 0,
                             .is_held_out = from->is_held_out,
                             .is_random = from == &job->train,
                             .schema = job->schema,
                             .n_schema = job->n_schema,
                             .files = from->files,
                             .n_files = from->n_files};
}

/* The training records, without chance. */
static wf_dataset_spec trained_spec(const wf_job_conf *job, const wf_field_spec fields[], size_t n)
{
    wf_dataset_spec spec = spec_of(job, &job->train);

    spec.is_random = false;
    spec.fields = fields;
    spec.n_fields = n;
    return spec;
}

bool wf_job_data_reference(const wf_job_conf *job, const wf_field_spec *like, wf_field_spec *field,
                           wf_dataset_spec *out)
{
    *field = *like;
    name_training_files(job, field);
    wf_job_data_mark_bag(job, like->bag_most, field);
    *out = trained_spec(job, field, 1);
    return wf_job_data_learns(like);
}

/* Evaluation goes by the numbers and words of the training data. */
static void refer_to_training(const wf_job_conf *job, wf_job_data *d)
{
    bool wanted = strcmp(job->format, "images") == 0; /* whose classes are counted there */

    for (size_t i = 0; i < d->spec.n_fields; i++) {
        d->trained_fields[i] = d->fields[i];
        name_training_files(job, &d->trained_fields[i]);
        wanted |= wf_job_data_learns(&d->fields[i]);
    }
    d->trained = trained_spec(job, d->trained_fields, d->spec.n_fields);
    d->trained.features = d->spec.features;
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

/* Each feed has a field. */
static wf_status check_feeds(const wf_compiled *c, const wf_job_data *d, wf_err *err)
{
    for (size_t i = 0; i < c->n_feeds; i++) {
        bool found = false;

        for (size_t k = 0; !found && k < d->spec.n_fields; k++)
            found = strcmp(d->fields[k].name, c->feeds[i].name) == 0;
        if (!found)
            return wf_fail(err, WF_INVALID, "name it in data.train and data.eval",
                           "no data for \"%s\", which the model or the loss reads",
                           c->feeds[i].name);
    }
    return WF_OK;
}

wf_status wf_job_data_of(const wf_job_conf *job, const wf_conf_records *from, const wf_compiled *c,
                         wf_job_data *out, wf_err *err)
{
    *out = (wf_job_data){.spec = spec_of(job, from),
                         .batch = job->batch,
                         .shuffle = job->shuffle,
                         .grows = job->grows && from == &job->train,
                         .path = job->path,
                         .line = from->line ? from->line : job->data_line};
    out->spec.fields = out->fields;
    if (from->n > WF_DATA_MAX_FIELDS)
        return wf_fail(err, WF_USAGE, NULL, "%s:%d: %zu data fields, %d are allowed", job->path,
                       job->data_line, from->n, WF_DATA_MAX_FIELDS);
    if (job->synthetic_records)
        return add_inputs(c, out, err);
    add_files(job, from, c, out);
    WF_TRY(check_feeds(c, out, err));
    if (from == &job->eval)
        refer_to_training(job, out);
    return WF_OK;
}
