/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/untied.c - one parameter that became two: folding transposes a table that
 * is looked up as well as multiplied by (tied embeddings), and keeps both. */
#include "common/compile/exporter/exporter.h"
#include "common/onnx/onnx.h"

/* Whether b [n, m] holds a [m, n] transposed; both f32. */
static bool is_transposed(const wf_tensor *a, const wf_tensor *b)
{
    const float *x = wf_f32(a), *y = wf_f32(b);
    int64_t rows = a->dims[0], columns = a->dims[1];

    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            if (x[i * columns + k] != y[k * rows + i])
                return false;
    return true;
}

static bool is_matrix(const wf_value *v)
{
    return v->variable == WF_VAR_TRAINABLE && v->known && v->known->dtype == WF_F32 &&
           v->known->rank == 2 && wf_elems(v->known) > 1;
}

/* Tables that are looked up, as many as are compared: a file may hold any number. */
enum { MOST_TABLES = 64 };

static size_t find_tables(const wf_graph *g, const wf_value *tables[MOST_TABLES])
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes && n < MOST_TABLES; i++) {
        const wf_value *v = wf_node_is(g->nodes[i], WF_DOMAIN_ONNX, "Gather")
                                ? wf_exporter_variable(g->nodes[i], 0)
                                : NULL;

        if (v && is_matrix(v))
            tables[n++] = v;
    }
    return n;
}

wf_status wf_finding_untied(wf_unit *u, const wf_exporter *by, wf_err *err)
{
    const wf_value *tables[MOST_TABLES];
    size_t n = find_tables(u->graph, tables);

    for (size_t i = 0; n && i < u->graph->n_values; i++) {
        const wf_value *v = u->graph->values[i];

        if (!is_matrix(v) || !wf_onnx_made_up(v->name))
            continue;
        for (size_t k = 0; k < n; k++)
            if (tables[k] != v && tables[k]->known->dims[0] == v->known->dims[1] &&
                tables[k]->known->dims[1] == v->known->dims[0] &&
                is_transposed(tables[k]->known, v->known))
                return wf_unit_warn(u, err,
                                    "\"%.100s\" is a transposed copy of \"%.100s\": one "
                                    "parameter of the model is trained as two%s",
                                    v->name, tables[k]->name, wf_exporter_advice(u, by));
    }
    return WF_OK;
}
