/* The problems of src/nram/examples/suite as a C programmer writes them. Its README explains the memory of each. */
#include "batch.h"

/* ---- tier 1: one pass */

TASK(minimum) {
    cell least = m[1];
    for (const cell *a = m + 2; *a != 0; a++)
        if (*a < least)
            least = *a;
    m[0] = least;
}

TASK(first_position) {
    cell i = 1;
    while (m[i] != 0 && m[i] != m[0])
        i++;
    m[0] = m[i] != 0 ? i : 0;
}

TASK(count_above) {
    cell x = m[0], count = 0;
    for (const cell *a = m + 1; *a != 0; a++)
        count += *a > x;
    m[0] = count;
}

TASK(is_sorted) {
    cell i = 1;
    while (m[i] != 0 && m[i] >= m[i - 1])
        i++;
    m[0] = m[i] == 0;
}

TASK(clamp) {
    cell x = m[0];
    for (cell *a = m + 1; *a != 0; a++)
        if (*a > x)
            *a = x;
}

TASK(replace) {
    cell x = m[0], y = m[1];
    for (cell *a = m + 2; *a != 0; a++)
        if (*a == x)
            *a = y;
}

TASK(rotate) {
    cell first = m[0];
    for (; m[1] != 0; m++)
        m[0] = m[1];
    m[0] = first;
}

TASK(differences) {
    cell before = m[0];
    for (cell *a = m + 1; *a != 0; a++) {
        cell value = *a;
        *a = value - before;
        before = value;
    }
}

TASK(fill) {
    cell n = m[0];
    for (cell i = 1; i <= n; i++)
        m[i] = i;
}

TASK(add_arrays) {
    const cell *b = m + m[0];
    for (cell *a = m + 1; *a != 0; a++)
        *a += *b++;
}

TASK(exchange) {
    cell *b = m + m[0];
    for (cell *a = m + 1; *a != 0; a++, b++) {
        cell kept = *a;
        *a = *b;
        *b = kept;
    }
}

TASK(alternate) {
    const cell *b = m + m[0];
    cell *out = m + m[1];
    for (const cell *a = m + 2; *a != 0; a++) {
        *out++ = *a;
        *out++ = *b++;
    }
}

TASK(chain_end) {
    cell at = m[0];
    while (m[at] != 0)
        at = m[at];
    m[1] = at;
}

TASK(list_to_array) {
    cell *out = m + 1;
    for (cell node = m[0]; node != 0; node = m[node])
        *out++ = m[node + 1];
}

TASK(list_before_last) {
    cell before = m[0], node = m[before];
    while (m[node] != 0) {
        before = node;
        node = m[node];
    }
    m[1] = m[before + 1];
}

/* ---- tier 2: two pointers and conditions */

TASK(palindrome) {
    cell i = 1, j = m[0];
    while (i < j && m[i] == m[j]) {
        i++;
        j--;
    }
    m[0] = i >= j;
}

TASK(reverse_in_place) {
    for (cell i = 1, j = m[0]; i < j; i++, j--) {
        cell kept = m[i];
        m[i] = m[j];
        m[j] = kept;
    }
}

TASK(partition) {
    cell x = m[0];
    cell *front = m + m[1], *back = m + m[2];
    for (const cell *a = m + 3; *a != 0; a++)
        if (*a < x)
            *front++ = *a;
        else
            *back-- = *a;
}

TASK(remove_value) {
    cell x = m[0];
    cell *out = m + 1;
    for (const cell *a = m + 1; *a != 0; a++)
        if (*a != x)
            *out++ = *a;
    *out = 0;
}

TASK(unique) {
    cell last = 0;
    for (cell i = 1; m[i] != 0; i++)
        if (m[i] != m[last])
            m[++last] = m[i];
    m[last + 1] = 0;
}

