/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/plugin.c - weft-cuda.so of a host without a GPU, for tests of whole programs: what
 * they load when WEFT_CUDA names it has the devices cuda:0 and cuda:1, which are host.h's.
 *
 * WEFT_CUDA_HOST says what is wrong with them, by words between blanks: gpus=0, major=7,
 * memory=BYTES, fail=CALL (a member of wf_cuda_calls), after=N, error=N. With tell=FILE a process
 * writes there at its end how many bytes it has copied to and from them, and how many of both
 * without memory that is pinned, how often it waited for an event behind which more was queued, and
 * how many bytes it has copied within them.
 */
#include "common/kernels/cuda/plugin.h"
#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/planned.h"
#include "tests/cuda/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct wrong {
    int gpus, major, after, error, memory;
    char call[64], tell[512];
} wrong;

static void read_word(const char *word, wrong *w)
{
    if (sscanf(word, "gpus=%d", &w->gpus) == 1 || sscanf(word, "major=%d", &w->major) == 1 ||
        sscanf(word, "after=%d", &w->after) == 1 || sscanf(word, "error=%d", &w->error) == 1 ||
        sscanf(word, "memory=%d", &w->memory) == 1 || sscanf(word, "fail=%63s", w->call) == 1 ||
        sscanf(word, "tell=%511s", w->tell) == 1)
        return;
    fprintf(stderr, "WEFT_CUDA_HOST: what is \"%s\"?\n", word);
    abort();
}

static const char *told; /* a file */

static void tell(void)
{
    cuda_host_counts counts = cuda_host_count();
    FILE *f = fopen(told, "w");

    if (!f)
        abort();
    fprintf(f, "%zu %zu %zu %zu %zu\n", counts.bytes_in, counts.bytes_out, counts.bytes_by_hand,
            counts.ahead, counts.bytes_within);
    fclose(f);
}

static void set_up(void)
{
    static wrong w; /* whose words stay */
    const char *given = getenv("WEFT_CUDA_HOST");
    char *words = strdup(given ? given : ""), *rest = words;

    w = (wrong){.gpus = 2, .major = 9};
    for (char *word; words && (word = strsep(&rest, " "));)
        if (word[0])
            read_word(word, &w);
    cuda_host_keep_code();
    cuda_host_has(w.gpus, w.major);
    if (w.memory)
        cuda_host_has_memory((size_t)w.memory);
    if (w.call[0])
        cuda_host_fail(w.call, w.after, w.error);
    told = w.tell[0] ? w.tell : NULL;
    if (told)
        atexit(tell);
    free(words);
}

void weft_cuda_log(const char *who, wf_log_level least)
{
    wf_log_init(who, least);
}

wf_status weft_cuda_device(int index, const wf_device_rows **out, wf_err *err)
{
    static bool is_set_up;
    wf_cuda_gpu *g = NULL;

    if (!is_set_up)
        set_up();
    is_set_up = true;
    WF_TRY(wf_cuda_open(&wf_cuda_host, "cuda", index, &g, err));
    *out = &g->rows;
    return WF_OK;
}

wf_status weft_cuda_planned_device(int index, const wf_device_rows **out, wf_err *err)
{
    wf_cuda_gpu *g = NULL;

    WF_TRY(wf_cuda_open(&wf_cuda_planned, "cuda", index, &g, err));
    *out = &g->rows;
    return WF_OK;
}
