// SPDX-License-Identifier: Apache-2.0
// A process per job, a pipe per process.
#include "replay/pool.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text/text.h"

typedef struct worker {
    pid_t pid; // 0: free
    size_t job;
} worker;

typedef struct result {
    text answer;
    int status; // of waitpid
    bool is_done;
} result;

typedef struct running {
    const pool *pool;
    worker *workers;
    struct pollfd *pipes; // one per worker
    result *results;      // one per job
    size_t started, busy, reported;
} running;

static _Noreturn void be_worker(const running *r, size_t job, int to) {
    // Pipes of the other workers would stay open as long as this process lives.
    for (size_t i = 0; i < r->pool->worker_count; i++)
        if (r->workers[i].pid != 0) (void)close(r->pipes[i].fd);
    FILE *answer = fdopen(to, "w");
    int verdict = VERDICT_FAIL;
    if (answer != NULL) {
        verdict = r->pool->work(r->pool->user, job, answer);
        (void)fclose(answer);
    }
    exit(verdict); // not _exit: a leak checker reports at exit
}

static bool start(running *r, size_t slot) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        be_worker(r, r->started, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return false;
    }
    r->workers[slot] = (worker){.pid = pid, .job = r->started++};
    r->pipes[slot] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    r->busy++;
    return true;
}

static bool start_all(running *r) {
    for (size_t i = 0; i < r->pool->worker_count; i++)
        if (r->workers[i].pid == 0 && r->started < r->pool->job_count && !start(r, i)) return false;
    return true;
}

static void report(running *r) {
    for (; r->reported < r->pool->job_count && r->results[r->reported].is_done; r->reported++) {
        result *one = &r->results[r->reported];
        char how[64];
        const bool has_exited = WIFEXITED(one->status);
        const int verdict = has_exited ? WEXITSTATUS(one->status) : VERDICT_FAIL;
        const bool is_verdict = has_exited && verdict <= VERDICT_KNOWN;
        if (has_exited)
            (void)snprintf(how, sizeof how, "the replay ended with status %d", verdict);
        else
            (void)snprintf(how, sizeof how, "the replay died of signal %d", WTERMSIG(one->status));
        r->pool->done(r->pool->user, r->reported, is_verdict ? verdict : VERDICT_FAIL,
                      tare__text_chars(&one->answer), is_verdict ? NULL : how);
        tare__text_release(&one->answer);
    }
}

static void finish(running *r, size_t slot) {
    result *one = &r->results[r->workers[slot].job];
    (void)close(r->pipes[slot].fd);
    while (waitpid(r->workers[slot].pid, &one->status, 0) < 0 && errno == EINTR) {
    }
    one->is_done = true;
    r->workers[slot].pid = 0;
    r->pipes[slot].fd = -1; // poll passes over it
    r->busy--;
}

static void read_pipe(running *r, size_t slot) {
    char bytes[65536];
    const ssize_t count = read(r->pipes[slot].fd, bytes, sizeof bytes);
    if (count > 0)
        tare__text_append_n(&r->results[r->workers[slot].job].answer, bytes, (size_t)count);
    else if (count == 0 || errno != EINTR)
        finish(r, slot);
}

static bool run(running *r) {
    for (size_t i = 0; i < r->pool->worker_count; i++) r->pipes[i].fd = -1;
    while (r->reported < r->pool->job_count) {
        if (!start_all(r) && r->busy == 0) return false;
        if (poll(r->pipes, (nfds_t)r->pool->worker_count, -1) < 0 && errno != EINTR) return false;
        for (size_t i = 0; i < r->pool->worker_count; i++)
            if (r->workers[i].pid != 0 && r->pipes[i].revents != 0) read_pipe(r, i);
        report(r);
    }
    return true;
}

bool pool_run(const pool *p) {
    running r = {.pool = p,
                 .workers = calloc(p->worker_count, sizeof *r.workers),
                 .pipes = calloc(p->worker_count, sizeof *r.pipes),
                 .results = calloc(p->job_count + 1, sizeof *r.results)};
    const bool is_ok = r.workers != NULL && r.pipes != NULL && r.results != NULL && run(&r);
    free(r.workers);
    free(r.pipes);
    free(r.results);
    return is_ok;
}
