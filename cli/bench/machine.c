// SPDX-License-Identifier: Apache-2.0
// Describes the environment of a measurement: processor, system, build, and the addresses of
// results.
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/bench.h"

// --- memory ---

// Offsets count from the beginning of a block, so each block has its own table.
static void print_buffers(const tare_session *session, bool of_tail) {
    tare_plan_place buffer;
    printf("%14s  %14s  %s\n", "offset", "bytes", "written and read by");
    for (size_t i = 0; tare_session_get_place(session, i, &buffer); i++) {
        tare_step first, last;
        if (buffer.is_tail != of_tail ||
            !tare_session_get_step(session, buffer.first_step, &first) ||
            !tare_session_get_step(session, buffer.last_step, &last))
            continue;
        printf("%14lld  %14lld  %zu to %zu: %s (%s) to %s (%s)\n", (long long)buffer.offset,
               (long long)buffer.bytes, buffer.first_step, buffer.last_step, first.node, first.kind,
               last.node, last.kind);
    }
}

static void print_tail(const tare_session *session, const tare_plan_memory *memory) {
    if (memory->tail_bytes > 0) print_buffers(session, true);
    printf("steps from %zu on run once for all samples: %lld bytes in a block of their own\n",
           memory->tail_step, (long long)memory->tail_bytes);
}

void print_plan_memory(const tare_session *session) {
    tare_plan_memory memory;
    if (!tare_session_get_memory(session, &memory)) {
        printf("no plan: this model runs node by node and allocates each result\n");
        return;
    }
    print_buffers(session, false);
    printf("results between layers: %lld bytes in one block, at least %lld are in use at one time: "
           "ratio "
           "%.3f\n",
           (long long)memory.block_bytes, (long long)memory.least_bytes,
           memory.least_bytes > 0 ? (double)memory.block_bytes / (double)memory.least_bytes : 1.0);
    if (memory.block_count > 1)
        printf("a block for each thread, which runs whole samples: %lld blocks, %lld bytes\n",
               (long long)memory.block_count,
               (long long)memory.block_count * (long long)memory.block_bytes);
    if (memory.tail_step > 0) print_tail(session, &memory);
    printf("packed weights: %lld bytes\n", (long long)memory.weight_bytes);
}

void print_plan_memory_json(const tare_session *session, const char *key, json_out *json) {
    tare_plan_memory memory;
    tare_plan_place buffer;
    if (!tare_session_get_memory(session, &memory)) return;
    json_out_open(json, key, '{');
    json_out_integer(json, "block_bytes", (uint64_t)memory.block_bytes);
    json_out_integer(json, "least_bytes", (uint64_t)memory.least_bytes);
    json_out_integer(json, "weight_bytes", (uint64_t)memory.weight_bytes);
    json_out_integer(json, "block_count", (uint64_t)memory.block_count);
    json_out_integer(json, "tail_bytes", (uint64_t)memory.tail_bytes);
    json_out_integer(json, "tail_step", memory.tail_step);
    json_out_open(json, "places", '[');
    for (size_t i = 0; tare_session_get_place(session, i, &buffer); i++) {
        json_out_open(json, NULL, '{');
        json_out_integer(json, "offset", (uint64_t)buffer.offset);
        json_out_integer(json, "bytes", (uint64_t)buffer.bytes);
        json_out_integer(json, "first_step", buffer.first_step);
        json_out_integer(json, "last_step", buffer.last_step);
        json_out_bool(json, "is_tail", buffer.is_tail);
        json_out_close(json, '}');
    }
    json_out_close(json, ']');
    json_out_close(json, '}');
}

// --- the machine ---

// The CPU's name from "model name : AMD EPYC"; empty if the system does not provide it.
static void read_cpu_name(char *out, size_t size) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    out[0] = '\0';
    while (file != NULL && out[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", 10) != 0) continue;
        (void)snprintf(out, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (file != NULL) (void)fclose(file);
}

void print_machine_json(const tare_machine_peak *peak, json_out *json) {
    char cpu[200];
    struct utsname system;
    read_cpu_name(cpu, sizeof cpu);
    json_out_open(json, "machine", '{');
    json_out_string(json, "cpu", cpu);
    json_out_integer(json, "cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    if (uname(&system) == 0) {
        json_out_string(json, "system", system.sysname);
        json_out_string(json, "release", system.release);
        json_out_string(json, "architecture", system.machine);
    }
    json_out_string(json, "version", tare_version());
    json_out_string(json, "build", tare_build_features());
#ifdef __VERSION__
    json_out_string(json, "compiler", __VERSION__);
#endif
    if (peak != NULL) {
        json_out_open(json, "peak", '{');
        json_out_number(json, "int8_gops", peak->int8_gops);
        json_out_number(json, "float_gflops", peak->float_gflops);
        json_out_number(json, "l2_gbs", peak->l2_gbs);
        json_out_number(json, "l3_gbs", peak->l3_gbs);
        json_out_number(json, "memory_gbs", peak->memory_gbs);
        json_out_number(json, "int8_vector_gops", peak->int8_vector_gops);
        json_out_close(json, '}');
    }
    json_out_close(json, '}');
}

void print_peak(const tare_machine_peak *peak, int threads) {
    printf(
        "the machine's peak, %d thread%s: %.0f GOPS of bytes, %.0f GFLOPS, reading %.0f GB/s from "
        "L2, %.0f from L3, %.0f from memory\n",
        threads, threads > 1 ? "s" : "", peak->int8_gops, peak->float_gflops, peak->l2_gbs,
        peak->l3_gbs, peak->memory_gbs);
}
