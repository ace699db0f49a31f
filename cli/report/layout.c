// SPDX-License-Identifier: Apache-2.0
// Computes positions of nodes with graphviz' program dot. It gets numbers and sizes, but no names,
// and its output is parsed as numbers.
#define _XOPEN_SOURCE 700 // popen
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/graph.h"
#include "support/output.h"
#include "support/report.h"
#include "tare/file.h"

// For more nodes dot takes minutes. It is also stopped after CPU_SECONDS.
enum { MOST_NODES = 1500, CPU_SECONDS = 20, MOST_POINTS = 1024, PATH_SIZE = 1024 };
// The size of a node in inches; a unit of the drawing is 1/72 inch. page/layout.js has the same
// sizes.
#define NODE_WIDTH    "2.3"
#define NODE_HEIGHT   "0.62"
#define UNITS_OF_INCH 72.0

// --- what dot is given ---

// An island gets a box if no other island is computed between its nodes; otherwise a box would
// separate consecutive nodes.
static void find_boxes(graph_drawing *g) {
    size_t open = SIZE_MAX;
    for (size_t i = 0; i < g->count; i++) {
        const size_t island = g->nodes[i].island;
        if (island == SIZE_MAX || island == open) continue;
        // The first node of an island opens it; a later one returns to it.
        g->nodes[island].is_boxed = island == i;
        open = island;
    }
}

static void write_cluster(const graph_drawing *g, size_t first, FILE *stream) {
    (void)fprintf(stream, "subgraph cluster_%zu {", first);
    for (size_t i = first; i < g->count; i++)
        if (g->nodes[i].island == first && !g->nodes[i].is_constant)
            (void)fprintf(stream, " n%zu;", i);
    (void)fputs(" }\n", stream);
}

static void write_edges(const graph_drawing *g, size_t to, FILE *stream) {
    const graph_node *n = &g->nodes[to];
    for (size_t i = 0; !n->is_constant && i < n->input_count; i++)
        if (!g->nodes[n->inputs[i]].is_constant)
            (void)fprintf(stream, "n%zu -> n%zu;\n", n->inputs[i], to);
}

static void write_dot(const graph_drawing *g, FILE *stream) {
    (void)fputs("digraph g {\nnodesep=0.3; ranksep=0.45; node [shape=box, fixedsize=true, "
                "width=" NODE_WIDTH ", height=" NODE_HEIGHT
                ", label=\"\"]; edge [arrowhead=none];\n",
                stream);
    for (size_t i = 0; i < g->count; i++)
        if (!g->nodes[i].is_constant) (void)fprintf(stream, "n%zu;\n", i);
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i].is_boxed) write_cluster(g, i, stream);
    for (size_t i = 0; i < g->count; i++) write_edges(g, i, stream);
    (void)fputs("}\n", stream);
}

// --- what dot answers, in its form "plain" ---

// The same walk validates the output and writes the layout.
typedef struct answer {
    const graph_drawing *g;
    const char *text;
    double height;  // of the drawing, in inches: dot's origin is at the bottom
    json_out *json; // NULL: only validate
} answer;

static bool next_number(const char **at, double *out) {
    char *end = NULL;
    *out = strtod(*at, &end);
    const bool is_number = end != *at && isfinite(*out);
    *at = end;
    return is_number;
}

// "n12": an index.
static bool next_node(const answer *a, const char **at, size_t *out) {
    char *end = NULL;
    while (**at == ' ') ++*at;
    if (**at != 'n') return false;
    *out = strtoul(*at + 1, &end, 10);
    const bool is_node = end != *at + 1 && *out < a->g->count;
    *at = end;
    if (is_node && a->json != NULL) json_out_integer(a->json, NULL, *out);
    return is_node;
}

static bool next_point(const answer *a, const char **at) {
    double x = 0, y = 0;
    if (!next_number(at, &x) || !next_number(at, &y)) return false;
    if (a->json == NULL) return true;
    json_out_number(a->json, NULL, round(x * UNITS_OF_INCH));
    json_out_number(a->json, NULL, round((a->height - y) * UNITS_OF_INCH));
    return true;
}

