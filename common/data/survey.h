/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/survey.h - what the columns of a csv file hold, for a person who is about to train
 * with it. */
#ifndef WF_DATA_SURVEY_H
#define WF_DATA_SURVEY_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_SURVEY_WORDS = 32,
    WF_SURVEY_DISTINCT = 1 << 20 /* words that are counted, of all columns together */
};

typedef struct wf_survey_column {
    const char *name;         /* "1", "2", ... without a header */
    uint64_t numbers, wholes; /* cells that are numbers, and whole ones among these */
    uint64_t empty;
    double least, most;                 /* of the numbers */
    double mean, squares;               /* of them: squares of what is left without the mean */
    const char *words[WF_SURVEY_WORDS]; /* [n_words] different ones that are no number, sorted */
    uint32_t n_words;
    uint64_t distinct; /* words, as far as they were counted */
    bool more_words;   /* than have room above */
    bool uncounted;    /* more than were counted, or one that a vocabulary cannot hold */
    struct wf_vocabulary *seen;
} wf_survey_column;

typedef struct wf_survey {
    wf_arena *arena; /* of all that this points to */
    uint64_t records;
    bool header; /* the first row is no record: none of its cells is a number */
    char delimiter;
    wf_survey_column *columns; /* [n_columns] */
    uint32_t n_columns;
    uint64_t distinct; /* words of all columns */
} wf_survey;

/* Reads a csv file whole, also through gzip. The delimiter is the comma, semicolon, tab or bar that
 * the first row has most of. Close *out after an error as well. Errors: WF_NOTFOUND, WF_IO;
 * WF_INVALID for a file without records, or a row that is no good, with its line; WF_NOMEM. */
WF_MUST_USE wf_status wf_csv_survey(const char *path, wf_survey *out, wf_err *err);
void wf_survey_close(wf_survey *s);

#endif
