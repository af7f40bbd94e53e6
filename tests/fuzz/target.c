/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/target.c - the door by which libFuzzer comes in. */
#include "tests/fuzz/target.h"
#include "tests/fuzz/fuzz.h"

#include <cblas.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    openblas_set_num_threads(1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    wf_fuzz(data, n);
    return 0;
}
