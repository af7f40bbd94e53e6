/* SPDX-License-Identifier: Apache-2.0 */
/* bench/optim.c - how fast update rules run: GB/s over all arrays read and written, best of many.
 *
 * 100,000 weights (1.6 MB with Adam's slots: the second cache) and 8 million (memory). The portable
 * form is what a processor without AVX2 gets.
 */
#include "common/base/clock.h"
#include "common/optim/rule.h"

#include <stdio.h>
#include <stdlib.h>

static double best_ns(const wf_opt *opt, wf_update *update, size_t n, float *const slots[],
                      float *w, const float *g)
{
    double best = 1e30;

    for (int repeat = 0; repeat < 40; repeat++) {
        int64_t from = wf_now_ns(), took;

        update(opt->values, 1 + (uint64_t)repeat, n, w, g, slots);
        took = wf_now_ns() - from;
        best = (double)took < best ? (double)took : best;
    }
    return best;
}

static void measure(const char *rule, size_t n)
{
    float *arrays[2 + WF_MAX_SLOTS] = {0};
    uint32_t n_slots;
    double bytes, fast, plain;
    wf_opt opt;

    if (wf_opt_init(&opt, rule, 0, NULL, NULL, NULL) != WF_OK)
        return;
    n_slots = wf_opt_n_slots(&opt);
    for (uint32_t k = 0; k < 2 + n_slots; k++) {
        arrays[k] = aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64);
        if (!arrays[k])
            exit(1);
        for (size_t i = 0; i < n; i++)
            arrays[k][i] =
                k < 2 ? (float)(i % 101) * 0.01f - 0.5f : wf_opt_slot_initial(&opt, k - 2);
    }
    fast = best_ns(&opt, opt.rule->update, n, arrays + 2, arrays[0], arrays[1]);
    plain = best_ns(&opt, opt.rule->portable, n, arrays + 2, arrays[0], arrays[1]);
    bytes = (double)n * sizeof(float) * (3 + 2 * n_slots); /* g once, the others read and written */
    printf("%-9s %8zu weights  %8.1f us  %6.1f GB/s   portable %6.1f GB/s\n", rule, n, fast / 1e3,
           bytes / fast, bytes / plain);
    for (uint32_t k = 0; k < 2 + n_slots; k++)
        free(arrays[k]);
}

int main(void)
{
    static const size_t sizes[] = {100000, 8000000};

    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; wf_rules[i]; i++)
            measure(wf_rules[i]->name, sizes[k]);
    return 0;
}
