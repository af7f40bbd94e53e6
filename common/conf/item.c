/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/item.c */
#include "common/conf/item.h"
#include "common/base/nearest.h"
#include "common/base/synonyms.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_OPTIONS = 32,
    MOST_INTS = 64,
    MOST_NUMBERS = 4096,
    MOST_ROWS = 128,
    MOST_FREE = 64 /* numbers of a free item */
};

/* Whether a job file has several of them, in a list. */
static bool is_listed(const char *sort)
{
    return strcmp(sort, "optimizer") != 0 && strcmp(sort, "loss") != 0;
}

/* `{name: adam, learning_rate: 0.1}` is answered with `{adam: {learning_rate: 0.1}}`. */
static wf_status name_is_a_key(wf_conf_reader *r, const wf_tree *node, const char *sort,
                               wf_err *err)
{
    const wf_tree *name = wf_tree_get(node, "name"), *option = node->first;
    char hint[WF_NEAREST_HINT];

    while (option && (option == name || option->kind != WF_TREE_TEXT))
        option = option->next;
    if (!option)
        snprintf(hint, sizeof hint, "write it as %s: %.64s", sort, name->text);
    else
        snprintf(hint, sizeof hint, "write it as {%.64s: {%.48s: %.48s}}", name->text,
                 option->key->text, option->text);
    return wf_read_fail(r, node, err, WF_USAGE, hint,
                        "the name of the %s stands before its options, and not under \"name\"",
                        sort);
}

/* Splits `name`, `name: value` into the word and what follows (NULL: nothing). */
static wf_status split(wf_conf_reader *r, const wf_tree *node, const char *sort, const char **type,
                       const wf_tree **value, wf_err *err)
{
    const wf_tree *name;

    if (node->kind == WF_TREE_TEXT) {
        *value = NULL;
        return wf_read_text(r, node, type, err);
    }
    name = wf_tree_get(node, "name");
    if (name && name->kind == WF_TREE_TEXT)
        return name_is_a_key(r, node, sort, err);
    if (node->kind != WF_TREE_MAP || node->n != 1)
        return wf_read_fail(r, node, err, WF_USAGE,
                            is_listed(sort) ? "put a dash before each, and options in braces"
                                            : "put its options in braces",
                            "each %s is one name with its options, like `name: {option: value}`",
                            sort);
    *type = node->first->key->text;
    *value = node->first;
    return WF_OK;
}

/* A word from elsewhere finds a row that is not built, so that it is answered with that. */
static const wf_item_row *find_row(const wf_item_row rows[], const char *type)
{
    const char *meaning = wf_synonym(type, 0);

    for (; rows->type; rows++)
        if (strcmp(rows->type, type) == 0 ||
            (!rows->options && meaning && strcmp(rows->type, meaning) == 0))
            return rows;
    return NULL;
}

static wf_status unknown_type(wf_conf_reader *r, const wf_tree *node, const char *sort,
                              const char *type, const wf_item_row rows[], wf_err *err)
{
    const char *names[MOST_ROWS];
    size_t n = 0;

    for (; rows->type && n < WF_COUNT(names); rows++)
        if (rows->options)
            names[n++] = rows->type;
    return wf_read_unknown(r, node, sort, type, names, n, err);
}

/* Numbers of one, of a list, or of lists in it. */
static size_t count_ints(const wf_tree *node, bool pairs)
{
    size_t n = 0;

    if (node->kind != WF_TREE_LIST)
        return 1;
    for (const wf_tree *t = node->first; pairs && t; t = t->next)
        n += t->kind == WF_TREE_LIST ? t->n : 1;
    return pairs ? n : node->n;
}

static wf_status read_ints(wf_conf_reader *r, const wf_tree *node, const wf_option_row *row,
                           wf_conf_option *out, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    size_t count = node->kind == WF_TREE_LIST ? node->n : 1, at = 0;
    int64_t *ints;

    out->n = count_ints(node, row->pairs);
    if (out->n > MOST_INTS)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"%s\" has %zu numbers; %d may be",
                            row->name, out->n, MOST_INTS);
    ints = wf_arena_array(r->arena, out->n, sizeof *ints);
    if (!ints)
        return wf_fail_nomem(err, out->n * sizeof *ints);
    for (size_t i = 0; i < count; i++, t = t->next) {
        bool list = row->pairs && t->kind == WF_TREE_LIST;
        const wf_tree *one = list ? t->first : t;

        for (size_t k = list ? t->n : 1; k; k--, one = one->next)
            WF_TRY(wf_read_i64(r, one, (int64_t)row->least, (int64_t)row->most, &ints[at++], err));
    }
    out->ints = ints;
    return WF_OK;
}

