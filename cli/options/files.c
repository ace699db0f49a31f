// SPDX-License-Identifier: Apache-2.0
// Checks the files that a command line names for conflicts.
#define _XOPEN_SOURCE 700 // S_ISREG
#include "options/files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/report.h"

enum { PATH_SIZE = 4096 }; // longer paths cannot be opened

typedef char path_text[PATH_SIZE];

typedef struct files {
    const command *command;
    const void *values;
    const char *const *operands;
    size_t operand_count;
} files;

// --- comparing paths ---

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && is_same(&x, &y);
}

/// Copies "FOLDER/", or "./", before the last name of `path`, and returns that name; NULL if it is
/// too long.
static const char *split(const char *path, path_text folder) {
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const int length = slash != NULL ? snprintf(folder, PATH_SIZE, "%.*s", (int)(name - path), path)
                                     : snprintf(folder, PATH_SIZE, "./");
    return length >= 0 && length < PATH_SIZE ? name : NULL;
}

// True if both paths name the same file. The files need not exist.
static bool is_same_path(const char *a, const char *b) {
    path_text x_folder, y_folder;
    struct stat x, y;
    if (is_same_file(a, b)) return true;
    const char *x_name = split(a, x_folder), *y_name = split(b, y_folder);
    return x_name != NULL && y_name != NULL && strcmp(x_name, y_name) == 0 &&
           stat(x_folder, &x) == 0 && stat(y_folder, &y) == 0 && is_same(&x, &y);
}

/// True if the file `path` exists and is in `folder`, at any depth.
static bool lies_in(const char *path, const char *folder) {
    path_text at;
    struct stat wanted, file, here, above;
    if (stat(folder, &wanted) != 0 || !S_ISDIR(wanted.st_mode)) return false;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || split(path, at) == NULL) return false;
    for (bool more = stat(at, &here) == 0; more;) {
        if (is_same(&here, &wanted)) return true;
        const size_t length = strlen(at);
        more = length + 4 <= PATH_SIZE;
        if (!more) return false;
        (void)snprintf(at + length, PATH_SIZE - length, "../");
        more = stat(at, &above) == 0 && !is_same(&above, &here); // the root is its own parent
        here = above;
    }
    return false;
}

// --- one output against one input ---

static bool refuse_same(const char *output, const char *other, const char *what) {
    wrong_usage(output, "name another file", what, other);
    return false;
}

static bool check_input(const char *output, const char *input) {
    if (is_same_file(output, input))
        return refuse_same(output, input, "the output would take the place of '%s'");
    if (lies_in(output, input))
        return refuse_same(output, input, "the output would take the place of a file in '%s'");
    return true;
}

static bool is_name(const option *o, const char *value) {
    if (o->choice_at == NULL) return false;
    size_t i = 0;
    while (o->choice_at(NULL, i) != NULL && strcmp(o->choice_at(NULL, i), value) != 0) i++;
    return o->choice_at(NULL, i) != NULL;
}

// Checks the value as one path and as a list "INPUT=PATH,..", because a file name may contain '='
// and ','.
static bool check_input_list(const char *output, const char *value) {
    if (!check_input(output, value)) return false;
    for (const char *at = value; *at != '\0';) {
        path_text item;
        const size_t length = strcspn(at, ",");
        const char *mark = memchr(at, '=', length), *begin = mark != NULL ? mark + 1 : at;
        const int written =
            snprintf(item, PATH_SIZE, "%.*s", (int)(length - (size_t)(begin - at)), begin);
        if (written > 0 && written < PATH_SIZE && !check_input(output, item)) return false;
        at += length + (at[length] == ',');
    }
    return true;
}

static const char *value_of(const files *f, const option *o) {
    return *(const char *const *)((const char *)f->values + o->offset);
}

static bool is_file_option(const option *o) {
    return o->kind == OPTION_FILE || o->kind == OPTION_FOLDER;
}

static bool is_operand_file(const command *c) {
    return c->operand_at == NULL && c->actions == NULL;
}

static bool check_against_inputs(const files *f, const char *output) {
    for (size_t i = 0; is_operand_file(f->command) && i < f->operand_count; i++)
        if (!check_input(output, f->operands[i])) return false;
    for (const option *o = f->command->options; o->name != NULL; o++) {
        if (!is_file_option(o) || o->writes != NULL) continue;
        const char *value = value_of(f, o);
        if (value != NULL && !is_name(o, value) && !check_input_list(output, value)) return false;
    }
    return true;
}

// --- the outputs ---

typedef struct output_path {
    const option *option;
    const char *list; // the rest of option->writes; NULL: go to the next option
    path_text path;
} output_path;

/// The next path that the command writes; start with `{.option = options}`. Too long paths are
/// skipped, because nothing can be written there.
static bool next_output(const files *f, output_path *out) {
    for (; out->option->name != NULL; out->option++, out->list = NULL) {
        const option *o = out->option;
        const char *value = is_file_option(o) && o->writes != NULL ? value_of(f, o) : NULL;
        if (value == NULL) continue;
        const bool is_first = out->list == NULL;
        if (is_first) out->list = o->writes;
        if (!is_first && *out->list == '\0') continue;
        const size_t length = strcspn(out->list, "|");
        const int written =
            length == 0 ? snprintf(out->path, PATH_SIZE, "%s", value)
                        : snprintf(out->path, PATH_SIZE, "%s/%.*s", value, (int)length, out->list);
        out->list += length + (out->list[length] == '|');
        if (written >= 0 && written < PATH_SIZE) return true;
    }
    return false;
}

static bool check_pair(const files *f, const char *a, const char *b) {
    if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0) {
        if (strcmp(a, b) != 0) return true;
        wrong_usage(f->command->name, "name a file for one of them",
                    "two outputs would go to standard output");
        return false;
    }
    return !is_same_path(a, b) || refuse_same(b, a, "the output would take the place of '%s'");
}

static bool check_outputs(const files *f) {
    output_path output = {.option = f->command->options};
    while (next_output(f, &output)) {
        output_path before = {.option = f->command->options};
        if (strcmp(output.path, "-") != 0 && !check_against_inputs(f, output.path)) return false;
        while (next_output(f, &before) &&
               (before.option != output.option || before.list != output.list))
            if (!check_pair(f, before.path, output.path)) return false;
    }
    return true;
}

static bool check_standard_input(const files *f) {
    size_t count = 0;
    for (size_t i = 0; is_operand_file(f->command) && i < f->operand_count; i++)
        count += strcmp(f->operands[i], "-") == 0;
    for (const option *o = f->command->options; o->name != NULL; o++) {
        if (!is_file_option(o) || o->writes != NULL) continue;
        const char *value = value_of(f, o);
        count += value != NULL && strcmp(value, "-") == 0;
    }
    if (count <= 1) return true;
    wrong_usage(f->command->name, "name a file for all but one of them",
                "expected one input from standard input, found %zu", count);
    return false;
}

bool check_files(const command *c, const void *values, const char *const *operands,
                 size_t operand_count) {
    const files f = {c, values, operands, operand_count};
    return check_standard_input(&f) && check_outputs(&f);
}

bool path_exists(const char *path) {
    struct stat found;
    return stat(path, &found) == 0;
}
