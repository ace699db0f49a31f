// SPDX-License-Identifier: Apache-2.0
// Finds the nodes of a graph that compute numbers.
#include "ops/numbers.h"

#include <string.h>

#include "core/text/text.h"
#include "ops/op.h"

// True for an attribute that is a tensor.
static bool reads_tensor(const node *n) {
    static const char *const names[] = {"T", "mT", "data", "values", "indices"};
    const value *name = n->arg_count > 1 ? &n->args[1] : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (name != NULL && name->kind == VALUE_STRING && strcmp(name->as.text, names[i]) == 0)
            return true;
    return false;
}

// True for functions of Python, which give numbers for numbers. torch's create tensors from them.
static bool is_of_python(const node *n) {
    static const char *const prefixes[] = {"operator.", "math.", "torch.sym_", "torch._sym_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (n->op == NODE_CALL_FUNCTION && tare__starts_with(n->target, prefixes[i])) return true;
    return false;
}

static bool reads_numbers(const node *n, const bool *numbers) {
    for (size_t i = 0; i < n->input_count; i++)
        if (!numbers[n->inputs[i]->id]) return false;
    return n->input_count > 0;
}

void tare__find_number_nodes(const graph *g, bool *out) {
    for (const node *n = g->first; n != NULL; n = n->next) {
        const bool asks = tare__op_has(tare__node_row(n), OP_NOT_ON_TENSORS);
        const bool is_tensor = tare__node_op(n) == TARE_OP_GETATTR && reads_tensor(n);
        out[n->id] = (asks && !is_tensor) || (is_of_python(n) && reads_numbers(n, out));
    }
}