TASK(subsequence) {
    const cell *a = m + 1;
    for (const cell *b = m + m[0]; *a != 0 && *b != 0; b++)
        if (*a == *b)
            a++;
    m[0] = *a == 0;
}

TASK(find_pair) {
    cell x = m[0], i = 2, j = m[1], found = 0;
    while (i < j) {
        cell sum = m[i] + m[j];
        if (sum == x) {
            found = m[i];
            break;
        }
        if (sum < x)
            i++;
        else
            j--;
    }
    m[0] = found;
}

TASK(basement) {
    cell height = 0, found = 0;
    for (cell i = 1; m[i] != 0; i++) {
        height += m[i] == 1 ? 1 : -1;
        if (height < 0) {
            found = i;
            break;
        }
    }
    m[0] = found;
}

TASK(list_middle) {
    cell slow = m[0], fast = m[0];
    while (fast != 0 && m[fast] != 0) {
        slow = m[slow];
        fast = m[m[fast]];
    }
    m[1] = m[slow + 1];
}

TASK(bubble_pass) {
    for (cell i = 1; m[i] != 0; i++)
        if (m[i - 1] > m[i]) {
            cell kept = m[i];
            m[i] = m[i - 1];
            m[i - 1] = kept;
        }
}

TASK(sort_two_values) {
    cell i, ones = 0;
    for (i = 0; m[i] != 0; i++)
        ones += m[i] == 1;
    for (cell j = 0; j < i; j++)
        m[j] = j < ones ? 1 : 2;
}

/* ---- tier 3: data-dependent and nested loops */

TASK(insertion_sort) {
    for (cell i = 2; m[i] != 0; i++) {
        cell value = m[i], j = i - 1;
        for (; m[j] > value; j--) /* cell 0 holds 0 */
            m[j + 1] = m[j];
        m[j + 1] = value;
    }
}

TASK(sort_into) {
    cell out = m[0];
    for (cell i = 1; m[i] != 0; i++) {
        cell value = m[i], j = out + i - 2;
        for (; m[j] > value; j--) /* the cell before the answer holds 0 */
            m[j + 1] = m[j];
        m[j + 1] = value;
    }
}

TASK(dutch_flag) {
    cell low = 1, i = 1, high = m[0];
    while (i <= high)
        if (m[i] == 1) {
            cell kept = m[low];
            m[low++] = 1;
            m[i++] = kept;
        } else if (m[i] == 3) {
            cell kept = m[high];
            m[high--] = 3;
            m[i] = kept;
        } else
            i++;
}

TASK(partition_in_place) {
    cell x = m[0];
    cell *place = m + 1;
    for (cell *a = m + 1; *a != 0; a++)
        if (*a < x) {
            cell kept = *place;
            *place++ = *a;
            *a = kept;
        }
}

