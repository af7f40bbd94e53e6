/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/logged.h - a kind of slice that keeps a line for every part that it applied, beside
 * values like those of a dense one. It proves that a ps knows slices by their interface alone, and
 * what happened to a slice can be read from it: the log is saved, restored, copied and moved with
 * the values.
 *
 * A part with row ids is taken as a gradient that is 0 elsewhere: a slice of n rows of width w has
 * n * w elements, and the ids are below n.
 */
#ifndef WF_TESTS_KIT_LOGGED_H
#define WF_TESTS_KIT_LOGGED_H

#include "ps/slice_ops.h"
#include <stdint.h>

typedef struct wf_logged_line {
    uint64_t incarnation;
    uint32_t step, generation;
    uint64_t rows; /* that the part named; 0: it was dense */
} wf_logged_line;

extern const wf_slice_ops wf_slice_logged;
/* For wf_ps_conf.kinds. */
extern const wf_slice_ops *const wf_logged_kinds[];

/* The lines of a slice, borrowed until it is changed; NULL with *n 0 for a slice of another kind.
 */
const wf_logged_line *wf_logged_lines(const wf_slice *s, uint64_t *n);

#endif
