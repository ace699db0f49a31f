// SPDX-License-Identifier: Apache-2.0
// Jobs in processes: order, verdicts, and what becomes of a crash.
#include "replay/pool.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "support/test.h"

enum { JOBS = 7, CRASH = 2, LEAK = 4 };

typedef struct log {
    size_t count;
    int verdicts[JOBS];
    char answers[JOBS][32], ends[JOBS][64];
} log;

static int work(void *user, size_t job, FILE *answer) {
    (void)user;
    const struct timespec pause = {.tv_nsec = 100000000}; // the others are done before
    if (job == 0) (void)nanosleep(&pause, NULL);
    (void)fprintf(answer, "job %zu", job);
    (void)fflush(answer);
    if (job == CRASH) {
        (void)signal(SIGTERM, SIG_DFL);
        (void)raise(SIGTERM);
    }
    if (job == LEAK) _exit(23); // as a leak checker ends a process
    return (int)(job % 3);
}

static void done(void *user, size_t job, int verdict, const char *answer, const char *how) {
    log *l = user;
    assert_int_equal(job, l->count);
    l->verdicts[job] = verdict;
    (void)snprintf(l->answers[job], sizeof l->answers[job], "%s", answer);
    (void)snprintf(l->ends[job], sizeof l->ends[job], "%s", how != NULL ? how : "");
    l->count++;
}

static void jobs_report_in_order(void **state) {
    const size_t *workers = *state;
    log l = {0};
    const pool p = {
        .job_count = JOBS, .worker_count = *workers, .work = work, .done = done, .user = &l};
    assert_true(pool_run(&p));
    assert_int_equal(l.count, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        char expected[32];
        (void)snprintf(expected, sizeof expected, "job %zu", i);
        assert_string_equal(l.answers[i], expected);
        if (i == CRASH || i == LEAK) continue;
        assert_int_equal(l.verdicts[i], i % 3);
        assert_string_equal(l.ends[i], "");
    }
    assert_int_equal(l.verdicts[CRASH], VERDICT_FAIL);
    assert_int_equal(l.verdicts[LEAK], VERDICT_FAIL);
    assert_non_null(strstr(l.ends[CRASH], "died of signal 15"));
    assert_non_null(strstr(l.ends[LEAK], "ended with status 23"));
}

int main(void) {
    size_t one = 1, several = 3, many = 20;
    const struct CMUnitTest tests[] = {
        {"one_worker_reports_in_order", jobs_report_in_order, NULL, NULL, &one},
        {"several_workers_report_in_order", jobs_report_in_order, NULL, NULL, &several},
        {"more_workers_than_jobs_do", jobs_report_in_order, NULL, NULL, &many},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
