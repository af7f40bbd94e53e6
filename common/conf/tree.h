/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/tree.h - a YAML text as a tree with lines, before anything is known of its meaning.
 *
 * For this room only. libyaml's events become nodes in an arena. Refused here, for every file
 * alike: more than WF_CONF_MAX_BYTES, depth beyond WF_CONF_MAX_DEPTH, anchors and aliases (a short
 * text must not grow), tags, a key given twice, tabs as indentation, a second document.
 */
#ifndef WF_CONF_TREE_H
#define WF_CONF_TREE_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef enum wf_tree_kind { WF_TREE_TEXT, WF_TREE_LIST, WF_TREE_MAP } wf_tree_kind;

typedef struct wf_tree wf_tree;
struct wf_tree {
    wf_tree_kind kind;
    int line;              /* from 1 */
    const char *text;      /* of WF_TREE_TEXT: holds no zero byte */
    bool plain;            /* not quoted, not a block: may be read as a number */
    wf_tree *key;          /* what stands before the colon, when this is a value of a map */
    wf_tree *first, *next; /* children in order; the next one beside this */
    wf_tree *last;
    size_t n; /* children */
};

/* *out lies in the arena. An empty text is an empty map. `path` is for messages. Errors: WF_USAGE,
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_tree_parse(const char *text, size_t size, const char *path,
                                    wf_arena *arena, wf_tree **out, wf_err *err);

#endif
