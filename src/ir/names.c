// SPDX-License-Identifier: Apache-2.0
// Names of nodes, by the rules of torch.fx's namespace.
#include "ir/names.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/text/text.h"
#include "ir/graph.h"

// Python's keywords and builtins, and names that generated code uses, sorted by strcmp.
// clang-format off
static const char *const reserved[] = {
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException",
    "BaseExceptionGroup", "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning",
    "ChildProcessError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
    "ConnectionResetError", "DeprecationWarning", "EOFError", "Ellipsis", "EncodingWarning",
    "EnvironmentError", "Exception", "ExceptionGroup", "False", "FileExistsError",
    "FileNotFoundError", "FloatingPointError", "FutureWarning", "GeneratorExit", "IOError",
    "ImportError", "ImportWarning", "IndentationError", "IndexError", "InterruptedError",
    "IsADirectoryError", "KeyError", "KeyboardInterrupt", "LookupError", "MemoryError",
    "ModuleNotFoundError", "NameError", "None", "NoneType", "NotADirectoryError",
    "NotImplemented", "NotImplementedError", "OSError", "OverflowError",
    "PendingDeprecationWarning", "PermissionError", "ProcessLookupError", "RecursionError",
    "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning",
    "StopAsyncIteration", "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError",
    "SystemExit", "TabError", "TimeoutError", "True", "TypeError", "UnboundLocalError",
    "UnicodeDecodeError", "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError",
    "UnicodeWarning", "UserWarning", "ValueError", "Warning", "ZeroDivisionError",
    "__build_class__", "__debug__", "__doc__", "__import__", "__loader__", "__name__",
    "__package__", "__spec__", "abs", "aiter", "all", "and", "anext", "any", "as", "ascii",
    "assert", "async", "await", "bin", "bool", "break", "breakpoint", "bytearray", "bytes",
    "callable", "chr", "class", "classmethod", "compile", "complex", "continue", "copyright",
    "credits", "def", "del", "delattr", "device", "dict", "dir", "divmod", "elif", "else",
    "enumerate", "eval", "except", "exec", "exit", "filter", "finally", "float", "for",
    "format", "from", "frozenset", "fx_pytree", "getattr", "global", "globals", "hasattr",
    "hash", "help", "hex", "id", "if", "import", "in", "inf", "input", "int", "is",
    "isinstance", "issubclass", "iter", "lambda", "len", "license", "list", "locals", "map",
    "max", "memoryview", "min", "nan", "next", "nonlocal", "not", "object", "oct", "open",
    "or", "ord", "pass", "pow", "print", "property", "pytree", "quit", "raise", "range",
    "repr", "return", "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod",
    "str", "sum", "super", "torch", "try", "tuple", "type", "vars", "while", "with", "yield",
    "zip",
};
// clang-format on

static int compare_names(const void *key, const void *entry) {
    return strcmp(key, *(const char *const *)entry);
}

bool tare__name_is_reserved(const char *name) {
    return bsearch(name, reserved, sizeof reserved / sizeof *reserved, sizeof *reserved,
                   compare_names) != NULL;
}

// Converts `candidate` to a Python identifier: runs of other characters become one '_'.
static void sanitize(const char *candidate, text *out) {
    if (!*candidate) tare__text_append(out, "_unnamed");
    if (tare__is_digit(*candidate)) tare__text_char(out, '_');
    for (const char *c = candidate; *c;) {
        if (tare__is_letter(*c) || tare__is_digit(*c)) {
            tare__text_char(out, *c++);
            continue;
        }
        tare__text_char(out, '_');
        while (*c && !tare__is_letter(*c) && !tare__is_digit(*c)) c++;
    }
}

// Splits "relu_12" into a base of 4 characters and the number 12. A number with more than 9 digits
// is part of the base. False if there is no number.
static bool split_number(const char *name, size_t *base_length, size_t *number) {
    const size_t length = strlen(name);
    size_t start = length;
    while (start > 0 && tare__is_digit(name[start - 1])) start--;
    *base_length = length;
    if (start == length || length - start > 9 || start < 2 || name[start - 1] != '_') return false;
    *base_length = start - 1;
    *number = (size_t)strtoul(name + start, NULL, 10);
    return true;
}

