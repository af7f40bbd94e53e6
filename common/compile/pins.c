/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/pins.c - variables that a job wants on one ps. */
#include "common/base/nearest.h"
#include "common/compile/pass.h"
#include <fnmatch.h>
#include <stdlib.h>

/* Whether slices of it lie on ps. */
static bool may_pin(const wf_unit *u, const wf_compiled_variable *v)
{
    return v->on_ps && (!u->spec->strategy->on_worker || v->is_table);
}

static wf_status pins_nothing(const wf_unit *u, const wf_conf_pin *pin, wf_err *err)
{
    const char **names = calloc(u->c->n_variables + 1, sizeof(*names)), *near = NULL;
    wf_status rc;
    size_t n = 0;

    for (size_t i = 0; names && i < u->c->n_variables; i++)
        if (may_pin(u, &u->c->variables[i]))
            names[n++] = u->c->variables[i].name;
    if (n)
        near = wf_nearest(pin->match, names, n);
    if (!near && n)
        near = names[0];
    rc = wf_unit_in_file(u, pin->line,
                         wf_fail(err, WF_USAGE, NULL,
                                 "pin: \"%.200s\" matches no variable on a ps%s%s%s", pin->match,
                                 near ? "; there is \"" : "", near ? near : "", near ? "\"" : ""),
                         err);
    free(names);
    return rc;
}

/* In the eval graph only those variables are left that it alone has. */
wf_status wf_unit_pin(wf_unit *u, wf_err *err)
{
    uint32_t n_ps = u->spec->n_ps;

    for (size_t k = 0; k < u->spec->n_pins; k++) {
        const wf_conf_pin *pin = &u->spec->pins[k];
        bool any = false;

        if (pin->ps >= n_ps)
            return wf_unit_in_file(
                u, pin->line,
                wf_fail(err, WF_USAGE, NULL,
                        "pin: \"%.200s\" is to lie on ps/%u, and there are %u ps, from ps/0",
                        pin->match, pin->ps, n_ps),
                err);
        for (size_t i = 0; i < u->c->n_variables; i++) {
            wf_compiled_variable *v = &u->c->variables[i];

            if (!may_pin(u, v) || fnmatch(pin->match, v->name, 0) != 0)
                continue;
            any = true;
            if (!v->pinned)
                v->pinned_to = pin->ps;
            v->pinned = true;
        }
        if (!any && u->spec->mode == WF_COMPILE_TRAIN)
            return pins_nothing(u, pin, err);
    }
    return WF_OK;
}
