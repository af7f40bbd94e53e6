/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/history.h - the numbers of each epoch of a run, for people and their tools, in its
 * folder:
 *
 *   history.csv                      a row for each epoch; after a recovery rows may come again
 *   train/events.out.tfevents.*      scalars for TensorBoard, over the global step
 *   eval/events.out.tfevents.*
 *   train/events.out.tfevents.0.job  the job's text, and the graph of its model without weights
 *
 * One writer per file: each process and each generation begins files of its own, as TensorBoard
 * wants it. Of a generation that goes back, TensorBoard drops the points behind its first step.
 */
#ifndef WF_RUNTIME_HISTORY_H
#define WF_RUNTIME_HISTORY_H

#include "common/conf/run.h"
#include "runtime/background.h"

typedef struct wf_history {
    char run[WF_RUN_NAME]; /* whose files are open */
    int64_t generation;
    char file[128]; /* of TensorBoard's, in each of its folders */
    uint32_t files; /* so many were begun */
} wf_history;

/* Takes an event of a run as the master tells it: `json` is an object. Those that are no epoch's
 * are left alone. `folder` is the run's; `wall_ns` is now. */
void wf_history_take(wf_history *h, wf_background *b, const char *folder, const char *run,
                     const char *json, int64_t wall_ns);

/* Writes the job's text and its model's graph for TensorBoard, unless the run has them already. On
 * any thread; compiles the model. What cannot be drawn is left out, with a line in the log. */
void wf_history_describe(wf_background *b, const char *folder, const char *text, const char *path);

#endif
