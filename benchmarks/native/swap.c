/* memory: p, q, A[0..n-1], 0. Afterwards the cells at p and q are exchanged. */
#include <stdint.h>

void solve(int32_t *memory) {
    int32_t p = memory[0], q = memory[1];
    int32_t kept = memory[p];
    memory[p] = memory[q];
    memory[q] = kept;
}
