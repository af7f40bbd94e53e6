/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/model.h - a model at hand: its graph, with weights in it by name. */
#ifndef WF_SESSION_MODEL_H
#define WF_SESSION_MODEL_H

#include "common/base/status.h"
#include "common/compile/compile.h"
#include "common/conf/conf.h"
#include "common/graph/graph.h"
#include "common/tensor/named.h"
#include "common/tensor/tensor.h"

/* The error for a list, which is not empty, with no name of the model's: WF_NOTFOUND. */
wf_status wf_model_refuse_weights(const wf_named_list *w, wf_err *err);
/* A job's model in the form for inference (no loss, no labels, no dropout) with `weights`; what
 * they do not have, and all of it when `weights` is NULL, keeps the job's first values. Operations
 * are ONNX's own: fit for wf_onnx_write. The caller owns *out. Errors: those of wf_compile_export;
 * WF_NOTFOUND for weights of another model.
 */
WF_MUST_USE wf_status wf_model_of_job(const wf_job_conf *job, const wf_named_list *weights,
                                      wf_graph **out, wf_err *err);

/* How to compile that form of a job that is divided among workers: axes are fixed, or follow from
 * the records, and variables have no content, but where the model comes from an ONNX file or some
 * of it is frozen. What *spec points to is the job's and *model's. */
void wf_model_spec_blank(const wf_job_conf *job, wf_model *model, wf_compile_spec *spec);

/* Finds the variable or constant of that name, with its content in `known`. `model` is the model's
 * name for messages. Errors: WF_NOTFOUND with the nearest name. */
WF_MUST_USE wf_status wf_model_weight(const wf_graph *g, const char *model, const char *name,
                                      const wf_value **out, wf_err *err);
/* Puts copies of weights [n] in place of the content of variables or constants: all of them, or
 * none after a failure. Errors: WF_NOTFOUND; WF_SHAPE with both shapes; WF_NOMEM. */
WF_MUST_USE wf_status wf_model_set_weights(wf_graph *g, const char *model, size_t n,
                                           const wf_named weights[], wf_err *err);
/* Writes all variables, and the ids of rows of unbounded tables, as a safetensors file, replacing
 * one that is there. Errors: WF_IO, WF_NOMEM; WF_INVALID for a name that is not UTF-8. */
WF_MUST_USE wf_status wf_model_save(const wf_graph *g, const char *path, wf_err *err);

#endif
