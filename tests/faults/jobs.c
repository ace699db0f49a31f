// SPDX-License-Identifier: Apache-2.0
// The table of jobs, their runs in child processes, and the comparison of the outputs they leave.
#define _XOPEN_SOURCE 700 // nftw
#include "faults/jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp.h"

int tare_command_line(int argc, char **argv); // cli/main.c's main

#define DIGITS  "data/digits/digits.safetensors"
#define TRAIN   "data/digits/train.npz"
#define PROGRAM "tests/fuzz/corpus/pt2/arguments"

// A check with a limit looks at all samples, however slow the machine is: its words stay the same.
// clang-format off
const job jobs[] = {
    {"quantize_fx",
     "quantize " DIGITS " --backend x86 --calibrate " TRAIN " --limit {12|8} --min-sqnr 1 -q -o OUT/m --report OUT/r",
     {"m", "r/explain.json", "r/coverage.json", "r/model.txt"}},
    {"quantize_pt2e",
     "quantize " PROGRAM " --quantizer XNNPACKQuantizer --calibrate random:2:{1|2} -q -o OUT/m", {"m"}},
    {"quantize_qat",
     "quantize " DIGITS " --backend x86 --qat --stop prepare {-q|-q --qconfig examples/minmax.json} -o OUT/m", {"m"}},
    {"lower", "quantize {FIX/fx_reference|FIX/reference} -q -o OUT/m", {"m"}},
    {"calibrate", "calibrate FIX/prepared --data " TRAIN " --limit 24 --every 8 --resume -q -o OUT/s", {"s"}, .resumes = true},
    {"merge", "calibrate --merge FIX/0.state {FIX/1.state|FIX/half.state} -o OUT/s", {"s"}},
    {"export_onnx", "export {FIX/model|data/digits/digits.onnx} --to onnx -o OUT/m.onnx --report OUT/r.json", {"m.onnx", "r.json"}},
    {"export_external", "export {FIX/model|data/digits/digits.onnx} --to onnx --external-data -o OUT/m.onnx", {"m.onnx"}, .has_data = true},
    {"export_pt2", "export {FIX/reference|" PROGRAM "} --to pt2 -o OUT/m.pt2", {"m.pt2"}},
    {"export_packed", "export {FIX/model|" DIGITS "} --to tare --packed -o OUT/m", {"m"}},
    {"run_npz", "run FIX/model --input " TRAIN " --limit {9|5} -q --output OUT/y.npz", {"y.npz"}},
    {"run_npy", "run FIX/model --input random:{3|2} -q --output OUT/y.npy", {"y.npy"}},
    {"run_onnx", "run tests/fuzz/corpus/onnx/conv --input random:{3|2} -q --output OUT/y.safetensors", {"y.safetensors"}},
    {"run_csv", "run FIX/model --input data/digits/digits.csv.gz --limit {4|3} -q --output OUT/y.npz", {"y.npz"}},
    {"run_folder", "run FIX/model --input FIX/arrays --limit {9|5} -q --output OUT/y.npz", {"y.npz"}},
    {"run_pictures", "run FIX/sees --input FIX/pictures --limit {3|2} -q --output OUT/y.npz", {"y.npz"}},
    {"run_list", "run FIX/sees --input FIX/list.txt --limit {2|1} -q --output OUT/y.npz", {"y.npz"}},
    {"preprocess", "preprocess " DIGITS " --set {imagenet|to_tensor} -o OUT/m", {"m"}},
    {"compare", "compare " DIGITS " FIX/model --data " TRAIN " --limit {9|5} -q --report OUT/r", {"r/compare.json"}},
    {"tune", "run FIX/model --input random:2 -q --tune-cache OUT/t.json", {"t.json"}, .may_differ = true},
    {"print", "print FIX/model", {NULL}},
    {"verify", "print FIX/packed --verify", {NULL}},
    {"explain", "explain FIX/model --json", {NULL}},
    {"backend", "backend check examples/my_backend.json", {NULL}},
};
const size_t job_count = sizeof jobs / sizeof *jobs;

static const char *const fixtures[] = {
    "quantize " DIGITS " --backend x86 --qconfig examples/minmax.json --stop prepare -q -o FIX/prepared",
    "calibrate FIX/prepared --data " TRAIN " --limit 48 --shard 0/3 -q -o FIX/0.state",
    "calibrate FIX/prepared --data " TRAIN " --limit 48 --shard 1/3 -q -o FIX/1.state",
    "calibrate FIX/prepared --data " TRAIN " --limit 48 --shard 2/3 -q -o FIX/half.state",
    "quantize " DIGITS " --backend x86 --calibrate " TRAIN " --limit 16 -q -o FIX/model",
    "quantize " PROGRAM " --quantizer XNNPACKQuantizer --calibrate random:2 --stop reference -q -o FIX/reference",
    "quantize " DIGITS " --backend x86 --calibrate " TRAIN " --limit 16 --stop reference -q -o FIX/fx_reference",
    "export FIX/model --to tare --packed -o FIX/packed",
    "preprocess FIX/model --set resize=8x8,color=gray,scale=16/255 -o FIX/sees",
};

