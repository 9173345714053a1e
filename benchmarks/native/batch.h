/* What every solution has: a function on one memory of M cells, and from TASK the function NAME_batch, which calls it
   on every memory of a batch. The compiler sees both, so it may put one into the other. */
#include <stdint.h>

typedef int32_t cell;

#define TASK(name)                                                             \
    static inline void name(cell *m, int64_t M);                               \
    void name##_batch(cell *memories, int64_t count, int64_t M) {              \
        for (int64_t i = 0; i < count; i++)                                    \
            name(memories + i * M, M);                                         \
    }                                                                          \
    static inline void name(cell *m, int64_t M)
