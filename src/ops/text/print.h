// SPDX-License-Identifier: Apache-2.0
// Models as text, exactly as torch prints a GraphModule, and back.
#ifndef OPS_TEXT_PRINT_H
#define OPS_TEXT_PRINT_H

#include "core/text/text.h"
#include "ir/module.h"

/// str(graph_module) without blank-line runs and without torch's trailing hint: the modules, an
/// empty line, the code.
tare_status tare__print_model(const module *root, text *out, tare_error *err);
/// `Name(extra)` with children, nested lines indented by 2.
tare_status tare__print_module(const module *m, text *out, tare_error *err);
/// `def forward(..)` with the `x = None` clean-up.
tare_status tare__print_code(const graph *g, text *out, tare_error *err);
/// print(gm.graph): one line a node, with users and kwargs.
tare_status tare__print_graph(const graph *g, text *out, tare_error *err);
/// The tensors' names, a line each, as torch's state_dict() lists them.
tare_status tare__print_state(const module *root, text *out, tare_error *err);
/// One argument as Python prints it.
void tare__print_value(const value *v, text *out);

/// Reads the code (and skips the module tree in front, if any) back into a graph: the same
/// operations, names, targets and arguments in the same order. Errors name line and column. `model`
/// (may be NULL) is used to check targets: `self.a.b` must be a module if it is called, else a
/// module or a tensor.
tare_status tare__parse_code(const char *code, size_t size, const module *model, graph **out,
                             tare_error *err);

#endif
