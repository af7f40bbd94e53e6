/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/nearest.c - Damerau-Levenshtein distance with adjacent swaps (optimal string
 * alignment), on words of bounded length. */
#include "common/base/nearest.h"
#include "common/base/size.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 48 };

static int same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static unsigned distance(const char *a, const char *b)
{
    unsigned d[LONGEST + 1][LONGEST + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            unsigned cost = same(a[i - 1], b[j - 1]) ? 0 : 1;
            unsigned best = WF_MIN(d[i - 1][j] + 1, d[i][j - 1] + 1);

            best = WF_MIN(best, d[i - 1][j - 1] + cost);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                best = WF_MIN(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *wf_nearest(const char *given, const char *const words[], size_t n)
{
    unsigned allowed = (unsigned)WF_MAX(strlen(given) / 3, (size_t)1), least = allowed + 1;
    const char *found = NULL;

    for (size_t i = 0; i < n; i++) {
        unsigned d = distance(given, words[i]);

        if (d < least) {
            least = d;
            found = words[i];
        }
    }
    return found;
}
