// SPDX-License-Identifier: Apache-2.0
// oneDNN runs on OpenMP's threads; each of tare's threads uses one of them, because spinning
// threads slow all others down on a machine without idle cores. The number of threads belongs to
// the calling thread. Declared here because not every compiler has the header.
#ifndef DNNL_ONE_THREAD_H
#define DNNL_ONE_THREAD_H

int omp_get_max_threads(void);
void omp_set_num_threads(int count);

static inline void tare__use_one_thread(void) {
    if (omp_get_max_threads() != 1) omp_set_num_threads(1);
}

#endif
