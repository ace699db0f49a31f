// SPDX-License-Identifier: Apache-2.0
// tare-replay: replays recorded cases and numeric vectors, and says where tare differs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/known.h"
#include "replay/numerics.h"
#include "replay/pool.h"
#include "replay/replay.h"
#include "replay/self_test.h"

enum { USAGE_ERROR = 2 };

static const char usage[] =
    "usage: tare-replay [--verbose] [--jobs N] [--known FILE] [--self-test] [--from-pt2] CASE..\n"
    "       tare-replay [--verbose] --numerics DIR [CASE..]\n"
    "\n"
    "CASE is a folder with case.json, model.safetensors and data.safetensors, a folder of such\n"
    "folders, or a zip archive of them (or a folder of archives). Prints one line a case: pass "
    "NAME,\n"
    "known NAME: reason, or fail NAME: what differs first.\n"
    "\n"
    "  --verbose       everything that differs, with a diff of texts\n"
    "  --jobs N        cases at a time (default: the number of CPUs)\n"
    "  --known FILE    cases whose recorded values are wrong, lines `NAME: reason`\n"
    "                  (default: tests/known_differences.txt of the source tree)\n"
    "  --from-pt2      start from the case's model.pt2 instead of its model.safetensors\n"
    "  --self-test     change each case in one place at a time; every change must be noticed\n"
    "  --numerics DIR  replay the numeric vectors of DIR: observers, fake\n"
    "                  quantizers, operators\n";

typedef struct options {
    bool is_verbose, is_self_test, is_from_pt2;
    size_t job_count;
    const char *known_path, *numerics_path;
    char **cases;
    int case_count;
} options;

typedef struct program {
    options options;
    case_list cases;
    known_differences known;
    size_t passed, failed, known_count;
} program;

static int complain(const char *what, const tare_error *err) {
    if (err == NULL)
        (void)fprintf(stderr, "tare-replay: %s\n", what);
    else
        (void)fprintf(stderr, "tare-replay: %s%s%s\n", tare_error_where(err),
                      tare_error_where(err)[0] != '\0' ? ": " : "", tare_error_message(err));
    return USAGE_ERROR;
}

// --- arguments ---

/// The value of an option: after "=" or the next argument. NULL and a complaint when there is none.
static const char *option_value(const char *name, int argc, char **argv, int *at) {
    const char *given = argv[*at] + strlen(name);
    if (given[0] == '=') return given + 1;
    if (*at + 1 < argc) return argv[++*at];
    (void)fprintf(stderr, "tare-replay: %s needs a value\n", name);
    return NULL;
}

static bool is_option(const char *argument, const char *name) {
    const size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 &&
           (argument[length] == '\0' || argument[length] == '=');
}

static bool read_job_count(const char *chars, size_t *out) {
    char *end = NULL;
    if (chars == NULL) return false; // option_value complained
    const long count = strtol(chars, &end, 10);
    if (*end != '\0' || count < 1 || count > 1024) {
        (void)complain("--jobs needs a number from 1 to 1024", NULL);
        return false;
    }
    *out = (size_t)count;
    return true;
}

static const char *option_name_at(const void *user, size_t index) {
    static const char *const names[] = {"--verbose",  "--jobs",     "--known", "--self-test",
                                        "--from-pt2", "--numerics", "--help",  NULL};
    (void)user;
    return names[index];
}

static bool refuse(const char *argument) {
    const char *near = tare_nearest_name(argument, option_name_at, NULL);
    (void)fprintf(stderr, "tare-replay: there is no option %s%s%s%s\n", argument,
                  near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                  near != NULL ? "?)" : "");
    return false;
}

static bool read_option(options *o, int argc, char **argv, int *at) {
    const char *argument = argv[*at];
    if (strcmp(argument, "--verbose") == 0) return o->is_verbose = true;
    if (strcmp(argument, "--self-test") == 0) return o->is_self_test = true;
    if (strcmp(argument, "--from-pt2") == 0) return o->is_from_pt2 = true;
    if (is_option(argument, "--known"))
        return (o->known_path = option_value("--known", argc, argv, at)) != NULL;
    if (is_option(argument, "--numerics"))
        return (o->numerics_path = option_value("--numerics", argc, argv, at)) != NULL;
    if (!is_option(argument, "--jobs")) return refuse(argument);
    return read_job_count(option_value("--jobs", argc, argv, at), &o->job_count);
}

/// Cases are moved to the front of argv.
static bool read_arguments(options *o, int argc, char **argv) {
    o->cases = argv + 1;
    bool only_cases = false;
    for (int i = 1; i < argc; i++) {
        if (!only_cases && strcmp(argv[i], "--") == 0)
            only_cases = true;
        else if (only_cases || argv[i][0] != '-')
            o->cases[o->case_count++] = argv[i];
        else if (!read_option(o, argc, argv, &i))
            return false;
    }
    if (o->case_count > 0 || o->numerics_path != NULL) return true;
    (void)complain("no CASE is given (see tare-replay --help)", NULL);
    return false;
}

// --- what is read before the first case ---

