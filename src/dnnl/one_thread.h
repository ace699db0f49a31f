// SPDX-License-Identifier: Apache-2.0
// oneDNN runs on OpenMP's threads, of which each of ours gets one: threads that spin while they
// wait ruin every other on a machine that has no core to spare. The number belongs to the calling
// thread. The header is not at hand for every compiler.
#ifndef DNNL_ONE_THREAD_H
#define DNNL_ONE_THREAD_H

int omp_get_max_threads(void);
void omp_set_num_threads(int count);

static inline void tare__use_one_thread(void) {
    if (omp_get_max_threads() != 1) omp_set_num_threads(1);
}

#endif