/* Numbers of which each is above the one before. */
static wf_status read_numbers(wf_conf_reader *r, const wf_tree *node, const wf_option_row *row,
                              wf_conf_option *out, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    size_t n = node->kind == WF_TREE_LIST ? node->n : 1;
    double *numbers = n <= MOST_NUMBERS ? wf_arena_array(r->arena, n, sizeof *numbers) : NULL;

    if (n == 0 || n > MOST_NUMBERS)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"%s\" has %zu numbers; 1 to %d may be",
                            row->name, n, MOST_NUMBERS);
    if (!numbers)
        return wf_fail_nomem(err, n * sizeof *numbers);
    for (size_t i = 0; i < n; i++, t = t->next) {
        WF_TRY(wf_read_number(r, t, &numbers[i], err));
        if (!(numbers[i] >= row->least && numbers[i] <= row->most))
            return wf_read_fail(r, t, err, WF_USAGE, NULL, "\"%s\" must be from %g to %g, not %g",
                                row->name, row->least, row->most, numbers[i]);
        if (i && numbers[i] <= numbers[i - 1])
            return wf_read_fail(r, t, err, WF_USAGE, "write them in ascending order",
                                "\"%s\" has %g behind %g", row->name, numbers[i], numbers[i - 1]);
    }
    out->numbers = numbers;
    out->n = n;
    return WF_OK;
}

static wf_status check_choice(wf_conf_reader *r, const wf_tree *node, const wf_option_row *row,
                              const char *text, wf_err *err)
{
    size_t n = 0;

    if (!row->choice)
        return WF_OK;
    for (; row->choice[n]; n++)
        if (strcmp(row->choice[n], text) == 0)
            return WF_OK;
    return wf_read_unknown(r, node, row->name, text, row->choice, n, err);
}

/* `glorot_uniform` or `{random_normal: {stddev: 0.01}}`. */
static wf_status read_nested(wf_conf_reader *r, const wf_tree *node, const wf_option_row *row,
                             wf_conf_option *out, wf_err *err)
{
    wf_conf_item *item = wf_arena_alloc(r->arena, sizeof *item);
    const char *sort = strrchr(row->name, '_');

    if (!item)
        return wf_fail_nomem(err, sizeof *item);
    WF_TRY(wf_read_item(r, node, sort ? sort + 1 : row->name, row->items, item, err));
    out->item = item;
    out->text = item->type;
    return WF_OK;
}

static wf_status read_option(wf_conf_reader *r, const wf_tree *node, const wf_option_row *row,
                             wf_conf_option *out, wf_err *err)
{
    bool yes;

    *out = (wf_conf_option){.name = row->name, .kind = row->kind, .line = node->line};
    switch (row->kind) {
    case WF_CONF_INT:
        WF_TRY(wf_read_i64(r, node, (int64_t)row->least, (int64_t)row->most, &out->i, err));
        out->number = (double)out->i;
        return WF_OK;
    case WF_CONF_NUMBER:
        WF_TRY(wf_read_number(r, node, &out->number, err));
        if (out->number < row->least || out->number > row->most)
            return wf_read_fail(r, node, err, WF_USAGE, NULL,
                                "\"%s\" must be from %g to %g, not %g", row->name, row->least,
                                row->most, out->number);
        return WF_OK;
    case WF_CONF_BOOL:
        WF_TRY(wf_read_bool(r, node, &yes, err));
        out->i = yes;
        out->number = yes;
        return WF_OK;
    case WF_CONF_TEXT:
        WF_TRY(wf_read_text(r, node, &out->text, err));
        return check_choice(r, node, row, out->text, err);
    case WF_CONF_WORDS:
        return wf_read_words(r, node, &out->words, &out->n, err);
    case WF_CONF_ITEM:
        return read_nested(r, node, row, out, err);
    case WF_CONF_INT_OR_WORD:
        out->kind =
            wf_read_number(r, node, &out->number, NULL) == WF_OK ? WF_CONF_INT : WF_CONF_TEXT;
        if (out->kind == WF_CONF_TEXT) {
            WF_TRY(wf_read_text(r, node, &out->text, err));
            return check_choice(r, node, row, out->text, err);
        }
        WF_TRY(wf_read_i64(r, node, (int64_t)row->least, (int64_t)row->most, &out->i, err));
        out->number = (double)out->i;
        return WF_OK;
    case WF_CONF_INT_OR_PATH:
        out->kind =
            wf_read_number(r, node, &out->number, NULL) == WF_OK ? WF_CONF_INT : WF_CONF_TEXT;
        if (out->kind == WF_CONF_TEXT)
            return wf_read_path(r, node, &out->text, err);
        WF_TRY(wf_read_i64(r, node, (int64_t)row->least, (int64_t)row->most, &out->i, err));
        out->number = (double)out->i;
        return WF_OK;
    case WF_CONF_PATH:
        out->kind = WF_CONF_TEXT;
        return wf_read_path(r, node, &out->text, err);
    case WF_CONF_NUMBERS:
        return read_numbers(r, node, row, out, err);
    case WF_CONF_INTS:
        break;
    }
    return read_ints(r, node, row, out, err);
}

