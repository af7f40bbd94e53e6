/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/data.h - the front door of common/data: training records, from files.
 *
 * A dataset is a few named fields ("x", "y") of equally many records. The map steps of the job
 * (scale, reshape, ...) are applied when a batch is gathered.
 *
 * Of an array format each field is one file or several, whose records follow each other: read once,
 * as a whole, and kept in the dtype of the files (MNIST: 47 MB and not 188). A name with *, ? or [
 * is of all files that match, in the order of their bytes. What a file's header claims is held
 * against the size of the file before anything is allocated. What could fail fails at opening, and
 * gathering cannot.
 *
 * Of a text format the fields are columns of all files, which are one after the other. Opening
 * finds the records, gathering reads and parses them: what is held does not grow with the files,
 * but for a note every 256 KiB. A record that is no good is found when it is gathered.
 *
 * Threading: any number of threads may gather at once.
 *
 * Formats: idx (MNIST's), npy (numpy's, one array), npz (numpy's, several), tfrecord
 * (TensorFlow's), csv, libsvm and text (lines, or windows of running text); each also through gzip
 * or zstd when a file's name ends with ".gz" or ".zst"; synthetic (noise of a given shape, for
 * measuring); memory (tensors of the program itself, which are read where they are). One file each,
 * one row in the table of format.h.
 *
 * Other headers of this room: formats.h (their names), learnt.h (what steps take from the training
 * data), listing.h (the files of data that grows), memory.h (the tensors of the format memory),
 * order.h (the order of records), reader.h (batches, ahead of time), sequence.h (a field from its
 * first record to its last), survey.h (what the columns of
 * a text hold), digits.h (a data set that is drawn).
 */
#ifndef WF_DATA_DATA_H
#define WF_DATA_DATA_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_DATA_MAX_FIELDS = 16,
    WF_DATA_MAX_STEPS = 8,
    WF_DATA_MOST_FEATURES = 1 << 24,
    WF_DATA_MOST_OF_BAG = 1 << 16,
    WF_DATA_MOST_STRIDE = 1 << 24 /* tokens from one window to the next */
};

/* What is a token. */
typedef enum wf_split { WF_SPLIT_WHITESPACE, WF_SPLIT_CHARACTER, WF_SPLIT_BYTES } wf_split;

/* How text becomes tokens. */
typedef struct wf_token_form {
    wf_split split;
    bool lowers, strips; /* letters become small, punctuation is left out: of ASCII */
    uint64_t length;     /* tokens of a record; 0: those of windows, or as many as a bag may have */
    uint64_t bins;       /* tokens are hashed into numbers below it; 0: they have a vocabulary */
} wf_token_form;

/* One step of `map`, filled from the job file; each type takes one of the values.
 *
 *   scale    number: every element times it; the result is f32 (f64 stays f64)
 *   reshape  ints [n_ints]: the shape of one record, one of them may be -1
 *   one_hot  number: classes; integers [...] become f32 [..., classes]
 *   cast     text: "float32", "int64", ... (wf_dtype_name)
 *   log1p    log(1 + x), in f32 (f64 stays f64)
 *   fill     number: what NaN, and an empty cell of text, is read as
 *   clip     numbers [1 or 2]: the least, and the most that there may be; NaN stays
 *   hash     number: bins; integers become i64 below it; 0: of 63 bits; as the first step of a
 * field of text, the words of its cells too; text "separate": each element of a record has bins of
 * its own, one after the other, else they share them bucketise  numbers [n_numbers], ascending:
 * numbers become i64, how many of these are not above standardise  less the mean and divided by the
 * deviation of the training data: of a row each column by itself, of records of more axes all
 * numbers together; f32 (f64 stays). numbers [n_numbers]: the means and then the deviations, where
 * they are known resize   ints [2]: height and width; images are brought to it, bilinear, as they
 * are read: the first step of its field; f32 vocabulary  number: the words of text, numbered by how
 * frequent they are in the training data, from 1 to that; or text: a file of them, one a line;
 * words [n_words], where they are known; 0: another word, or none. The first step of its field; i64
 *
 *   crop     ints [2]: height and width; number: padding; random for training, else the middle
 *
 *   flip     text: "horizontal" or "vertical"; every second record for training, by chance
 *
 *   text_vectorization
 *            tokens: how text becomes tokens; number: max_tokens, with what pads and is unknown; 0:
 *            no bound; text: a file of words, one a line; words [n_words], where they are known.
 *            The first step of its field; i64 [tokens.length] */
typedef struct wf_map_step {
    const char *type;
    double number;
    const int64_t *ints;
    size_t n_ints;
    const char *text;
    const double *numbers;
    size_t n_numbers;
    const char *const *words;
    size_t n_words;
    wf_token_form tokens;
} wf_map_step;

typedef struct wf_field_spec {
    const char *name;        /* "x" */
    const char *path;        /* of its file; of array formats */
    const char *const *more; /* [n_more] files whose records follow */
    size_t n_more;
    const char *const *columns; /* [n_columns] of text formats */
    size_t n_columns;           /* 1 unless `is_row`: a record is a number, and not a row of one */
    bool is_row;
    /* Its records are bags: each has any number of values, up to bag_most, and batches hold them as
     * rows of so many, filled up with -1 (whole numbers: ids, which are never below 0) or 0. 0: the
     * longest in the files, which libsvm alone finds. */
    bool is_bag;
    uint64_t bag_most;
    const char
        *bag_ids; /* of a bag of weights: the field of their ids, which has as many; or NULL */
    const wf_map_step *steps; /* [n_steps], in order */
    size_t n_steps;
    wf_dtype want; /* cast to this at the end; WF_NONE: as it comes out of the steps */

    int64_t classes;  /* of class labels, which are below it; 0: the field holds none */
    bool may_ignore;  /* labels out of range are for who reads them to judge */
    const char *loss; /* of labels: the loss function that reads them, for messages; else NULL */
    bool is_share;    /* labels from 0 to 1 */
    /* Its records are not gathered: what its file's head and size say is enough, where they do. */
    bool head_only;

    /* Of synthetic only, which has no path: one record before the steps. With `classes`, each
     * element is a label below it, held as i32; without, noise of u8, which is scaled to 0 .. 1
     * when it has no steps and a float is wanted. */
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
} wf_field_spec;

/* What is known of a column of text. */
typedef struct wf_column_spec {
    const char *name;
    wf_dtype dtype;           /* float32, float64 or int64; uint8: its cells are words, any bytes,
                               * for hash or vocabulary; WF_NONE: as its field wants it */
    const char *const *words; /* [n_words]: a cell is one of them, and counts as its index here;
                               * NULL: cells are numbers */
    size_t n_words;
} wf_column_spec;

typedef struct wf_dataset_spec {
    const char *format; /* "idx", "npy", "npz", "csv", "libsvm", "images", "text", "tfrecord",
                         * "synthetic", "memory" */
    const wf_field_spec *fields;
    size_t n_fields;
    size_t limit_bytes; /* of all fields in memory; 0: none but the machine's */

    /* Of n records the last n - floor(n * (1 - held_out)) are held out, as Keras's validation_split
     * does: the data set is those, or (is_held_out false) the ones before. 0: it is all of them. */
    double held_out;
    bool is_held_out;

    bool is_random; /* crops and flips are, by the seed; else they are as for an evaluation */
    uint64_t seed;  /* also of synthetic records: the same seed and names give the same ones */
    /* Whose mean and deviation a `standardise` without numbers takes, and whose words a
     * `vocabulary` without words: the training data, when this is another data set; also whose
     * classes a folder of images has. It has no reference of its own. NULL: the records themselves.
     */
    const struct wf_dataset_spec *reference;

    /* Of text formats only. */
    const char *const *files; /* [n_files], one after the other */
    size_t n_files;
    bool header;                  /* each file begins with the names of its columns */
    const wf_column_spec *schema; /* [n_schema]; without a header: all columns, in order */
    size_t n_schema;
    char delimiter;       /* between cells */
    bool skips_bad_lines; /* of csv: records of another number of cells are left out */
    uint64_t features;    /* of libsvm: numbers of a row; 0: up to the largest index in the files */
    bool zero_based;      /* of libsvm: indices count from 0, not from 1 */
    char separator;       /* of csv: between the values of a bag in one cell; 0: '|' */
    bool marks_gaps; /* bags of floats are filled up with NaN, which a survey takes for missing */
    bool cuts_bags;  /* what a bag has beyond bag_most is left out; else it is an error */
    bool labelled;   /* of text: lines begin with a label, a number, and a tab */
    /* Of text: records are windows of so many tokens, which begin so many tokens apart; 0: a line
     * is a record. */
    uint64_t sequence_length, sequence_stride;

    uint64_t records; /* of synthetic only */
    /* Of an array format whose fields have one file each, neither packed nor a zip file: so many of
     * its records, from the first one on. 0: all. */
    uint64_t window_first, window_records;

    /* Of memory only, and borrowed for the life of the data set: the tensors (memory.h). */
    const struct wf_memory *memory;
} wf_dataset_spec;

typedef struct wf_field_info {
    const char *name, *path;
    /* One record as batches hold it, after the steps: a batch of n is [n, dims...]. */
    wf_dtype dtype;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    size_t record_bytes;
    bool is_bag;
    /* One record as the file has it. */
    wf_dtype raw_dtype;
    uint32_t raw_rank;
    int64_t raw_dims[WF_MAX_RANK];
    size_t raw_record_bytes;
} wf_field_info;

typedef struct wf_dataset wf_dataset;

/* Reads arrays or finds the records of text, and plans the steps; the caller owns *out. The spec is
 * read during the call only. Errors: WF_NOTFOUND; WF_IO; WF_INVALID for a file that is not of the
 * format, is cut short (says wanted and present bytes), goes on beyond its end or holds no records,
 * for fields of different counts, or if nothing is left beside what is held out; WF_SHAPE for steps
 * that do not fit the records; WF_USAGE for an unknown format, step, dtype or column;
 * WF_UNSUPPORTED for a variant that weft does not read; WF_NOMEM (limit_bytes too). */
WF_MUST_USE wf_status wf_dataset_open(const wf_dataset_spec *spec, wf_dataset **out, wf_err *err);
/* Frees *d and sets it to NULL; NULL is fine. No reader may use it any more. */
void wf_dataset_free(wf_dataset **d);

/* Reads one file whole, as a tensor that the caller owns: any rank up to WF_MAX_RANK, 0 (a single
 * number) and dimensions of 0 as well. Errors: as wf_dataset_open. */
WF_MUST_USE wf_status wf_data_load(const char *format, const char *path, wf_tensor **out,
                                   wf_err *err);

uint64_t wf_dataset_records(const wf_dataset *d);
/* The lines that were left out for another number of cells; *path, borrowed, and *line say where
 * the first is if there are any. */
uint64_t wf_dataset_skipped(const wf_dataset *d, const char **path, uint64_t *line);
/* How many bags have been cut so far: of arrays when these were read, of text as often as such a
 * bag is gathered. */
uint64_t wf_dataset_cut(const wf_dataset *d);
/* A hash of all content that was read or scanned at opening, held out or not, and of the numbers
 * and words that its steps go by, never 0: two data sets of equal specs with the same one hold the
 * same records (XXH3). */
uint64_t wf_dataset_digest(const wf_dataset *d);
/* Bytes of records held in memory; of text the most that are held at one time. */
size_t wf_dataset_bytes(const wf_dataset *d);
uint32_t wf_dataset_n_fields(const wf_dataset *d);
/* Field i < wf_dataset_n_fields, in the order of the spec; borrowed for the dataset's life. */
const wf_field_info *wf_dataset_field(const wf_dataset *d, uint32_t i);
/* The field of that name, or -1. */
int wf_dataset_find(const wf_dataset *d, const char *name);

/* How records lie in what is read: full blocks of so many, and as many blocks as are held at one
 * time (order.h). Both are 0 when any record is as near as any other. */
void wf_dataset_blocks(const wf_dataset *d, uint64_t *block, uint64_t *window);

/* The file that a record of a field is in, borrowed, and in *record its number there. Of text the
 * first file, and the number among the records of all; NULL when there is none (synthetic). */
const char *wf_dataset_file(const wf_dataset *d, uint32_t field, uint64_t *record);

/* Which files the records are of, one after the other: file i of the first field, as it was found
 * ("#NAME" behind it if it has one), and how many there are in it, held out or not. *path is
 * borrowed. False when there is no file i. */
bool wf_dataset_part(const wf_dataset *d, size_t i, const char **path, uint64_t *records);

/* Writes records at[n] (each < wf_dataset_records) of a field, through its steps, into out, which
 * has room for n * record_bytes and is aligned to its dtype. Arrays cannot fail. Errors, of text:
 * WF_INVALID naming file, line and column of a cell that is no number, word or class, or for a file
 * that has changed; WF_IO; WF_NOMEM. */
WF_MUST_USE wf_status wf_dataset_gather(const wf_dataset *d, uint32_t field, const uint64_t at[],
                                        size_t n, void *out, wf_err *err);

/* The same in an epoch of training, which crops and flips go by; wf_dataset_gather is of epoch 0.
 * Errors: WF_NOMEM of arrays too, with crop or flip. */
WF_MUST_USE wf_status wf_dataset_gather_in(const wf_dataset *d, uint32_t field, uint64_t epoch,
                                           const uint64_t at[], size_t n, void *out, wf_err *err);

/* Smallest and largest element of an array's field as its file has it (not through the steps), and
 * the first record that holds each. Zeroes for an empty field, and for text (survey.h). NaN counts
 * as neither. */
typedef struct wf_field_range {
    double least, most;
    uint64_t least_at, most_at; /* records, from 0 */
    double broken;              /* the first that is no whole number, and its record; 0: none */
    uint64_t broken_at;
} wf_field_range;
wf_field_range wf_dataset_range(const wf_dataset *d, uint32_t field);

/* Checks that a field holds whole labels 0 .. classes-1: of arrays now, of text when a record is
 * gathered. Errors: WF_INVALID, naming file, record and label. */
WF_MUST_USE wf_status wf_dataset_check_labels(wf_dataset *d, uint32_t field, int64_t classes,
                                              wf_err *err);

/* The same for labels that must be from 0 to 1, once their steps are done: yes and no as 1 and 0,
 * or a chance. */
WF_MUST_USE wf_status wf_dataset_check_shares(wf_dataset *d, uint32_t field, wf_err *err);

#endif
