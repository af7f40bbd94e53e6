/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/read.c - typed by the schema: the same word is a number for one key and text for
 * another. */
#include "common/conf/read.h"
#include "common/base/nearest.h"
#include "common/base/synonyms.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_KEYS = 64 };

const char *wf_read_name(const wf_tree *node)
{
    return node->key ? node->key->text : "the value";
}

static const char *shown(const wf_tree *node)
{
    if (node->kind == WF_TREE_LIST)
        return "a list";
    if (node->kind == WF_TREE_MAP)
        return "a map";
    return node->text;
}

const wf_tree *wf_tree_get(const wf_tree *map, const char *key)
{
    for (const wf_tree *t = map->first; t && map->kind == WF_TREE_MAP; t = t->next)
        if (strcmp(t->key->text, key) == 0)
            return t;
    return NULL;
}

wf_status wf_read_text(wf_conf_reader *r, const wf_tree *node, const char **out, wf_err *err)
{
    if (node->kind != WF_TREE_TEXT)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"%.64s\" must be a word, not %s",
                            wf_read_name(node), shown(node));
    if (!node->text[0])
        return wf_read_fail(r, node, err, WF_USAGE, "give it one, or leave the key out",
                            "\"%.64s\" has no value", wf_read_name(node));
    *out = node->text;
    return WF_OK;
}

/* The folder of a path's first part, and the path behind it. */
static wf_status begin_path(wf_conf_reader *r, const wf_tree *node, const char **text,
                            const char **folder, wf_err *err)
{
    *folder = r->folder;
    if ((*text)[0] == '$')
        return wf_read_fail(r, node, err, WF_USAGE, "write the path, or ~/ for your home",
                            "weft replaces no variables, as in \"%.64s\"", *text);
    if (strstr(*text, "://"))
        return wf_read_fail(r, node, err, WF_USAGE, "fetch it, and write the path of the copy",
                            "weft reads files of this host, and not \"%.64s\"", *text);
    if (strncmp(*text, "~/", 2) != 0)
        return WF_OK;
    *folder = getenv("HOME");
    if (!*folder || (*folder)[0] != '/')
        return wf_read_fail(r, node, err, WF_USAGE, "write the whole path",
                            "\"%.64s\" is in your home, and HOME is not set", *text);
    *text += 2 + strspn(*text + 2, "/");
    return WF_OK;
}

wf_status wf_read_path(wf_conf_reader *r, const wf_tree *node, const char **out, wf_err *err)
{
    const char *text, *folder;

    WF_TRY(wf_read_text(r, node, &text, err));
    WF_TRY(begin_path(r, node, &text, &folder, err));
    if (strlen(text) + strlen(folder) + 2 > PATH_MAX)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "this path is too long");
    *out = text[0] == '/' ? text : wf_arena_printf(r->arena, "%s/%s", folder, text);
    return *out ? WF_OK : wf_fail_nomem(err, PATH_MAX);
}

