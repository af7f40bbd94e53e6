/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/tree.c - libyaml events to nodes, without recursion: the stack is an array of
 * WF_CONF_MAX_DEPTH open lists and maps. */
#include "common/conf/tree.h"
#include "common/conf/conf.h"

#include <string.h>
#include <yaml.h>

typedef struct builder {
    const char *path;
    wf_arena *arena;
    wf_tree *root;
    wf_tree *open[WF_CONF_MAX_DEPTH];
    wf_tree *key[WF_CONF_MAX_DEPTH]; /* of an open map: the key that waits for its value */
    size_t depth;
    bool done;
} builder;

static wf_status check_indent(const char *text, size_t size, const char *path, wf_err *err)
{
    int line = 1;
    bool leading = true;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\t' && leading)
            return wf_fail(err, WF_USAGE, "indent with spaces",
                           "%s:%d: a tab stands where YAML wants spaces", path, line);
        if (text[i] == '\n')
            line++;
        leading = text[i] == '\n' || (leading && (text[i] == ' ' || text[i] == '\t'));
    }
    return WF_OK;
}

static wf_status say_syntax(const builder *b, const yaml_parser_t *p, wf_err *err)
{
    int line = (int)p->problem_mark.line + 1;

    if (p->error == YAML_MEMORY_ERROR)
        return wf_fail_nomem(err, 0);
    if (p->error == YAML_READER_ERROR)
        return wf_fail(err, WF_USAGE, "save the file as plain UTF-8 text", "%s: byte %zu: %s",
                       b->path, p->problem_offset, p->problem ? p->problem : "not text");
    if (p->context)
        return wf_fail(err, WF_USAGE, "look at the colons, brackets and indentation there",
                       "%s:%d: not YAML: %s (%s that begins at line %zu)", b->path, line,
                       p->problem ? p->problem : "cannot be read", p->context,
                       p->context_mark.line + 1);
    return wf_fail(err, WF_USAGE, "look at the colons, brackets and indentation there",
                   "%s:%d: not YAML: %s", b->path, line,
                   p->problem ? p->problem : "cannot be read");
}

static wf_status check_key(const builder *b, const wf_tree *map, const wf_tree *key, wf_err *err)
{
    if (key->kind != WF_TREE_TEXT)
        return wf_fail(err, WF_USAGE, NULL, "%s:%d: a key must be a word, not a list or a map",
                       b->path, key->line);
    for (const wf_tree *t = map->first; t; t = t->next)
        if (strcmp(t->key->text, key->text) == 0)
            return wf_fail(err, WF_USAGE, "keep one of the two",
                           "%s:%d: \"%.64s\" is given a second time (first at line %d)", b->path,
                           key->line, key->text, t->key->line);
    return WF_OK;
}

/* Puts a finished scalar, or a list or map just opened, where it belongs. */
static wf_status place(builder *b, wf_tree *node, wf_err *err)
{
    wf_tree *into;

    if (b->depth == 0) {
        b->root = node;
        return WF_OK;
    }
    into = b->open[b->depth - 1];
    if (into->kind == WF_TREE_MAP && !b->key[b->depth - 1]) {
        WF_TRY(check_key(b, into, node, err));
        b->key[b->depth - 1] = node;
        return WF_OK;
    }
    node->key = b->key[b->depth - 1];
    b->key[b->depth - 1] = NULL;
    if (into->last)
        into->last->next = node;
    else
        into->first = node;
    into->last = node;
    into->n++;
    return WF_OK;
}

static wf_status add(builder *b, wf_tree_kind kind, const yaml_event_t *e, wf_tree **out,
                     wf_err *err)
{
    wf_tree *node = wf_arena_alloc(b->arena, sizeof *node);

    if (!node)
        return wf_fail_nomem(err, sizeof *node);
    node->kind = kind;
    node->line = (int)e->start_mark.line + 1;
    *out = node;
    return WF_OK;
}

