// SPDX-License-Identifier: Apache-2.0
// Branch and bound over minimum cuts. A relaxation gives each limit a multiplier and minimizes the
// sum of all costs by one cut; the best multipliers of a limit are found by intersecting lines
// (Handler and Zang, A dual algorithm for the constrained shortest path problem, 1980).
#include "core/math/choice_program.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/math/min_cut.h"
#include "core/memory/alloc.h"

enum { SOURCE = 0, SINK = 1, MOST_LINES = 24, MOST_SWEEPS = 3, CAPACITY_BITS = 52 };
static const double slack = 1e-9; // of a limit, for rounding of sums

// --- building ---

static const program_costs nothing = {{0}};

tare_status tare__program_begin(choice_program *p, tare_error *err) {
    size_t floats = 0;
    TARE_TRY(tare__program_add_item(p, &floats, err));
    tare__program_add_choice(p, floats, true, &nothing);
    return TARE_OK;
}

tare_status tare__program_add_free_item(choice_program *p, size_t *out, tare_error *err) {
    TARE_TRY(tare__program_add_item(p, out, err));
    tare__program_add_choice(p, *out, false, &nothing);
    tare__program_add_choice(p, *out, true, &nothing);
    p->items[*out].is_free = true;
    return TARE_OK;
}

tare_status tare__program_add_item(choice_program *p, size_t *out, tare_error *err) {
    if (!tare__grow((void **)&p->items, &p->item_capacity, p->item_count, sizeof *p->items))
        return tare__out_of_memory(err);
    p->items[p->item_count] = (program_item){.choice_count = 0};
    *out = p->item_count++;
    return TARE_OK;
}

void tare__program_add_choice(choice_program *p, size_t item, bool is_float,
                              const program_costs *costs) {
    program_item *i = &p->items[item];
    i->choices[i->choice_count++] = (program_choice){is_float, *costs};
}

tare_status tare__program_add_edge(choice_program *p, size_t from, size_t to,
                                   const program_costs *costs, tare_error *err) {
    if (!tare__grow((void **)&p->edges, &p->edge_capacity, p->edge_count, sizeof *p->edges))
        return tare__out_of_memory(err);
    program_edge *e = &p->edges[p->edge_count++];
    *e = (program_edge){.from = from, .to = to, .is_forbidden = costs == NULL};
    if (costs != NULL) e->costs = *costs;
    return TARE_OK;
}

void tare__program_release(choice_program *p) {
    tare__free(p->items);
    tare__free(p->edges);
    *p = (choice_program){0};
}

// --- sums ---

static void add_costs(program_costs *to, const program_costs *more) {
    for (int k = 0; k < PROGRAM_KINDS; k++) to->of[k] += more->of[k];
}

static double weighted(const program_costs *c, const double *weights) {
    double sum = 0;
    for (int k = 0; k < PROGRAM_KINDS; k++) sum += weights[k] * c->of[k];
    return sum;
}

static bool is_cut(const program_edge *e, const bool *is_float) {
    return !is_float[e->from] && is_float[e->to];
}

program_costs tare__program_sums(const choice_program *p, const uint8_t *choices,
                                 const bool *is_float) {
    program_costs sums = {{0}};
    for (size_t i = 0; i < p->item_count; i++)
        add_costs(&sums, &p->items[i].choices[choices[i]].costs);
    for (size_t e = 0; e < p->edge_count; e++)
        if (is_cut(&p->edges[e], is_float)) add_costs(&sums, &p->edges[e].costs);
    return sums;
}

// --- assignments ---

typedef struct assignment {
    uint8_t *choices;
    bool *is_float;
    program_costs sums;
    bool is_allowed; // no forbidden edge is cut, no item has a choice that it may not take
} assignment;

typedef struct search {
    const choice_program *p;
    const program_goal *goal;
    program_solution *best;
    uint8_t *masks;          // [item_count]: the choices that an item may still take
    assignment over, within; // of the latest line search: beyond its limit, and not
    assignment now;
    double scale; // of costs as capacities
    cut_graph g;
    bool *is_source; // by vertex
    double work;
    tare_error *err;
} search;

static void copy(const search *s, assignment *to, const assignment *from) {
    memcpy(to->choices, from->choices, s->p->item_count * sizeof *to->choices);
    memcpy(to->is_float, from->is_float, s->p->item_count * sizeof *to->is_float);
    to->sums = from->sums;
    to->is_allowed = from->is_allowed;
}

