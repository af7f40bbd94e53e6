/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/variables.c */
#include "common/wire/variables.h"

#include <string.h>
#include <xxhash.h>

uint32_t wf_variable_home(const char *container, const char *name, uint32_t n_ps)
{
    uint64_t seed = XXH3_64bits(container, strlen(container));

    return (uint32_t)(XXH3_64bits_withSeed(name, strlen(name), seed) % n_ps);
}
