// SPDX-License-Identifier: Apache-2.0
// The MPI ranks of a job.
#include "support/ranks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/report.h"

// The number of ranks, in environment variables of Open MPI, and of MPICH and related launchers.
static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

static bool has_company(void) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *size = getenv(sizes[i]);
        if (size != NULL && strcmp(size, "1") != 0) return true;
    }
    return false;
}

#if TARE_HAVE_MPI
#include <limits.h>
#include <mpi.h>
#include <stdio.h>

#include "support/output.h"
#include "tare/calibration.h"
#include "tare/file.h"
#include "tare/memory.h"

tare_status ranks_begin(ranks *out) {
    *out = (ranks){.count = 1};
    // A process that was started alone need not initialize MPI. PMIx does not state the number of
    // ranks.
    if (!has_company() && getenv("PMIX_RANK") == NULL) return TARE_OK;
    int provided = 0;
    (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &out->index);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &out->count);
    return TARE_OK;
}

// A failure of MPI itself ends all ranks.
static _Noreturn void abort_job(const char *path, const char *what) {
    (void)fail_here(path, "check the free space in TMPDIR and the memory", "%s", what);
    (void)MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    abort();
}

static char *read_state(const char *path, int *size) {
    FILE *file = fopen(path, "rb");
    long length = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) length = ftell(file);
    char *bytes = length > 0 && length <= INT_MAX ? tare_memory_allocate((size_t)length, 1) : NULL;
    if (bytes != NULL) {
        rewind(file);
        if (fread(bytes, 1, (size_t)length, file) != (size_t)length) length = -1;
    }
    if (file != NULL) (void)fclose(file);
    if (bytes == NULL || length < 0) abort_job(path, "the state cannot be read again");
    *size = (int)length;
    return bytes;
}

// An empty message means that this rank failed.
static void send_state(int to, const char *path, tare_status status) {
    int size = 0;
    char *bytes = status == TARE_OK ? read_state(path, &size) : NULL;
    (void)MPI_Send(bytes, size, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    tare_memory_release(bytes);
}

// The rank that failed prints the error.
static tare_status receive_state(int from, const char *path, tare_error *err) {
    MPI_Status told;
    int size = 0;
    (void)MPI_Probe(from, 0, MPI_COMM_WORLD, &told);
    (void)MPI_Get_count(&told, MPI_BYTE, &size);
    char *bytes = tare_memory_allocate((size_t)size + 1, 1);
    if (bytes == NULL) abort_job(path, "memory is exhausted");
    (void)MPI_Recv(bytes, size, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const tare_status status =
        size > 0 ? tare_file_write(path, bytes, (size_t)size, err) : TARE_INVALID_ARGUMENT;
    tare_memory_release(bytes);
    return status;
}

static tare_status merge_received(int from, const char *state, const char *received,
                                  tare_status status, tare_error *err) {
    const char *const both[] = {state, received};
    tare_error *silent = tare_error_create(); // the rank that failed printed the error
    const tare_status came = receive_state(from, received, status == TARE_OK ? err : silent);
    tare_error_destroy(silent);
    if (status == TARE_OK) status = came;
    if (status == TARE_OK) status = tare_calibration_merge(NULL, both, 2, state, NULL, err);
    return status;
}

tare_status ranks_merge_states(const ranks *r, const char *state, tare_status status,
                               tare_error *err) {
    char received[1024];
    if (!output_temporary_path("received", ".state", received, sizeof received))
        abort_job("TMPDIR", "the folder's name is too long");
    for (int step = 1; step < r->count; step *= 2) {
        if ((r->index & step) != 0) {
            send_state(r->index - step, state, status);
            break;
        }
        if (r->count - r->index > step)
            status = merge_received(r->index + step, state, received, status, err);
    }
    output_remove(received);
    return status;
}

void ranks_end(const ranks *r) {
    int is_running = 0;
    (void)r;
    (void)MPI_Initialized(&is_running);
    if (is_running) (void)MPI_Finalize();
}
#else
tare_status ranks_begin(ranks *out) {
    *out = (ranks){.count = 1};
    if (!has_company()) return TARE_OK;
    return fail_here("mpirun", "build it with -DTARE_MPI=ON, or give each process its --shard",
                     "started several processes of a tare that was built without MPI");
}

tare_status ranks_merge_states(const ranks *r, const char *state, tare_status status,
                               tare_error *err) {
    (void)r, (void)state, (void)err;
    return status;
}

void ranks_end(const ranks *r) {
    (void)r;
}
#endif
