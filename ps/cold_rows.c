/* SPDX-License-Identifier: Apache-2.0 */
/* ps/cold_rows.c */
#include "ps/cold_rows.h"
#include "common/base/size.h"

enum { BLOCK = 64 /* rows that are looked for together */ };

void wf_cold_rows_init(wf_cold_rows *c, const char *folder, uint32_t bucket, uint32_t body)
{
    wf_row_set_init(&c->heads, bucket, 0, true);
    wf_file_array_init(&c->bodies, folder, body);
}

void wf_cold_rows_close(wf_cold_rows *c)
{
    wf_row_set_close(&c->heads);
    wf_file_array_close(&c->bodies);
}

wf_status wf_cold_rows_reserve(wf_cold_rows *c, uint64_t more, uint64_t eras, wf_err *err)
{
    WF_TRY(wf_row_set_reserve(&c->heads, more, eras, err));
    return wf_file_array_reserve(&c->bodies, wf_cold_rows_n(c) + (uint32_t)more, err);
}

void *wf_cold_rows_add(wf_cold_rows *c, uint64_t key, uint32_t used)
{
    return wf_cold_rows_body(c, wf_row_set_add(&c->heads, key, used));
}

/* C1 */
void wf_cold_rows_remove(wf_cold_rows *c, int32_t row)
{
    int32_t last = (int32_t)wf_cold_rows_n(c) - 1;

    if (row != last)
        memcpy(wf_cold_rows_body(c, row), wf_cold_rows_body(c, last), c->bodies.each);
    wf_row_set_remove(&c->heads, row);
}

void wf_cold_rows_trim(wf_cold_rows *c)
{
    wf_row_set_trim(&c->heads);
    wf_file_array_trim(&c->bodies, wf_cold_rows_n(c));
}

/* One after the other they would each wait for the disk. A single one gains nothing. */
static void fetch(const wf_cold_rows *c, const int32_t found[], uint64_t n, uint64_t n_found)
{
    for (uint64_t i = 0; n_found > 1 && i < n; i++)
        if (wf_is_cold_row(found[i]))
            wf_file_array_fetch(&c->bodies, (uint32_t)wf_cold_row(found[i]), 1);
}

static void find_block(const wf_cold_rows *c, const wf_rows *rows, uint64_t first, uint64_t n,
                       int32_t out[])
{
    uint64_t n_found = 0;

    for (uint64_t i = 0; i < n; i++)
        if (out[i] == WF_NO_RECORD)
            wf_key_index_prefetch(&c->heads.index, wf_row_id(rows, first + i));
    for (uint64_t i = 0; i < n; i++)
        if (out[i] == WF_NO_RECORD)
            wf_key_index_prefetch_record(&c->heads.index, &c->heads.records,
                                         wf_row_id(rows, first + i));
    for (uint64_t i = 0; i < n; i++) {
        int32_t row = out[i] == WF_NO_RECORD
                          ? wf_row_set_find(&c->heads, wf_row_id(rows, first + i))
                          : WF_NO_RECORD;

        if (row == WF_NO_RECORD)
            continue;
        out[i] = wf_cold_row(row);
        n_found++;
    }
    fetch(c, out, n, n_found);
}

void wf_cold_rows_find_all(const wf_cold_rows *c, const wf_rows *rows, uint64_t first, uint64_t n,
                           int32_t out[])
{
    for (uint64_t i = 0, some; wf_cold_rows_n(c) > 0 && i < n; i += some) {
        some = WF_MIN(n - i, (uint64_t)BLOCK);
        find_block(c, rows, first + i, some, out + i);
    }
}

size_t wf_cold_rows_bytes(const wf_cold_rows *c)
{
    return wf_row_set_bytes(&c->heads) + wf_file_array_bytes(&c->bodies);
}

uint64_t wf_cold_rows_on_disk(const wf_cold_rows *c)
{
    return wf_file_array_on_disk(&c->bodies);
}