// "node n0 x y width height .."
static bool read_node(const answer *a, const char *at) {
    size_t index = 0;
    return next_node(a, &at, &index) && next_point(a, &at);
}

// "edge n0 n1 4 x y x y x y x y ..": a Bezier curve.
static bool read_edge(const answer *a, const char *at) {
    size_t from = 0, to = 0;
    double count = 0;
    if (!next_node(a, &at, &from) || !next_node(a, &at, &to) || !next_number(&at, &count))
        return false;
    for (int i = 0; i < (int)fmin(count, MOST_POINTS); i++)
        if (!next_point(a, &at)) return false;
    return count >= 4 && count <= MOST_POINTS;
}

// "graph scale width height"
static bool read_head(answer *a) {
    double scale = 0, width = 0;
    const char *at = a->text + strlen("graph");
    return strncmp(a->text, "graph ", strlen("graph ")) == 0 && next_number(&at, &scale) &&
           next_number(&at, &width) && next_number(&at, &a->height);
}

// Writes the lines that begin with `word`, each as an array, into the array `key`.
static bool read_lines(const answer *a, const char *key, const char *word,
                       bool (*read)(const answer *a, const char *at)) {
    const size_t length = strlen(word);
    bool is_good = true;
    if (a->json != NULL) json_out_open(a->json, key, '[');
    for (const char *line = a->text; is_good && *line != '\0';) {
        const bool is_ours = strncmp(line, word, length) == 0;
        if (is_ours && a->json != NULL) json_out_open(a->json, NULL, '[');
        if (is_ours) is_good = read(a, line + length);
        if (is_ours && a->json != NULL) json_out_close(a->json, ']');
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (a->json != NULL) json_out_close(a->json, ']');
    return is_good;
}

static void write_boxes(const graph_drawing *g, json_out *json) {
    json_out_open(json, "islands", '[');
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i].is_boxed) json_out_integer(json, NULL, i);
    json_out_close(json, ']');
}

static bool read_all(const answer *a) {
    return read_lines(a, "nodes", "node ", read_node) && read_lines(a, "edges", "edge ", read_edge);
}

// --- the program ---

// The output of dot, or an empty page if it is not installed, takes too long or fails.
static tare_status run_dot(const char *path, page *out) {
    char line[PATH_SIZE + 128];
    (void)snprintf(line, sizeof line, "ulimit -t %d; exec dot -Tplain '%s' 2>/dev/null",
                   CPU_SECONDS, path);
    (void)fflush(NULL);
    TRY(page_open(out));
    FILE *stream = popen(line, "r"); // NOLINT: a fixed program and a path of our own
    for (int c = stream != NULL ? getc(stream) : EOF; c != EOF; c = getc(stream))
        (void)fputc(c, out->stream);
    const bool is_done = stream != NULL && pclose(stream) == 0;
    TRY(page_close(out, TARE_OK));
    if (!is_done) out->chars[0] = '\0';
    return TARE_OK;
}

static tare_status ask_dot(const graph_drawing *g, page *out, tare_error *err) {
    char path[PATH_SIZE];
    page input = {.stream = NULL};
    if (!output_temporary_path("graph", ".dot", path, sizeof path)) return page_open(out);
    TRY(page_open(&input));
    write_dot(g, input.stream);
    tare_status status = page_close(&input, TARE_OK);
    if (status == TARE_OK) status = tare_file_write(path, input.chars, input.length, err);
    if (status == TARE_OK) status = run_dot(path, out);
    output_remove(path);
    page_release(&input);
    return status;
}

tare_status write_layout(graph_drawing *g, json_out *json, tare_error *err) {
    page text = {.stream = NULL};
    if (g->shown_count > MOST_NODES) return TARE_OK;
    find_boxes(g);
    tare_status status = ask_dot(g, &text, err);
    answer a = {.g = g, .text = text.chars};
    if (status == TARE_OK && a.text != NULL && read_head(&a) && read_all(&a)) {
        json_out_open(json, "layout", '{');
        a.json = json;
        (void)read_all(&a);
        write_boxes(g, json);
        json_out_close(json, '}');
    }
    page_release(&text);
    return status;
}
