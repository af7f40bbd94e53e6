/* SPDX-License-Identifier: Apache-2.0 */
/* tests/parity/optim_tool.c - an update rule over many steps, for optim.py to compare.
 *
 *   optim_tool RULE N STEPS [OPTION=VALUE ...] < first and gradients > weights after each step
 *
 * All f32, little-endian: N weights, then STEPS times N gradients; out come STEPS times N weights.
 */
#include "common/optim/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t read_options(int argc, char *argv[], const char *names[], double values[])
{
    uint32_t n = 0;

    for (int i = 4; i < argc && n < WF_MAX_SETTINGS; i++) {
        char *sign = strchr(argv[i], '=');

        if (!sign)
            exit(2);
        *sign = 0;
        names[n] = argv[i];
        values[n++] = strtod(sign + 1, NULL);
    }
    return n;
}

static float *array(size_t n)
{
    float *x = calloc(n ? n : 1, sizeof *x);

    if (!x)
        exit(1);
    return x;
}

int main(int argc, char *argv[])
{
    const char *names[WF_MAX_SETTINGS];
    double values[WF_MAX_SETTINGS];
    size_t n = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    unsigned long steps = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    float *w = array(n), *g = array(n), *slots[WF_MAX_SLOTS] = {NULL};
    wf_err err = {0};
    wf_opt opt;
    int rc = 0;

    if (argc < 4 || wf_opt_init(&opt, argv[1], read_options(argc, argv, names, values), names,
                                values, &err) != WF_OK) {
        fprintf(stderr, "error: %s\n", err.what);
        return 1;
    }
    for (uint32_t k = 0; k < wf_opt_n_slots(&opt); k++) {
        slots[k] = array(n);
        for (size_t i = 0; i < n; i++)
            slots[k][i] = wf_opt_slot_initial(&opt, k);
    }
    rc = fread(w, sizeof *w, n, stdin) != n;
    for (unsigned long t = 1; !rc && t <= steps; t++) {
        rc = fread(g, sizeof *g, n, stdin) != n;
        if (!rc)
            wf_opt_apply(&opt, t, n, w, g, slots);
        rc = rc || fwrite(w, sizeof *w, n, stdout) != n;
    }
    for (uint32_t k = 0; k < WF_MAX_SLOTS; k++)
        free(slots[k]);
    free(w);
    free(g);
    return rc;
}
