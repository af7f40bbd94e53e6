/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/text.h - text of unknown origin on its way to a terminal or a log.
 *
 * Names and attributes come from files and peers. Sent to a terminal as they are, their control
 * characters can clear the screen, change its title or forge lines. So text is escaped where it
 * leaves: in messages (status.c), log lines (log.c) and what commands print (cmd/cli/term.h).
 */
#ifndef WF_BASE_TEXT_H
#define WF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `in` to out [size], cut to fit between characters, with each byte of these shown as \x1b:
 * control characters (C0, DEL, C1), characters that change the direction or begin a line, bytes
 * that are no UTF-8. Newlines stay if keep_lines. Escaping twice changes nothing more. Returns the
 * length of what is in out. */
size_t wf_text_escape(const char *in, bool keep_lines, char *out, size_t size);
/* Whether all characters of a text are UTF-8. */
bool wf_text_is_utf8(const char *text);

#endif
