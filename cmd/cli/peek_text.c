/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/peek_text.c */
#include "cmd/cli/peek_text.h"
#include "cmd/cli/term.h"
#include "common/base/size.h"
#include "common/data/survey.h"

#include <inttypes.h>

/* Rare words are better unknown: a round number of the most frequent. */
static uint64_t suggested_words(uint64_t distinct)
{
    return distinct > 20000 ? 20000 : distinct > 10000 ? 10000 : distinct + 2;
}

static void print_facts(const char *path, const wf_survey *s, const wf_text_facts *f)
{
    wf_term_print(stdout, "%s  text  %" PRIu64 " lines", path, s->records);
    if (f->empty)
        wf_term_print(stdout, ", %" PRIu64 " empty", f->empty);
    wf_term_print(stdout, "\n  words       %" PRIu64 ", %s%" PRIu64 " different\n", f->words,
                  f->exact_words ? "" : "about ", f->distinct_words);
    wf_term_print(stdout, "  of a line   %" PRIu64 " to %" PRIu64 " words, mean %.4g\n",
                  f->least_words, f->most_words, (double)f->words / (double)s->records);
    if (f->is_utf8)
        wf_term_print(stdout, "  characters  %" PRIu64 ", %" PRIu64 " different\n", f->characters,
                      f->distinct_characters);
    else
        wf_term_print(stdout, "  characters  line %" PRIu64 " is not UTF-8\n", f->bad_line);
    if (f->labelled)
        wf_term_print(stdout, "  label       %g to %g, mean %.6g\n", s->columns[0].least,
                      s->columns[0].most, s->columns[0].mean);
    for (uint32_t i = 0; i < f->n_first; i++)
        wf_term_print(stdout, "  line %u      \"%s\"\n", i + 1, f->first[i]);
}

/* Lines with labels are to be classified; others are read on, character by character. */
static void print_suggestion(const char *path, const wf_survey *s, const wf_text_facts *f)
{
    uint64_t mean = WF_MAX(f->words / s->records, UINT64_C(1));

    wf_term_print(stdout, "in a job file:\n  data:\n    format: text\n    train: %s\n", path);
    if (f->labelled)
        wf_term_print(stdout,
                      "    columns: {x: text, y: label}\n    map: {x: [{text_vectorization: "
                      "{max_tokens: %" PRIu64 ", output_sequence_length: %" PRIu64 "}}]}\n",
                      suggested_words(f->distinct_words), WF_MIN(mean, UINT64_C(500)));
    else
        wf_term_print(stdout,
                      "    sequence_length: 100\n    columns: {x: text, y: next}\n"
                      "    map: {x: [{text_vectorization: {split: %s, standardize: none}}]}\n",
                      f->is_utf8 ? "character" : "bytes");
}

wf_status wf_peek_text(const char *path, wf_err *err)
{
    wf_survey s;
    wf_text_facts f;
    wf_status rc = wf_text_survey(path, &s, &f, err);

    if (rc == WF_OK) {
        print_facts(path, &s, &f);
        print_suggestion(path, &s, &f);
    }
    wf_survey_close(&s);
    return rc;
}
