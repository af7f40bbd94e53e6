/* SPDX-License-Identifier: Apache-2.0 */
/* common/conf/losses.c - losses, metrics and weights of examples in a job file.
 *
 * A term is `huber` or `huber: {delta: 2.0}`; terms by output are `{out_a: huber, out_b: {huber:
 * {delta: 2.0}}}`. The two maps are told apart by their form alone, for this room knows no
 * function's name: a single key with a map of plain values, `{huber: {delta: 2.0}}`, is a term. */
#include "common/conf/losses.h"
#include "common/conf/item.h"

#include <string.h>

enum { MOST_TERMS = 256, MOST_CLASSES = 1 << 20 };

static bool is_term(const wf_tree *node)
{
    const wf_tree *value = node->first;

    if (node->kind != WF_TREE_MAP)
        return node->kind == WF_TREE_TEXT;
    return node->n == 1 && value->kind == WF_TREE_MAP &&
           (value->n == 0 || value->first->kind != WF_TREE_MAP);
}

static size_t count_terms(const wf_tree *node)
{
    size_t n = 0;

    if (is_term(node))
        return 1;
    if (node->kind == WF_TREE_LIST)
        return node->n;
    for (const wf_tree *t = node->first; t; t = t->next)
        n += t->kind == WF_TREE_LIST ? t->n : 1;
    return n;
}

/* One term, or with `lists` a list of them, said of one output. */
static wf_status read_of_output(wf_conf_reader *r, const wf_tree *node, const char *sort,
                                bool lists, const char *output, wf_conf_term *terms, size_t *n,
                                wf_err *err)
{
    bool list = lists && node->kind == WF_TREE_LIST;
    const wf_tree *t = list ? node->first : node;

    for (size_t i = 0; i < (list ? node->n : 1); i++, t = t->next) {
        terms[*n].output = output;
        WF_TRY(wf_read_worded_item(r, t, sort, &terms[(*n)++].item, err));
    }
    return WF_OK;
}

static wf_status read_terms(wf_conf_reader *r, const wf_tree *node, const char *sort, bool lists,
                            const wf_conf_term **out, size_t *n, wf_err *err)
{
    size_t count = count_terms(node);
    wf_conf_term *terms;

    if (!lists && node->kind == WF_TREE_LIST)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as {output: loss, output: loss}",
                            "\"loss\" must be a word or a map, not a list");
    if (count > MOST_TERMS)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "%zu are named, %d may be", count,
                            MOST_TERMS);
    terms = wf_arena_array(r->arena, count + 1, sizeof *terms);
    if (!terms)
        return wf_fail_nomem(err, count * sizeof *terms);
    *n = 0;
    *out = terms;
    if (node->kind != WF_TREE_MAP || is_term(node))
        return read_of_output(r, node, sort, lists, NULL, terms, n, err);
    for (const wf_tree *t = node->first; t; t = t->next)
        WF_TRY(read_of_output(r, t, sort, lists, t->key->text, terms, n, err));
    return WF_OK;
}

wf_status wf_read_losses(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    j->loss_line = node->line;
    return read_terms(r, node, "loss", false, &j->losses, &j->n_losses, err);
}

wf_status wf_read_metrics(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    j->metrics_line = node->line;
    return read_terms(r, node, "metric", true, &j->metrics, &j->n_metrics, err);
}

static wf_status read_said(wf_conf_reader *r, const wf_tree *node, bool number, const char *output,
                           wf_conf_said *out, wf_err *err)
{
    *out = (wf_conf_said){.output = output, .line = node->line};
    if (!number)
        return wf_read_text(r, node, &out->text, err);
    WF_TRY(wf_read_number(r, node, &out->number, err));
    if (out->number < 0 || out->number > 1e30)
        return wf_read_fail(r, node, err, WF_USAGE, NULL,
                            "\"%.64s\" must be from 0 to 1e30, not %g", wf_read_name(node),
                            out->number);
    return WF_OK;
}

static wf_status read_all_said(wf_conf_reader *r, const wf_tree *node, bool number,
                               const wf_conf_said **out, size_t *n, wf_err *err)
{
    bool map = node->kind == WF_TREE_MAP;
    wf_conf_said *said;

    if (number && !map)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as {out_a: 0.3}",
                            "\"%s\" must be a map of outputs and numbers", wf_read_name(node));
    *n = map ? node->n : 1;
    if (*n > MOST_TERMS)
        return wf_read_fail(r, node, err, WF_USAGE, NULL, "%zu are named, %d may be", *n,
                            MOST_TERMS);
    said = wf_arena_array(r->arena, *n + 1, sizeof *said);
    if (!said)
        return wf_fail_nomem(err, *n * sizeof *said);
    *out = said;
    if (!map)
        return read_said(r, node, number, NULL, said, err);
    for (const wf_tree *t = node->first; t; t = t->next)
        WF_TRY(read_said(r, t, number, t->key->text, said++, err));
    return WF_OK;
}