/* Decimal digits only: no sign, no 0x, no 1_000. */
static bool plain_u64(const char *text, uint64_t *out)
{
    char *end;

    if (text[0] < '0' || text[0] > '9' || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == 0;
}

wf_status wf_read_u64(wf_conf_reader *r, const wf_tree *node, uint64_t least, uint64_t most,
                      uint64_t *out, wf_err *err)
{
    if (node->kind == WF_TREE_TEXT && node->plain && plain_u64(node->text, out) && *out >= least &&
        *out <= most)
        return WF_OK;
    return wf_read_fail(
        r, node, err, WF_USAGE, NULL,
        "\"%.64s\" must be a whole number from %" PRIu64 " to %" PRIu64 ", not %s%.64s",
        wf_read_name(node), least, most,
        node->kind == WF_TREE_TEXT && !node->plain ? "the quoted text " : "", shown(node));
}

wf_status wf_read_i64(wf_conf_reader *r, const wf_tree *node, int64_t least, int64_t most,
                      int64_t *out, wf_err *err)
{
    const char *text = node->kind == WF_TREE_TEXT && node->plain ? node->text : "";
    bool minus = text[0] == '-';
    uint64_t size;

    if (plain_u64(text + minus, &size) && size <= INT64_MAX) {
        *out = minus ? -(int64_t)size : (int64_t)size;
        if (*out >= least && *out <= most)
            return WF_OK;
    }
    return wf_read_fail(r, node, err, WF_USAGE, NULL,
                        "\"%.64s\" must be a whole number from %" PRId64 " to %" PRId64
                        ", not %.64s",
                        wf_read_name(node), least, most, shown(node));
}

/* The number that text begins with, up to its end or a slash; *end is there. */
static bool begin_number(const char *text, const char **end, double *out)
{
    size_t n = strspn(text, "0123456789+-.eE");
    char *stop = NULL;

    *out = n ? strtod(text, &stop) : 0;
    *end = text + n;
    return n && stop == *end && isfinite(*out) && (**end == 0 || **end == '/');
}

/* A number, or a fraction as in 1/255. */
static bool plain_number(const char *text, double *out)
{
    double divisor;

    if (!begin_number(text, &text, out))
        return false;
    if (*text == 0)
        return true;
    if (!begin_number(text + 1, &text, &divisor) || *text || divisor == 0)
        return false;
    *out /= divisor;
    return isfinite(*out);
}

wf_status wf_read_number(wf_conf_reader *r, const wf_tree *node, double *out, wf_err *err)
{
    if (node->kind == WF_TREE_TEXT && node->plain && plain_number(node->text, out))
        return WF_OK;
    return wf_read_fail(r, node, err, WF_USAGE, NULL, "\"%.64s\" must be a number, not %.64s",
                        wf_read_name(node), shown(node));
}

wf_status wf_read_bool(wf_conf_reader *r, const wf_tree *node, bool *out, wf_err *err)
{
    bool yes = node->kind == WF_TREE_TEXT && node->plain && strcmp(node->text, "true") == 0;

    if (!yes && !(node->kind == WF_TREE_TEXT && node->plain && strcmp(node->text, "false") == 0))
        return wf_read_fail(r, node, err, WF_USAGE, NULL,
                            "\"%.64s\" must be true or false, not %.64s", wf_read_name(node),
                            shown(node));
    *out = yes;
    return WF_OK;
}

wf_status wf_read_words(wf_conf_reader *r, const wf_tree *node, const char *const **out, size_t *n,
                        wf_err *err)
{
    const char **words;
    const wf_tree *t = node;
    size_t i = 0;

    if (node->kind == WF_TREE_MAP)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as [one, two]",
                            "\"%.64s\" must be a list of words, not a map", wf_read_name(node));
    *n = node->kind == WF_TREE_LIST ? node->n : 1;
    words = wf_arena_array(r->arena, *n, sizeof *words);
    if (!words)
        return wf_fail_nomem(err, *n * sizeof *words);
    for (t = node->kind == WF_TREE_LIST ? node->first : node; i < *n; i++, t = t->next)
        WF_TRY(wf_read_text(r, t, &words[i], err));
    *out = words;
    return WF_OK;
}

wf_status wf_read_unknown(wf_conf_reader *r, const wf_tree *node, const char *sort,
                          const char *word, const char *const names[], size_t n, wf_err *err)
{
    /* What `weft help` lists: only its names are too many for a hint. */
    static const char *const topics[][2] = {{"key", "weft help keys"},
                                            {"layer", "weft help layers"}};
    char hint[WF_NEAREST_HINT];
    const char *see = NULL;

    for (size_t i = 0; i < WF_COUNT(topics); i++)
        if (strcmp(topics[i][0], sort) == 0)
            see = topics[i][1];
    return wf_read_fail(r, node, err, WF_USAGE, wf_nearest_hint(word, names, n, see, hint),
                        "unknown %s \"%.64s\"", sort, word);
}

static wf_status unknown_key(wf_conf_reader *r, const wf_tree *node, const wf_key keys[],
                             wf_err *err)
{
    const char *names[MOST_KEYS], *word = node->key->text;
    char hint[96];
    size_t n = 0;

    while (keys[n].name && n < MOST_KEYS) {
        for (const wf_key *below = keys[n].keys; below && below->name; below++)
            if (strcmp(below->name, word) == 0) {
                snprintf(hint, sizeof hint, "write it below \"%.64s\"", keys[n].name);
                return wf_read_fail(r, node->key, err, WF_USAGE, hint, "\"%.64s\" is no key here",
                                    word);
            }
        names[n] = keys[n].name;
        n++;
    }
    return wf_read_unknown(r, node->key, "key", word, names, n, err);
}

