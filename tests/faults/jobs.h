// SPDX-License-Identifier: Apache-2.0
// Whole jobs of the command line, each run in a process of its own with something that fails.
#ifndef FAULTS_JOBS_H
#define FAULTS_JOBS_H

#include <stdbool.h>
#include <stddef.h>

/// Arguments as words with blanks between. FIX/.. and OUT/.. are files of the folder of fixtures
/// and of the job's own; {A|B} is A for the job, and B for the run before it whose files it
/// replaces.
typedef struct job {
    const char *name;
    const char *arguments;
    const char *outputs[4]; // names in OUT
    bool has_data;          // a model whose weights lie in a file beside it, as it says
    bool may_differ;        // times stand in the outputs: two runs differ
    bool resumes;           // an output that is between old and new is where the next run goes on
} job;

extern const job jobs[];
extern const size_t job_count;

/// Makes the folders, and by the command line the files that jobs begin with. Group setup.
int jobs_begin(void **state);
int jobs_end(void **state);

/// What a job leaves, and with what it began: bytes of its outputs and of standard output.
typedef struct job_record job_record;
/// Runs the job as it is, for the bytes before (has_old: B's outputs; else none) and after.
job_record *job_record_create(const job *j, bool has_old);
void job_record_destroy(job_record *r);

/// The folder of the job as it was before it: nothing but, perhaps, the old outputs.
void job_reset(const job_record *r);
/// Runs it in a child, where prepare(user) is called first. Returns its exit status, or 256 plus
/// the number of the signal that ended it.
int job_run(const job *j, void (*prepare)(void *user), void *user);
/// Where the job's files are.
const char *job_folder(void);
/// The first line of what the job said on standard error; static storage.
const char *job_complaint(void);

typedef enum job_state {
    JOB_OLD,    // every output as before
    JOB_NEW,    // every output as after
    JOB_SAME,   // both: the job changes nothing, or has no outputs
    JOB_MIXED,  // some old and some new, each of them whole
    JOB_BROKEN, // an output that is neither
} job_state;
/// How the outputs stand. Files that are no outputs are reported by job_leftover.
job_state job_outputs(const job_record *r);
static inline bool job_is_new(job_state s) {
    return s == JOB_NEW || s == JOB_SAME;
}
static inline bool job_is_old(job_state s) {
    return s == JOB_OLD || s == JOB_SAME;
}
/// The name of a file in the folder that is neither an output nor was there before; NULL: none.
/// Static storage.
const char *job_leftover(const job_record *r);
/// Is standard output what it is without failures?
bool job_said_all(const job_record *r);

#endif
