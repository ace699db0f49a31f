// SPDX-License-Identifier: Apache-2.0
// Modules as text: torch's repr of a tree.
#include <string.h>

#include "core/memory/alloc.h"
#include "ops/classes/classes.h"
#include "ops/text/print.h"

static tare_status print_tree(const module *m, size_t indent, text *out, tare_error *err);

static void break_line(size_t indent, text *out) {
    tare__text_char(out, '\n');
    tare__text_spaces(out, indent);
}

// The line breaks of an extra repr move to the right with everything else.
static void print_indented(const char *chars, size_t indent, text *out) {
    for (const char *c = chars; *c; c++) {
        if (*c == '\n')
            break_line(indent, out);
        else
            tare__text_char(out, *c);
    }
}

// Packed weights are plain attributes in torch, which a repr does not show.
static bool is_hidden(const module *m) {
    return m->class->role == ROLE_PACKED;
}

static size_t count_shown(const module *m) {
    size_t count = 0;
    for (size_t i = 0; i < m->child_count; i++)
        if (!is_hidden(m->children[i].module)) count++;
    return count;
}

static tare_status print_children(const module *m, size_t indent, text *out, tare_error *err) {
    for (size_t i = 0; i < m->child_count; i++) {
        if (is_hidden(m->children[i].module)) continue;
        break_line(indent, out);
        tare__text_printf(out, "(%s): ", m->children[i].name);
        TARE_TRY(print_tree(m->children[i].module, indent, out, err));
    }
    return TARE_OK;
}

// Equal neighbours share a line: "(0-2): 3 x ReLU()". Names are replaced by positions.
static tare_status print_runs(const module *m, size_t indent, text *out, text *item,
                              tare_error *err) {
    text previous = {0};
    size_t start = 0;
    tare_status status = TARE_OK;
    for (size_t i = 0; i <= m->child_count && status == TARE_OK; i++) {
        tare__text_clear(item);
        if (i < m->child_count) status = print_tree(m->children[i].module, indent, item, err);
        if (status == TARE_OK) status = tare__text_status(item, err);
        if (i && i < m->child_count &&
            strcmp(tare__text_chars(item), tare__text_chars(&previous)) == 0)
            continue;
        if (i) break_line(indent, out);
        if (i - start > 1)
            tare__text_printf(out, "(%zu-%zu): %zu x ", start, i - 1, i - start);
        else if (i)
            tare__text_printf(out, "(%zu): ", start);
        tare__text_append(out, tare__text_chars(&previous));
        start = i;
        tare__text_clear(&previous);
        tare__text_append(&previous, tare__text_chars(item));
        out->failed = out->failed || previous.failed;
    }
    tare__text_release(&previous);
    return status;
}

static tare_status print_list(const module *m, size_t indent, text *out, tare_error *err) {
    text item = {0};
    const tare_status status = print_runs(m, indent, out, &item, err);
    tare__text_release(&item);
    return status;
}

// A graph module is shown under the name of its config `class_name`, e.g. the class that was
// traced.
static const char *shown_name(const module *m) {
    const value *name =
        m->class == &tare__class_graph_module ? tare__module_config(m, "class_name") : NULL;
    return name && name->kind == VALUE_STRING ? name->as.text : m->class->print_name;
}

static tare_status print_described(const module *m, const char *extra, size_t indent, text *out,
                                   tare_error *err) {
    const size_t child_count = m->class->hides_children ? 0 : count_shown(m);
    tare__text_printf(out, "%s(", shown_name(m));
    if (child_count == 0 && !strchr(extra, '\n') && !m->class->describes_items) {
        tare__text_printf(out, "%s)", extra);
        return TARE_OK;
    }
    if (*extra) {
        break_line(indent + 2, out);
        print_indented(extra, indent + 2, out);
    }
    const bool is_list = m->class == &tare__class_module_list;
    if (child_count) TARE_TRY((is_list ? print_list : print_children)(m, indent + 2, out, err));
    break_line(indent, out);
    tare__text_char(out, ')');
    return TARE_OK;
}

static tare_status print_tree(const module *m, size_t indent, text *out, tare_error *err) {
    text extra = {0};
    tare_status status = m->class->describe ? m->class->describe(m, &extra, err) : TARE_OK;
    if (status == TARE_OK) status = tare__text_status(&extra, err);
    if (status == TARE_OK) status = print_described(m, tare__text_chars(&extra), indent, out, err);
    tare__text_release(&extra);
    return status;
}

tare_status tare__print_module(const module *m, text *out, tare_error *err) {
    TARE_TRY(print_tree(m, 0, out, err));
    return tare__text_status(out, err);
}

tare_status tare__print_model(const module *root, text *out, tare_error *err) {
    TARE_TRY(tare__print_module(root, out, err));
    tare__text_char(out, '\n');
    if (!root->graph) return tare__text_status(out, err);
    tare__text_char(out, '\n');
    return tare__print_code(root->graph, out, err);
}