static wf_status read_only(wf_conf_reader *r, const wf_tree *node, const wf_key *key,
                           const char **out, wf_err *err)
{
    const char *names[16], *meaning;
    char built[64] = "";
    size_t n = 0, at = 0;

    WF_TRY(wf_read_text(r, node, out, err));
    meaning = wf_synonym(*out, 0); /* "sync" of "bsp", and not near "async" */
    for (const char *const *known = key->known; *known && n < WF_COUNT(names); known++) {
        if (strcmp(*out, *known) == 0)
            return WF_OK;
        at += (size_t)snprintf(built + at, sizeof built - at, "%s\"%s\"", n ? " and " : "", *known);
        names[n++] = *known;
    }
    for (const char *const *later = key->later; later && *later && n < WF_COUNT(names); later++) {
        if (strcmp(*out, *later) == 0 || (meaning && strcmp(meaning, *later) == 0))
            return wf_read_fail(r, node, err, WF_UNSUPPORTED, "leave it out",
                                "\"%s: %s\" is not built yet; weft has %s", key->name, *later,
                                built);
        names[n++] = *later;
    }
    return wf_read_unknown(r, node, key->name, *out, names, n, err);
}

static wf_status read_key(wf_conf_reader *r, const wf_tree *node, const wf_key *key, void *into,
                          wf_err *err)
{
    char *at = (char *)into + key->offset, what[64];
    uint64_t number = 0;

    switch (key->kind) {
    case WF_KEY_U64:
        return wf_read_u64(r, node, key->least, key->most, (uint64_t *)at, err);
    case WF_KEY_U32:
        WF_TRY(wf_read_u64(r, node, key->least, key->most, &number, err));
        *(uint32_t *)at = (uint32_t)number;
        return WF_OK;
    case WF_KEY_BOOL:
        return wf_read_bool(r, node, (bool *)at, err);
    case WF_KEY_TEXT:
        return wf_read_text(r, node, (const char **)at, err);
    case WF_KEY_PATH:
        return wf_read_path(r, node, (const char **)at, err);
    case WF_KEY_CALL:
        return key->read(r, node, into, err);
    case WF_KEY_ONLY:
        return read_only(r, node, key, (const char **)at, err);
    case WF_KEY_MAP:
        snprintf(what, sizeof what, "\"%s\"", key->name);
        return wf_read_map(r, node, what, key->keys, into, err);
    case WF_KEY_LATER:
        break;
    }
    return wf_read_fail(r, node->key, err, WF_UNSUPPORTED, "leave it out",
                        "\"%s\" is not built yet", key->name);
}

/* Values are read as if the file had said them; `node` is for lines. */
static wf_status read_usual(wf_conf_reader *r, const wf_tree *node, const wf_key keys[], void *into,
                            wf_err *err)
{
    for (const wf_key *key = keys; key->name; key++) {
        wf_tree said = {.line = node->line, .text = key->usual, .plain = true};

        if (key->kind == WF_KEY_MAP)
            WF_TRY(read_usual(r, node, key->keys, into, err));
        else if (key->usual)
            WF_TRY(read_key(r, &said, key, into, err));
    }
    return WF_OK;
}

wf_status wf_read_map(wf_conf_reader *r, const wf_tree *node, const char *what, const wf_key keys[],
                      void *into, wf_err *err)
{
    if (node->kind != WF_TREE_MAP)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as key: value",
                            "%s must be a map of keys and values, not %.64s", what, shown(node));
    WF_TRY(read_usual(r, node, keys, into, err));
    for (const wf_tree *t = node->first; t; t = t->next) {
        const wf_key *key = keys;

        while (key->name && strcmp(key->name, t->key->text) != 0)
            key++;
        if (!key->name)
            return unknown_key(r, t, keys, err);
        WF_TRY(read_key(r, t, key, into, err));
    }
    for (const wf_key *key = keys; key->name; key++)
        if (key->required && !wf_tree_get(node, key->name))
            return wf_read_fail(r, node, err, WF_USAGE, NULL, "%s has no \"%s\"", what, key->name);
    return WF_OK;
}

wf_status wf_read_folder(const char *path, wf_arena *arena, const char **out, wf_err *err)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    char here[PATH_MAX];

    if (path[0] == '/') {
        *out = n ? wf_arena_strndup(arena, path, n) : "/";
    } else {
        if (!getcwd(here, sizeof here))
            return wf_fail_errno(err, errno, NULL, "cannot tell the current folder");
        *out = n ? wf_arena_printf(arena, "%s/%.*s", here, (int)n, path)
                 : wf_arena_strdup(arena, here);
    }
    return *out ? WF_OK : wf_fail_nomem(err, PATH_MAX);
}
