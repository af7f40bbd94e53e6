/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/set.c - what --set KEY=VALUE changes is a block at the end of the job's text, which
 * goes wherever the text goes: into the journal, to the workers, into the next set. So what was
 * changed is read by the same schema as what was written, and nobody can forget it. */
#include "common/conf/set.h"
#include "common/base/bytes.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char heading[] = "\nset: # by --set\n";
static const char *const plain_keys[] = {"epochs",
                                         "steps",
                                         "batch",
                                         "checkpoint.every_steps",
                                         "checkpoint.every_seconds",
                                         "checkpoint.keep",
                                         "codec",
                                         "codec.push",
                                         "codec.pull",
                                         "codec.ratio",
                                         "strategy",
                                         "shard_optimizer"};

/* ---- the text ---- */

const char *wf_job_changes(const char *text)
{
    const char *at = strstr(text, heading);

    return at ? at + sizeof heading - 1 : NULL;
}

static bool may_change(const char *key, size_t n)
{
    for (size_t i = 0; i < WF_COUNT(plain_keys); i++)
        if (strlen(plain_keys[i]) == n && strncmp(plain_keys[i], key, n) == 0)
            return true;
    return (n > 10 && strncmp(key, "optimizer.", 10) == 0) ||
           (n > 10 && strncmp(key, "callbacks.", 10) == 0);
}

static wf_status check_change(const char *change, size_t n_key, bool under_way, wf_err *err)
{
    const char *value = change + n_key + 1;

    if (under_way && !may_change(change, n_key))
        return wf_fail(err, WF_USAGE,
                       "epochs, steps, batch, checkpoint.every_steps, checkpoint.every_seconds, "
                       "checkpoint.keep, codec, strategy, shard_optimizer, optimizer.OPTION and "
                       "callbacks.NAME.OPTION may change",
                       "\"%.*s\" cannot change on the way", (int)WF_MIN(n_key, (size_t)64), change);
    if (strspn(change, "abcdefghijklmnopqrstuvwxyz0123456789_.") != n_key || !value[0] ||
        strlen(value) > 64 ||
        strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-/") !=
            strlen(value))
        return wf_fail(err, WF_USAGE, "write it as epochs=20", "\"%.80s\" sets no number or word",
                       change);
    return WF_OK;
}

/* Whether the text is one mapping in braces, as of JSON: no block can stand behind that. */
static bool is_in_braces(const char *text)
{
    while (*text == '#' || strncmp(text, "---", 3) == 0 || strspn(text, " \t\r\n") > 0) {
        text += *text == '#' ? strcspn(text, "\n") : *text == '-' ? 3 : 0;
        text += strspn(text, " \t\r\n");
    }
    return *text == '{';
}

/* The lines of the block, but for the one of this key. */
static void keep_others(wf_bytes *out, const char *lines, const char *key, size_t n_key)
{
    while (lines && *lines) {
        size_t n = strcspn(lines, "\n") + 1;
        bool same = strncmp(lines, "  ", 2) == 0 && strncmp(lines + 2, key, n_key) == 0 &&
                    lines[2 + n_key] == ':';

        n = WF_MIN(n, strlen(lines));
        if (!same)
            wf_bytes_add(out, lines, n);
        lines += n;
    }
}

wf_status wf_job_change(const char *text, const char *change, bool under_way, char **out,
                        wf_err *err)
{
    const char *lines = wf_job_changes(text), *sign = strchr(change, '=');
    size_t n_key = sign ? (size_t)(sign - change) : 0;
    size_t n_text = lines ? (size_t)(lines - text) - (sizeof heading - 1) : strlen(text);
    wf_bytes b = {0};
    wf_status rc;

    if (!sign)
        return wf_fail(err, WF_USAGE, "write it as epochs=20", "\"%.80s\" has no value", change);
    WF_TRY(check_change(change, n_key, under_way, err));
    if (is_in_braces(text))
        return wf_fail(err, WF_UNSUPPORTED, "change the file, or write it with a line for each key",
                       "--set adds lines to a job, and this one is written in braces {...}");
    wf_bytes_add(&b, text, n_text);
    wf_bytes_add(&b, heading, sizeof heading - 1);
    keep_others(&b, lines, change, n_key);
    wf_bytes_printf(&b, "  %.*s: %s\n", (int)n_key, change, sign + 1);
    rc = wf_bytes_check(&b, err);
    *out = rc == WF_OK ? strdup(wf_bytes_str(&b)) : NULL;
    wf_bytes_close(&b);
    return rc == WF_OK && !*out ? wf_fail_nomem(err, n_text) : rc;
}

/* ---- the tree ---- */

static wf_tree *child(wf_tree *map, const char *name, size_t n)
{
    for (wf_tree *t = map->first; t && map->kind == WF_TREE_MAP; t = t->next)
        if (strlen(t->key->text) == n && strncmp(t->key->text, name, n) == 0)
            return t;
    return NULL;
}

