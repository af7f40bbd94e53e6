/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz.h - what is done with one input: by a fuzzer, and by the replay of its corpus in
 * every build. Each of model.c, data.c and texts.c is one such way, and a program of its own. */
#ifndef WF_TESTS_FUZZ_FUZZ_H
#define WF_TESTS_FUZZ_FUZZ_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads the input as what the program is for, and goes on with it as weft does. Whatever it holds,
 * all that may happen is a refusal in words; anything else ends the process. */
void wf_fuzz(const uint8_t *data, size_t n);

/* A refusal without a sentence helps nobody. */
static inline bool wf_fuzz_refused(wf_status rc, const wf_err *err)
{
    if (rc != WF_OK && !err->what[0]) {
        fprintf(stderr, "refused with status %d and no words\n", (int)rc);
        abort();
    }
    return rc != WF_OK;
}

#endif
