/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/history.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/curves.h"
#include "cmd/cli/json.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

static void print_csv(const wf_curves *c)
{
    for (size_t k = 0; k < c->n_columns; k++)
        wf_term_print(stdout, "%s%s", k ? "," : "", c->columns[k]);
    printf("\n");
    for (size_t i = 0; i < c->n_rows; i++) {
        for (size_t k = 0; k < c->n_columns; k++) {
            double v = wf_curves_at(c, i, k);

            if (isnan(v))
                printf("%s", k ? "," : "");
            else
                printf("%s%.9g", k ? "," : "", v);
        }
        printf("\n");
    }
}

static wf_status print_json(const wf_curves *c, wf_err *err)
{
    json_t *o = json_object(), *list = json_array();

    for (size_t i = 0; i < c->n_rows; i++) {
        json_t *row = json_object();

        for (size_t k = 0; k < c->n_columns; k++) {
            double v = wf_curves_at(c, i, k);
            json_t *number = !isfinite(v)           ? json_null()
                             : k < WF_CURVE_ELAPSED ? json_integer((json_int_t)v)
                                                    : json_real(v);

            json_object_set_new(row, c->columns[k], number);
        }
        json_array_append_new(list, row);
    }
    json_object_set_new(o, "run", json_string(c->run));
    json_object_set_new(o, "epochs", list);
    return wf_json_print(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII, err);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_arena *arena = NULL;
    bool csv = false, json = false;
    wf_curves c = {0};
    wf_words words;
    const wf_flag flags[] = {
        {"csv", 0, .set = &csv}, {"json", 0, .set = &json}, {"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    arena = wf_arena_new(0);
    rc = arena ? wf_curves_read(conf, words.word[0], arena, &c, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK && json)
        rc = print_json(&c, err);
    else if (rc == WF_OK && csv)
        print_csv(&c);
    else if (rc == WF_OK)
        rc = wf_curves_print(&c, SIZE_MAX, stdout, arena, err);
    wf_arena_free(&arena);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_history = {
    .name = "history",
    .help = "the metrics of each epoch of a run",
    .usage =
        "weft history JOB|JOB#N [--csv] [--json] [--cluster FILE]\n"
        "\n"
        "Prints loss and metrics of each epoch: training means, and evaluations with the prefix\n"
        "val_. An epoch that was trained again after a recovery is listed once. No cluster need "
        "be\n"
        "up.\n"
        "  --csv    for spreadsheets, with all digits\n"
        "  --json   for programs\n"
        "\n"
        "  weft history digits\n",
    .run = run,
};
