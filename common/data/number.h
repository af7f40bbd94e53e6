/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/number.h - numbers from text, whatever the locale is. For this room only. */
#ifndef WF_DATA_NUMBER_H
#define WF_DATA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The nearest double of a decimal number, as strtod has it. False: not all of the n bytes are one
 * finite number, as infinity, NaN, hexadecimal digits and an exponent beyond doubles are not. */
bool wf_number_f64(const char *text, size_t n, double *out);
/* The same of a number that text up to `end` begins with. Where it ends; NULL: there is none. */
const char *wf_number_read(const char *text, const char *end, double *out);
/* A whole number in decimal digits. False: it is none, or does not fit. */
bool wf_number_i64(const char *text, size_t n, int64_t *out);

#endif
