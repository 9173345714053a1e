/* memory: A[0..n-1], 0. Afterwards every element is one more. */
#include <stdint.h>

void solve(int32_t *memory) {
    for (; *memory != 0; memory++)
        ++*memory;
}
