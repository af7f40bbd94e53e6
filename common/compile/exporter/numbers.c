/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/exporter/numbers.c - initializers that were taken for numbers of a formula, like
 * the scale of attention. PyTorch's files have few, and a parameter of the model may be among
 * them; in other files they are the rule. */
#include "common/compile/exporter/exporter.h"

#include <string.h>

wf_status wf_finding_numbers(wf_unit *u, const wf_exporter *by, wf_err *err)
{
    const wf_origin *o = &u->graph->origin;

    (void)by;
    if (!o->n_numbers || strcmp(o->producer, "pytorch") != 0)
        return WF_OK;
    if (o->n_numbers == 1)
        return wf_unit_warn(u, err,
                            "\"%.100s\" has one element and a name that the exporter made up: it "
                            "is a constant; if it is to be trained, name it under \"trainable\"",
                            o->numbers[0]);
    return wf_unit_warn(u, err,
                        "\"%.100s\" and %zu more have one element and names that the exporter made "
                        "up: they are constants; what is to be trained, name under \"trainable\"",
                        o->numbers[0], o->n_numbers - 1);
}
