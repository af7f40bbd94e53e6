/* SPDX-License-Identifier: Apache-2.0 */
/* ps/rows.c - the rows of tables that a pull asks for, which are kept until they are answered. */
#include "ps/state.h"

#include <stdlib.h>
#include <string.h>

/* The place in the list of the slice that a part names rows of. Errors: WF_PROTO, WF_SHAPE. */
static wf_status check_part(const wf_ps *ps, const wf_ps_list *list, const wf_msg *m,
                            const wf_part *p, uint32_t *at, wf_err *err)
{
    const wf_slice *s = wf_ps_slice(ps, p->slice);
    wf_rows rows = wf_part_rows(m, p);

    *at = s && list->where ? list->where[ps->place[p->slice]] : 0;
    if (*at == 0)
        return wf_fail(err, WF_PROTO, NULL, "a pull asks for rows of slice %u, not of its list",
                       p->slice);
    --*at;
    if (!s->ops->answer_rows)
        return wf_fail(err, WF_PROTO, NULL, "a pull asks for rows of slice %u, which is no table's",
                       p->slice);
    return s->ops->check_rows(s, &rows, err);
}

wf_status wf_ps_check_rows(const wf_ps *ps, const wf_ps_list *list, const wf_msg *m,
                           const wf_part parts[], uint32_t n, wf_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at;

        WF_TRY(check_part(ps, list, m, &parts[i], &at, err));
    }
    return WF_OK;
}

static bool is_table(const wf_ps *ps, const wf_ps_list *list, uint32_t at)
{
    return ps->slices[list->slices[at]]->ops->answer_rows != NULL;
}

/* Slices of tables that the pull does not name have nothing to answer. */
static void pass_over(const wf_ps *ps, const wf_ps_list *list, wf_ps_pull *pull)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (is_table(ps, list, i) && pull->rows[i].n == 0) {
            pull->answered[i] = 1;
            pull->left--;
        }
}

static void drop_ids(wf_ps_pull *pull)
{
    for (uint32_t i = 0; i < pull->n_ids; i++)
        wf_buf_unref(&pull->ids[i]);
    free(pull->ids);
    pull->ids = NULL;
    pull->n_ids = 0;
}

wf_status wf_ps_take_rows(const wf_ps *ps, const wf_ps_list *list, const wf_msg *m,
                          const wf_part parts[], uint32_t n, wf_ps_pull *pull, wf_err *err)
{
    wf_ps_drop_rows(pull);
    pull->rows = calloc(list->n + 1, sizeof *pull->rows);
    pull->ids = calloc(m->n_frames + 1, sizeof(*pull->ids));
    if (!pull->rows || !pull->ids)
        return wf_fail_nomem(err, list->n * sizeof *pull->rows);
    for (uint32_t i = 0; i < m->n_frames; i++)
        pull->ids[pull->n_ids++] = wf_buf_ref(m->frames[i].buf);
    for (uint32_t i = 0; i < n; i++)
        pull->rows[list->where[ps->place[parts[i].slice]] - 1] = wf_part_rows(m, &parts[i]);
    pass_over(ps, list, pull);
    return WF_OK;
}

void wf_ps_drop_rows(wf_ps_pull *pull)
{
    drop_ids(pull);
    free(pull->rows);
    pull->rows = NULL;
}
