/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/variables.h - what clients do with variables of containers, and where these live.
 *
 * A variable lies whole on one ps, which follows from its container and name: every task and client
 * of a cluster finds it without asking.
 */
#ifndef WF_WIRE_VARIABLES_H
#define WF_WIRE_VARIABLES_H

#include "common/wire/grammar.h"
#include <stdbool.h>
#include <stdint.h>

/* The numbers are the protocol's. */
typedef enum wf_variable_action {
    WF_VARIABLE_READ = 1,
    WF_VARIABLE_CREATE, /* with a first value; one that is there stays as it is */
    WF_VARIABLE_ASSIGN,
    WF_VARIABLE_ADD,
    WF_VARIABLE_REMOVE,
    WF_N_VARIABLE_ACTIONS
} wf_variable_action;

enum { WF_CONTAINER_NAME = 200, WF_VARIABLE_NAME = 1000 /* bytes, without the zero */ };

/* Whether an action changes something, and has a sequence; and whether a tensor comes with it. */
static inline bool wf_variable_changes(uint32_t action)
{
    return action > WF_VARIABLE_READ && action < WF_N_VARIABLE_ACTIONS;
}
static inline bool wf_variable_brings(uint32_t action)
{
    return action >= WF_VARIABLE_CREATE && action <= WF_VARIABLE_ADD;
}

/* The number of its ps, of n_ps >= 1. */
uint32_t wf_variable_home(const char *container, const char *name, uint32_t n_ps);

#endif
