/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction_out.c - where a prediction goes: a npy or csv file, or a folder; and
 * that it takes the place of nothing that it is made of. */
#include "common/session/prediction_state.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n > m && strcmp(text + n - m, end) == 0;
}

/* Whether the last name of a path looks like a file's: what is behind its last dot is short. */
static bool has_suffix(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t n = dot && dot > name ? strlen(dot + 1) : 0;

    for (size_t i = 0; i < n; i++)
        if (!isalpha((unsigned char)dot[1 + i]) && !(i && isdigit((unsigned char)dot[1 + i])))
            return false;
    return n >= 2 && n <= 8;
}

static wf_prediction_form form_of(const char *out)
{
    return ends_with(out, ".npy")   ? WF_INTO_NPY
           : ends_with(out, ".csv") ? WF_INTO_CSV
                                    : WF_INTO_FOLDER;
}

wf_status wf_prediction_check_name(const char *out, wf_err *err)
{
    struct stat st;
    bool is_there = stat(out, &st) == 0;

    if (form_of(out) != WF_INTO_FOLDER)
        return WF_OK;
    if (strcmp(out, "-") == 0 || (is_there && !S_ISDIR(st.st_mode)))
        return wf_fail(err, WF_USAGE, "write to NAME.npy, NAME.csv, or a folder",
                       "weft predict cannot write to %s", out);
    if (!is_there && has_suffix(out))
        return wf_fail(err, WF_USAGE, "end a folder's name with a slash",
                       "weft predict writes npy and csv files, and %s is neither", out);
    return WF_OK;
}

wf_status wf_prediction_choose_out(wf_prediction *p, wf_err *err)
{
    const char *out = p->ask.out;
    size_t n = strlen(out);

    while (n > 1 && out[n - 1] == '/')
        n--;
    p->ask.out = wf_arena_printf(p->arena, "%.*s", (int)n, out);
    p->parts = wf_arena_printf(p->arena, "%.*s.parts", (int)n, out);
    if (!p->ask.out || !p->parts)
        return wf_fail_nomem(err, n);
    p->form = form_of(p->ask.out);
    return WF_OK;
}

static bool is_same_file(const struct stat *st, const char *path)
{
    struct stat other;

    return stat(path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

static wf_status would_replace(const wf_prediction *p, wf_err *err)
{
    return wf_fail(err, WF_USAGE, "write to another file",
                   "%s is an input of this prediction, which would take its place", p->ask.out);
}

wf_status wf_prediction_check_inputs(const wf_prediction *p, wf_err *err)
{
    struct stat st;

    if (p->form == WF_INTO_FOLDER || stat(p->ask.out, &st) != 0)
        return WF_OK;
    for (size_t i = 0; i < p->ask.n_inputs; i++) {
        const wf_sequence *s = p->feeds[i].sequence;
        const char *path;

        for (size_t k = 0; s && (path = wf_sequence_file(s, k)); k++)
            if (is_same_file(&st, path))
                return would_replace(p, err);
        for (size_t k = 0; k < p->ask.inputs[i].n; k++)
            if (is_same_file(&st, p->ask.inputs[i].paths[k]))
                return would_replace(p, err);
    }
    return WF_OK;
}

wf_status wf_prediction_check_outputs(const wf_prediction *p, wf_err *err)
{
    if (p->form == WF_INTO_NPY && p->n_outputs != 1)
        return wf_fail(err, WF_USAGE, "give a folder: -o DIR",
                       "%s has %zu outputs, and %s holds one", p->name, p->n_outputs, p->ask.out);
    for (size_t i = 0; p->form == WF_INTO_CSV && i < p->n_outputs; i++)
        if (p->outputs[i].rank == 0 || p->outputs[i].dims[0] != p->outputs[0].dims[0])
            return wf_fail(err, WF_USAGE, "give a folder: -o DIR",
                           "output \"%.64s\" is of a batch and not of each record, and the rows of "
                           "%s are of records",
                           p->outputs[i].label, p->ask.out);
    return WF_OK;
}
