// SPDX-License-Identifier: Apache-2.0
// tare completion: scripts for shells that complete commands, options and values, generated from
// the commands' tables.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/actions.h"
#include "options/rules.h"
#include "support/json.h"
#include "support/page.h"
#include "support/report.h"

static bool takes_files(const option *o) {
    return o->kind == OPTION_FILE;
}

static void put_names(FILE *out, names_at at) {
    for (size_t i = 0; at(NULL, i) != NULL; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", at(NULL, i));
}

static bool has_operand_names(const command *c) {
    return c->actions != NULL || c->operand_at != NULL;
}

static void put_operand_names(FILE *out, const command *c) {
    if (c->actions == NULL) put_names(out, c->operand_at);
    for (const action *a = c->actions; a != NULL && a->name != NULL; a++)
        (void)fprintf(out, "%s%s", a != c->actions ? " " : "", a->name);
}

static void put_command_names(FILE *out) {
    for (size_t i = 0; commands[i] != NULL; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", commands[i]->name);
}

/// Writes text inside single quotes of a POSIX shell; characters of `escaped` get a backslash.
static void put_quoted(FILE *out, const char *chars, const char *escaped) {
    for (; *chars != '\0'; chars++) {
        if (*chars == '\'')
            (void)fputs("'\\''", out);
        else if (strchr(escaped, *chars) != NULL)
            (void)fprintf(out, "\\%c", *chars);
        else
            (void)fputc(*chars, out);
    }
}

// --- bash ---

static void put_bash_option_names(FILE *out, const command *c) {
    (void)fputs("--help", out);
    for (const option *o = c->options; o->name != NULL; o++) {
        (void)fprintf(out, " --%s", o->name);
        if (o->letter != 0) (void)fprintf(out, " -%c", o->letter);
    }
}

// The argument of `compgen -A` for files.
static const char *bash_files(const option *o) {
    return takes_files(o) ? "file" : o->kind == OPTION_FOLDER ? "directory" : "";
}

// A value is the word after its option.
static void put_bash_values(FILE *out, const command *c) {
    for (const option *o = c->options; o->name != NULL; o++) {
        if (o->kind == OPTION_FLAG || (takes_files(o) && o->choice_at == NULL)) continue;
        (void)fprintf(out, "    %s,--%s", c->name, o->name);
        if (o->letter != 0) (void)fprintf(out, " | %s,-%c", c->name, o->letter);
        (void)fputs(")\n      names='", out);
        if (o->choice_at != NULL) put_names(out, o->choice_at);
        (void)fprintf(out, "' files='%s'\n      ;;\n", bash_files(o));
    }
}

static void put_bash_command(FILE *out, const command *c) {
    (void)fprintf(out, "    %s)\n      options='", c->name);
    put_bash_option_names(out, c);
    (void)fputs("'\n", out);
    if (has_operand_names(c)) {
        (void)fputs("      ((COMP_CWORD > 2)) || names='", out);
        put_operand_names(out, c);
        (void)fputs("'\n", out);
    }
    (void)fputs("      ;;\n", out);
}

static void write_bash(FILE *out) {
    (void)fputs("# bash completion of tare; source it, or put it where bash-completion looks.\n"
                "_tare() {\n"
                "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "  local command=${COMP_WORDS[1]} names='' files=file options=''\n"
                "  COMPREPLY=()\n"
                "  if ((COMP_CWORD == 1)); then\n"
                "    COMPREPLY=($(compgen -W '",
                out);
    put_command_names(out);
    (void)fputs(" --help --version' -- \"$word\"))\n    return\n  fi\n  case $command in\n", out);
    for (size_t i = 0; commands[i] != NULL; i++) put_bash_command(out, commands[i]);
    (void)fputs("  esac\n  case $command,$before in\n", out);
    for (size_t i = 0; commands[i] != NULL; i++) put_bash_values(out, commands[i]);
    (void)fputs("  esac\n"
                "  if [[ $word == -* ]]; then\n"
                "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
                "    return\n"
                "  fi\n"
                "  COMPREPLY=($(compgen -W \"$names\" -- \"$word\"))\n"
                "  if [[ -n $files ]]; then\n"
                "    compopt -o filenames 2>/dev/null || :\n"
                "    while IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -A "
                "$files -- \"$word\")\n"
                "  fi\n"
                "}\n"
                "complete -F _tare tare\n",
                out);
}

// --- zsh ---

static const char *zsh_files(const option *o) {
    return takes_files(o) ? "_files" : o->kind == OPTION_FOLDER ? "_files -/" : " ";
}

static void put_zsh_action(FILE *out, const option *o) {
    (void)fputc(':', out);
    put_quoted(out, o->value, ":[]\\");
    (void)fputc(':', out);
    if (o->choice_at == NULL) {
        (void)fputs(zsh_files(o), out);
        return;
    }
    (void)fputs(takes_files(o) ? "_alternative \"names:name:(" : "(", out);
    put_names(out, o->choice_at);
    (void)fputs(takes_files(o) ? ")\" \"files:file:_files\"" : ")", out);
}

// Both spellings of an option.
static void put_zsh_excluded(FILE *out, const option *o) {
    (void)fprintf(out, "--%s ", o->name);
    if (o->letter != 0) (void)fprintf(out, "-%c ", o->letter);
}

// The options that are no longer offered after this one: itself and those that it excludes.
static void put_zsh_group(FILE *out, const command *c, const option *o) {
    (void)fputc('(', out);
    for (const option *x = c->options; x->name != NULL; x++)
        if (x == o || options_exclude(c, o, x)) put_zsh_excluded(out, x);
    (void)fputc(')', out);
}

static void put_zsh_spelling(FILE *out, const command *c, const option *o, bool is_letter) {
    (void)fputs(" \\\n        '", out);
    put_zsh_group(out, c, o);
    if (is_letter)
        (void)fprintf(out, "-%c%s[", o->letter, o->value != NULL ? "+" : "");
    else
        (void)fprintf(out, "--%s%s[", o->name, o->value != NULL ? "=" : "");
    put_quoted(out, o->help, ":[]\\");
    (void)fputc(']', out);
    if (o->value != NULL) put_zsh_action(out, o);
    (void)fputc('\'', out);
}

static void put_zsh_command(FILE *out, const command *c) {
    (void)fprintf(out, "    %s)\n      _arguments '--help[explain the command]'", c->name);
    for (const option *o = c->options; o->name != NULL; o++) {
        put_zsh_spelling(out, c, o, false);
        if (o->letter != 0) put_zsh_spelling(out, c, o, true);
    }
    if (has_operand_names(c)) {
        (void)fputs(" \\\n        '1:name:(", out);
        put_operand_names(out, c);
        (void)fputs(")'", out);
    }
    (void)fputs(" \\\n        '*:file:_files'\n      ;;\n", out);
}

static void write_zsh(FILE *out) {
    (void)fputs("#compdef tare\n"
                "# zsh completion of tare; put it into a folder of $fpath as _tare.\n"
                "_tare() {\n  if ((CURRENT == 2)); then\n    local -a names\n    names=(\n",
                out);
    for (size_t i = 0; commands[i] != NULL; i++) {
        (void)fprintf(out, "      '%s:", commands[i]->name);
        put_quoted(out, commands[i]->summary, ":\\");
        (void)fputs("'\n", out);
    }
    (void)fputs("    )\n    _describe command names\n    return\n  fi\n"
                "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n",
                out);
    for (size_t i = 0; commands[i] != NULL; i++) put_zsh_command(out, commands[i]);
    (void)fputs("  esac\n}\ncompdef _tare tare\n", out);
}

// --- fish ---

static void put_fish_text(FILE *out, const char *chars) {
    (void)fputs(" -d '", out);
    for (; *chars != '\0'; chars++)
        (void)fprintf(out, "%s%c", *chars == '\'' || *chars == '\\' ? "\\" : "", *chars);
    (void)fputs("'\n", out);
}

static void put_fish_option(FILE *out, const command *c, const option *o) {
    (void)fprintf(out, "complete -c tare -n '__fish_seen_subcommand_from %s' -l %s", c->name,
                  o->name);
    if (o->letter != 0) (void)fprintf(out, " -s %c", o->letter);
    if (takes_files(o))
        (void)fputs(" -r", out);
    else if (o->kind == OPTION_FOLDER)
        (void)fputs(" -x -a '(__fish_complete_directories)'", out);
    else if (o->kind != OPTION_FLAG)
        (void)fputs(" -x", out);
    if (o->choice_at != NULL) {
        (void)fputs(" -a '", out);
        put_names(out, o->choice_at);
        (void)fputc('\'', out);
    }
    put_fish_text(out, o->help);
}

static void write_fish(FILE *out) {
    (void)fputs("# fish completion of tare; put it into a folder of $fish_complete_path.\n", out);
    for (size_t i = 0; commands[i] != NULL; i++) {
        const command *c = commands[i];
        (void)fprintf(out, "complete -c tare -n __fish_use_subcommand -f -a %s", c->name);
        put_fish_text(out, c->summary);
        if (has_operand_names(c)) {
            (void)fprintf(out, "complete -c tare -n '__fish_seen_subcommand_from %s' -a '",
                          c->name);
            put_operand_names(out, c);
            (void)fputs("'\n", out);
        }
        for (const option *o = c->options; o->name != NULL; o++) put_fish_option(out, c, o);
    }
}

// --- the command ---

typedef void (*script_writer)(FILE *out);

static tare_status print_json(const char *shell, script_writer write) {
    page script;
    TRY(page_open(&script));
    write(script.stream);
    const tare_status status = page_close(&script, TARE_OK);
    if (status == TARE_OK) {
        json_out json = json_out_begin(stdout);
        json_out_string(&json, "shell", shell);
        json_out_string(&json, "script", script.chars);
        json_out_end(&json);
    }
    page_release(&script);
    return status;
}

static tare_status print_script(const char *shell, script_writer write, bool as_json) {
    if (as_json) return print_json(shell, write);
    write(stdout);
    return TARE_OK;
}

static tare_status print_bash(const char *operand, bool as_json, tare_error *err) {
    (void)operand, (void)err;
    return print_script("bash", write_bash, as_json);
}

static tare_status print_zsh(const char *operand, bool as_json, tare_error *err) {
    (void)operand, (void)err;
    return print_script("zsh", write_zsh, as_json);
}

static tare_status print_fish(const char *operand, bool as_json, tare_error *err) {
    (void)operand, (void)err;
    return print_script("fish", write_fish, as_json);
}

static const action actions[] = {
    {"bash", NULL, "print the script for bash", print_bash},
    {"zsh", NULL, "print the script for zsh", print_zsh},
    {"fish", NULL, "print the script for fish", print_fish},
    {.name = NULL},
};

const command completion_command = {
    .name = "completion",
    .summary = "print a script that lets a shell complete commands and options",
    .operands = {"SHELL"},
    .least_operands = 1,
    .actions = actions,
    .options = action_options,
    .details = "make install puts the scripts where shells look for them. To try one in bash:",
    .example = "source <(tare completion bash)\n",
    .run = run_action,
};