// Finds an unused name. `name`: the candidate, replaced by the result.
static tare_status choose(const map *used, map *base_counts, text *name, tare_error *err) {
    size_t base_length = 0, number = 0;
    const bool has_number = split_number(tare__text_chars(name), &base_length, &number);
    char *base = tare__strndup(tare__text_chars(name), base_length);
    if (!base) return tare__out_of_memory(err);
    const bool reserved_name = tare__name_is_reserved(tare__text_chars(name));
    if (!has_number || tare__map_has(used, tare__text_chars(name)))
        number = (size_t)tare__map_get(base_counts, base); // NOLINT: see tare__map_int
    bool next = reserved_name;
    while (next || tare__map_has(used, tare__text_chars(name))) {
        tare__text_clear(name);
        tare__text_printf(name, "%s_%zu", base, ++number);
        if (name->failed) break;
        next = false;
    }
    const bool stored = !name->failed && tare__map_set(base_counts, base, tare__map_int(number));
    tare__free(base);
    return stored ? TARE_OK : tare__out_of_memory(err);
}

tare_status tare__graph_name(graph *g, const char *candidate, const char **out, tare_error *err) {
    text name = {0};
    sanitize(candidate, &name);
    tare_status status = tare__text_status(&name, err);
    if (status == TARE_OK) status = choose(&g->used_names, &g->base_counts, &name, err);
    if (status == TARE_OK) {
        char *copy = tare__arena_strdup(&g->memory, tare__text_chars(&name));
        if (!copy || !tare__map_set(&g->used_names, copy, tare__map_int(1)))
            status = tare__out_of_memory(err);
        else
            *out = copy;
    }
    tare__text_release(&name);
    return status;
}

tare_status tare__graph_refresh_names(graph *g, tare_error *err) {
    tare__map_release(&g->used_names);
    tare__map_release(&g->base_counts);
    g->used_names = g->base_counts = (map){0};
    for (node *n = g->first; n != NULL; n = n->next) {
        const char *same = NULL;
        TARE_TRY(tare__graph_name(g, n->name, &same, err));
        n->name = same;
        (void)tare__map_set(&g->used_names, same, n);
    }
    return TARE_OK;
}

// A function's __name__: the part after the last dot. For an operator overload,
// torch.ops.NAMESPACE.NAME.OVERLOAD, it is "NAME.OVERLOAD".
static const char *function_name(const char *target) {
    const char *last = strrchr(target, '.');
    if (!last) return target;
    if (!tare__starts_with(target, "torch.ops.")) return last + 1;
    const char *packet = strchr(target + strlen("torch.ops."), '.');
    if (!packet || packet == last) return last + 1;
    const char *name = last;
    while (name[-1] != '.') name--;
    return name;
}

// Converts "BatchNorm" to "batch_norm": inserts '_' before each capital that follows a lower-case
// letter.
static char *snake_case(arena *a, const char *name, size_t length) {
    char *out = tare__arena_alloc(a, 2 * length + 1);
    if (!out) return NULL;
    char *end = out;
    for (size_t i = 0; i < length; i++) {
        const bool is_capital = name[i] >= 'A' && name[i] <= 'Z';
        if (is_capital && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z') *end++ = '_';
        *end++ = is_capital ? (char)(name[i] - 'A' + 'a') : name[i];
    }
    return out;
}

tare_status tare__graph_candidate(graph *g, node_op op, const char *target, const char **out,
                                  tare_error *err) {
    const char *name = op == NODE_CALL_FUNCTION ? function_name(target) : target;
    size_t length = strlen(name);
    if (length > 4 && tare__starts_with(name, "__") && tare__ends_with(name, "__")) {
        name += 2;
        length -= 4;
    }
    const char *candidate = snake_case(&g->memory, name, length);
    if (!candidate) return tare__out_of_memory(err);
    *out = candidate;
    return TARE_OK;
}
