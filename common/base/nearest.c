/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/nearest.c - Damerau-Levenshtein distance with adjacent swaps (optimal string
 * alignment), on words of bounded length. */
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/base/synonyms.h"

#include <ctype.h>
#include <stdio.h>
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

/* Meaning `i` and later ones that are among the words; *i is that of the next. */
static const char *meant(const char *given, const char *const words[], size_t n, size_t *i)
{
    const char *meaning;

    while ((meaning = wf_synonym(given, (*i)++)))
        for (size_t k = 0; k < n; k++)
            if (strcmp(words[k], meaning) == 0)
                return words[k];
    return NULL;
}

const char *wf_nearest(const char *given, const char *const words[], size_t n)
{
    unsigned allowed = (unsigned)WF_MAX(strlen(given) / 3, (size_t)1), least = allowed + 1;
    size_t meaning = 0;
    const char *found = meant(given, words, n, &meaning);

    if (found)
        return found;
    for (size_t i = 0; i < n; i++) {
        unsigned d = distance(given, words[i]);

        if (d < least) {
            least = d;
            found = words[i];
        }
    }
    return found;
}

/* The words, as many as fit beside "and 123 more; see ...". */
static void list_words(const char *const words[], size_t n, const char *see, char *hint)
{
    size_t all = strlen("known: "), at, shown, room = WF_NEAREST_HINT;

    for (size_t i = 0; i < n; i++)
        all += strlen(words[i]) + (i ? strlen(", ") : 0);
    if (all >= room)
        room -=
            (size_t)snprintf(NULL, 0, " and %zu more%s%s", n, see ? "; see " : "", see ? see : "");
    at = (size_t)snprintf(hint, WF_NEAREST_HINT, "known:");
    for (shown = 0; shown < n && at + strlen(words[shown]) + strlen(", ") < room; shown++)
        at += (size_t)snprintf(hint + at, WF_NEAREST_HINT - at, "%s %s", shown ? "," : "",
                               words[shown]);
    if (shown < n)
        snprintf(hint + at, WF_NEAREST_HINT - at, " and %zu more%s%s", n - shown,
                 see ? "; see " : "", see ? see : "");
}

const char *wf_nearest_hint(const char *given, const char *const words[], size_t n, const char *see,
                            char hint[static WF_NEAREST_HINT])
{
    const char *near = wf_nearest(given, words, n), *other;
    size_t i = 0, at;

    if (!near) {
        list_words(words, n, see, hint);
        return hint;
    }
    at = (size_t)snprintf(hint, WF_NEAREST_HINT, "did you mean \"%.64s\"", near);
    if (meant(given, words, n, &i) == near)
        while ((other = meant(given, words, n, &i)) && at < WF_NEAREST_HINT - 80)
            at += (size_t)snprintf(hint + at, WF_NEAREST_HINT - at, " or \"%.64s\"", other);
    snprintf(hint + at, WF_NEAREST_HINT - at, "?");
    return hint;
}