static const wf_option_row *find_option(const wf_option_row rows[], const char *name)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

static wf_status unknown_option(wf_conf_reader *r, const wf_tree *node, const wf_item_row *item,
                                wf_err *err)
{
    const char *names[MOST_OPTIONS];
    char sort[64];
    size_t n = 0;

    for (; item->options[n].name && n < WF_COUNT(names); n++)
        names[n] = item->options[n].name;
    snprintf(sort, sizeof sort, "option of %s", item->type);
    return wf_read_unknown(r, node->key, sort, node->key->text, names, n, err);
}

static wf_status read_options(wf_conf_reader *r, const wf_tree *map, const wf_item_row *row,
                              wf_conf_item *out, wf_err *err)
{
    wf_conf_option *options = wf_arena_array(r->arena, map->n, sizeof *options);

    if (!options)
        return wf_fail_nomem(err, map->n * sizeof *options);
    for (const wf_tree *t = map->first; t; t = t->next) {
        const wf_option_row *option = find_option(row->options, t->key->text);

        if (!option)
            return unknown_option(r, t, row, err);
        WF_TRY(read_option(r, t, option, &options[out->n_options++], err));
    }
    out->options = options;
    return WF_OK;
}

/* Options that every layer has are no layer's main one. */
static bool is_common(const wf_option_row *row)
{
    return !row->name || !strcmp(row->name, "name") || !strcmp(row->name, "inputs") ||
           !strcmp(row->name, "device");
}

static wf_status read_short(wf_conf_reader *r, const wf_tree *value, const wf_item_row *row,
                            wf_conf_item *out, wf_err *err)
{
    const wf_option_row *main = row->options;
    wf_conf_option *option;

    while (main->name && !main->required)
        main++;
    if (!main->name && !is_common(row->options))
        main = row->options;
    if (!main->name)
        return wf_read_fail(r, value, err, WF_USAGE, "leave it out", "\"%s\" takes no value",
                            row->type);
    option = wf_arena_alloc(r->arena, sizeof *option);
    if (!option)
        return wf_fail_nomem(err, sizeof *option);
    out->options = option;
    out->n_options = 1;
    return read_option(r, value, main, option, err);
}

wf_status wf_read_item(wf_conf_reader *r, const wf_tree *node, const char *sort,
                       const wf_item_row rows[], wf_conf_item *out, wf_err *err)
{
    const wf_item_row *row;
    const wf_tree *value = NULL;

    *out = (wf_conf_item){.line = node->line};
    WF_TRY(split(r, node, sort, &out->type, &value, err));
    row = find_row(rows, out->type);
    if (!row)
        return unknown_type(r, node, sort, out->type, rows, err);
    if (!row->options)
        return wf_read_fail(r, node, err, WF_UNSUPPORTED, "leave it out",
                            "%s \"%s\" is not built yet", sort, row->type);
    if (value && value->kind == WF_TREE_MAP)
        WF_TRY(read_options(r, value, row, out, err));
    else if (value && !(value->kind == WF_TREE_TEXT && value->plain && !value->text[0]))
        WF_TRY(read_short(r, value, row, out, err));
    for (const wf_option_row *o = row->options; o->name; o++)
        if (o->required && !wf_conf_find(out, o->name))
            return wf_read_fail(r, node, err, WF_USAGE, NULL, "%s \"%s\" wants \"%s\"", sort,
                                row->type, o->name);
    return WF_OK;
}

wf_status wf_read_items(wf_conf_reader *r, const wf_tree *node, const char *sort,
                        const wf_item_row rows[], const wf_conf_item **out, size_t *n, wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST ? node->first : node;
    size_t count = node->kind == WF_TREE_LIST ? node->n : 1;
    wf_conf_item *items = wf_arena_array(r->arena, count, sizeof *items);

    if (!items)
        return wf_fail_nomem(err, count * sizeof *items);
    for (size_t i = 0; i < count; i++, t = t->next)
        WF_TRY(wf_read_item(r, t, sort, rows, &items[i], err));
    *out = items;
    *n = count;
    return WF_OK;
}