static bool is_within(const search *s, const program_costs *sums, int kind) {
    const double limit = s->goal->limits[kind];
    return sums->of[kind] <= limit + slack * fabs(limit);
}

static void consider(search *s) {
    program_solution *best = s->best;
    const double value = weighted(&s->now.sums, s->goal->weights);
    if (!s->now.is_allowed || (best->is_feasible && value >= best->value)) return;
    for (int k = 0; k < PROGRAM_KINDS; k++)
        if (!is_within(s, &s->now.sums, k)) return;
    memcpy(best->choices, s->now.choices, s->p->item_count * sizeof *best->choices);
    memcpy(best->is_float, s->now.is_float, s->p->item_count * sizeof *best->is_float);
    best->sums = s->now.sums;
    best->value = value;
    best->is_feasible = true;
}

// --- one cut ---

// The cheapest allowed choice of an item on a side; its costs are INFINITY where there is none.
static double cheapest(const search *s, size_t item, bool is_float, const double *weights,
                       uint8_t *choice) {
    const program_item *it = &s->p->items[item];
    double least = (double)INFINITY;
    for (size_t c = 0; c < it->choice_count; c++) {
        const double cost = weighted(&it->choices[c].costs, weights);
        if (it->choices[c].is_float != is_float || (s->masks[item] >> c & 1) == 0 || cost >= least)
            continue;
        least = cost;
        *choice = (uint8_t)c;
    }
    return least;
}

// The factor from costs to integer capacities: a power of two, so that ratios of integer costs stay
// exact.
static double scale_for(const search *s, const double *weights) {
    double total = DBL_MIN;
    int exponent = 0;
    for (size_t i = 0; i < s->p->item_count; i++)
        for (size_t c = 0; c < s->p->items[i].choice_count; c++)
            total += weighted(&s->p->items[i].choices[c].costs, weights);
    for (size_t e = 0; e < s->p->edge_count; e++) total += weighted(&s->p->edges[e].costs, weights);
    (void)frexp(total, &exponent);
    return ldexp(1, CAPACITY_BITS - (exponent > -900 ? exponent : -900));
}

static int64_t capacity(double cost, double scale) {
    return isinf(cost) ? CUT_NEVER : (int64_t)llround(cost * scale);
}

static size_t vertex(size_t item) {
    return item + 1; // PROGRAM_FLOATS is the sink
}

static tare_status add_items(search *s, const double *weights, double scale) {
    for (size_t i = 1; i < s->p->item_count; i++) {
        uint8_t unused = 0;
        const double integer = cheapest(s, i, false, weights, &unused);
        const double floats = cheapest(s, i, true, weights, &unused);
        if (integer > 0)
            TARE_TRY(tare__cut_add_edge(&s->g, vertex(i), SINK, capacity(integer, scale), s->err));
        if (floats > 0)
            TARE_TRY(tare__cut_add_edge(&s->g, SOURCE, vertex(i), capacity(floats, scale), s->err));
    }
    return TARE_OK;
}

static tare_status add_edges(search *s, const double *weights, double scale) {
    for (size_t e = 0; e < s->p->edge_count; e++) {
        const program_edge *edge = &s->p->edges[e];
        const double cost = edge->is_forbidden ? (double)INFINITY : weighted(&edge->costs, weights);
        if (cost > 0)
            TARE_TRY(tare__cut_add_edge(&s->g, vertex(edge->from), vertex(edge->to),
                                        capacity(cost, scale), s->err));
    }
    return TARE_OK;
}

static bool read_sides(search *s, const double *weights) {
    bool is_allowed = true;
    for (size_t i = 0; i < s->p->item_count; i++) {
        s->now.is_float[i] = !s->is_source[vertex(i)];
        s->now.choices[i] = 0;
        is_allowed &= !isinf(cheapest(s, i, s->now.is_float[i], weights, &s->now.choices[i]));
    }
    for (size_t e = 0; e < s->p->edge_count; e++)
        is_allowed &= !s->p->edges[e].is_forbidden || !is_cut(&s->p->edges[e], s->now.is_float);
    return is_allowed;
}

