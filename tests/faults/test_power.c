// SPDX-License-Identifier: Apache-2.0
// Every job of the command line that writes, ended before each of its changes to files: by a kill,
// and by a power cut with which all is lost that was not brought to the disk. Each output is as it
// was or as the job makes it, models and the data beside them fit, and the job can be done again.
// TARE_FAULTS=few: every fourth change, for slow builds.
#include "support/test.h"

#include "faults/disk.h"
#include "faults/jobs.h"

static long cuts;

typedef struct moment {
    disk_loss loss;
    long at;
} moment;

static void begin_disk(void *user) {
    const moment *m = user;
    disk_begin(job_folder(), m->loss, m->at);
}

static void complain(const job *j, const moment *m, const char *what) {
    static const char *const losses[] = {"killed", "bytes lost", "names lost"};
    fail_msg("%s, %s before change %ld: %s", j->name, losses[m->loss], m->at, what);
}

static void check_state(const job *j, const job_record *r, const moment *m) {
    const job_state found = job_outputs(r);
    // The state of a calibration that goes on is a checkpoint: the next run tells whether it is
    // one.
    if (found == JOB_BROKEN && !j->resumes) complain(j, m, "an output is damaged");
    if (job_run(j, NULL, NULL) != 0) complain(j, m, "the job cannot be repeated");
    if (!job_is_new(job_outputs(r))) complain(j, m, "repeated, its outputs are others");
    if (job_leftover(r) != NULL) complain(j, m, "repeated, it leaves files behind");
}

// false: the job ended before that change.
static bool cut_at(const job *j, const job_record *r, moment m) {
    job_reset(r);
    const int status = job_run(j, begin_disk, &m);
    if (status == 0) return false;
    if (status != DISK_CUT_STATUS) complain(j, &m, job_complaint());
    cuts++;
    check_state(j, r, &m);
    return true;
}

static long step(void) {
    const char *wanted = getenv("TARE_FAULTS");
    return wanted != NULL && strcmp(wanted, "few") == 0 ? 4 : 1;
}

static void old_or_new(void **state) {
    const job *j = *state;
    for (int has_old = 0; has_old < (j->resumes ? 1 : 2); has_old++) {
        job_record *r = job_record_create(j, has_old);
        for (int loss = 0; loss < DISK_LOSS_COUNT; loss++)
            for (moment m = {(disk_loss)loss, 1}; cut_at(j, r, m);) m.at += step();
        job_record_destroy(r);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]); // "*_in_compare"
    struct CMUnitTest tests[64];
    size_t count = 0;
    for (size_t i = 0; i < job_count; i++)
        if (jobs[i].outputs[0] != NULL)
            tests[count++] =
                (struct CMUnitTest){jobs[i].name, old_or_new, NULL, NULL, (void *)&jobs[i]};
    const int failed = _cmocka_run_group_tests("power", tests, count, jobs_begin, jobs_end);
    print_message("%ld cuts\n", cuts);
    return failed;
}
