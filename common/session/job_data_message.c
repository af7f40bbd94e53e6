/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data_message.c */
#include "common/session/job_data_message.h"

/* ---- put ---- */

static char *copy(wf_arena *a, const char *text)
{
    return text ? wf_arena_strdup(a, text) : (char *)protobuf_c_empty_string;
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
    *out = m;
    return m->type && m->text && (m->ints || !m->n_ints) ? WF_OK : wf_fail_nomem(err, sizeof *m);
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
    m->n_dims = f->rank;
    m->dims = wf_arena_memdup(a, f->dims, f->rank * sizeof f->dims[0]);
    m->steps = wf_arena_array(a, f->n_steps, sizeof(*m->steps));
    if (!m->name || !m->path || (m->n_dims && !m->dims) || !m->steps)
        return wf_fail_nomem(err, sizeof *m);
    for (; m->n_steps < f->n_steps; m->n_steps++)
        WF_TRY(put_step(&f->steps[m->n_steps], a, &m->steps[m->n_steps], err));
    *out = m;
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
    m->batch = d->batch;
    m->shuffle = d->shuffle;
    m->path = copy(a, d->path);
    m->line = (uint32_t)d->line;
    m->fields = wf_arena_array(a, d->spec.n_fields, sizeof(*m->fields));
    if (!m->format || !m->path || !m->fields)
        return wf_fail_nomem(err, sizeof *m);
    for (; m->n_fields < d->spec.n_fields; m->n_fields++)
        WF_TRY(put_field(&d->fields[m->n_fields], a, &m->fields[m->n_fields], err));
    *out = m;
    return WF_OK;
}

/* ---- get ---- */

static wf_status get_field(const Weft__DataField *m, wf_map_step steps[], wf_field_spec *out,
                           wf_err *err)
{
    if (m->n_dims > WF_MAX_RANK || m->n_steps > WF_DATA_MAX_STEPS + 1 || m->classes < 0 ||
        (m->dtype && wf_dtype_size((wf_dtype)m->dtype) == 0))
        return wf_fail(err, WF_PROTO, NULL, "data field \"%.64s\": %zu axes, %zu steps", m->name,
                       m->n_dims, m->n_steps);
    *out = (wf_field_spec){.name = m->name,
                           .path = m->path,
                           .want = (wf_dtype)m->dtype,
                           .rank = (uint32_t)m->n_dims,
                           .classes = m->classes,
                           .may_ignore = m->may_ignore,
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
                                 .text = m->steps[i]->text};
    return WF_OK;
}

wf_status wf_job_data_get(const Weft__JobData *m, uint64_t seed, wf_job_data *out, wf_err *err)
{
    if (m->n_fields > WF_DATA_MAX_FIELDS || m->batch == 0 || m->line > INT32_MAX)
        return wf_fail(err, WF_PROTO, NULL, "data of %zu fields in batches of %lu", m->n_fields,
                       (unsigned long)m->batch);
    *out = (wf_job_data){.spec = {.format = m->format,
                                  .records = m->records,
                                  .seed = seed,
                                  .fields = out->fields,
                                  .n_fields = m->n_fields},
                         .batch = m->batch,
                         .shuffle = m->shuffle,
                         .path = m->path,
                         .line = (int)m->line};
    for (size_t i = 0; i < m->n_fields; i++)
        WF_TRY(get_field(m->fields[i], out->steps[i], &out->fields[i], err));
    return WF_OK;
}
