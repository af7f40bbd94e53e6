/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction_near.c - which records of a prediction are near which hosts, for
 * whoever deals its splits: runs of records whose files are near the same ones. */
#include "common/session/prediction_near.h"
#include "common/data/match.h"

#include <stdlib.h>
#include <string.h>

enum { HOST_BYTES = 255, HOSTS = 64 /* of a run */ };

/* ---- found ---- */

/* Adds the hosts of a row that are not among the list yet. */
static void add_hosts(json_t *list, const char *const hosts[], size_t n)
{
    for (size_t i = 0; i < n && json_array_size(list) < HOSTS; i++) {
        const json_t *it;
        bool is_there = false;
        size_t k;

        json_array_foreach(list, k, it)
        {
            is_there |= strcmp(json_string_value(it), hosts[i]) == 0;
        }
        if (!is_there && strlen(hosts[i]) <= HOST_BYTES)
            json_array_append_new(list, json_string(hosts[i]));
    }
}

/* Those that the command names, and those that the job does. */
static json_t *hosts_of(const wf_prediction *p, const char *file)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->ask.n_hosts; i++)
        if (wf_data_matches(p->ask.hosts[i].match, file))
            add_hosts(list, p->ask.hosts[i].hosts, p->ask.hosts[i].n);
    for (size_t i = 0; p->job && i < p->job->n_hosts; i++)
        if (wf_data_matches(p->job->hosts[i].match, file))
            add_hosts(list, p->job->hosts[i].hosts, p->job->hosts[i].n);
    return list;
}

static bool is_of_a_file(const wf_prediction *p, const char *match)
{
    const char *file;
    uint64_t records;

    for (size_t i = 0; i < p->ask.n_inputs; i++)
        for (size_t k = 0;
             p->feeds[i].sequence && wf_sequence_part(p->feeds[i].sequence, k, &file, &records);
             k++)
            if (wf_data_matches(match, file))
                return true;
    return false;
}

wf_status wf_prediction_check_hosts(const wf_prediction *p, wf_err *err)
{
    for (size_t i = 0; i < p->ask.n_hosts; i++)
        if (!is_of_a_file(p, p->ask.hosts[i].match))
            return wf_fail(err, WF_USAGE, "write it as a file of --input",
                           "--hosts: no input is read from \"%.200s\"", p->ask.hosts[i].match);
    return WF_OK;
}

/* Takes `hosts`. Files that follow each other and are near the same hosts are one run. */
static void add_run(json_t *runs, uint64_t records, json_t *hosts)
{
    json_t *last = json_array_get(runs, json_array_size(runs) - 1);
    json_int_t before = json_integer_value(json_object_get(last, "records"));

    if (last && json_equal(json_object_get(last, "hosts"), hosts)) {
        json_object_set_new(last, "records", json_integer(before + (json_int_t)records));
        json_decref(hosts);
        return;
    }
    json_array_append_new(runs,
                          json_pack("{s:I, s:o}", "records", (json_int_t)records, "hosts", hosts));
}

/* The runs of an input's files; *any: some have hosts. */
static json_t *runs_of(const wf_prediction *p, const wf_sequence *s, bool *any)
{
    json_t *runs = json_array();
    const char *file;
    uint64_t records;

    for (size_t i = 0; wf_sequence_part(s, i, &file, &records); i++) {
        json_t *hosts = hosts_of(p, file);

        *any |= json_array_size(hosts) > 0;
        if (records > 0 && json_array_size(runs) < WF_PREDICTION_NEAR)
            add_run(runs, records, hosts);
        else
            json_decref(hosts);
    }
    return runs;
}

json_t *wf_prediction_near(const wf_prediction *p)
{
    for (size_t i = 0; i < p->ask.n_inputs; i++) {
        bool any = false;
        json_t *runs = p->feeds[i].sequence ? runs_of(p, p->feeds[i].sequence, &any) : NULL;

        if (any)
            return runs;
        json_decref(runs);
    }
    return NULL;
}

/* ---- read ---- */

static wf_status wrong(wf_err *err)
{
    return wf_fail(err, WF_INVALID, "let all programs be of one release of weft",
                   "a request for a prediction without a right \"near\"");
}

static wf_status take_run(const json_t *row, wf_arena *a, wf_prediction_run *out, wf_err *err)
{
    const json_t *records = json_object_get(row, "records"), *hosts = json_object_get(row, "hosts");
    const char **names;

    if (!json_is_integer(records) || json_integer_value(records) < 1 ||
        json_integer_value(records) > INT64_C(1) << 48 || !json_is_array(hosts) ||
        json_array_size(hosts) > HOSTS)
        return wrong(err);
    names = wf_arena_array(a, json_array_size(hosts) + 1, sizeof *names);
    if (!names)
        return wf_fail_nomem(err, json_array_size(hosts) * sizeof *names);
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const char *name = json_string_value(json_array_get(hosts, i));

        if (!name || !name[0] || strlen(name) > HOST_BYTES)
            return wrong(err);
        names[i] = wf_arena_strdup(a, name);
        if (!names[i])
            return wf_fail_nomem(err, HOST_BYTES);
    }
    *out =
        (wf_prediction_run){(uint64_t)json_integer_value(records), names, json_array_size(hosts)};
    return WF_OK;
}

wf_status wf_prediction_take_near(const json_t *list, wf_arena *a, wf_prediction_ask *out,
                                  wf_err *err)
{
    size_t n = json_array_size(list);
    wf_prediction_run *runs = wf_arena_array(a, n + 1, sizeof *runs);

    if (!list)
        return WF_OK;
    if (!json_is_array(list) || n > WF_PREDICTION_NEAR)
        return wrong(err);
    if (!runs)
        return wf_fail_nomem(err, n * sizeof *runs);
    for (size_t i = 0; i < n; i++)
        WF_TRY(take_run(json_array_get(list, i), a, &runs[i], err));
    out->near = runs;
    out->n_near = n;
    return WF_OK;
}
