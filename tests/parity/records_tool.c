/* SPDX-License-Identifier: Apache-2.0 */
/* tests/parity/records_tool.c JOB.yaml FIELD FILE - all records of a file as the job's model takes
 * the field: its shape as a line of numbers, and behind it the numbers, int64. */
#include "lib/weft.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char *argv[])
{
    weft_job *j = NULL;
    weft_tensor *t = NULL;
    weft_error error;
    weft_code code = argc == 4 ? weft_job_open(argv[1], &j, &error) : WEFT_USAGE;

    if (argc != 4)
        snprintf(error.message, sizeof error.message, "usage: records_tool JOB.yaml FIELD FILE");
    if (code == WEFT_OK)
        code = weft_job_records(j, NULL, argv[2], argv[3], WEFT_I64, &t, &error);
    if (code != WEFT_OK) {
        fprintf(stderr, "%s\n", error.message);
        weft_job_free(&j);
        return 1;
    }
    for (int32_t i = 0; i < t->rank; i++)
        printf("%" PRId64 "%s", t->shape[i], i + 1 < t->rank ? " " : "\n");
    fwrite(t->data, sizeof(int64_t), (size_t)weft_tensor_elements(t), stdout);
    weft_tensor_free(&t);
    weft_job_free(&j);
    return 0;
}
