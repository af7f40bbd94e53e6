/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/manifest_write.c - a manifest as JSON text. */
#include "common/ckpt/json.h"
#include "common/ckpt/manifest.h"
#include "common/ckpt/manifest_check.h"
#include "common/ckpt/manifest_learnt.h"
#include "common/ckpt/sum.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every maker below gives NULL when there is no memory or a text is not UTF-8; jansson's containers
 * refuse NULL, so that one check at the end finds any of them. */

static json_t *hex(uint64_t value)
{
    char text[20];

    snprintf(text, sizeof text, "%016" PRIx64, value);
    return json_string(text);
}

/* JSON has no NaN and no infinity: they become null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *whole(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : NULL;
}

static bool add(json_t *list, json_t *item)
{
    return json_array_append_new(list, item) == 0;
}

static json_t *checked(json_t *list, bool ok)
{
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *numbers(const wf_ckpt_number list[], size_t n)
{
    json_t *out = json_object();
    bool ok = out;

    for (size_t i = 0; ok && i < n; i++)
        ok = json_object_set_new(out, list[i].name, number(list[i].value)) == 0;
    return checked(out, ok);
}

static json_t *slices_of(const wf_ckpt_variable *v)
{
    json_t *out = json_array();
    bool ok = out;

    for (size_t i = 0; ok && i < v->n_slices; i++) {
        const wf_ckpt_slice *s = &v->slices[i];

        ok = add(out, json_pack("{s:o, s:o, s:I, s:o}", "offset", whole(s->offset), "count",
                                whole(s->count), "file", (json_int_t)s->file, "updates",
                                whole(s->updates)));
    }
    return checked(out, ok);
}

static json_t *variables_of(const wf_manifest *m)
{
    json_t *out = json_array();
    bool ok = out;

    for (size_t i = 0; ok && i < m->n_variables; i++) {
        const wf_ckpt_variable *v = &m->variables[i];
        json_t *shape = json_array(), *slots = json_array();

        for (uint32_t k = 0; ok && k < v->rank; k++)
            ok = add(shape, json_integer(v->dims[k]));
        for (uint32_t k = 0; ok && k < v->n_slots; k++)
            ok = add(slots, json_string(v->slots[k]));
        ok = add(out,
                 json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:s*}", "name", v->name, "dtype",
                           wf_dtype_name(v->dtype), "shape", shape, "kind", v->kind, "slots", slots,
                           "slices", slices_of(v), "rows", v->unbounded ? "unbounded" : NULL)) &&
             ok;
    }
    return checked(out, ok);
}

static json_t *files_of(const wf_manifest *m)
{
    json_t *out = json_array();
    bool ok = out;

    for (size_t i = 0; ok && i < m->n_files; i++)
        ok = add(out, json_pack("{s:s, s:o, s:s}", "name", m->files[i].name, "bytes",
                                whole(m->files[i].bytes), "xxh3", m->files[i].sum));
    return checked(out, ok);
}

static json_t *ids_of(const uint64_t list[], size_t n)
{
    char *text = malloc(n * WF_CKPT_ID_DIGITS + 1);
    json_t *out;

    if (!text)
        return NULL;
    text[0] = 0;
    for (size_t i = 0; i < n; i++)
        snprintf(text + i * WF_CKPT_ID_DIGITS, WF_CKPT_ID_DIGITS + 1, "%016" PRIx64, list[i]);
    out = json_string(text);
    free(text);
    return out;
}

static json_t *rounds_of(const wf_ckpt_rounds *r)
{
    json_t *files = json_array();
    bool ok = files;

    for (size_t i = 0; ok && i < r->n_files; i++)
        ok = add(files, json_pack("{s:s, s:o}", "path", r->files[i].path, "bytes",
                                  whole(r->files[i].bytes)));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "files", checked(files, ok), "earlier",
                     ids_of(r->earlier, r->n_earlier), "steps_before", whole(r->steps_before),
                     "records_before", whole(r->records_before), "digest", hex(r->digest));
}

static json_t *numbers_of(const uint64_t list[], size_t n)
{
    json_t *out = json_array();
    bool ok = out;

    for (size_t i = 0; ok && i < n; i++)
        ok = add(out, whole(list[i]));
    return checked(out, ok);
}

static json_t *ledger_of(const wf_ckpt_ledger *l)
{
    json_t *finished = json_array(), *open = json_array(), *out;
    bool ok = finished && open;

    for (size_t i = 0; ok && i < l->n_finished; i++)
        ok = add(finished,
                 json_pack("[o, o]", whole(l->finished[i].begin), whole(l->finished[i].end)));
    for (size_t i = 0; ok && i < l->n_open; i++)
        ok = add(open, json_pack("{s:o, s:o, s:o, s:o}", "split", whole(l->open[i].id), "begin",
                                 whole(l->open[i].begin), "next", whole(l->open[i].next), "end",
                                 whole(l->open[i].end)));
    finished = checked(finished, ok);
    open = checked(open, ok);
    out = json_pack("{s:I, s:o, s:o, s:b, s:o, s:o, s:o}", "epoch", (json_int_t)l->epoch, "records",
                    whole(l->records), "split_records", whole(l->split_records), "evaluated",
                    (int)l->evaluated, "next_cut", whole(l->next_cut), "finished", finished, "open",
                    open);
    if (out && l->n_callbacks &&
        json_object_set_new(out, "callbacks", numbers(l->callbacks, l->n_callbacks)) != 0)
        out = checked(out, false);
    if (out && l->n_file_ends &&
        json_object_set_new(out, "file_ends", numbers_of(l->file_ends, l->n_file_ends)) != 0)
        out = checked(out, false);
    if (out && l->rounds && json_object_set_new(out, "rounds", rounds_of(l->rounds)) != 0)
        out = checked(out, false);
    return out;
}

static json_t *clocks_of(const wf_manifest *m)
{
    json_t *out = json_array();
    bool ok = out;

    for (size_t i = 0; ok && i < m->n_clocks; i++)
        ok = add(out, json_pack("{s:I, s:o, s:o}", "worker", (json_int_t)m->clocks[i].worker,
                                "incarnation", hex(m->clocks[i].incarnation), "step",
                                whole(m->clocks[i].step)));
    return checked(out, ok);
}

static json_t *root_of(const wf_manifest *m)
{
    json_t *cut = json_pack("{s:I, s:I, s:o}", "generation", (json_int_t)m->cut.generation,
                            "number", (json_int_t)m->cut.number, "chief", hex(m->cut.chief));
    json_t *out = json_pack(
        "{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}",
        "format", WF_MANIFEST_FORMAT, "weft", m->weft, "job", m->job, "digest", m->digest,
        "global_step", whole(m->global_step), "cut", cut, "pause_ms", whole(m->pause_ms),
        "created_ms", (json_int_t)m->created_ms, "seed", hex(m->seed), "optimizer", m->rule,
        "options", numbers(m->options, m->n_options), "files", files_of(m), "variables",
        variables_of(m), "ledger", ledger_of(&m->ledger), "clocks", clocks_of(m), "metrics",
        numbers(m->metrics, m->n_metrics));

    if (m->n_learnt && json_object_set_new(out, "learnt", wf_manifest_learnt_of(m)) != 0)
        out = checked(out, false);
    return out;
}

wf_status wf_manifest_encode(const wf_manifest *m, wf_bytes *out, wf_err *err)
{
    char *text = NULL, sum[WF_SUM_TEXT];
    json_t *root = NULL;
    size_t n;
    wf_status rc;

    rc = wf_manifest_check(m, "manifest.json", WF_INVALID, err);
    if (rc != WF_OK)
        goto out;
    wf_json_begin();
    root = root_of(m);
    text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    if (!text || wf_json_ran_out()) {
        rc = wf_json_ran_out()
                 ? wf_fail_nomem(err, 0)
                 : wf_fail(err, WF_INVALID, NULL,
                           "manifest.json: a name is not UTF-8, or a number passes 2^63");
        goto out;
    }
    n = strlen(text) - 2; /* without the last "\n}" */
    wf_sum_of(text, n, sum);
    wf_bytes_add(out, text, n);
    wf_bytes_printf(out, ",\n \"sum\": \"%s\"\n}\n", sum);
    rc = wf_bytes_check(out, err);
out:
    free(text);
    json_decref(root);
    return rc;
}

int wf_cut_compare(wf_cut_id a, wf_cut_id b)
{
    if (a.generation != b.generation)
        return a.generation < b.generation ? -1 : 1;
    if (a.number != b.number)
        return a.number < b.number ? -1 : 1;
    return a.chief < b.chief ? -1 : a.chief > b.chief;
}

double wf_manifest_callback(const wf_manifest *m, const char *name, double otherwise)
{
    for (size_t i = 0; i < m->ledger.n_callbacks; i++)
        if (strcmp(m->ledger.callbacks[i].name, name) == 0)
            return m->ledger.callbacks[i].value;
    return otherwise;
}

uint64_t wf_manifest_best(const wf_manifest *m)
{
    double best = wf_manifest_callback(m, "best_step", 0);

    if (wf_manifest_callback(m, "best", 0) != 0)
        return m->global_step;
    return best >= 1 && best < 9e15 ? (uint64_t)best - 1 : UINT64_MAX;
}
