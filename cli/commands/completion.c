// SPDX-License-Identifier: Apache-2.0
// tare completion: scripts that let shells complete commands, options and values, made from the
// tables that the commands themselves read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/command.h"
#include "support/json.h"
#include "support/page.h"
#include "support/report.h"

typedef struct completion_options {
    bool as_json;
} completion_options;

typedef const char *(*names_at)(const void *user, size_t index);

static bool is_number(const option *o) {
    return o->kind == OPTION_NUMBER || o->kind == OPTION_BYTES;
}

static void put_names(FILE *out, names_at at) {
    for (size_t i = 0; at(NULL, i) != NULL; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", at(NULL, i));
}

static void put_command_names(FILE *out) {
    for (size_t i = 0; commands[i] != NULL; i++)
        (void)fprintf(out, "%s%s", i > 0 ? " " : "", commands[i]->name);
}

/// Text inside single quotes of a POSIX shell; characters of `escaped` get a backslash.
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
    for (const option *o = c->options; o != NULL && o->name != NULL; o++) {
        (void)fprintf(out, " --%s", o->name);
        if (o->letter != 0) (void)fprintf(out, " -%c", o->letter);
    }
}

// Values stand as the word behind the option.
static void put_bash_values(FILE *out, const command *c) {
    for (const option *o = c->options; o != NULL && o->name != NULL; o++) {
        if (o->choice_at == NULL && !is_number(o)) continue;
        (void)fprintf(out, "    %s,--%s", c->name, o->name);
        if (o->letter != 0) (void)fprintf(out, " | %s,-%c", c->name, o->letter);
        (void)fputs(")\n      names='", out);
        if (o->choice_at != NULL) put_names(out, o->choice_at);
        (void)fprintf(out, "'\n      %s;;\n", is_number(o) ? "files=\n      " : "");
    }
}

static void write_bash(FILE *out) {
    (void)fputs("# bash completion of tare; source it, or put it where bash-completion looks.\n"
                "_tare() {\n"
                "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "  local command=${COMP_WORDS[1]} names='' files=1 options=''\n"
                "  COMPREPLY=()\n"
                "  if ((COMP_CWORD == 1)); then\n"
                "    COMPREPLY=($(compgen -W '",
                out);
    put_command_names(out);
    (void)fputs(" --help --version' -- \"$word\"))\n    return\n  fi\n  case $command in\n", out);
    for (size_t i = 0; commands[i] != NULL; i++) {
        (void)fprintf(out, "    %s)\n      options='", commands[i]->name);
        put_bash_option_names(out, commands[i]);
        (void)fputs("'\n", out);
        if (commands[i]->operand_at != NULL) {
            (void)fputs("      ((COMP_CWORD > 2)) || names='", out);
            put_names(out, commands[i]->operand_at);
            (void)fputs("'\n", out);
        }
        (void)fputs("      ;;\n", out);
    }
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
                "    while IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- "
                "\"$word\")\n"
                "  fi\n"
                "}\n"
                "complete -F _tare tare\n",
                out);
}

// --- zsh ---

static void put_zsh_action(FILE *out, const option *o) {
    (void)fputc(':', out);
    put_quoted(out, o->value, ":[]\\");
    (void)fputc(':', out);
    if (o->choice_at != NULL) {
        (void)fputs("_alternative \"names:name:(", out);
        put_names(out, o->choice_at);
        (void)fputs(")\" \"files:file:_files\"", out);
    } else {
        (void)fputs(is_number(o) ? " " : "_files", out);
    }
}

static void put_zsh_spelling(FILE *out, const option *o, bool is_letter) {
    (void)fputs(" \\\n        '", out);
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
    for (const option *o = c->options; o != NULL && o->name != NULL; o++) {
        put_zsh_spelling(out, o, false);
        if (o->letter != 0) put_zsh_spelling(out, o, true);
    }
    if (c->operand_at != NULL) {
        (void)fputs(" \\\n        '1:name:(", out);
        put_names(out, c->operand_at);
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
    if (is_number(o)) (void)fputs(" -x", out);
    if (o->kind == OPTION_TEXT) (void)fputs(" -r", out);
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
        if (c->operand_at != NULL) {
            (void)fprintf(out, "complete -c tare -n '__fish_seen_subcommand_from %s' -a '",
                          c->name);
            put_names(out, c->operand_at);
            (void)fputs("'\n", out);
        }
        for (const option *o = c->options; o != NULL && o->name != NULL; o++)
            put_fish_option(out, c, o);
    }
}

// --- the command ---

static const struct {
    const char *name;
    void (*write)(FILE *out);
} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
enum { SHELL_COUNT = sizeof shells / sizeof *shells };

static const char *shell_at(const void *user, size_t index) {
    (void)user;
    return index < SHELL_COUNT ? shells[index].name : NULL;
}

static tare_status print_json(size_t shell) {
    page script;
    TRY(page_open(&script));
    shells[shell].write(script.stream);
    const tare_status status = page_close(&script, TARE_OK);
    if (status == TARE_OK) {
        json_out json = json_out_begin(stdout);
        json_out_string(&json, "shell", shells[shell].name);
        json_out_string(&json, "script", script.chars);
        json_out_end(&json);
    }
    page_release(&script);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    completion_options o = {0};
    const char *operands[4];
    if (!parse_arguments(self, argc, argv, &o, operands)) return EXIT_WRONG_USAGE;
    size_t shell = 0;
    while (shell < SHELL_COUNT && strcmp(shells[shell].name, operands[0]) != 0) shell++;
    if (shell == SHELL_COUNT)
        return wrong_usage(self->name, suggest(operands[0], shell_at, NULL), "no shell '%s'",
                           operands[0]);
    if (o.as_json) return finish_job(self->name, print_json(shell), NULL);
    shells[shell].write(stdout);
    return finish_job(self->name, TARE_OK, NULL);
}

static const option options[] = {
    {"json", NULL, "print the script inside JSON", offsetof(completion_options, as_json),
     OPTION_FLAG, 0, false},
    {.name = NULL},
};

const command completion_command = {
    .name = "completion",
    .summary = "print a script that lets a shell complete commands and options",
    .usage = "bash | zsh | fish  [--json]",
    .operands = {"bash, zsh or fish"},
    .operand_at = shell_at,
    .least_operands = 1,
    .options = options,
    .notes = "make install puts the scripts where shells look for them. By hand:\n"
             "source <(tare completion bash)\n",
    .run = run,
};