static const struct {
    const char *from, *to;
} copies[] = {
    {"data/digits/test.npz", "arrays/a.npz"},
    {"tests/fuzz/corpus/image/png_rgb", "pictures/one/a.png"},
    {"tests/fuzz/corpus/image/jpeg_2", "pictures/one/b.jpg"},
    {"tests/fuzz/corpus/image/png_grey16", "pictures/two/c.png"},
};
static const char *const folders[] = {"arrays", "pictures", "pictures/one", "pictures/two"};
static const char list[] = "pictures/one/a.png 1\npictures/one/b.jpg 0\n";
// clang-format on

static char base[128];

static const char *inside(const char *folder, const char *name) {
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s%s%s", base, folder, *name != '\0' ? "/" : "", name);
    return path;
}

const char *job_folder(void) {
    return inside("out", "");
}

// --- running ---

typedef struct words {
    char text[2048];
    char *items[48];
    int count;
} words;

// {A|B} becomes A, or B where the job is the one before.
static void choose(const char *pattern, bool second, char *out) {
    int side = 0; // outside of braces; 1: A; 2: B
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '{' || *pattern == '}')
            side = *pattern == '{';
        else if (*pattern == '|' && side == 1)
            side = 2;
        else if (side == 0 || side == (second ? 2 : 1))
            *out++ = *pattern;
    }
    *out = '\0';
}

static void append_word(words *w, char **at, const char *word) {
    w->items[w->count++] = *at;
    const bool is_fixture = strncmp(word, "FIX/", 4) == 0;
    if (is_fixture || strncmp(word, "OUT/", 4) == 0)
        *at += sprintf(*at, "%s", inside(is_fixture ? "fix" : "out", word + 4)) + 1;
    else
        *at += sprintf(*at, "%s", word) + 1;
}

static void split(const char *arguments, bool second, words *out) {
    char chosen[1024], *state = NULL, *at = out->text;
    choose(arguments, second, chosen);
    out->count = 0;
    append_word(out, &at, "tare");
    for (char *word = strtok_r(chosen, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state))
        append_word(out, &at, word);
    out->items[out->count] = NULL;
}

static void redirect(int to, const char *path, int flags) {
    const int file = open(path, flags, 0600);
    if (file < 0 || dup2(file, to) < 0) _exit(120);
    close(file);
}

static int run(const char *arguments, bool second, void (*prepare)(void *user), void *user) {
    static words w; // of the child, too
    int status = 0;
    split(arguments, second, &w);
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        redirect(0, "/dev/null", O_RDONLY);
        redirect(1, inside("stdout", ""), O_WRONLY | O_CREAT | O_TRUNC);
        redirect(2, inside("stderr", ""), O_WRONLY | O_CREAT | O_TRUNC);
        alarm(60);
        if (prepare != NULL) prepare(user);
        exit(tare_command_line(w.count, w.items)); // looks for leaks, under a sanitizer
    }
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int job_run(const job *j, void (*prepare)(void *user), void *user) {
    return run(j->arguments, false, prepare, user);
}

const char *job_complaint(void) {
    static char line[1024];
    FILE *f = fopen(inside("stderr", ""), "r");
    line[0] = '\0';
    if (f != NULL && fgets(line, sizeof line, f) == NULL) line[0] = '\0';
    if (f != NULL) fclose(f);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

// --- what is there ---

typedef struct content {
    unsigned char *bytes; // NULL: there is no such file
    size_t size;
} content;

static content read_content(const char *path) {
    content c = {0};
    FILE *f = fopen(path, "rb");
    if (f == NULL) return c;
    c.bytes = malloc(1 << 22);
    if (c.bytes == NULL) abort();
    c.size = fread(c.bytes, 1, 1 << 22, f);
    fclose(f);
    return c;
}

static void write_content(const char *path, const content *c) {
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(c->bytes, 1, c->size, f) != c->size || fclose(f) != 0) abort();
}

static bool same(const content *a, const content *b) {
    if (a->bytes == NULL || b->bytes == NULL) return a->bytes == b->bytes;
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

enum { MOST_FILES = 12 };

typedef struct file_entry {
    char name[256]; // in OUT
    content content;
} file_entry;

// All files of OUT, and of its folders.
typedef struct snapshot {
    file_entry files[MOST_FILES];
    size_t count;
} snapshot;

static void add_files(snapshot *s, const char *folder) {
    DIR *d = opendir(inside("out", folder));
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char name[256];
        struct stat info;
        if (e->d_name[0] == '.') continue;
        const int length =
            snprintf(name, sizeof name, "%s%s%s", folder, *folder != '\0' ? "/" : "", e->d_name);
        if (length < 0 || (size_t)length >= sizeof name) abort();
        if (stat(inside("out", name), &info) != 0) continue;
        if (S_ISDIR(info.st_mode)) {
            add_files(s, name);
            continue;
        }
        if (s->count == MOST_FILES) abort();
        file_entry *f = &s->files[s->count++];
        strcpy(f->name, name);
        f->content = read_content(inside("out", name));
    }
    if (d != NULL) closedir(d);
}

