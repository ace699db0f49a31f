// SPDX-License-Identifier: Apache-2.0
// Every job of the command line with memory or a call on a file failing: the n-th, once or from
// then on, for each n. It succeeds with all its outputs, or fails with an error and leaves what was
// there before; never a crash, a leak (under a sanitizer), half a file or a wrong success.
// TARE_FAULTS=all: every one, in place of some that are spread evenly; few: fewer, for slow builds.
#include "support/test.h"

#include <errno.h>
#include <unistd.h>

#include "faults/jobs.h"

enum { SOME = 12, FEW = 4, LEAK = 23 };

typedef struct point {
    const job *job;
    const job_record *record;
    fault_order order;
} point;

static long points_tried;

// --- how many calls there are ---

static int count_pipe = -1;

static void report_count(void) {
    const long count = faults_count();
    (void)!write(count_pipe, &count, sizeof count);
}

static void count_calls(void *user) {
    faults_order(*(const fault_order *)user);
    atexit(report_count);
}

static long count_of(const job *j, fault_kind kind) {
    int ends[2];
    long count = 0;
    fault_order order = {.kinds = (int)kind};
    assert_int_equal(pipe(ends), 0);
    count_pipe = ends[1];
    assert_int_equal(job_run(j, count_calls, &order), 0);
    assert_int_equal(read(ends[0], &count, sizeof count), sizeof count);
    close(ends[0]);
    close(ends[1]);
    return count;
}

// --- one point ---

static void place_order(void *user) {
    faults_order(*(const fault_order *)user);
}

static void complain(const point *p, int status, const char *what) {
    fail_msg("%s, %s %ld failing%s (errno %d): %s; status %d, '%s', left: %s", p->job->name,
             p->order.kinds == FAULT_MEMORY ? "allocation" : "call on a file", p->order.at,
             p->order.stays ? " from then on" : "", p->order.file_error, what, status,
             job_complaint(),
             job_leftover(p->record) != NULL ? job_leftover(p->record) : "nothing");
}

// After a failure: memory that fails leaves all as it was. A folder that cannot be brought to the
// disk is an error behind a rename; what was renamed is whole then.
static void check_failure(const point *p, job_state found) {
    const char *said = job_complaint();
    if (strncmp(said, "tare: ", 6) != 0) complain(p, 1, "no error was told");
    if (p->job->resumes && found == JOB_BROKEN) return; // a checkpoint; see check_rerun
    if (found == JOB_BROKEN) complain(p, 1, "an output is damaged");
    if (p->order.kinds != FAULT_MEMORY) return;
    if (strstr(said, "memory") == NULL) complain(p, 1, "the error is another one");
    if (!job_is_old(found) && !p->job->resumes) complain(p, 1, "an output is there");
}

static void check_success(const point *p, job_state found) {
    if (!job_is_new(found)) complain(p, 0, "outputs are not those of the job");
    if (!job_said_all(p->record)) complain(p, 0, "standard output is another");
}

// Whatever happened, the job can be done then.
static void check_rerun(const point *p) {
    if (job_run(p->job, NULL, NULL) != 0) complain(p, 1, "the job cannot be repeated");
    if (!job_is_new(job_outputs(p->record))) complain(p, 0, "repeated, its outputs are others");
    if (job_leftover(p->record) != NULL) complain(p, 0, "repeated, it leaves files behind");
}

static void try_point(const point *p) {
    fault_order order = p->order;
    job_reset(p->record);
    points_tried++;
    const int status = job_run(p->job, place_order, &order);
    const job_state found = job_outputs(p->record);
    if (status == 0)
        check_success(p, found);
    else if (status == 1)
        check_failure(p, found);
    else
        complain(p, status, status == LEAK ? "memory leaks" : "it crashed");
    // Who cannot remove a file any more leaves it, to the next run.
    const bool may_leave = p->order.kinds == FAULT_FILES;
    if (!may_leave && job_leftover(p->record) != NULL) complain(p, status, "a file is left");
    if (p->job->resumes || may_leave) check_rerun(p);
}

static bool asks_for(const char *wish) {
    const char *wanted = getenv("TARE_FAULTS");
    return wanted != NULL && strcmp(wanted, wish) == 0;
}

static void try_points(const job *j, const job_record *r, fault_order order) {
    const long total = count_of(j, (fault_kind)order.kinds);
    const long some = asks_for("few") ? FEW : SOME;
    if (!order.stays)
        print_message("%s: %ld %s\n", j->name, total,
                      order.kinds == FAULT_MEMORY ? "allocations" : "calls on files");
    const long step = asks_for("all") || total <= some ? 1 : total / some;
    for (order.at = 1; order.at <= total; order.at += step) {
        const point p = {.job = j, .record = r, .order = order};
        try_point(&p);
    }
}

static const job *job_of(void **state) {
    return *state;
}

static void memory_fails(void **state) {
    const job *j = job_of(state);
    job_record *r = job_record_create(j, !j->resumes);
    for (int stays = 0; stays < 2; stays++) {
        job_reset(r);
        try_points(j, r, (fault_order){.kinds = FAULT_MEMORY, .stays = stays});
    }
    job_record_destroy(r);
}

static void files_fail(void **state) {
    const job *j = job_of(state);
    for (int has_old = 0; has_old < (j->resumes ? 1 : 2); has_old++) {
        job_record *r = job_record_create(j, has_old);
        for (int stays = 0; stays < 2; stays++) {
            job_reset(r);
            const fault_order order = {
                .kinds = FAULT_FILES, .stays = stays, .file_error = stays ? ENOSPC : EIO};
            try_points(j, r, order);
        }
        job_record_destroy(r);
    }
}

static void tell_points(void) {
    print_message("%ld points tried\n", points_tried);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]); // "*_in_compare"
    struct CMUnitTest tests[64];
    static char names[64][64];
    size_t count = 0;
    for (size_t i = 0; i < job_count; i++) {
        snprintf(names[count], sizeof names[0], "memory_fails_in_%s", jobs[i].name);
        tests[count] =
            (struct CMUnitTest){names[count], memory_fails, NULL, NULL, (void *)&jobs[i]};
        count++;
        snprintf(names[count], sizeof names[0], "files_fail_in_%s", jobs[i].name);
        tests[count] = (struct CMUnitTest){names[count], files_fail, NULL, NULL, (void *)&jobs[i]};
        count++;
    }
    const int failed = _cmocka_run_group_tests("faults", tests, count, jobs_begin, jobs_end);
    tell_points();
    return failed;
}
