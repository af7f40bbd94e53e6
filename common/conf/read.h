/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/read.h - a tree read by a schema: one row per key says what it is and where it goes.
 *
 * For this room only. Messages are "PATH:LINE: sentence", WF_USAGE; WF_UNSUPPORTED for a reserved
 * key (docs/jobs.md, "Reserved words").
 */
#ifndef WF_CONF_READ_H
#define WF_CONF_READ_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/conf/tree.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_conf_reader {
    const char *path;   /* for messages */
    const char *folder; /* absolute; of relative paths */
    wf_arena *arena;
} wf_conf_reader;

typedef enum wf_key_kind {
    WF_KEY_U64,   /* uint64_t at offset, within least..most */
    WF_KEY_U32,   /* uint32_t, the same */
    WF_KEY_BOOL,  /* bool */
    WF_KEY_TEXT,  /* const char * */
    WF_KEY_PATH,  /* const char *, made absolute */
    WF_KEY_CALL,  /* read(r, node, into) */
    WF_KEY_MAP,   /* a map of `keys`, into the same struct */
    WF_KEY_LATER, /* known, not built: WF_UNSUPPORTED */
    WF_KEY_ONLY   /* text at offset that must be in `known`; those in `later` are not built yet */
} wf_key_kind;

typedef struct wf_key wf_key;
struct wf_key {
    const char *name;
    wf_key_kind kind;
    size_t offset; /* into the struct being filled */
    uint64_t least, most;
    wf_status (*read)(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err);
    const char *const *known, *const *later; /* each ends with NULL */
    const wf_key *keys; /* of what is below it; a key of these at the wrong place is known by it */
    bool required;
    const char *usual; /* the value of a key that is left out, as a file would say it; NULL: none */
};

/* Fills `into` from a map by rows that end with a NULL name, usual values first. `what` names the
 * map in messages ("the job"). */
WF_MUST_USE wf_status wf_read_map(wf_conf_reader *r, const wf_tree *node, const char *what,
                                  const wf_key keys[], void *into, wf_err *err);

/* "PATH:LINE: " and the sentence. */
#define wf_read_fail(r, node, err, status, hint, fmt, ...)                                         \
    wf_fail((err), (status), (hint), "%s:%d: " fmt, (r)->path,                                     \
            (node)->line __VA_OPT__(, ) __VA_ARGS__)

/* The name of a value for messages: its key, or "the value". */
const char *wf_read_name(const wf_tree *node);
WF_MUST_USE wf_status wf_read_text(wf_conf_reader *r, const wf_tree *node, const char **out,
                                   wf_err *err);
/* A path made absolute; in the arena. "~/" is the user's home. */
WF_MUST_USE wf_status wf_read_path(wf_conf_reader *r, const wf_tree *node, const char **out,
                                   wf_err *err);
WF_MUST_USE wf_status wf_read_u64(wf_conf_reader *r, const wf_tree *node, uint64_t least,
                                  uint64_t most, uint64_t *out, wf_err *err);
WF_MUST_USE wf_status wf_read_i64(wf_conf_reader *r, const wf_tree *node, int64_t least,
                                  int64_t most, int64_t *out, wf_err *err);
WF_MUST_USE wf_status wf_read_number(wf_conf_reader *r, const wf_tree *node, double *out,
                                     wf_err *err);
WF_MUST_USE wf_status wf_read_bool(wf_conf_reader *r, const wf_tree *node, bool *out, wf_err *err);
/* [n] words from a list, or one word by itself. */
WF_MUST_USE wf_status wf_read_words(wf_conf_reader *r, const wf_tree *node, const char *const **out,
                                    size_t *n, wf_err *err);
/* The value of a key in a map, or NULL. */
const wf_tree *wf_tree_get(const wf_tree *map, const char *key);

/* The folder of a file, absolute, in the arena. Errors: WF_IO, WF_NOMEM. */
WF_MUST_USE wf_status wf_read_folder(const char *path, wf_arena *arena, const char **out,
                                     wf_err *err);
/* Fails, naming the nearest of names[n], for a word that is none of them. */
wf_status wf_read_unknown(wf_conf_reader *r, const wf_tree *node, const char *sort,
                          const char *word, const char *const names[], size_t n, wf_err *err);

#endif