// Sets `now` to the assignment with minimal weighted costs.
static tare_status relax(search *s, const double *weights) {
    const double scale = scale_for(s, weights);
    size_t unused = 0;
    s->g.vertex_count = s->g.edge_count = 0;
    for (size_t v = 0; v < s->p->item_count + 1; v++)
        TARE_TRY(tare__cut_add_vertex(&s->g, &unused, s->err));
    TARE_TRY(add_items(s, weights, scale));
    TARE_TRY(add_edges(s, weights, scale));
    s->work += (double)(s->g.edge_count + s->g.vertex_count) * 8;
    TARE_TRY(tare__cut_solve(&s->g, SOURCE, SINK, s->is_source, s->err));
    s->now.is_allowed = read_sides(s, weights);
    s->now.sums = tare__program_sums(s->p, s->now.choices, s->now.is_float);
    consider(s);
    return TARE_OK;
}

// --- bounds ---

typedef struct relaxation {
    double multipliers[PROGRAM_KINDS];
    double bound;
    bool is_infeasible; // no assignment is within the limits
    bool has_pair;      // `over` and `within` are set
} relaxation;

static tare_status relax_at(search *s, relaxation *r) {
    double weights[PROGRAM_KINDS], bound = 0;
    for (int k = 0; k < PROGRAM_KINDS; k++) weights[k] = s->goal->weights[k] + r->multipliers[k];
    TARE_TRY(relax(s, weights));
    if (!s->now.is_allowed) r->is_infeasible = true;
    bound = weighted(&s->now.sums, weights);
    for (int k = 0; k < PROGRAM_KINDS; k++)
        if (r->multipliers[k] > 0) bound -= r->multipliers[k] * s->goal->limits[k];
    if (bound > r->bound) r->bound = bound;
    return TARE_OK;
}

// The weighted costs without the multiplier of this kind.
static double rest_of(const search *s, const relaxation *r, const assignment *a, int kind) {
    double weights[PROGRAM_KINDS];
    for (int k = 0; k < PROGRAM_KINDS; k++)
        weights[k] = s->goal->weights[k] + (k != kind ? r->multipliers[k] : 0);
    return weighted(&a->sums, weights);
}

// Minimizes the sum of one kind alone. The program is infeasible if the minimum exceeds the limit.
static tare_status least_of(search *s, relaxation *r, int kind) {
    double weights[PROGRAM_KINDS] = {0};
    weights[kind] = 1;
    TARE_TRY(relax(s, weights));
    r->is_infeasible |= !s->now.is_allowed || !is_within(s, &s->now.sums, kind);
    return TARE_OK;
}

// Finds the best multiplier of one kind, with the others fixed. Each step takes the line through an
// assignment beyond the limit and one within it, until no assignment lies below the line.
static tare_status search_line(search *s, relaxation *r, int kind) {
    r->multipliers[kind] = 0;
    TARE_TRY(relax_at(s, r));
    if (r->is_infeasible || is_within(s, &s->now.sums, kind)) return TARE_OK;
    copy(s, &s->over, &s->now);
    TARE_TRY(least_of(s, r, kind));
    if (r->is_infeasible) return TARE_OK;
    copy(s, &s->within, &s->now);
    r->has_pair = true;
    for (int i = 0; i < MOST_LINES; i++) {
        const double a = rest_of(s, r, &s->over, kind), b = rest_of(s, r, &s->within, kind);
        const double x = s->over.sums.of[kind], y = s->within.sums.of[kind];
        const double m = x > y && b > a ? (b - a) / (x - y) : 0;
        if (m == 0 || m == r->multipliers[kind]) break;
        r->multipliers[kind] = m;
        TARE_TRY(relax_at(s, r));
        const double line = a + m * x;
        if (rest_of(s, r, &s->now, kind) + m * s->now.sums.of[kind] >= line - slack * fabs(line))
            break;
        copy(s, is_within(s, &s->now.sums, kind) ? &s->within : &s->over, &s->now);
    }
    return TARE_OK;
}

static bool is_beaten(const search *s, double bound) {
    const program_solution *best = s->best;
    return best->is_feasible &&
           bound >= best->value - (s->goal->gap > slack ? s->goal->gap : slack) * fabs(best->value);
}

