/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/json.c */
#include "common/ckpt/json.h"

#include <stdbool.h>

static bool depth_ok(const char *text, size_t size)
{
    bool in_string = false;
    size_t depth = 0;

    for (size_t i = 0; i < size; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > WF_JSON_MAX_DEPTH)
                return false;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return true;
}

/* Where reading stopped, as a byte of the file: a person compares it with the file's size. */
static wf_status not_json(const json_error_t *e, size_t size, const char *what, size_t at,
                          wf_err *err)
{
    size_t where = e->position > 0 && (size_t)e->position < size ? (size_t)e->position : size;

    if (json_error_code(e) == json_error_premature_end_of_input)
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR,
                       "%s: cut short or damaged: its JSON is unfinished at byte %zu", what,
                       at + size);
    return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: damaged at byte %zu: not JSON (%s)", what,
                   at + where, e->text);
}

wf_status wf_json_read(const char *text, size_t size, const char *what, size_t at, json_t **out,
                       wf_err *err)
{
    json_error_t e;
    json_t *root;

    if (!depth_ok(text, size))
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: JSON nested deeper than %d levels",
                       what, WF_JSON_MAX_DEPTH);
    root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
    if (!root)
        return not_json(&e, size, what, at, err);
    if (!json_is_object(root)) {
        json_decref(root);
        return wf_fail(err, WF_CORRUPT, WF_CKPT_REPAIR, "%s: damaged: its JSON is not an object",
                       what);
    }
    *out = root;
    return WF_OK;
}
