/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/presets.c - a row for each preset. */
#include "common/conf/presets.h"

#include <string.h>

typedef struct preset {
    const char *name;
    char delimiter;
    const wf_column_spec *schema; /* [n_schema]: all columns, in order */
    size_t n_schema;
    const wf_conf_field *fields; /* [n_fields], each with its columns and steps */
    size_t n_fields;
} preset;

/* ---- criteo: the display advertising challenge of 2014, and the terabyte of click logs ---- */

#define COUNT(n_)                                                                                  \
    {                                                                                              \
        .name = "I" #n_, .dtype = WF_F32                                                           \
    }
#define WORD(n_)                                                                                   \
    {                                                                                              \
        .name = "C" #n_, .dtype = WF_U8                                                            \
    }

static const wf_column_spec criteo_schema[] = {
    {.name = "label", .dtype = WF_I64},
    COUNT(1),
    COUNT(2),
    COUNT(3),
    COUNT(4),
    COUNT(5),
    COUNT(6),
    COUNT(7),
    COUNT(8),
    COUNT(9),
    COUNT(10),
    COUNT(11),
    COUNT(12),
    COUNT(13),
    WORD(1),
    WORD(2),
    WORD(3),
    WORD(4),
    WORD(5),
    WORD(6),
    WORD(7),
    WORD(8),
    WORD(9),
    WORD(10),
    WORD(11),
    WORD(12),
    WORD(13),
    WORD(14),
    WORD(15),
    WORD(16),
    WORD(17),
    WORD(18),
    WORD(19),
    WORD(20),
    WORD(21),
    WORD(22),
    WORD(23),
    WORD(24),
    WORD(25),
    WORD(26),
};
static const char *const criteo_label[] = {"label"};
static const char *const criteo_counts[] = {"I1", "I2", "I3",  "I4",  "I5",  "I6", "I7",
                                            "I8", "I9", "I10", "I11", "I12", "I13"};
static const char *const criteo_words[] = {
    "C1",  "C2",  "C3",  "C4",  "C5",  "C6",  "C7",  "C8",  "C9",  "C10", "C11", "C12", "C13",
    "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21", "C22", "C23", "C24", "C25", "C26"};

/* log(1 + max(n, 0)), a missing count as 0: a count of -1 or -2 is no count either. */
static const double zero[] = {0};
static const wf_conf_option fill_0[] = {{.name = "value", .kind = WF_CONF_NUMBER, .number = 0}};
static const wf_conf_option clip_0[] = {
    {.name = "bounds", .kind = WF_CONF_NUMBERS, .numbers = zero, .n = 1}};
static const wf_conf_item criteo_steps[] = {
    {.type = "fill", .options = fill_0, .n_options = WF_COUNT(fill_0)},
    {.type = "clip", .options = clip_0, .n_options = WF_COUNT(clip_0)},
    {.type = "log1p"},
};
static const wf_conf_field criteo_fields[] = {
    {.name = "numbers",
     .columns = criteo_counts,
     .n_columns = WF_COUNT(criteo_counts),
     .is_row = true,
     .steps = criteo_steps,
     .n_steps = WF_COUNT(criteo_steps)},
    {.name = "ids", .columns = criteo_words, .n_columns = WF_COUNT(criteo_words), .is_row = true},
    {.name = "y", .columns = criteo_label, .n_columns = 1},
};

static const preset presets[] = {
    {"criteo", '\t', criteo_schema, WF_COUNT(criteo_schema), criteo_fields,
     WF_COUNT(criteo_fields)},
};

/* ---- what a job takes of one ---- */

static wf_status find(wf_conf_reader *r, const wf_tree *node, const preset **out, wf_err *err)
{
    const char *names[WF_COUNT(presets)], *said = NULL;

    WF_TRY(wf_read_text(r, node, &said, err));
    for (size_t i = 0; i < WF_COUNT(presets); i++) {
        names[i] = presets[i].name;
        if (strcmp(names[i], said) == 0) {
            *out = &presets[i];
            return WF_OK;
        }
    }
    return wf_read_unknown(r, node, "preset of a schema", said, names, WF_COUNT(presets), err);
}

static bool has_field(const wf_conf_field fields[], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return true;
    return false;
}

/* The fields of the preset, and the steps of those that the job's map does not name. */
static wf_status take_fields(wf_conf_reader *r, const preset *p, int line, wf_job_conf *j,
                             wf_err *err)
{
    wf_conf_field *columns = wf_arena_memdup(r->arena, p->fields, p->n_fields * sizeof *columns);
    wf_conf_field *map = wf_arena_array(r->arena, j->n_map + p->n_fields, sizeof *map);
    size_t n = j->n_map;

    if (!columns || !map)
        return wf_fail_nomem(err, (j->n_map + p->n_fields) * sizeof *map);
    if (n)
        memcpy(map, j->map, n * sizeof *map);
    for (size_t i = 0; i < p->n_fields; i++) {
        columns[i].line = line;
        if (columns[i].n_steps && !has_field(j->map, j->n_map, columns[i].name))
            map[n++] = (wf_conf_field){.name = columns[i].name,
                                       .steps = columns[i].steps,
                                       .n_steps = columns[i].n_steps,
                                       .line = line};
    }
    j->columns = columns;
    j->n_columns = p->n_fields;
    j->map = map;
    j->n_map = n;
    return WF_OK;
}

wf_status wf_preset_take(wf_conf_reader *r, const wf_tree *data, wf_job_conf *j, wf_err *err)
{
    const wf_tree *node = wf_tree_get(data, "schema");
    const preset *p = NULL;

    if (!node || node->kind != WF_TREE_TEXT)
        return WF_OK;
    WF_TRY(find(r, node, &p, err));
    j->schema = p->schema;
    j->n_schema = p->n_schema;
    if (!wf_tree_get(data, "header"))
        j->header = false;
    if (!wf_tree_get(data, "delimiter"))
        j->delimiter = p->delimiter;
    return j->n_columns ? WF_OK : take_fields(r, p, node->line, j, err);
}
