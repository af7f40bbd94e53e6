/* SPDX-License-Identifier: Apache-2.0 */
/* master/job/lines.c */
#include "master/job/lines.h"

#include <stdlib.h>
#include <string.h>

/* What comes again and again while a job runs well. */
static bool is_regular(const char *text)
{
    static const char *const kinds[] = {"job.epoch ", "ckpt.saved "};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(text, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* The oldest line of the kind that has more than its half, or of either. */
static uint32_t line_to_drop(const wf_job_lines *l)
{
    uint32_t regular = 0, at = 0;

    for (uint32_t i = 0; i < l->n; i++)
        regular += l->kept[i].is_regular;
    if (2 * regular == l->n)
        return 0;
    while (l->kept[at].is_regular != (2 * regular > l->n))
        at++;
    return at;
}

void wf_job_lines_add(wf_job_lines *l, const char *text)
{
    char *copy = strdup(text);

    if (!l->kept)
        l->kept = calloc(WF_JOB_LINES, sizeof *l->kept);
    if (!copy || !l->kept) {
        free(copy);
        return;
    }
    if (l->n == WF_JOB_LINES) {
        uint32_t at = line_to_drop(l);

        free(l->kept[at].text);
        memmove(l->kept + at, l->kept + at + 1, (l->n - at - 1) * sizeof *l->kept);
        l->n--;
    }
    l->kept[l->n++] =
        (wf_job_line){.number = l->told++, .is_regular = is_regular(text), .text = copy};
}

void wf_job_lines_close(wf_job_lines *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        free(l->kept[i].text);
    free(l->kept);
    *l = (wf_job_lines){0};
}