/* One number of a free item, or a map or list of them: those get names like
 * "learning_rate.cosine_decay.alpha" and "values.0". */
static wf_status read_free_option(wf_conf_reader *r, const wf_tree *node, const char *name,
                                  int depth, wf_conf_option out[], size_t *n, wf_err *err)
{
    wf_conf_option *o = &out[*n];
    int at = 0;

    if (*n == MOST_FREE || depth > 3)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"%.64s\" has too many numbers", name);
    if (node->kind == WF_TREE_MAP || node->kind == WF_TREE_LIST) {
        for (const wf_tree *t = node->first; t; t = t->next, at++) {
            const char *part = node->kind == WF_TREE_MAP
                                   ? wf_arena_printf(r->arena, "%s.%.64s", name, t->key->text)
                                   : wf_arena_printf(r->arena, "%s.%d", name, at);

            if (!part)
                return wf_fail_nomem(err, 64);
            WF_TRY(read_free_option(r, t, part, depth + 1, out, n, err));
        }
        return WF_OK;
    }
    *o = (wf_conf_option){.name = name, .kind = WF_CONF_NUMBER, .line = node->line};
    ++*n;
    if (node->kind == WF_TREE_TEXT && node->plain &&
        (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)) {
        o->number = node->text[0] == 't';
        return WF_OK;
    }
    return wf_read_number(r, node, &o->number, err);
}

wf_status wf_read_free_item(wf_conf_reader *r, const wf_tree *node, const char *sort,
                            wf_conf_item *out, wf_err *err)
{
    wf_conf_option *options;
    const wf_tree *value = NULL;

    *out = (wf_conf_item){.line = node->line};
    WF_TRY(split(r, node, sort, &out->type, &value, err));
    if (!value || (value->kind == WF_TREE_TEXT && !value->text[0]))
        return WF_OK;
    if (value->kind != WF_TREE_MAP)
        return wf_read_fail(r, value, err, WF_USAGE, "write it as {learning_rate: 0.001}",
                            "the options of %s \"%.64s\" are a map of names and numbers", sort,
                            out->type);
    options = wf_arena_array(r->arena, MOST_FREE, sizeof *options);
    if (!options)
        return wf_fail_nomem(err, MOST_FREE * sizeof *options);
    for (const wf_tree *t = value->first; t; t = t->next)
        WF_TRY(read_free_option(r, t, t->key->text, 0, options, &out->n_options, err));
    out->options = options;
    return WF_OK;
}

static wf_status read_worded_option(wf_conf_reader *r, const wf_tree *node, wf_conf_option *out,
                                    wf_err *err)
{
    const wf_tree *t = node->kind == WF_TREE_LIST && node->n == 1 ? node->first : node;

    *out = (wf_conf_option){.name = node->key->text, .kind = WF_CONF_TEXT, .line = node->line};
    if (t->kind != WF_TREE_TEXT)
        return wf_read_fail(r, node, err, WF_USAGE, "give it one value",
                            "the option \"%.64s\" must be a number or a word", out->name);
    WF_TRY(wf_read_text(r, t, &out->text, err));
    if (wf_read_number(r, t, &out->number, NULL) == WF_OK) {
        out->kind = WF_CONF_NUMBER;
    } else if (t->plain && (strcmp(t->text, "true") == 0 || strcmp(t->text, "false") == 0)) {
        out->kind = WF_CONF_BOOL;
        out->i = t->text[0] == 't';
        out->number = (double)out->i;
    }
    return WF_OK;
}

wf_status wf_read_worded_item(wf_conf_reader *r, const wf_tree *node, const char *sort,
                              wf_conf_item *out, wf_err *err)
{
    wf_conf_option *options;
    const wf_tree *value = NULL;

    *out = (wf_conf_item){.line = node->line};
    WF_TRY(split(r, node, sort, &out->type, &value, err));
    if (!value || (value->kind == WF_TREE_TEXT && !value->text[0]))
        return WF_OK;
    if (value->kind != WF_TREE_MAP || value->n > MOST_OPTIONS)
        return wf_read_fail(r, value, err, WF_USAGE, "write it as {option: value}",
                            "the options of %s \"%.64s\" are a map of names and values", sort,
                            out->type);
    options = wf_arena_array(r->arena, value->n, sizeof *options);
    if (!options)
        return wf_fail_nomem(err, value->n * sizeof *options);
    for (const wf_tree *t = value->first; t; t = t->next)
        WF_TRY(read_worded_option(r, t, &options[out->n_options++], err));
    out->options = options;
    return WF_OK;
}