static void forget(snapshot *s) {
    for (size_t i = 0; i < s->count; i++) free(s->files[i].content.bytes);
    s->count = 0;
}

static const content *content_of(const snapshot *s, const char *name) {
    static const content none = {0};
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->files[i].name, name) == 0) return &s->files[i].content;
    return &none;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_all(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

// --- records ---

struct job_record {
    const job *job;
    snapshot before, after;
    content said;
};

static void restore(const snapshot *s) {
    remove_all(inside("out", ""));
    mkdir(inside("out", ""), 0700);
    for (size_t i = 0; i < s->count; i++) {
        const char *slash = strchr(s->files[i].name, '/');
        char folder[256];
        if (slash != NULL) {
            snprintf(folder, sizeof folder, "%.*s", (int)(slash - s->files[i].name),
                     s->files[i].name);
            mkdir(inside("out", folder), 0700);
        }
        write_content(inside("out", s->files[i].name), &s->files[i].content);
    }
}

job_record *job_record_create(const job *j, bool has_old) {
    job_record *r = calloc(1, sizeof *r);
    if (r == NULL) abort();
    r->job = j;
    restore(&r->before);
    if (has_old && run(j->arguments, true, NULL, NULL) != 0) {
        fprintf(stderr, "%s: %s\n", j->name, job_complaint());
        abort();
    }
    add_files(&r->before, "");
    if (run(j->arguments, false, NULL, NULL) != 0) {
        fprintf(stderr, "%s: %s\n", j->name, job_complaint());
        abort();
    }
    add_files(&r->after, "");
    r->said = read_content(inside("stdout", ""));
    return r;
}

void job_record_destroy(job_record *r) {
    forget(&r->before);
    forget(&r->after);
    free(r->said.bytes);
    free(r);
}

void job_reset(const job_record *r) {
    restore(&r->before);
}

static bool names(const snapshot *s, const char *name) {
    return content_of(s, name)->bytes != NULL;
}

const char *job_leftover(const job_record *r) {
    static char left[256];
    snapshot now = {.count = 0};
    add_files(&now, "");
    left[0] = '\0';
    for (size_t i = 0; i < now.count; i++)
        if (!names(&r->before, now.files[i].name) && !names(&r->after, now.files[i].name))
            strcpy(left, now.files[i].name);
    forget(&now);
    return left[0] != '\0' ? left : NULL;
}

typedef struct tally {
    bool old, new, broken;
} tally;

static void judge(const job_record *r, const snapshot *now, const char *name, tally *t) {
    const content *found = content_of(now, name);
    const bool is_old = same(found, content_of(&r->before, name));
    const bool is_new =
        r->job->may_differ ? found->bytes != NULL : same(found, content_of(&r->after, name));
    t->old = t->old || (is_old && !is_new);
    t->new = t->new || (is_new && !is_old);
    t->broken = t->broken || (!is_old && !is_new);
}

// Data that a model names must be there, whole: the model's own file says which it is.
static bool data_is_there(const job_record *r, const snapshot *now) {
    const char *model = r->job->outputs[0];
    const content *found = content_of(now, model);
    const snapshot *of = same(found, content_of(&r->after, model)) ? &r->after : &r->before;
    for (size_t i = 0; i < of->count && found->bytes != NULL; i++)
        if (!same(&of->files[i].content, content_of(now, of->files[i].name))) return false;
    return true;
}

job_state job_outputs(const job_record *r) {
    snapshot now = {.count = 0};
    tally t = {0};
    add_files(&now, "");
    for (size_t i = 0; i < 4 && r->job->outputs[i] != NULL; i++)
        judge(r, &now, r->job->outputs[i], &t);
    if (r->job->has_data && !data_is_there(r, &now)) t.broken = true;
    forget(&now);
    if (t.broken) return JOB_BROKEN;
    if (t.old && t.new) return JOB_MIXED;
    if (t.old || t.new) return t.new ? JOB_NEW : JOB_OLD;
    return JOB_SAME;
}

bool job_said_all(const job_record *r) {
    content now = read_content(inside("stdout", ""));
    const bool is_same = r->job->may_differ || same(&now, &r->said);
    free(now.bytes);
    return is_same;
}

// --- the group ---

static void copy_files(void) {
    const content lines = {.bytes = (unsigned char *)list, .size = sizeof list - 1};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        mkdir(inside("fix", folders[i]), 0700);
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        content c = read_content(copies[i].from);
        write_content(inside("fix", copies[i].to), &c);
        free(c.bytes);
    }
    write_content(inside("fix", "list.txt"), &lines);
}

int jobs_begin(void **state) {
    (void)state;
    if (!temp_make_folder("tare-faults", base, sizeof base)) return -1;
    mkdir(inside("fix", ""), 0700);
    mkdir(inside("out", ""), 0700);
    copy_files();
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++)
        if (run(fixtures[i], false, NULL, NULL) != 0) {
            fprintf(stderr, "%s: %s\n", fixtures[i], job_complaint());
            return -1;
        }
    return 0;
}

int jobs_end(void **state) {
    (void)state;
    remove_all(base);
    return 0;
}
