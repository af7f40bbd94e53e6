/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/term.h - what the other end of a stream can show. */
#ifndef WF_CMD_CLI_TERM_H
#define WF_CMD_CLI_TERM_H

#include "common/base/cc.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct wf_term {
    bool tty;    /* a person may be watching, and lines can be drawn over */
    bool color;  /* tty, no NO_COLOR, TERM is not dumb */
    bool utf8;   /* the locale shows UTF-8 */
    int columns; /* COLUMNS, or the terminal's, or 80 */
    int rows;    /* the terminal's, or 24 */
} wf_term;

wf_term wf_term_of(FILE *f);

typedef enum wf_style { WF_PLAIN, WF_BOLD, WF_DIM, WF_RED, WF_GREEN, WF_YELLOW } wf_style;
/* The escape sequence that begins a style, "" without colour. WF_PLAIN ends any. */
const char *wf_term_style(const wf_term *t, wf_style style);

/* How many of the n bytes of a UTF-8 text fit into so many columns. */
size_t wf_text_fits(const char *text, size_t n, size_t columns);

/* printf for all that may hold a name or a sentence from a file or a peer: control characters but
 * newlines are escaped (common/base/text.h). Colours are printed by others. */
void wf_term_print(FILE *f, const char *fmt, ...) WF_PRINTF(2, 3);

/* "1.6 MiB", "212 KiB", "17 B" into text. */
const char *wf_bytes_text(unsigned long long bytes, char *text, size_t size);
/* "31 200" - thousands apart - into text. */
const char *wf_count_text(unsigned long long n, char *text, size_t size);
/* "0:14", "1:02:33" into text; "-" for a negative one. */
const char *wf_seconds_text(double seconds, char *text, size_t size);

#endif