static wf_status on_scalar(builder *b, const yaml_event_t *e, wf_err *err)
{
    const char *text = (const char *)e->data.scalar.value;
    size_t n = e->data.scalar.length;
    wf_tree *node = NULL;

    WF_TRY(add(b, WF_TREE_TEXT, e, &node, err));
    if (memchr(text, 0, n))
        return wf_fail(err, WF_USAGE, NULL, "%s:%d: a zero byte in the text", b->path, node->line);
    node->text = wf_arena_strndup(b->arena, text, n);
    if (!node->text)
        return wf_fail_nomem(err, n);
    node->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return place(b, node, err);
}

static wf_status on_open(builder *b, wf_tree_kind kind, const yaml_event_t *e, wf_err *err)
{
    wf_tree *node = NULL;

    WF_TRY(add(b, kind, e, &node, err));
    if (b->depth == WF_CONF_MAX_DEPTH)
        return wf_fail(err, WF_USAGE, NULL, "%s:%d: nested deeper than %d levels", b->path,
                       node->line, WF_CONF_MAX_DEPTH);
    WF_TRY(place(b, node, err));
    b->open[b->depth] = node;
    b->key[b->depth] = NULL;
    b->depth++;
    return WF_OK;
}

/* What no file of weft's may hold, whatever its place. */
static wf_status check_event(const builder *b, const yaml_event_t *e, wf_err *err)
{
    int line = (int)e->start_mark.line + 1;
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (e->type == YAML_SCALAR_EVENT)
        anchor = e->data.scalar.anchor, tag = e->data.scalar.tag;
    if (e->type == YAML_SEQUENCE_START_EVENT)
        anchor = e->data.sequence_start.anchor, tag = e->data.sequence_start.tag;
    if (e->type == YAML_MAPPING_START_EVENT)
        anchor = e->data.mapping_start.anchor, tag = e->data.mapping_start.tag;
    if (anchor || e->type == YAML_ALIAS_EVENT)
        return wf_fail(err, WF_USAGE, "write the value out where it is wanted",
                       "%s:%d: anchors and aliases (& and *) are not read", b->path, line);
    if (tag)
        return wf_fail(err, WF_USAGE, "leave the tag out", "%s:%d: tags (!) are not read", b->path,
                       line);
    if (e->type == YAML_DOCUMENT_START_EVENT && b->root)
        return wf_fail(err, WF_USAGE, "give each its own file",
                       "%s:%d: a second document begins here", b->path, line);
    return WF_OK;
}

static wf_status on_event(builder *b, const yaml_event_t *e, wf_err *err)
{
    WF_TRY(check_event(b, e, err));
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(b, e, err);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(b, WF_TREE_LIST, e, err);
    case YAML_MAPPING_START_EVENT:
        return on_open(b, WF_TREE_MAP, e, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return WF_OK;
    case YAML_STREAM_END_EVENT:
        b->done = true;
        return WF_OK;
    default:
        return WF_OK;
    }
}

wf_status wf_tree_parse(const char *text, size_t size, const char *path, wf_arena *arena,
                        wf_tree **out, wf_err *err)
{
    builder b = {.path = path, .arena = arena};
    yaml_parser_t p;
    wf_status rc = WF_OK;

    if (size > WF_CONF_MAX_BYTES)
        return wf_fail(err, WF_USAGE, NULL, "%s: %zu bytes, and a YAML file may have %d", path,
                       size, WF_CONF_MAX_BYTES);
    WF_TRY(check_indent(text, size, path, err));
    if (!yaml_parser_initialize(&p))
        return wf_fail_nomem(err, sizeof p);
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)text, size);
    while (rc == WF_OK && !b.done) {
        yaml_event_t e;

        if (!yaml_parser_parse(&p, &e)) {
            rc = say_syntax(&b, &p, err);
            break;
        }
        rc = on_event(&b, &e, err);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&p);
    if (rc != WF_OK)
        return rc;
    if (!b.root) {
        b.root = wf_arena_alloc(arena, sizeof *b.root);
        if (!b.root)
            return wf_fail_nomem(err, sizeof *b.root);
        b.root->kind = WF_TREE_MAP;
        b.root->line = 1;
    }
    *out = b.root;
    return WF_OK;
}
