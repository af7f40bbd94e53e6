/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/operators.c - `weft help operators`. Everything it says is in the tables of operations
 * and kernels, so that the page in docs/ cannot promise what is not there. */
#include "cmd/cli/operators.h"
#include "common/graph/op.h"
#include "common/kernels/kernel.h"
#include "common/onnx/expand.h"
#include "common/onnx/onnx.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const wf_dtype dtypes[] = {WF_F32, WF_F64, WF_F16, WF_BF16, WF_I32, WF_I64, WF_U8, WF_BOOL};

static bool computes(const wf_kernel *k, const wf_op *op)
{
    return strcmp(k->op, op->name) == 0 &&
           strcmp(k->domain ? k->domain : WF_DOMAIN_ONNX, op->domain) == 0;
}

/* WF_TYPE bits of the operand that chooses the kernel; 0: no kernel, as of Constant and Pull. */
static uint32_t types_of(const wf_op *op)
{
    const wf_kernel *k;
    uint32_t types = 0;

    for (size_t i = 0; (k = wf_kernel_at(&wf_cpu, i)); i++)
        if (computes(k, op))
            types |= k->dtypes;
    return types;
}

/* Which operand that is: an input, or -1 for output 0. */
static int typed_by(const wf_op *op)
{
    const wf_kernel *k;

    for (size_t i = 0; (k = wf_kernel_at(&wf_cpu, i)); i++)
        if (computes(k, op))
            return k->typed_by == WF_TYPED_BY_OUTPUT ? -1 : k->typed_by;
    return 0;
}

/* "none": no input carries one by definition, or none is a float. */
static const char *gradient_of(const wf_op *op)
{
    const uint32_t floats = WF_TYPES_FLOAT | WF_TYPE(WF_F16) | WF_TYPE(WF_BF16);
    uint32_t types = types_of(op);
    uint32_t inputs = op->n_in_max >= 32 ? UINT32_MAX : (1u << op->n_in_max) - 1;

    if (op->grad)
        return "yes";
    if (!types && wf_expansion_find(op->domain, op->name, WF_OPSET_NEWEST))
        return op->no_grad_in || !inputs ? "none" : "yes";
    if ((op->no_grad_in & inputs) == inputs || (types && !(types & floats)))
        return "none";
    return "no";
}

static void print_types(uint32_t types)
{
    const char *between = "";

    if (types == WF_TYPES_ALL)
        printf("all");
    for (size_t i = 0; types != WF_TYPES_ALL && i < WF_COUNT(dtypes); i++)
        if (types & WF_TYPE(dtypes[i])) {
            printf("%s%s", between, wf_dtype_name(dtypes[i]));
            between = ", ";
        }
    if (!types)
        printf("-");
}

static void print_row(const wf_op *op)
{
    printf("| %s | %s | %u | ", op->name, op->domain[0] ? op->domain : "ai.onnx", op->since);
    print_types(types_of(op));
    printf(" | %s | %s |\n", gradient_of(op), op->note ? op->note : "");
}

/* The two tables as one, in the order of names, without forms of older opsets; NULL past the end.
 */
static const wf_op *next_op(size_t *at, size_t *of_expansions)
{
    const wf_op *op = wf_op_at(*at);
    const wf_expansion *x;

    while ((x = wf_expansion_at(*of_expansions)) && x->until)
        ++*of_expansions;
    if (x && (!op || strcmp(x->op.name, op->name) < 0)) {
        ++*of_expansions;
        return &x->op;
    }
    ++*at;
    return op;
}

static void print_page(void)
{
    size_t at = 0, of_expansions = 0;
    const wf_op *op;

    printf(
        "# Operations\n\n"
        "Printed by `weft help operators`; with `--json` for programs.\n\n"
        "- **since**: the opset whose form weft has inside, or an older one that means the same. "
        "Files of opsets\n  %d to %d are read, whichever form they hold, and with them Upsample "
        "and "
        "Scatter of older opsets.\n"
        "- **types**: of the operand that the operation is typed by, on the cpu; `all` is float32, "
        "float64, float16,\n  bfloat16, int32, int64, uint8, bool. Where there is none, nothing "
        "is computed: the compiler or the\n  worker sees to it, or other operations take its "
        "place at import.\n"
        "- **gradient**: `none` means that none of its inputs carries one, by definition.\n\n"
        "| operation | domain | since | types | gradient | notes |\n"
        "| --- | --- | --- | --- | --- | --- |\n",
        WF_OPSET_OLDEST, WF_OPSET_NEWEST);
    while ((op = next_op(&at, &of_expansions)))
        print_row(op);
    printf(
        "\n## weft's own\n\nOperations of the domain ai.weft, which ONNX does not define: inputs, "
        "outputs, attributes with their defaults,\nand what they compute. What stands in brackets "
        "may be absent.\n\n");
    for (size_t i = 0; (op = wf_op_at(i)); i++)
        if (op->means)
            printf("- **%s** %s.\n", op->name, op->means);
}

static json_t *json_of(const wf_op *op)
{
    uint32_t types = types_of(op);
    json_t *list = json_array();

    for (size_t i = 0; i < WF_COUNT(dtypes); i++)
        if (types & WF_TYPE(dtypes[i]))
            json_array_append_new(list, json_string(wf_dtype_name(dtypes[i])));
    return json_pack("{s:s, s:s, s:i, s:i, s:o, s:s, s:s}", "operation", op->name, "domain",
                     op->domain, "since", (int)op->since, "typed_by", typed_by(op), "types", list,
                     "gradient", gradient_of(op), "note", op->note ? op->note : "");
}

static wf_status print_json(wf_err *err)
{
    size_t at = 0, of_expansions = 0;
    json_t *list = json_array();
    const wf_op *op;
    int failed = 0;

    while ((op = next_op(&at, &of_expansions)))
        failed |= json_array_append_new(list, json_of(op)); /* of NULL it says so */
    failed |= json_dumpf(list, stdout, JSON_INDENT(1) | JSON_COMPACT);
    json_decref(list);
    if (failed)
        return wf_fail(err, WF_IO, NULL, "the listing of operations could not be printed");
    printf("\n");
    return WF_OK;
}

wf_status wf_operators_print(bool as_json, wf_err *err)
{
    if (as_json)
        return print_json(err);
    print_page();
    return WF_OK;
}
