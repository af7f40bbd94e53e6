/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/new_files.c */
#include "common/conf/new_files.h"
#include "common/data/formats.h"
#include "common/data/listing.h"

#include <string.h>

static const double POLL_SECONDS = 1, SETTLE_SECONDS = 2, MOST_SECONDS = 30.0 * 24 * 3600;

static wf_status read_seconds(wf_conf_reader *r, const wf_tree *node, double least, double *to,
                              wf_err *err)
{
    WF_TRY(wf_read_number(r, node, to, err));
    if (*to >= least && *to <= MOST_SECONDS)
        return WF_OK;
    return wf_read_fail(r, node, err, WF_USAGE, "write a number of seconds",
                        "\"%s\" must be from %g to %.0f, not %.64s", wf_read_name(node), least,
                        MOST_SECONDS, node->text);
}

static wf_status read_poll(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_seconds(r, node, 0.1, &((wf_job_conf *)into)->poll_seconds, err);
}

static wf_status read_settle(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_seconds(r, node, 0, &((wf_job_conf *)into)->settle_seconds, err);
}

static wf_status read_idle(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    return read_seconds(r, node, 0.1, &((wf_job_conf *)into)->idle_stop_seconds, err);
}

static const wf_key keys[] = {
    {"poll_seconds", WF_KEY_CALL, .read = read_poll},
    {"settle_seconds", WF_KEY_CALL, .read = read_settle},
    {"idle_stop_seconds", WF_KEY_CALL, .read = read_idle},
    {0},
};

wf_status wf_read_new_files(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    static const char *const words[] = {"wait"};
    wf_job_conf *j = into;
    const char *word;

    j->grows = true;
    j->poll_seconds = POLL_SECONDS;
    j->settle_seconds = SETTLE_SECONDS;
    if (node->kind == WF_TREE_MAP)
        return wf_read_map(r, node, "\"new_files\"", keys, j, err);
    WF_TRY(wf_read_text(r, node, &word, err));
    if (strcmp(word, words[0]) == 0)
        return WF_OK;
    return wf_read_unknown(r, node, "new_files", word, words, 1, err);
}

/* Words of a file, hashes and bytes are known before. */
static bool learns_words(const wf_conf_item *step)
{
    const wf_conf_option *split = wf_conf_find(step, "split"),
                         *words = wf_conf_find(step, "vocabulary");

    if (strcmp(step->type, "vocabulary") == 0)
        return words && words->kind != WF_CONF_TEXT;
    return strcmp(step->type, "text_vectorization") == 0 && !words && !wf_conf_find(step, "hash") &&
           !(split && strcmp(split->text, "bytes") == 0);
}

/* What is learnt of the training data would be another thing after each round. */
static wf_status check_steps(const wf_conf_reader *r, const wf_conf_field *f, wf_err *err)
{
    for (size_t i = 0; i < f->n_steps; i++) {
        const wf_conf_item *step = &f->steps[i];
        bool words = learns_words(step);

        if (words || strcmp(step->type, "standardise") == 0)
            return wf_fail(err, WF_USAGE,
                           words ? "name a file of words, vocabulary: words.txt, or use hash"
                                 : "use scale, log1p or clip, or standardise the files",
                           "%s:%d: \"%s\" learns from all training data, which is not there yet "
                           "with \"new_files\"",
                           r->path, step->line, step->type);
    }
    return WF_OK;
}

/* A file's fields are all in it, or a round would not be of whole files. */
static wf_status check_format(wf_conf_reader *r, const wf_tree *at, const wf_job_conf *j,
                              wf_err *err)
{
    const wf_conf_field *f = j->train.fields;

    if (j->train.n_files)
        return WF_OK;
    if (strcmp(j->format, "tfrecord") != 0)
        return wf_read_fail(r, at, err, WF_USAGE, "write the records as csv, libsvm or tfrecord",
                            "\"new_files\" wants files that hold all fields of their records, and "
                            "those of the format \"%s\" do not",
                            j->format);
    for (size_t i = 1; i < j->train.n; i++) {
        size_t n = (size_t)(wf_listed_member(f[i].path) - f[i].path);
        bool same = n == (size_t)(wf_listed_member(f[0].path) - f[0].path) &&
                    memcmp(f[i].path, f[0].path, n) == 0 && f[i].n_more == f[0].n_more;

        if (!same || f[i].n_more)
            return wf_read_fail(r, at, err, WF_USAGE,
                                "write {x: new-*.tfrecord#x, y: new-*.tfrecord#y}",
                                "with \"new_files\" all fields name the same pattern of files");
    }
    return WF_OK;
}

wf_status wf_check_new_files(wf_conf_reader *r, const wf_tree *node, const wf_job_conf *j,
                             wf_err *err)
{
    const wf_tree *at = wf_tree_get(node, "new_files");

    if (!at)
        return WF_OK;
    if (j->validation_split > 0)
        return wf_read_fail(
            r, at, err, WF_USAGE, "name files that stay as they are: eval: FILE",
            "\"validation_split\" holds out the end of the training data, which has "
            "none with \"new_files\"");
    for (size_t i = 0; i < j->n_map; i++)
        WF_TRY(check_steps(r, &j->map[i], err));
    return check_format(r, at, j, err);
}
