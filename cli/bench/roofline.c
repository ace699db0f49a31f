// SPDX-License-Identifier: Apache-2.0
// Draws the roofline: operations per second of each layer, over operations per byte read and
// written. A layer is below the roof that limits it, memory or arithmetic.
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "support/output.h"
#include "support/report.h"

enum { WIDTH = 960, HEIGHT = 640, LEFT = 80, RIGHT = 190, TOP = 56, BOTTOM = 64 };

// Both axes are logarithmic: exponents of ten.
typedef struct plot {
    FILE *file;
    double x_low, x_high, y_low, y_high;
} plot;

static double x_at(const plot *p, double value) {
    return LEFT + (log10(value) - p->x_low) / (p->x_high - p->x_low) * (WIDTH - LEFT - RIGHT);
}

static double y_at(const plot *p, double value) {
    return HEIGHT - BOTTOM -
           (log10(value) - p->y_low) / (p->y_high - p->y_low) * (HEIGHT - TOP - BOTTOM);
}

static void put_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '<')
            (void)fputs("&lt;", file);
        else if (*text == '&')
            (void)fputs("&amp;", file);
        else if (*text == '"')
            (void)fputs("&quot;", file);
        else
            (void)fputc(*text, file);
    }
}

// --- axes ---

static double intensity(const tare_step *step) {
    return 2.0 * (double)step->macs / (double)layer_bytes(step);
}

static bool is_dot(const tare_step *step) {
    return step->macs > 0 && step->median_ns > 0 && layer_bytes(step) > 0;
}

static void widen(double value, double *low, double *high) {
    const double exponent = log10(value);
    if (exponent < *low) *low = exponent;
    if (exponent > *high) *high = exponent;
}

// Chooses whole and half decades around all dots and roofs.
static void find_axes(plot *p, const layer_list *list, const tare_machine_peak *peak) {
    p->x_low = 0;
    p->x_high = 2;
    p->y_low = 1;
    p->y_high = log10(peak->int8_gops);
    widen(peak->float_gflops, &p->y_low, &p->y_high);
    for (size_t i = 0; i < list->count; i++) {
        const tare_step *step = &list->layers[i].step;
        if (!is_dot(step)) continue;
        widen(intensity(step), &p->x_low, &p->x_high);
        widen(layer_gops(step), &p->y_low, &p->y_high);
    }
    p->x_low = floor(p->x_low * 2) / 2;
    p->x_high = ceil(p->x_high * 2 + 0.2) / 2;
    p->y_low = floor(p->y_low * 2) / 2;
    p->y_high = ceil(p->y_high * 2 + 0.2) / 2;
}

