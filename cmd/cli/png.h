/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/png.h - an SVG picture as a PNG file. */
#ifndef WF_CMD_CLI_PNG_H
#define WF_CMD_CLI_PNG_H

#include "common/base/bytes.h"
#include "common/base/status.h"

/* Has rsvg-convert draw the picture, two pixels to a unit, and writes it in one step (see
 * wf_file_write). Errors: WF_UNSUPPORTED, with the package, where the program is not installed;
 * WF_IO with what it said when it fails; those of wf_file_write. */
WF_MUST_USE wf_status wf_png_write(const wf_bytes *svg, const char *file, wf_err *err);

#endif
