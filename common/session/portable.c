/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/portable.c */
#include "common/session/portable.h"
#include "common/graph/emit.h"
#include "common/graph/table_rows.h"
#include "common/session/steps_first.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* For each id the number of its row; n for one without. */
static wf_value *encode(wf_emit *e, wf_value *ids, const wf_tensor *row_ids)
{
    static const int64_t any[] = {0};
    int64_t n = wf_elems(row_ids), *numbers = calloc((size_t)n + 1, sizeof *numbers);
    /* A LabelEncoder without keys is refused elsewhere: of a table without rows 0 is one, for the
     * row that all ids have. */
    size_t n_keys = n ? (size_t)n : 1;
    wf_value *out;

    if (!numbers) {
        e->rc = wf_fail_nomem(e->err, (size_t)n * sizeof *numbers);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        numbers[i] = i;
    const wf_attr attrs[] = {wf_attr_int("default_int64", n),
                             wf_attr_ints("keys_int64s", n_keys, n ? row_ids->data : any),
                             wf_attr_ints("values_int64s", n_keys, numbers)};
    out = wf_emit_op(e, "LabelEncoder", 1, &ids, 3, attrs);
    free(numbers);
    return out;
}

/* The TableRows that a job's model has. A file may have others: ids of rows that are computed, and
 * bags, which the compiler writes out in a model of its own (rules/bags.c). */
static bool is_table(const wf_node *n)
{
    return wf_is_table_rows(n) && !wf_node_int(n, "bags", 0) &&
           wf_value_is_constant(n->in[WF_TABLE_ROWS_ROW_IDS]);
}

static bool is_replaced(const wf_node *n)
{
    return is_table(n) || wf_is_batch_first(n);
}

static wf_status replace_table(wf_graph *g, const wf_node *n, wf_err *err)
{
    wf_emit e = wf_emit_begin(g, n->in[WF_TABLE_ROWS_TABLE]->name, err);
    wf_value *places = encode(&e, n->in[WF_TABLE_ROWS_IDS], n->in[WF_TABLE_ROWS_ROW_IDS]->known);

    WF_TRY(wf_emit_end(&e));
    wf_graph_replace_uses(g, n->out[WF_TABLE_ROWS_ROWS], n->in[WF_TABLE_ROWS_TABLE]);
    wf_graph_replace_uses(g, n->out[WF_TABLE_ROWS_PLACES], places);
    return WF_OK;
}

static size_t count(const wf_graph *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        n += is_replaced(g->nodes[i]);
    return n;
}

static wf_status replace_all(wf_graph *g, wf_err *err)
{
    size_t n = g->n_nodes;
    bool *keep;

    for (size_t i = 0; i < n; i++)
        if (is_replaced(g->nodes[i]))
            WF_TRY(is_table(g->nodes[i]) ? replace_table(g, g->nodes[i], err)
                                         : wf_steps_first(g, g->nodes[i], err));
    keep = calloc(g->n_nodes + 1, sizeof *keep);
    if (!keep)
        return wf_fail_nomem(err, g->n_nodes);
    for (size_t i = 0; i < g->n_nodes; i++)
        keep[i] = !is_replaced(g->nodes[i]);
    wf_graph_keep_nodes(g, keep);
    free(keep);
    WF_TRY(wf_graph_sort(g, err));
    return wf_infer(g, err);
}

wf_status wf_portable(const wf_graph *g, wf_graph **out, wf_err *err)
{
    wf_status rc;

    *out = NULL;
    if (count(g) == 0)
        return WF_OK;
    WF_TRY(wf_graph_copy(g, out, err));
    rc = replace_all(*out, err);
    if (rc != WF_OK)
        wf_graph_free(out);
    return rc;
}

void wf_portable_note(const wf_graph *g, char *note, size_t size)
{
    bool differs = false, zeros = true;

    for (size_t i = 0; i < g->n_nodes; i++) {
        wf_first_rows first;

        if (!is_table(g->nodes[i]) || wf_table_rows_first(g->nodes[i], &first, NULL) != WF_OK ||
            first.numbers.kind == WF_CONSTANT)
            continue;
        differs = true;
        zeros = zeros && first.numbers.centre == 0;
    }
    snprintf(note, size, "%s",
             !differs ? ""
             : zeros  ? "ids without a row get zeros in this file; in weft they have initial "
                        "values of their own"
                      : "ids without a row get the mean of initial values in this file; in weft "
                        "they have initial values of their own");
}
