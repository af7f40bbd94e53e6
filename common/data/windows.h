/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/windows.h - running text as records: windows of tokens that begin equally far apart.
 * For this room only.
 *
 * A block holds the text of its windows up to the end of the last, so that neighbouring blocks may
 * lie over each other. What one pass keeps of a file is a note of each block, and of the windows
 * that have begun and not ended.
 */
#ifndef WF_DATA_WINDOWS_H
#define WF_DATA_WINDOWS_H

#include "common/data/stock.h"

/* Takes stock of files that are open, whose form has a window. *again: the blocks were too large,
 * and s->block is smaller now. Errors: those of wf_ranges_scan; WF_INVALID for files without a
 * window, a token or a window of too many bytes, or what is no UTF-8. */
WF_MUST_USE wf_status wf_windows_take(wf_stock *s, bool *again, wf_err *err);
/* Of wf_stock_find. */
bool wf_windows_find(const wf_stock *s, size_t block, const char *text, uint32_t begins[]);

#endif