/// FOLDER/tests/known_differences.txt in the first folder above the program, or at the working
/// directory, that has one.
static bool find_known(char *out, size_t size) {
    char program_path[4096];
    const ssize_t length = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
    struct stat info;
    program_path[length > 0 ? length : 0] = '\0';
    for (char *slash = strrchr(program_path, '/'); slash != NULL;
         slash = strrchr(program_path, '/')) {
        *slash = '\0';
        (void)snprintf(out, size, "%s/tests/known_differences.txt", program_path);
        if (stat(out, &info) == 0) return true;
    }
    (void)snprintf(out, size, "tests/known_differences.txt");
    return stat(out, &info) == 0;
}

static tare_status read_inputs(program *p, tare_error *err) {
    char found[4200];
    const char *path = p->options.known_path;
    if (path == NULL && find_known(found, sizeof found)) path = found;
    if (path != NULL) TARE_TRY(known_read(path, &p->known, err));
    for (int i = 0; i < p->options.case_count; i++)
        TARE_TRY(case_list_add(&p->cases, p->options.cases[i], err));
    return TARE_OK;
}

// --- cases ---

static int judge(const findings *found, const char *reason) {
    if (!findings_any(found)) return VERDICT_PASS;
    return reason != NULL && found->structure_count == 0 ? VERDICT_KNOWN : VERDICT_FAIL;
}

/// In a process of its own.
static int work(void *user, size_t job, FILE *answer) {
    const program *p = user;
    const case_place *place = &p->cases.items[job];
    const char *reason = known_reason(&p->known, place->name);
    findings found = {0};
    recorded_case c;
    double step = 0;
    tare_error *err = tare_error_create();
    if (case_read(place, &c, err) != TARE_OK) {
        findings_add_error(&found, FINDING_STRUCTURE, "cannot be read", err);
    } else {
        c.starts_exported = p->options.is_from_pt2;
        if (p->options.is_self_test)
            self_test(&c, reason != NULL, &found);
        else
            replay(&c, &found, &step);
        case_release(&c);
    }
    tare_error_destroy(err);
    const int verdict = judge(&found, reason);
    if (verdict == VERDICT_FAIL) (void)fprintf(answer, "%s\n", tare__text_chars(&found.first));
    if (p->options.is_verbose) (void)fputs(tare__text_chars(&found.detail), answer);
    findings_release(&found);
    return verdict;
}

/// The answer's first line is the difference, when there is one; what follows is for --verbose.
static void done(void *user, size_t job, int verdict, const char *answer, const char *how) {
    program *p = user;
    const char *name = p->cases.items[job].name;
    const size_t first = verdict == VERDICT_FAIL && how == NULL ? strcspn(answer, "\n") : 0;
    if (verdict == VERDICT_PASS)
        (void)printf("pass %s\n", name);
    else if (verdict == VERDICT_KNOWN)
        (void)printf("known %s: %s\n", name, known_reason(&p->known, name));
    else if (how != NULL)
        (void)printf("fail %s: %s\n", name, how);
    else
        (void)printf("fail %s: %.*s\n", name, (int)first, answer);
    const char *rest = answer + first + (answer[first] == '\n' && first > 0);
    (void)fputs(rest, stdout);
    (void)fflush(stdout);
    if (verdict == VERDICT_PASS)
        p->passed++;
    else if (verdict == VERDICT_FAIL)
        p->failed++;
    else
        p->known_count++;
}

static bool replay_cases(program *p) {
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t workers = p->options.job_count;
    if (workers == 0) workers = cpus > 0 ? (size_t)cpus : 1;
    const pool jobs = {.job_count = p->cases.count,
                       .worker_count = workers,
                       .work = work,
                       .done = done,
                       .user = p};
    return pool_run(&jobs);
}

// --- numeric vectors ---

static void count_vector(void *user, const char *name, const char *difference) {
    program *p = user;
    if (difference == NULL) {
        p->passed++;
        (void)printf("pass %s\n", name);
    } else {
        p->failed++;
        (void)printf("fail %s: %s\n", name, difference);
    }
}

static tare_status replay_numerics(program *p, tare_error *err) {
    static const numerics_kind *const kinds[] = {&numerics_observers, &numerics_fake_quantizers,
                                                 &numerics_operators};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        TARE_TRY(numerics_run(kinds[i], p->options.numerics_path, count_vector, p, err));
    return TARE_OK;
}

static int run(program *p, tare_error *err) {
    if (read_inputs(p, err) != TARE_OK) return complain(NULL, err);
    if (p->options.numerics_path != NULL && replay_numerics(p, err) != TARE_OK)
        return complain(NULL, err);
    if (!replay_cases(p)) return complain("processes for the cases cannot be made", NULL);
    if (p->known_count > 0) (void)printf("%zu known to differ for good reason\n", p->known_count);
    (void)printf("%zu passed, %zu failed\n", p->passed, p->failed);
    return p->failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return fputs(usage, stdout) < 0;
    program p = {0};
    if (!read_arguments(&p.options, argc, argv)) return USAGE_ERROR;
    tare_error *err = tare_error_create();
    const int status = run(&p, err);
    tare_error_destroy(err);
    case_list_release(&p.cases);
    known_release(&p.known);
    return status;
}
