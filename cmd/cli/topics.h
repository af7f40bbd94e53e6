/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/topics.h - lists of what a job file may say, printed from the tables that read it. */
#ifndef WF_CMD_CLI_TOPICS_H
#define WF_CMD_CLI_TOPICS_H

#include <stdbool.h>
#include <stddef.h>

/* Prints the list on stdout; false when there is no such topic. */
bool wf_topic_print(const char *name);
/* The name of topic i, NULL past the end. */
const char *wf_topic_at(size_t i);

#endif
