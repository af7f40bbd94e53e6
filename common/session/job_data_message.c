/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data_message.c */
#include "common/session/job_data_message.h"
#include "common/data/listing.h"

/* ---- put ---- */

static char *copy(wf_arena *a, const char *text)
{
    return text ? wf_arena_strdup(a, text) : (char *)protobuf_c_empty_string;
}

static bool copy_all(wf_arena *a, const char *const from[], size_t n, char ***out, size_t *count)
{
    *out = wf_arena_array(a, n, sizeof(**out));
    for (*count = 0; *out && *count < n; ++*count) {
        (*out)[*count] = copy(a, from[*count]);
        if (!(*out)[*count])
            return false;
    }
    return *out != NULL;
}

static wf_status put_step(const wf_map_step *s, wf_arena *a, Weft__MapStep **out, wf_err *err)
{
    Weft__MapStep *m = wf_arena_alloc(a, sizeof *m);

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    weft__map_step__init(m);
    m->type = copy(a, s->type);
    m->number = s->number;
    m->text = copy(a, s->text);
    m->n_ints = s->n_ints;
    m->ints = wf_arena_memdup(a, s->ints, s->n_ints * sizeof *s->ints);
    m->n_numbers = s->n_numbers;
    m->numbers = wf_arena_memdup(a, s->numbers, s->n_numbers * sizeof *s->numbers);
    m->split = s->tokens.split;
    m->lowers = s->tokens.lowers;
    m->strips = s->tokens.strips;
    m->length = s->tokens.length;
    m->bins = s->tokens.bins;
    *out = m;
    return copy_all(a, s->words, s->n_words, &m->words, &m->n_words) && m->type && m->text &&
                   (m->ints || !m->n_ints) && (m->numbers || !m->n_numbers)
               ? WF_OK
               : wf_fail_nomem(err, sizeof *m);
}

static wf_status put_field(const wf_field_spec *f, wf_arena *a, Weft__DataField **out, wf_err *err)
{
    Weft__DataField *m = wf_arena_alloc(a, sizeof *m);

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    weft__data_field__init(m);
    m->name = copy(a, f->name);
    m->path = copy(a, f->path);
    m->dtype = f->want;
    m->classes = f->classes;
    m->may_ignore = f->may_ignore;
    m->is_row = f->is_row;
    m->loss = copy(a, f->loss);
    m->is_share = f->is_share;
    m->is_bag = f->is_bag;
    m->bag_most = f->bag_most;
    m->bag_ids = copy(a, f->bag_ids);
    m->n_dims = f->rank;
    m->dims = wf_arena_memdup(a, f->dims, f->rank * sizeof f->dims[0]);
    m->steps = wf_arena_array(a, f->n_steps, sizeof(*m->steps));
    if (!m->name || !m->path || !m->loss || !m->bag_ids || (m->n_dims && !m->dims) || !m->steps ||
        !copy_all(a, f->columns, f->n_columns, &m->columns, &m->n_columns) ||
        !copy_all(a, f->more, f->n_more, &m->more_paths, &m->n_more_paths))
        return wf_fail_nomem(err, sizeof *m);
    for (; m->n_steps < f->n_steps; m->n_steps++)
        WF_TRY(put_step(&f->steps[m->n_steps], a, &m->steps[m->n_steps], err));
    *out = m;
    return WF_OK;
}

/* The files of the training data, where the numbers of these count. */
static wf_status put_trained(const wf_job_data *d, wf_arena *a, Weft__JobData *m, wf_err *err)
{
    m->has_trained = d->spec.reference != NULL;
    for (size_t i = 0; m->has_trained && i < m->n_fields; i++) {
        const wf_field_spec *f = &d->trained_fields[i];

        m->fields[i]->trained_path = copy(a, f->path);
        if (!m->fields[i]->trained_path ||
            !copy_all(a, f->more, f->n_more, &m->fields[i]->trained_more,
                      &m->fields[i]->n_trained_more))
            return wf_fail_nomem(err, sizeof *m);
    }
    if (m->has_trained &&
        !copy_all(a, d->trained.files, d->trained.n_files, &m->trained_files, &m->n_trained_files))
        return wf_fail_nomem(err, sizeof *m);
    return WF_OK;
}

static wf_status put_column(const wf_column_spec *c, wf_arena *a, Weft__DataColumn **out,
                            wf_err *err)
{
    Weft__DataColumn *m = wf_arena_alloc(a, sizeof *m);

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    weft__data_column__init(m);
    m->name = copy(a, c->name);
    m->dtype = c->dtype;
    if (!m->name || !copy_all(a, c->words, c->n_words, &m->words, &m->n_words))
        return wf_fail_nomem(err, sizeof *m);
    *out = m;
    return WF_OK;
}