static void draw_grid(const plot *p) {
    for (int e = (int)ceil(p->x_low); e <= (int)floor(p->x_high); e++) {
        const double x = x_at(p, pow(10, e));
        (void)fprintf(p->file,
                      "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
                      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                      x, TOP, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 20, pow(10, e));
    }
    for (int e = (int)ceil(p->y_low); e <= (int)floor(p->y_high); e++) {
        const double y = y_at(p, pow(10, e));
        (void)fprintf(p->file,
                      "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                      LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4, pow(10, e));
    }
    (void)fprintf(p->file,
                  "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations per byte read and "
                  "written</text>\n<text transform=\"translate(24 %d) rotate(-90)\" "
                  "text-anchor=\"middle\">billions of operations per second</text>\n",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, (TOP + HEIGHT - BOTTOM) / 2);
}

// --- roofs ---

static void draw_ceiling(const plot *p, double gops, const char *class, const char *name) {
    const double y = y_at(p, gops);
    (void)fprintf(p->file,
                  "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                  "<text x=\"%d\" y=\"%.1f\">%s, %.0f</text>\n",
                  class, LEFT, y, WIDTH - RIGHT, y, WIDTH - RIGHT + 8, y + 4, name, gops);
}

// From the left or lower edge up to the highest roof.
static void draw_slope(const plot *p, double gbs, double top, const char *name) {
    const double least = pow(10, p->x_low), bottom = pow(10, p->y_low);
    const double first = least * gbs < bottom ? bottom / gbs : least, last = top / gbs;
    const double most = pow(10, p->x_high), end = last < most ? last : most;
    if (first >= end) return;
    const double x = x_at(p, first), y = y_at(p, first * gbs);
    const double x2 = x_at(p, end), y2 = y_at(p, end * gbs);
    const double angle = atan2(y2 - y, x2 - x) * 57.29578;
    (void)fprintf(
        p->file,
        "<line class=\"slope\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
        "<text class=\"small\" dy=\"-5\" transform=\"translate(%.1f %.1f) rotate(%.1f)\">%s, %.0f "
        "GB/s</text>\n",
        x, y, x2, y2, x + 12 * cos(angle / 57.29578), y + 12 * sin(angle / 57.29578), angle, name,
        gbs);
}

static void draw_roofs(const plot *p, const tare_machine_peak *peak) {
    const double top = peak->int8_gops > peak->float_gflops ? peak->int8_gops : peak->float_gflops;
    draw_slope(p, peak->memory_gbs, top, "memory");
    draw_slope(p, peak->l3_gbs, top, "L3");
    draw_slope(p, peak->l2_gbs, top, "L2");
    draw_ceiling(p, peak->int8_gops, "integers roof", "integers");
    draw_ceiling(p, peak->float_gflops, "floats roof", "floats");
}

// --- dots ---

static void draw_dot(const plot *p, const tare_step *step, const tare_machine_peak *peak,
                     double share) {
    (void)fprintf(p->file, "<circle class=\"%s dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                  step->multiplies_codes ? "integers" : "floats", x_at(p, intensity(step)),
                  y_at(p, layer_gops(step)), 3 + 40 * sqrt(share / 3.14159));
    put_text(p->file, step->node);
    (void)fprintf(p->file, " (%s): %.1f us, %.1f %% of the time, %.0f GOPS, %.0f %% of the peak; ",
                  step->op[0] != '\0' ? step->op : step->kind, (double)step->median_ns * 1e-3,
                  100 * share, layer_gops(step), 100 * layer_share_of_peak(step, peak));
    put_text(p->file, step->kernel);
    if (step->why[0] != '\0') (void)fputs(": ", p->file);
    put_text(p->file, step->why);
    (void)fputs("</title></circle>\n", p->file);
}

// --- names beside the dots ---

// The labels so far; a label that would overlap one of them is left out.
typedef struct labels {
    struct {
        double x, y, width;
    } boxes[48];
    size_t count;
} labels;

enum { LETTER = 6, LINE = 11 }; // width of a letter and height of a line in the class `small`

static bool is_free(const labels *l, double x, double y, double width) {
    for (size_t i = 0; i < l->count; i++)
        if (fabs(l->boxes[i].y - y) < LINE && x < l->boxes[i].x + l->boxes[i].width &&
            l->boxes[i].x < x + width)
            return false;
    return l->count < sizeof l->boxes / sizeof *l->boxes;
}

static void draw_label(const plot *p, labels *l, const tare_step *step) {
    const double x = x_at(p, intensity(step)), y = y_at(p, layer_gops(step)) + LINE / 3.0;
    const double width = LETTER * (double)strlen(step->node);
    if (!is_free(l, x, y, width)) return;
    l->boxes[l->count].x = x;
    l->boxes[l->count].y = y;
    l->boxes[l->count++].width = width;
    (void)fprintf(p->file, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\">", x, y);
    put_text(p->file, step->node);
    (void)fputs("</text>\n", p->file);
}

// Large dots first, so that they do not hide small ones; the longest layers are labelled first.
static void draw_dots(const plot *p, const layer_list *list, const tare_machine_peak *peak) {
    labels named = {.count = 0};
    const double all = layer_list_ns(list);
    uint64_t above = UINT64_MAX;
    for (;;) {
        uint64_t next = 0;
        for (size_t i = 0; i < list->count; i++) {
            const tare_step *step = &list->layers[i].step;
            if (is_dot(step) && step->median_ns < above && step->median_ns > next)
                next = step->median_ns;
        }
        if (next == 0) return;
        for (size_t i = 0; i < list->count; i++) {
            const tare_step *step = &list->layers[i].step;
            if (!is_dot(step) || step->median_ns != next) continue;
            draw_dot(p, step, peak, (double)next / all);
            draw_label(p, &named, step);
        }
        above = next;
    }
}

static const char head[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n"
    "<style>text{font:13px sans-serif;fill:#222}.small{font-size:11px;fill:#666}"
    ".title{font-size:16px}.grid{stroke:#ddd}.roof{stroke-width:2}"
    ".integers{stroke:#0b6e99;fill:#0b6e99}.floats{stroke:#b8521b;fill:#b8521b}"
    ".slope{stroke:#999;stroke-dasharray:5 3}.dot{fill-opacity:.45;stroke-width:1}</style>\n"
    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text class=\"title\" x=\"%d\" "
    "y=\"30\">";

static void draw(plot *p, const char *title, const layer_list *list,
                 const tare_machine_peak *peak) {
    find_axes(p, list, peak);
    (void)fprintf(p->file, head, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    put_text(p->file, title);
    (void)fputs("</text>\n", p->file);
    draw_grid(p);
    draw_roofs(p, peak);
    draw_dots(p, list, peak);
    (void)fputs("</svg>\n", p->file);
}

tare_status write_roofline(const char *path, const char *title, const layer_list *list,
                           const tare_machine_peak *peak) {
    output_file out;
    TRY(output_open(&out, NULL, path));
    plot p = {.file = out.text.stream};
    draw(&p, title, list, peak);
    return output_close(&out, TARE_OK);
}
