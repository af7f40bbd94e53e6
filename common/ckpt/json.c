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

wf_status wf_json_read(const char *text, size_t size, const char *what, json_t **out, wf_err *err)
{
    json_error_t e;
    json_t *root;

    if (!depth_ok(text, size))
        return wf_fail(err, WF_CORRUPT, NULL, "%s: JSON nested deeper than %d levels", what,
                       WF_JSON_MAX_DEPTH);
    root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
    if (!root)
        return wf_fail(err, WF_CORRUPT, NULL, "%s: not JSON: %s (line %d)", what, e.text, e.line);
    if (!json_is_object(root)) {
        json_decref(root);
        return wf_fail(err, WF_CORRUPT, NULL, "%s: not a JSON object", what);
    }
    *out = root;
    return WF_OK;
}