static wf_status put_text(const wf_dataset_spec *spec, wf_arena *a, Weft__JobData *m, wf_err *err)
{
    m->header = spec->header;
    m->delimiter = (uint8_t)spec->delimiter;
    m->skips_bad_lines = spec->skips_bad_lines;
    m->features = spec->features;
    m->zero_based = spec->zero_based;
    m->separator = (uint8_t)spec->separator;
    m->cuts_bags = spec->cuts_bags;
    m->labelled = spec->labelled;
    m->sequence_length = spec->sequence_length;
    m->sequence_stride = spec->sequence_stride;
    m->schema = wf_arena_array(a, spec->n_schema, sizeof(*m->schema));
    if (!m->schema || !copy_all(a, spec->files, spec->n_files, &m->files, &m->n_files))
        return wf_fail_nomem(err, sizeof *m);
    for (; m->n_schema < spec->n_schema; m->n_schema++)
        WF_TRY(put_column(&spec->schema[m->n_schema], a, &m->schema[m->n_schema], err));
    return WF_OK;
}

wf_status wf_job_data_put(const wf_job_data *d, wf_arena *a, Weft__JobData **out, wf_err *err)
{
    Weft__JobData *m = wf_arena_alloc(a, sizeof *m);

    if (!m)
        return wf_fail_nomem(err, sizeof *m);
    weft__job_data__init(m);
    m->format = copy(a, d->spec.format);
    m->records = d->spec.records;
    m->held_out = d->spec.held_out;
    m->is_held_out = d->spec.is_held_out;
    m->is_random = d->spec.is_random;
    m->batch = d->batch;
    m->shuffle = d->shuffle;
    m->grows = d->grows;
    m->path = copy(a, d->path);
    m->line = (uint32_t)d->line;
    m->fields = wf_arena_array(a, d->spec.n_fields, sizeof(*m->fields));
    if (!m->format || !m->path || !m->fields)
        return wf_fail_nomem(err, sizeof *m);
    for (; m->n_fields < d->spec.n_fields; m->n_fields++)
        WF_TRY(put_field(&d->fields[m->n_fields], a, &m->fields[m->n_fields], err));
    WF_TRY(put_text(&d->spec, a, m, err));
    WF_TRY(put_trained(d, a, m, err));
    *out = m;
    return WF_OK;
}

/* ---- get ---- */

static wf_status get_field(const Weft__DataField *m, wf_map_step steps[], wf_field_spec *out,
                           wf_err *err)
{
    if (m->n_dims > WF_MAX_RANK || m->n_steps > WF_DATA_MAX_STEPS + 1 || m->classes < 0 ||
        m->bag_most > WF_DATA_MOST_OF_BAG || (m->dtype && !wf_dtype_computes((wf_dtype)m->dtype)))
        return wf_fail(err, WF_PROTO, NULL, "data field \"%.64s\": %zu axes, %zu steps", m->name,
                       m->n_dims, m->n_steps);
    *out = (wf_field_spec){.name = m->name,
                           .path = m->path,
                           .more = (const char *const *)m->more_paths,
                           .n_more = m->n_more_paths,
                           .want = (wf_dtype)m->dtype,
                           .rank = (uint32_t)m->n_dims,
                           .classes = m->classes,
                           .may_ignore = m->may_ignore,
                           .columns = (const char *const *)m->columns,
                           .n_columns = m->n_columns,
                           .is_row = m->is_row,
                           .loss = m->loss[0] ? m->loss : NULL,
                           .is_share = m->is_share,
                           .is_bag = m->is_bag,
                           .bag_most = m->bag_most,
                           .bag_ids = m->bag_ids[0] ? m->bag_ids : NULL,
                           .steps = steps,
                           .n_steps = m->n_steps};
    for (size_t i = 0; i < m->n_dims; i++) {
        if (m->dims[i] < 0)
            return wf_fail(err, WF_PROTO, NULL, "data field \"%.64s\" has a negative axis",
                           m->name);
        out->dims[i] = m->dims[i];
    }
    for (size_t i = 0; i < m->n_steps; i++)
        steps[i] = (wf_map_step){.type = m->steps[i]->type,
                                 .number = m->steps[i]->number,
                                 .ints = m->steps[i]->ints,
                                 .n_ints = m->steps[i]->n_ints,
                                 .text = m->steps[i]->text,
                                 .numbers = m->steps[i]->numbers,
                                 .n_numbers = m->steps[i]->n_numbers,
                                 .words = (const char *const *)m->steps[i]->words,
                                 .n_words = m->steps[i]->n_words,
                                 .tokens = {.split = (wf_split)m->steps[i]->split,
                                            .lowers = m->steps[i]->lowers,
                                            .strips = m->steps[i]->strips,
                                            .length = m->steps[i]->length,
                                            .bins = m->steps[i]->bins}};
    return WF_OK;
}

