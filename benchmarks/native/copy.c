/* memory: p, A[0..n-1] with p = n+1. Afterwards A stands at p..p+n-1 too. */
#include <stdint.h>

void solve(int32_t *memory) {
    int32_t n = memory[0] - 1;
    const int32_t *from = memory + 1;
    int32_t *to = memory + memory[0];
    for (int32_t i = 0; i < n; i++)
        to[i] = from[i];
}
