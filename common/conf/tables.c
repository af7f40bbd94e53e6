/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/tables.c */
#include "common/conf/tables.h"
#include "common/base/cc.h"
#include "common/conf/conf.h"

#include <stddef.h>
#include <string.h>

static const char *const kinds[] = {"bounded", "unbounded", NULL};
static const char *const dtypes[] = {"float32", "bfloat16", "float16", "int8", NULL};
static const char *const full[] = {"evict", "disk", "fail", NULL};
static const char *const counts[] = {"exact", "bloom", NULL};
static const char *const leave[] = {"least_recently_used", "least_frequently_used", NULL};

const wf_key wf_table_keys[] = {
    {"match", WF_KEY_TEXT, .offset = offsetof(wf_conf_table, match), .required = true},
    {"rows", WF_KEY_ONLY, .offset = offsetof(wf_conf_table, rows), .known = kinds,
     .usual = "bounded"},
    {"dtype", WF_KEY_ONLY, .offset = offsetof(wf_conf_table, dtype), .known = dtypes,
     .usual = "float32"},
    {"cache_rows", WF_KEY_U64, .offset = offsetof(wf_conf_table, cache_rows), .least = 64,
     .most = UINT64_C(2000000000)},
    {"cache_staleness", WF_KEY_U32, .offset = offsetof(wf_conf_table, cache_staleness), .least = 1,
     .most = 1000000, .usual = "8"},
    {"admit_after", WF_KEY_U32, .offset = offsetof(wf_conf_table, admit_after), .least = 1,
     .most = 1000000, .usual = "1"},
    {"admit", WF_KEY_ONLY, .offset = offsetof(wf_conf_table, admit), .known = counts,
     .usual = "exact"},
    {"admit_bytes", WF_KEY_U64, .offset = offsetof(wf_conf_table, admit_bytes), .least = 65536,
     .most = UINT64_C(1) << 50, .usual = "67108864"},
    {"evict_after", WF_KEY_U32, .offset = offsetof(wf_conf_table, evict_after), .least = 1,
     .most = 2000000000},
    {"max_rows", WF_KEY_U64, .offset = offsetof(wf_conf_table, max_rows), .least = 64,
     .most = UINT64_C(2000000000)},
    {"max_bytes", WF_KEY_U64, .offset = offsetof(wf_conf_table, max_bytes), .least = 1,
     .most = UINT64_C(1) << 50},
    {"evict", WF_KEY_ONLY, .offset = offsetof(wf_conf_table, evict), .known = leave,
     .usual = "least_recently_used"},
    {"when_full", WF_KEY_ONLY, .offset = offsetof(wf_conf_table, when_full), .known = full,
     .usual = "evict"},
    {0},
};

/* A pattern by itself, or a map with the type of its values and the limits of an unbounded table.
 */
static wf_status read_table(wf_conf_reader *r, const wf_tree *node, wf_conf_table *t, wf_err *err)
{
    static const char *const limits[] = {"admit_after", "admit",     "admit_bytes", "evict_after",
                                         "max_rows",    "max_bytes", "evict",       "when_full"};
    static const char *const of_limits[] = {"evict", "when_full"};

    *t = (wf_conf_table){.rows = "bounded", .dtype = "float32", .line = node->line};
    if (node->kind == WF_TREE_TEXT)
        return wf_read_text(r, node, &t->match, err);
    WF_TRY(wf_read_map(r, node, "a table", wf_table_keys, t, err));
    for (size_t i = 0; strcmp(t->rows, "unbounded") != 0 && i < WF_COUNT(limits); i++)
        if (wf_tree_get(node, limits[i]))
            return wf_read_fail(r, node, err, WF_USAGE, "add rows: unbounded, or leave it out",
                                "\"%s\" is for tables with rows: unbounded", limits[i]);
    if (wf_tree_get(node, "cache_staleness") && t->cache_rows == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "add cache_rows, or leave it out",
                            "\"cache_staleness\" is for tables with cache_rows");
    for (size_t i = 0; t->max_rows == 0 && t->max_bytes == 0 && i < WF_COUNT(of_limits); i++)
        if (wf_tree_get(node, of_limits[i]))
            return wf_read_fail(r, node, err, WF_USAGE,
                                "add max_rows or max_bytes, or leave it out",
                                "\"%s\" is for tables with max_rows or max_bytes", of_limits[i]);
    if (strcmp(t->admit, "bloom") != 0 && wf_tree_get(node, "admit_bytes"))
        return wf_read_fail(r, node, err, WF_USAGE, "add admit: bloom, or leave it out",
                            "\"admit_bytes\" is for tables with admit: bloom");
    if (strcmp(t->admit, "bloom") == 0 && (t->admit_after < 2 || t->admit_after > 255))
        return wf_read_fail(r, node, err, WF_USAGE, "write admit_after: 2, or leave admit out",
                            "with admit: bloom \"admit_after\" is from 2 to 255, not %u",
                            t->admit_after);
    if (wf_tree_get(node, "evict") && strcmp(t->when_full, "evict") != 0)
        return wf_read_fail(r, node, err, WF_USAGE, "leave one of the two out",
                            "\"evict\" says which rows leave, and with when_full: %s none does",
                            t->when_full);
    return WF_OK;
}

wf_status wf_read_tables(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    size_t n = node->kind == WF_TREE_LIST ? node->n : 1;
    wf_conf_table *tables = wf_arena_array(r->arena, n, sizeof *tables);
    wf_job_conf *j = into;

    j->tables_line = node->line;
    if (!tables)
        return wf_fail_nomem(err, n * sizeof *tables);
    for (size_t i = 0; i < n; i++, t = t->next)
        WF_TRY(read_table(r, t, &tables[i], err));
    j->tables = tables;
    j->n_tables = n;
    return WF_OK;
}