static wf_status get_text(const Weft__JobData *m, wf_arena *a, wf_dataset_spec *out, wf_err *err)
{
    wf_column_spec *schema = wf_arena_array(a, m->n_schema, sizeof *schema);

    if (!schema)
        return wf_fail_nomem(err, m->n_schema * sizeof *schema);
    for (size_t i = 0; i < m->n_schema; i++) {
        const Weft__DataColumn *c = m->schema[i];

        if (c->dtype && !wf_dtype_computes((wf_dtype)c->dtype))
            return wf_fail(err, WF_PROTO, NULL, "data column \"%.64s\" has the dtype %u", c->name,
                           c->dtype);
        schema[i] = (wf_column_spec){.name = c->name,
                                     .dtype = (wf_dtype)c->dtype,
                                     .words = c->n_words ? (const char *const *)c->words : NULL,
                                     .n_words = c->n_words};
    }
    out->schema = schema;
    out->n_schema = m->n_schema;
    out->files = (const char *const *)m->files;
    out->n_files = m->n_files;
    out->header = m->header;
    out->delimiter = (char)m->delimiter;
    out->skips_bad_lines = m->skips_bad_lines;
    out->features = m->features;
    out->zero_based = m->zero_based;
    out->separator = (char)m->separator;
    out->cuts_bags = m->cuts_bags;
    out->labelled = m->labelled;
    out->sequence_length = m->sequence_length;
    out->sequence_stride = m->sequence_stride;
    return WF_OK;
}

static void get_trained(const Weft__JobData *m, wf_job_data *d)
{
    d->trained = d->spec;
    d->trained.fields = d->trained_fields;
    d->trained.files = (const char *const *)m->trained_files;
    d->trained.n_files = m->n_trained_files;
    d->trained.is_held_out = false;
    for (size_t i = 0; i < m->n_fields; i++) {
        d->trained_fields[i] = d->fields[i];
        d->trained_fields[i].path = m->fields[i]->trained_path;
        d->trained_fields[i].more = (const char *const *)m->fields[i]->trained_more;
        d->trained_fields[i].n_more = m->fields[i]->n_trained_more;
    }
    d->spec.reference = &d->trained;
}

wf_status wf_job_data_get(const Weft__JobData *m, uint64_t seed, wf_arena *a, wf_job_data *out,
                          wf_err *err)
{
    if (m->n_fields > WF_DATA_MAX_FIELDS || m->batch == 0 || m->line > INT32_MAX ||
        m->delimiter > UINT8_MAX || m->separator > UINT8_MAX ||
        !(m->held_out >= 0 && m->held_out < 1))
        return wf_fail(err, WF_PROTO, NULL, "data of %zu fields in batches of %lu", m->n_fields,
                       (unsigned long)m->batch);
    *out = (wf_job_data){.spec = {.format = m->format,
                                  .records = m->records,
                                  .held_out = m->held_out,
                                  .is_held_out = m->is_held_out,
                                  .is_random = m->is_random,
                                  .seed = seed,
                                  .fields = out->fields,
                                  .n_fields = m->n_fields},
                         .batch = m->batch,
                         .shuffle = m->shuffle,
                         .grows = m->grows,
                         .path = m->path,
                         .line = (int)m->line};
    WF_TRY(get_text(m, a, &out->spec, err));
    for (size_t i = 0; i < m->n_fields; i++)
        WF_TRY(get_field(m->fields[i], out->steps[i], &out->fields[i], err));
    if (m->has_trained)
        get_trained(m, out);
    return WF_OK;
}

wf_status wf_job_data_take_round(wf_job_data *d, const Weft__Round *round, wf_arena *a, wf_err *err)
{
    const char **paths = wf_arena_array(a, round->n_files, sizeof *paths);

    if (!d->grows || round->n_files == 0)
        return wf_fail(err, WF_PROTO, NULL, "a round of %zu files, for data that %s",
                       round->n_files, d->grows ? "grows" : "does not grow");
    if (!paths)
        return wf_fail_nomem(err, round->n_files * sizeof *paths);
    for (size_t i = 0; i < round->n_files; i++) {
        paths[i] = round->files[i]->path;
        WF_TRY(wf_data_check_listed(paths[i], round->files[i]->bytes, err));
    }
    return wf_job_data_take_files(d, paths, round->n_files, a, err);
}
