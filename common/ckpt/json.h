/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/json.h - untrusted JSON made a tree only after its depth was bounded. */
#ifndef WF_CKPT_JSON_H
#define WF_CKPT_JSON_H

#include "common/base/status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { WF_JSON_MAX_DEPTH = 16 };

/* An object that the caller lets go with json_decref. Refused: other than an object, a key twice,
 * depth beyond the bound, bytes after it other than spaces.
 *   what  names the file in messages
 *   at    byte of the file where the text begins
 * Errors: WF_CORRUPT, with the byte of the file and what to do; WF_NOMEM. */
WF_MUST_USE wf_status wf_json_read(const char *text, size_t size, const char *what, size_t at,
                                   json_t **out, wf_err *err);

/* Whether this thread lacked memory in jansson since wf_json_begin. jansson itself does not tell:
 * it finds fault with the text, or drops a byte of it and goes on, reading (2.14, lex_save) as well
 * as writing. */
void wf_json_begin(void);
bool wf_json_ran_out(void);

/* What to do about a file whose bytes are not those that were written. */
#define WF_CKPT_REPAIR "fetch or copy the file again, or use an older checkpoint"

#endif
