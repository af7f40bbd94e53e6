/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/libsvm_record.h - a line "LABEL INDEX:VALUE INDEX:VALUE ..." as a label and pairs,
 * one after the other. For this room only.
 *
 * Indices rise along the line. Blanks separate; a # ends the record, and what is behind it is a
 * comment.
 */
#ifndef WF_DATA_LIBSVM_RECORD_H
#define WF_DATA_LIBSVM_RECORD_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a record has been read. */
typedef struct wf_libsvm_record {
    const char *at, *end;
    uint64_t base;  /* of indices: that of the first feature, 0 or 1 */
    uint64_t least; /* that the next index may be */
} wf_libsvm_record;

/* Begins to read a record of n bytes without a line end, and gives its label. Errors: WF_INVALID.
 */
WF_MUST_USE wf_status wf_libsvm_begin(wf_libsvm_record *r, const char *text, size_t n,
                                      bool zero_based, double *label, wf_err *err);
/* The next pair, with the feature counted from 0; *any is false behind the last. Errors: WF_INVALID
 * for what is no pair, or an index that does not rise; WF_UNSUPPORTED for a query id. */
WF_MUST_USE wf_status wf_libsvm_next(wf_libsvm_record *r, bool *any, uint64_t *feature,
                                     double *value, wf_err *err);
/* The same of one part of the pair, where somebody else reads the other one: a value is passed over
 * up to the next blank, an index up to its colon. False where the pair is not of the plainest form,
 * or there is none: the record is as it was, and wf_libsvm_next tells. */
typedef enum wf_libsvm_part { WF_LIBSVM_INDEX, WF_LIBSVM_VALUE } wf_libsvm_part;
bool wf_libsvm_pass(wf_libsvm_record *r, wf_libsvm_part wanted, uint64_t *feature, double *value);

#endif
