/* Calls the solution of a task, which stands in a file of its own, on every memory of a batch. */
#include <stdint.h>

void solve(int32_t *memory);

void solve_batch(int32_t *memories, int64_t count, int64_t size) {
    for (int64_t i = 0; i < count; i++)
        solve(memories + i * size);
}