static tare_status bound_below(search *s, relaxation *r) {
    bool has_limits = false;
    r->bound = -(double)INFINITY;
    r->is_infeasible = r->has_pair = false;
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        const double before = r->bound;
        int limits = 0;
        for (int k = 0; k < PROGRAM_KINDS; k++) {
            if (isinf(s->goal->limits[k])) continue;
            has_limits = true;
            limits++;
            TARE_TRY(search_line(s, r, k));
            if (r->is_infeasible || is_beaten(s, r->bound)) return TARE_OK;
        }
        if (limits < 2 || r->bound <= before + slack * fabs(before)) break;
    }
    return has_limits ? TARE_OK : relax_at(s, r);
}

// --- the tree ---

static bool is_open(const search *s, size_t item) {
    return (s->masks[item] & (s->masks[item] - 1)) != 0; // more than one choice
}

// The item to branch on: the one for which `over` and `within` differ most in costs, else any item
// with several choices; 0: there is none.
static size_t choose_item(const search *s, const relaxation *r, uint8_t *choice) {
    size_t found = 0;
    double most = -1;
    for (size_t i = 1; i < s->p->item_count; i++) {
        const program_item *it = &s->p->items[i];
        if (!is_open(s, i)) continue;
        uint8_t taken = s->now.choices[i];
        double difference = 0;
        if (r->has_pair) {
            const program_costs *a = &it->choices[s->over.choices[i]].costs;
            taken = s->within.choices[i];
            for (int k = 0; k < PROGRAM_KINDS; k++)
                difference += s->goal->weights[k] * fabs(a->of[k] - it->choices[taken].costs.of[k]);
            if (s->over.choices[i] == taken) difference = 0;
        }
        if (difference <= most) continue;
        most = difference;
        found = i;
        *choice = taken;
    }
    return found;
}

static tare_status visit(search *s, const relaxation *parent);

static tare_status expand(search *s, const relaxation *r) {
    uint8_t choice = 0;
    const size_t item = choose_item(s, r, &choice);
    if (item == 0) return TARE_OK;
    const uint8_t before = s->masks[item], bit = (uint8_t)(1U << choice);
    s->masks[item] = bit;
    TARE_TRY(visit(s, r));
    s->masks[item] = before & (uint8_t)~bit;
    TARE_TRY(visit(s, r));
    s->masks[item] = before;
    return TARE_OK;
}

static tare_status visit(search *s, const relaxation *parent) {
    relaxation r = *parent;
    if (is_beaten(s, parent->bound)) return TARE_OK;
    if (s->goal->work_limit > 0 && s->work > s->goal->work_limit) {
        s->best->is_proven = false;
        return TARE_OK;
    }
    TARE_TRY(bound_below(s, &r));
    return r.is_infeasible || is_beaten(s, r.bound) ? TARE_OK : expand(s, &r);
}

static tare_status solve(search *s) {
    relaxation root = {.bound = -(double)INFINITY};
    program_solution *best = s->best;
    TARE_TRY(bound_below(s, &root));
    best->bound = root.bound;
    best->is_proven = true;
    if (root.is_infeasible) return TARE_OK;
    if (!is_beaten(s, root.bound)) TARE_TRY(expand(s, &root));
    if (best->is_feasible && best->is_proven)
        best->bound = fmax(best->bound, best->value - s->goal->gap * fabs(best->value));
    return TARE_OK;
}

tare_status tare__program_solve(const choice_program *p, const program_goal *goal,
                                program_solution *out, tare_error *err) {
    const size_t count = p->item_count;
    search s = {.p = p, .goal = goal, .best = out, .err = err};
    uint8_t *bytes = tare__alloc_zeroed(4 * count, sizeof *bytes);
    bool *sides = tare__alloc_zeroed(4 * count + 1, sizeof *sides);
    tare_status status = bytes != NULL && sides != NULL ? TARE_OK : tare__out_of_memory(err);
    out->is_feasible = false;
    if (status == TARE_OK) {
        s.masks = bytes;
        s.now = (assignment){.choices = bytes + count, .is_float = sides};
        s.over = (assignment){.choices = bytes + 2 * count, .is_float = sides + count};
        s.within = (assignment){.choices = bytes + 3 * count, .is_float = sides + 2 * count};
        s.is_source = sides + 3 * count;
        for (size_t i = 0; i < count; i++)
            s.masks[i] = (uint8_t)(goal->takes_first && !p->items[i].is_free
                                       ? 1
                                       : (1U << p->items[i].choice_count) - 1);
        status = solve(&s);
    }
    tare__cut_release(&s.g);
    tare__free(bytes);
    tare__free(sides);
    return status;
}