static wf_tree *add_child(wf_conf_reader *r, wf_tree *map, const char *name, size_t n,
                          wf_tree_kind kind, int line)
{
    wf_tree *t = wf_arena_alloc(r->arena, sizeof *t), *key = wf_arena_alloc(r->arena, sizeof *key);
    char *text = wf_arena_strndup(r->arena, name, n);

    if (!t || !key || !text)
        return NULL;
    *key = (wf_tree){.kind = WF_TREE_TEXT, .line = line, .text = text, .plain = true};
    *t = (wf_tree){.kind = kind, .line = line, .key = key, .text = "", .plain = true};
    if (map->last)
        map->last->next = t;
    else
        map->first = t;
    map->last = t;
    map->n++;
    return t;
}

/* `adam`, `adam:` and `adam: {...}` alike as the map of its options. */
static wf_tree *options_of(wf_conf_reader *r, wf_tree *item)
{
    wf_tree *options;

    if (item->kind == WF_TREE_TEXT) {
        const char *type = item->text;

        item->kind = WF_TREE_MAP;
        item->first = item->last = NULL;
        item->n = 0;
        return add_child(r, item, type, strlen(type), WF_TREE_MAP, item->line);
    }
    options = item->kind == WF_TREE_MAP ? item->first : NULL;
    if (options && options->kind == WF_TREE_TEXT && !options->text[0])
        options->kind = WF_TREE_MAP;
    return options && options->kind == WF_TREE_MAP ? options : NULL;
}

static const char *type_of(const wf_tree *item)
{
    return item->kind == WF_TREE_TEXT                 ? item->text
           : item->kind == WF_TREE_MAP && item->first ? item->first->key->text
                                                      : "";
}

/* The map that holds the last word of a path, and that word. */
static wf_tree *find_place(wf_conf_reader *r, wf_tree *root, const char *path, const char **last,
                           int line)
{
    const char *dot = strchr(path, '.');
    bool has_options = strncmp(path, "optimizer.", 10) == 0 || strncmp(path, "callbacks.", 10) == 0;
    wf_tree *at = root;

    *last = path;
    if (!dot)
        return root;
    at = child(root, path, (size_t)(dot - path));
    if (!at && !has_options)
        at = add_child(r, root, path, (size_t)(dot - path), WF_TREE_MAP, line);
    *last = dot + 1;
    if (at && strncmp(path, "callbacks.", 10) == 0) {
        size_t n = strcspn(*last, ".");
        wf_tree *item = at->kind == WF_TREE_LIST ? at->first : NULL;

        while (item && (strlen(type_of(item)) != n || strncmp(type_of(item), *last, n) != 0))
            item = item->next;
        at = item && (*last)[n] ? item : NULL;
        *last += n + 1;
    }
    if (at && has_options)
        at = options_of(r, at);
    while (at && (dot = strchr(*last, '.'))) {
        at = child(at, *last, (size_t)(dot - *last));
        *last = dot + 1;
    }
    return at && at->kind == WF_TREE_MAP ? at : NULL;
}

static wf_status apply(wf_conf_reader *r, wf_tree *root, const wf_tree *change, wf_err *err)
{
    const char *path = change->key->text, *last;
    wf_tree *map, *node;

    if (change->kind != WF_TREE_TEXT)
        return wf_read_fail(r, change, err, WF_USAGE, NULL,
                            "set: \"%.64s\" must be a number or a word", path);
    map = find_place(r, root, path, &last, change->line);
    if (!map)
        return wf_read_fail(r, change, err, WF_USAGE, NULL,
                            "set: the job has no place for \"%.64s\"", path);
    node = child(map, last, strlen(last));
    if (!node)
        node = add_child(r, map, last, strlen(last), WF_TREE_TEXT, change->line);
    if (!node)
        return wf_fail_nomem(err, sizeof *node);
    node->kind = WF_TREE_TEXT;
    node->text = change->text;
    node->plain = change->plain;
    node->line = change->line;
    node->first = node->last = NULL;
    node->n = 0;
    return WF_OK;
}

static void unlink_child(wf_tree *map, const wf_tree *gone)
{
    wf_tree *before = NULL;

    for (wf_tree *t = map->first; t; before = t, t = t->next) {
        if (t != gone)
            continue;
        if (before)
            before->next = t->next;
        else
            map->first = t->next;
        if (map->last == t)
            map->last = before;
        map->n--;
        return;
    }
}

wf_status wf_set_apply(wf_conf_reader *r, wf_tree *root, wf_err *err)
{
    wf_tree *set = child(root, "set", 3);

    if (!set)
        return WF_OK;
    if (set->kind != WF_TREE_MAP)
        return wf_read_fail(r, set, err, WF_USAGE, "write it as {epochs: 20}",
                            "\"set\" must be a map of keys and numbers");
    for (const wf_tree *t = set->first; t; t = t->next)
        WF_TRY(apply(r, root, t, err));
    unlink_child(root, set);
    return WF_OK;
}
