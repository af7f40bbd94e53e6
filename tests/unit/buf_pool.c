/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/buf_pool.c - buffers that are used again: never by two, of at least their size, kept
 * up to a limit, let go of on any thread, also after the pool. */
#include "common/wire/buf_pool.h"
#include "common/base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

enum { KEEP = 1 << 20, ROUNDS = 20000, OUT = 16 };

static void memory_is_used_again(void **state)
{
    wf_buf_pool *p = wf_buf_pool_new(KEEP);
    wf_buf *b = wf_buf_pool_take(p, 100000);
    void *first = b->data;

    (void)state;
    assert_int_equal(b->bytes, 100000);
    assert_int_equal((uintptr_t)b->data % WF_BUF_ALIGN, 0);
    for (size_t i = 0; i < b->bytes; i++)
        assert_int_equal(((uint8_t *)b->data)[i], 0);
    wf_buf_unref(&b);
    b = wf_buf_pool_take(p, 90000);
    assert_ptr_equal(b->data, first);
    assert_int_equal(b->bytes, 90000);
    wf_buf_unref(&b);
    wf_buf_pool_close(&p);
    assert_null(p);
}

static void more_than_the_limit_is_given_back(void **state)
{
    wf_buf_pool *p = wf_buf_pool_new(KEEP);
    wf_buf *a = wf_buf_pool_take(p, KEEP), *b = wf_buf_pool_take(p, KEEP);

    (void)state;
    wf_buf_unref(&a); /* is kept */
    wf_buf_unref(&b); /* is freed: a sanitizer would see it if it were kept or freed twice */
    a = wf_buf_pool_take(p, KEEP);
    assert_non_null(a);
    wf_buf_pool_close(&p);
    memset(a->data, 1, KEEP); /* outlives its pool */
    wf_buf_unref(&a);
}

/* Takes and lets go of buffers of many sizes; what one holds nobody else writes. */
static void *take_many(void *pool)
{
    wf_buf *out[OUT] = {0};
    uint64_t r = (uintptr_t)&out | 1;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        wf_buf **at = &out[(r >> 33) % OUT];
        uint8_t mark = (uint8_t)(uintptr_t)at;

        r = r * 6364136223846793005u + 1442695040888963407u;
        if (*at) {
            const uint8_t *data = (*at)->data;

            if (data[0] != mark || data[(*at)->bytes - 1] != mark)
                return NULL;
            wf_buf_unref(at);
        } else {
            *at = wf_buf_pool_take(pool, 1 + (r >> 40) % 30000);
            if (!*at)
                return NULL;
            ((uint8_t *)(*at)->data)[0] = ((uint8_t *)(*at)->data)[(*at)->bytes - 1] = mark;
        }
    }
    for (uint32_t i = 0; i < OUT; i++)
        wf_buf_unref(&out[i]);
    return pool;
}

static void threads_share_a_pool(void **state)
{
    wf_buf_pool *p = wf_buf_pool_new(KEEP);
    pthread_t threads[4];

    (void)state;
    for (size_t i = 0; i < WF_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, p), 0);
    for (size_t i = 0; i < WF_COUNT(threads); i++) {
        void *done = NULL;

        pthread_join(threads[i], &done);
        assert_ptr_equal(done, p);
    }
    wf_buf_pool_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(more_than_the_limit_is_given_back),
        cmocka_unit_test(threads_share_a_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