wf_status wf_read_loss_weights(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    return read_all_said(r, node, true, &j->loss_weights, &j->n_loss_weights, err);
}

wf_status wf_read_labels(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    return read_all_said(r, node, false, &j->labels, &j->n_labels, err);
}

wf_status wf_read_sample_weight(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;

    return read_all_said(r, node, false, &j->sample_weights, &j->n_sample_weights, err);
}

wf_status wf_read_class_weight(wf_conf_reader *r, const wf_tree *node, void *into, wf_err *err)
{
    wf_job_conf *j = into;
    wf_conf_class_weight *w;

    if (node->kind != WF_TREE_MAP || node->n == 0)
        return wf_read_fail(r, node, err, WF_USAGE, "write it as {0: 1.0, 1: 5.0}",
                            "\"class_weight\" must be a map of classes and weights");
    w = wf_arena_array(r->arena, node->n, sizeof *w);
    if (!w)
        return wf_fail_nomem(err, node->n * sizeof *w);
    j->class_weights = w;
    for (const wf_tree *t = node->first; t; t = t->next, w++, j->n_class_weights++) {
        wf_conf_said said = {0};

        w->line = t->line;
        WF_TRY(wf_read_i64(r, t->key, 0, MOST_CLASSES - 1, &w->class_id, err));
        WF_TRY(read_said(r, t, true, NULL, &said, err));
        w->weight = said.number;
    }
    return WF_OK;
}

static bool has_loss(const wf_job_conf *j, const char *output)
{
    for (size_t i = 0; i < j->n_losses; i++)
        if (output ? j->losses[i].output && strcmp(j->losses[i].output, output) == 0
                   : !j->losses[i].output)
            return true;
    return false;
}

static wf_status check_said(const wf_conf_reader *r, const wf_job_conf *j, const char *key,
                            const wf_conf_said said[], size_t n, wf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        /* A word without an output is for all of them. */
        if (!said[i].output || has_loss(j, said[i].output))
            continue;
        return wf_fail(err, WF_USAGE, "name an output that \"loss\" names",
                       "%s:%d: \"%s\" names the output \"%.64s\", which has no loss", r->path,
                       said[i].line, key, said[i].output);
    }
    return WF_OK;
}

wf_status wf_check_losses(const wf_conf_reader *r, const wf_job_conf *j, wf_err *err)
{
    WF_TRY(check_said(r, j, "loss_weights", j->loss_weights, j->n_loss_weights, err));
    WF_TRY(check_said(r, j, "labels", j->labels, j->n_labels, err));
    WF_TRY(check_said(r, j, "sample_weight", j->sample_weights, j->n_sample_weights, err));
    for (size_t i = 0; i < j->n_metrics; i++)
        if (j->n_losses && !has_loss(j, j->metrics[i].output))
            return wf_fail(
                err, WF_USAGE,
                j->metrics[i].output ? "name an output that \"loss\" names"
                                     : "write them as {output: [metric]}",
                "%s:%d: the metric \"%.64s\" is of %s%.64s%s", r->path, j->metrics[i].item.line,
                j->metrics[i].item.type, j->metrics[i].output ? "the output \"" : "no output",
                j->metrics[i].output ? j->metrics[i].output : "",
                j->metrics[i].output ? "\", which has no loss" : ", and \"loss\" is by output");
    if (j->n_labels == 1 && !j->labels[0].output && j->n_losses > 1)
        return wf_fail(err, WF_USAGE, "write it as {output: field}",
                       "%s:%d: one field holds no labels for %zu losses", r->path,
                       j->labels[0].line, j->n_losses);
    if (j->n_class_weights && j->n_sample_weights)
        return wf_fail(
            err, WF_USAGE, "keep one of the two",
            "%s:%d: \"class_weight\" and \"sample_weight\" do not go together, as in Keras",
            r->path, j->class_weights[0].line);
    if (j->n_class_weights && j->n_losses > 1)
        return wf_fail(err, WF_USAGE, "use \"sample_weight\"",
                       "%s:%d: \"class_weight\" is for a model with one loss, not %zu", r->path,
                       j->class_weights[0].line, j->n_losses);
    return WF_OK;
}
