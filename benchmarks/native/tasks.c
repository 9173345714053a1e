/* The ten tasks of the paper as a C programmer writes them. `nram tasks NAME` explains the memory of each. */
#include "batch.h"

/* k, A, 0 */
TASK(access) { m[0] = m[m[0] + 1]; }

/* A, 0 */
TASK(increment) {
    for (; *m != 0; m++)
        ++*m;
}

/* p, A, with p = n+1 the address of the copy */
TASK(copy) {
    cell n = m[0] - 1;
    const cell *from = m + 1;
    cell *to = m + m[0];
    for (cell i = 0; i < n; i++)
        to[i] = from[i];
}

/* p, A, with p = n+1 the address of the answer */
TASK(reverse) {
    cell n = m[0] - 1;
    const cell *from = m + n;
    cell *to = m + m[0];
    for (cell i = 0; i < n; i++)
        to[i] = from[-i];
}

/* p, q, A, 0 */
TASK(swap) {
    cell p = m[0], q = m[1];
    cell kept = m[p];
    m[p] = m[q];
    m[q] = kept;
}

/* a, P, A, with a = n+1 the address of A[0] */
TASK(permutation) {
    const cell *array = m + m[0];
    cell n = m[0];
    for (cell i = 1; i < n; i++)
        m[i] = array[m[i]];
}

/* head, k, answer, nodes (next, value) */
TASK(listk) {
    cell node = m[0];
    for (cell k = m[1]; k > 0; k--)
        node = m[node];
    m[2] = m[node + 1];
}

/* head, v, answer, nodes (next, value) */
TASK(listsearch) {
    cell node = m[0], wanted = m[1];
    while (m[node + 1] != wanted)
        node = m[node];
    m[2] = node;
}

/* a, b, o, A, M-1, B, M-1, with A and B sorted at addresses a and b */
TASK(merge) {
    cell guardian = (cell)M - 1;
    const cell *a = m + m[0], *b = m + m[1];
    cell *out = m + m[2];
    while (*a != guardian || *b != guardian)
        *out++ = *a <= *b ? *a++ : *b++;
}

/* root, answer, path, 0, nodes (key, left, right) */
TASK(walkbst) {
    cell node = m[0];
    const cell *path = m + 2;
    while (m[node + 1] != 0 || m[node + 2] != 0)
        node = m[node + 1 + *path++];
    m[1] = m[node];
}