/* "FILE:LINE: " for messages, or nothing. */
static const char *place_of(const char *file, int line, char *text, size_t size)
{
    text[0] = '\0';
    if (file)
        snprintf(text, size, "%.200s:%d: ", file, line);
    return text;
}

static bool is_choice(const wf_option_row *row, const char *text)
{
    for (size_t i = 0; row->choice && row->choice[i]; i++)
        if (strcmp(row->choice[i], text) == 0)
            return true;
    return !row->choice;
}

/* What an option may be, in words. */
static const char *wanted(const wf_option_row *row, char *text, size_t size)
{
    size_t at = 0;

    snprintf(text, size, row->kind == WF_CONF_BOOL ? "true or false" : "a word");
    if (row->kind == WF_CONF_INT || row->kind == WF_CONF_NUMBER)
        snprintf(text, size, "a %s from %g to %g",
                 row->kind == WF_CONF_INT ? "whole number" : "number", row->least, row->most);
    for (size_t i = 0; row->choice && row->choice[i] && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " or " : "", row->choice[i]);
    return text;
}

static bool option_fits(const wf_option_row *row, const wf_conf_option *o)
{
    bool in_range = o->number >= row->least && o->number <= row->most;

    switch (row->kind) {
    case WF_CONF_INT:
        return o->kind == WF_CONF_NUMBER && in_range && o->number == (double)(int64_t)o->number;
    case WF_CONF_NUMBER:
        return o->kind == WF_CONF_NUMBER && in_range;
    case WF_CONF_BOOL:
        return o->kind == WF_CONF_BOOL;
    case WF_CONF_TEXT:
        return o->text && is_choice(row, o->text);
    case WF_CONF_INTS:
    case WF_CONF_NUMBERS:
    case WF_CONF_WORDS:
    case WF_CONF_INT_OR_WORD:
    case WF_CONF_INT_OR_PATH:
    case WF_CONF_PATH:
    case WF_CONF_ITEM:
        break;
    }
    return false;
}

static wf_status no_such_option(const wf_conf_item *item, const wf_conf_option *o, const char *sort,
                                const wf_option_row *rows, const char *at, wf_err *err)
{
    const char *names[MOST_OPTIONS];
    char hint[WF_NEAREST_HINT];
    size_t n = 0;

    for (; rows && rows[n].name && n < WF_COUNT(names); n++)
        names[n] = rows[n].name;
    return wf_fail(err, WF_USAGE,
                   n ? wf_nearest_hint(o->name, names, n, NULL, hint) : "leave it out",
                   "%s%s \"%.64s\" has no option \"%.64s\"", at, sort, item->type, o->name);
}

wf_status wf_conf_check_item(const wf_conf_item *item, const char *sort, const wf_option_row *rows,
                             const char *file, wf_err *err)
{
    char at[256], want[128];

    for (size_t i = 0; i < item->n_options; i++) {
        const wf_conf_option *o = &item->options[i];
        const wf_option_row *row = rows ? find_option(rows, o->name) : NULL;

        place_of(file, o->line, at, sizeof at);
        if (!row)
            return no_such_option(item, o, sort, rows, at, err);
        if (!option_fits(row, o))
            return wf_fail(err, WF_USAGE, NULL, "%s\"%s\" of %s \"%.64s\" must be %s, not %.64s",
                           at, o->name, sort, item->type, wanted(row, want, sizeof want), o->text);
    }
    for (; rows && rows->name; rows++)
        if (rows->required && !wf_conf_find(item, rows->name))
            return wf_fail(err, WF_USAGE, NULL, "%s%s \"%.64s\" wants \"%s\"",
                           place_of(file, item->line, at, sizeof at), sort, item->type, rows->name);
    return WF_OK;
}

const wf_conf_option *wf_conf_find(const wf_conf_item *item, const char *name)
{
    for (size_t i = 0; i < item->n_options; i++)
        if (strcmp(item->options[i].name, name) == 0)
            return &item->options[i];
    return NULL;
}

int64_t wf_conf_int(const wf_conf_item *item, const char *name, int64_t otherwise)
{
    const wf_conf_option *o = wf_conf_find(item, name);

    return o ? o->i : otherwise;
}

double wf_conf_number(const wf_conf_item *item, const char *name, double otherwise)
{
    const wf_conf_option *o = wf_conf_find(item, name);

    return o ? o->number : otherwise;
}

const char *wf_conf_text(const wf_conf_item *item, const char *name, const char *otherwise)
{
    const wf_conf_option *o = wf_conf_find(item, name);

    return o ? o->text : otherwise;
}
