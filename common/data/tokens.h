/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/tokens.h - text as numbered tokens: words, characters or bytes. For this room only.
 *
 * As Keras's TextVectorization has them (keras/src/layers/preprocessing/text_vectorization.py): 0
 * pads, 1 is any token that the vocabulary lacks, and its words count from 2. Letters become small
 * and punctuation is left out in ASCII only, as there. Hashed tokens are numbered from 1, and bytes
 * are the numbers that they are.
 *
 * Threading: any number of threads may read tokens while nobody learns any.
 */
#ifndef WF_DATA_TOKENS_H
#define WF_DATA_TOKENS_H

#include "common/data/bag.h"
#include "common/data/data.h"
#include "common/data/vocabulary.h"

enum { WF_TOKENS_FIRST = 2 /* the number of the first word */ };

/* What becomes of a byte: 0 to 255 is what it is read as. */
enum { WF_BYTE_LEFT_OUT = 256, WF_BYTE_BLANK = 257 };
typedef struct wf_token_bytes {
    uint16_t as[256];
} wf_token_bytes;

/* How the text of a field is read. {0} is empty. */
typedef struct wf_tokens {
    wf_token_form form;
    wf_token_bytes bytes;
    wf_vocabulary *words; /* owned; NULL: tokens are hashed, or bytes */
    bool learns;          /* the words are not known yet: they are counted, and each is 0 */
    uint64_t counts;      /* tokens of a window that are counted */
} wf_tokens;

/* Whether the first step of a field reads tokens. */
bool wf_tokens_are_read(const wf_field_spec *field);
/* Plans the first step of a field; windows say that its length is that of windows. Close *out after
 * an error as well. Errors: WF_USAGE for options that do not go together; those of a file of words;
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_tokens_plan(const wf_field_spec *field, bool windows, wf_tokens *out,
                                     wf_err *err);
void wf_tokens_close(wf_tokens *t);

/* Writes the tokens of a text as out [form.length], cut, or filled up with 0; or, of a bag, as out
 * [bag->most]; bag may be NULL. While words are learnt all are counted. Errors: WF_INVALID for what
 * is no UTF-8 where characters are tokens or words are learnt; that of a bag; WF_FULL; WF_NOMEM. */
WF_MUST_USE wf_status wf_tokens_put(const wf_tokens *t, const wf_bag *bag, const char *text,
                                    size_t n, int64_t out[], wf_err *err);
/* Writes form.length tokens of a text that has them, behind the first `skip`. While words are
 * learnt the first t->counts are counted. Errors: as above; WF_INVALID for too few. */
WF_MUST_USE wf_status wf_tokens_put_window(const wf_tokens *t, const char *text, size_t n,
                                           uint64_t skip, int64_t out[], wf_err *err);

/* ---- where tokens are ---- */

typedef struct wf_token_place {
    uint64_t begin, end, line; /* bytes of the text; the line, from 1, where it begins */
} wf_token_place;
typedef wf_status wf_token_take(void *arg, const wf_token_place *place, wf_err *err);

/* A character of UTF-8 (RFC 3629, section 4), byte by byte. {0} is between two. */
typedef struct wf_utf8 {
    uint8_t left, least, most; /* bytes that it still has, and what the next may be */
} wf_utf8;
/* The next byte; false: it is none that may come here. */
bool wf_utf8_take(wf_utf8 *u, uint8_t byte);

typedef struct wf_token_scan {
    wf_split split;
    wf_token_bytes bytes;
    uint64_t at, line, line_begin; /* of the text */
    wf_token_place token;          /* that has begun */
    bool has_token;
    wf_utf8 character;
} wf_token_scan;

void wf_token_scan_begin(wf_token_scan *s, const wf_token_form *form);
/* The next piece of a text: take gets each token that ends in it. Errors: those of `take`;
 * WF_INVALID for what is no UTF-8 where characters are tokens, which s->line tells the line of. */
WF_MUST_USE wf_status wf_token_scan_piece(wf_token_scan *s, const char *text, size_t n,
                                          wf_token_take *take, void *arg, wf_err *err);
/* The text ends: take gets a word that ends with it. Errors: as above. */
WF_MUST_USE wf_status wf_token_scan_end(wf_token_scan *s, wf_token_take *take, void *arg,
                                        wf_err *err);

#endif