TASK(binary_search) {
    cell x = m[0], low = 0, high = m[2];
    while (low < high) {
        cell middle = (low + high) / 2;
        if (m[4 + middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    m[1] = low;
}

TASK(gcd) {
    cell a = m[0], b = m[1];
    while (b != 0) {
        cell rest = a % b;
        a = b;
        b = rest;
    }
    m[0] = a;
}

TASK(divide) {
    m[2] = m[0] / m[1];
    m[3] = m[0] % m[1];
}

TASK(list_insert) {
    cell node = m[1], value = m[node + 1], at = 0;
    while (m[at] != 0 && m[m[at] + 1] < value)
        at = m[at];
    m[node] = m[at];
    m[at] = node;
}

TASK(list_reverse) {
    cell before = 0;
    for (cell node = m[0]; node != 0;) {
        cell following = m[node];
        m[node] = before;
        before = node;
        node = following;
    }
    m[0] = before;
}

TASK(tree_insert) {
    cell node = m[1], key = m[node], at = 0;
    while (m[at] != 0)
        at = m[at] + (key < m[m[at]] ? 1 : 2);
    m[at] = node;
}

TASK(maximum_subarray) {
    cell middle = m[0], best = 0, here = 0;
    for (const cell *a = m + 1; *a != 0; a++) {
        here += *a - middle;
        if (here < 0)
            here = 0;
        if (here > best)
            best = here;
    }
    m[0] = best;
}

TASK(longest_run) {
    cell best = 0, length = 0;
    for (cell i = 1; m[i] != 0; i++) {
        length = m[i] == m[i - 1] ? length + 1 : 1;
        if (length > best)
            best = length;
    }
    m[0] = best;
}

TASK(run_lengths) {
    cell *out = m + m[0];
    for (cell i = 1; m[i] != 0;) {
        cell first = i, value = m[i];
        while (m[i] == value)
            i++;
        *out++ = value;
        *out++ = i - first;
    }
    *out = 0;
}

TASK(find_pattern) {
    cell found = 0;
    for (cell start = m[0]; m[start] != 0; start++) {
        cell i = 0;
        while (m[1 + i] != 0 && m[start + i] == m[1 + i])
            i++;
        if (m[1 + i] == 0) {
            found = start;
            break;
        }
    }
    m[0] = found;
}

TASK(activity_selection) {
    cell chosen = 0, free = 0;
    for (cell i = 1; m[i] != 0; i += 2)
        if (m[i] >= free) {
            chosen++;
            free = m[i + 1];
        }
    m[0] = chosen;
}

/* ---- tier 4: graphs and stacks */

/* Nodes are (mark, link, first, second); the links chain a stack. */
TASK(reachable) {
    cell top = m[0];
    m[top] = 1;
    while (top != 0) {
        cell node = top;
        top = m[node + 1];
        for (cell arrow = node + 2; arrow <= node + 3; arrow++) {
            cell other = m[arrow];
            if (other != 0 && m[other] == 0) {
                m[other] = 1;
                m[other + 1] = top;
                top = other;
            }
        }
    }
}

/* Nodes are (mark, link, first, second); the links chain a queue. */
TASK(distances) {
    cell last = m[0];
    m[last] = 1;
    for (cell node = last; node != 0; node = m[node + 1])
        for (cell arrow = node + 2; arrow <= node + 3; arrow++) {
            cell other = m[arrow];
            if (other != 0 && m[other] == 0) {
                m[other] = m[node] + 1;
                m[last + 1] = other;
                last = other;
            }
        }
}

TASK(preorder) {
    cell *out = m + 2, *stack = m + m[1], *top = stack;
    cell node = m[0];
    for (;;) {
        if (node != 0) {
            *out++ = m[node];
            *top++ = m[node + 2];
            node = m[node + 1];
        } else if (top > stack)
            node = *--top;
        else
            break;
    }
}

TASK(brackets) {
    cell depth = 0;
    for (const cell *a = m + 1; *a != 0; a++) {
        depth += *a == 1 ? 1 : -1;
        if (depth < 0)
            break;
    }
    m[0] = depth == 0;
}

TASK(brackets_two_kinds) {
    cell *stack = m + m[0], *top = stack;
    cell matched = 1;
    for (const cell *a = m + 1; *a != 0; a++)
        if (*a <= 2)
            *top++ = *a;
        else if (top == stack || *--top != *a - 2) {
            matched = 0;
            break;
        }
    m[0] = matched && top == stack;
}

TASK(next_greater) {
    cell *stack = m + m[0], *top = stack;
    for (cell i = m[1]; i > 1; i--) {
        cell value = m[i];
        while (top > stack && top[-1] <= value)
            top--;
        m[i] = top > stack ? top[-1] : 0;
        *top++ = value;
    }
}

TASK(has_cycle) {
    cell slow = m[0], fast = m[0];
    while (fast != 0 && m[fast] != 0) {
        slow = m[slow];
        fast = m[m[fast]];
        if (slow == fast)
            break;
    }
    m[1] = fast != 0 && m[fast] != 0;
}
