/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/json.c */
#include "common/ckpt/json.h"

#include <stdlib.h>

static _Thread_local bool ran_out; /* of this thread, since its wf_json_begin */

static void *take(size_t bytes)
{
    void *p = malloc(bytes);

    ran_out |= !p;
    return p;
}

/* Before any thread has begun: jansson's functions are the process's. */
__attribute__((constructor)) static void watch_memory(void)
{
    json_set_alloc_funcs(take, free);
}

void wf_json_begin(void)
{
    ran_out = false;
}

bool wf_json_ran_out(void)
{
    return ran_out;
}

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
    wf_json_begin();
    root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
    if (wf_json_ran_out()) {
        json_decref(root);
        return wf_fail_nomem(err, size);
    }
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
