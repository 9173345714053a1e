/* The search's inner loop once more, in C: src/nram/search/kernel.py function by function, with the same random
   numbers and the same order of additions, so that a chain gives the same table, the same counts and the same cost to
   the bit. It exists to measure what Numba costs or gains, and to check one against the other. It also counts what
   the other does not: candidates that were recognised as unchanged. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { READ, INC, ADD, SUB, DEC, LESS, LESS_EQUAL, EQUAL, MIN, MAX, WRITE };
enum { CONSTANTS = 3, ACTIVE_AT_FIRST = 12, JOINING_AT_ONCE = 4, MOST_OPERATIONS = 64, MOST_REGISTERS = 6 };
static const double NOT_HALTING = 0.25;

typedef struct {
    const int64_t *modules, *arity;
    int64_t count, registers, states, rows, width; /* count: of operations; width: genes of a row */
} Structure;

typedef struct {
    const int32_t *starts; /* [total][memory_width] */
    const int64_t *sizes, *limits;
    const int32_t *cells, *wanted; /* [total][cells_width] */
    const int64_t *cell_counts;
    int64_t total, memory_width, cells_width;
} Instances;

typedef struct {
    int64_t fits, candidates, runs, active, unchanged;
    double best;
} Result;

typedef int16_t Code[4];

/* ---- random numbers */

static inline int64_t random_bits(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (int64_t)((x * UINT64_C(2685821657736338717)) >> 1);
}

static inline int64_t below(uint64_t *state, int64_t n) { return (random_bits(state) >> 16) % n; }

static inline double uniform(uint64_t *state) {
    return (double)((random_bits(state) >> 10) + 1) * (1.0 / 9007199254740993.0);
}

static inline int64_t pick_value(uint64_t *state, const Structure *s, int64_t place) {
    for (;;) {
        int64_t value = below(state, CONSTANTS + s->registers + place);
        if (value < CONSTANTS + s->registers || s->modules[value - CONSTANTS - s->registers] != WRITE) return value;
    }
}

/* ---- one row */

static inline int64_t compile_row(const Structure *s, const int16_t *genes, Code *code) {
    const int64_t count = s->count, first_output = CONSTANTS + s->registers;
    uint8_t live[MOST_OPERATIONS];
    memset(live, 0, (size_t)count);
    if (genes[3 * count + s->registers] == 0)
        for (int64_t r = 0; r < s->registers; r++) {
            int64_t value = genes[3 * count + r] - first_output;
            if (value >= 0) live[value] = 1;
        }
    for (int64_t k = count - 1; k >= 0; k--) {
        if (s->modules[k] == WRITE) live[k] = genes[3 * k + 2] == 1;
        if (live[k])
            for (int64_t which = 0; which < s->arity[k]; which++) {
                int64_t value = genes[3 * k + which] - first_output;
                if (value >= 0) live[value] = 1;
            }
    }
    int64_t length = 0;
    for (int64_t k = 0; k < count; k++)
        if (live[k]) {
            code[length][0] = (int16_t)s->modules[k];
            code[length][1] = genes[3 * k];
            code[length][2] = s->arity[k] == 2 ? genes[3 * k + 1] : 0;
            code[length][3] = (int16_t)(first_output + k);
            length++;
        }
    return length;
}

static inline void mutate(uint64_t *state, const Structure *s, int16_t *genes, int64_t row) {
    const int64_t count = s->count, registers = s->registers, first_output = CONSTANTS + registers;
    const int64_t updates = 3 * count;
    int16_t *mine = genes + row * s->width;
    int64_t kind = below(state, 100);
    if (kind < 4) {
        mine[updates + registers] ^= 1;
    } else if (kind < 8) {
        int64_t other = below(state, s->rows);
        memmove(mine, genes + other * s->width, (size_t)s->width * sizeof *mine);
    } else if (kind < 12 && s->states > 1) {
        mine[updates + registers + 1] = (int16_t)below(state, s->states);
    } else if (kind < 24) {
        int64_t wire = updates + below(state, registers), place = count;
        if (below(state, 2) == 0) {
            place = below(state, count);
            wire = 3 * place + below(state, s->arity[place]);
        }
        int64_t source = mine[wire] - first_output;
        if (kind < 18 && place > 0) {
            int64_t k = below(state, place);
            if (s->modules[k] != WRITE && mine[wire] < first_output + k) {
                mine[3 * k + below(state, s->arity[k])] = mine[wire];
                mine[wire] = (int16_t)(first_output + k);
            }
        } else if (source >= 0) {
            mine[wire] = mine[3 * source + below(state, s->arity[source])];
        }
    } else {
        do {
            /* The value is drawn before the place, as Python evaluates the right-hand side first. */
            if (below(state, 3) == 0) {
                int16_t value = (int16_t)pick_value(state, s, count);
                mine[updates + below(state, registers)] = value;
            } else {
                int64_t k = below(state, count);
                if (s->modules[k] == WRITE && below(state, 3) == 0) {
                    mine[3 * k + 2] ^= 1;
                } else {
                    int16_t value = (int16_t)pick_value(state, s, k);
                    mine[3 * k + below(state, s->arity[k])] = value;
                }
            }
        } while (below(state, 3) == 0);
    }
}

/* ---- one instance */

static inline double run_instance(const Structure *s, const int16_t *genes, const Code *code, const int64_t *lengths,
                                  const Instances *all, int64_t i, int32_t *memory, uint64_t *visited_rows) {
    const int64_t registers = s->registers, updates = s->width - registers - 2;
    const int32_t size = (int32_t)all->sizes[i];
    int32_t values[CONSTANTS + MOST_REGISTERS + MOST_OPERATIONS] = {0, 1, 2}, held[MOST_REGISTERS];
    memcpy(memory, all->starts + i * all->memory_width, (size_t)size * sizeof *memory);
    uint64_t visited = 0;
    int halted = 0;
    int64_t row = (INT64_C(1) << registers) - 1;
    for (int64_t step = 0; step < all->limits[i]; step++) {
        visited |= UINT64_C(1) << row;
        const Code *line = code + row * s->count;
        for (int64_t j = 0; j < lengths[row]; j++) {
            int32_t x = values[line[j][1]], y = values[line[j][2]], z;
            switch (line[j][0]) {
            case READ: z = memory[x]; break;
            case INC: z = x + 1 < size ? x + 1 : 0; break;
            case ADD: z = x + y < size ? x + y : x + y - size; break;
            case SUB: z = x >= y ? x - y : x - y + size; break;
            case DEC: z = x > 0 ? x - 1 : size - 1; break;
            case LESS: z = x < y; break;
            case LESS_EQUAL: z = x <= y; break;
            case EQUAL: z = x == y; break;
            case MIN: z = x < y ? x : y; break;
            case MAX: z = x > y ? x : y; break;
            default: memory[x] = y; z = 0;
            }
            values[line[j][3]] = z;
        }
        const int16_t *mine = genes + row * s->width + updates;
        if (mine[registers] == 1) {
            halted = 1;
            break;
        }
        for (int64_t r = 0; r < registers; r++) held[r] = values[mine[r]];
        row = (int64_t)mine[registers + 1] << registers;
        for (int64_t r = 0; r < registers; r++) {
            values[CONSTANTS + r] = held[r];
            if (held[r] == 0) row |= INT64_C(1) << r;
        }
    }
    const int32_t *cells = all->cells + i * all->cells_width, *wanted = all->wanted + i * all->cells_width;
    int64_t wrong = 0;
    for (int64_t c = 0; c < all->cell_counts[i]; c++) wrong += memory[cells[c]] != wanted[c];
    double cost = (double)wrong / (double)all->cell_counts[i];
    *visited_rows = visited;
    return halted ? cost : cost + NOT_HALTING;
}

/* ---- the chain */

static inline void exchange(int64_t *order, int64_t a, int64_t b) {
    int64_t kept = order[a];
    order[a] = order[b];
    order[b] = kept;
}

static void *room(int64_t count, size_t size) { return calloc((size_t)(count > 0 ? count : 1), size); }

int run_chain(int64_t seed, const Structure *structure, int16_t *genes, const Instances *instances, int64_t budget,
              double hot, double cold, double length_cost, int64_t must_fit, Result *result) {
    const Structure copy = *structure, *s = &copy;
    const Instances of = *instances, *all = &of;
    const int64_t count = s->count, registers = s->registers, rows = s->rows, width = s->width, total_count = all->total;
    if (count > MOST_OPERATIONS || registers > MOST_REGISTERS || rows > 64) return 1;

    uint64_t state = (uint64_t)seed * UINT64_C(0x9E3779B97F4A7C15) + UINT64_C(0x632BE59BD9B4E019);
    for (int i = 0; i < 16; i++) random_bits(&state);

    Code *code = room(rows * count, sizeof *code);
    int64_t lengths[64];
    Code old_code[MOST_OPERATIONS];
    int16_t old_genes[3 * MOST_OPERATIONS + MOST_REGISTERS + 2];
    int16_t *best_genes = room(rows * width, sizeof *best_genes);
    int32_t *memory = room(all->memory_width, sizeof *memory);
    double *cost = room(total_count, sizeof *cost), *new_cost = room(total_count, sizeof *new_cost);
    uint64_t *visited = room(total_count, sizeof *visited), *new_visited = room(total_count, sizeof *new_visited);
    int64_t *rerun = room(total_count, sizeof *rerun), *order = room(total_count, sizeof *order);
    memcpy(best_genes, genes, (size_t)(rows * width) * sizeof *genes);
    for (int64_t i = 0; i < total_count; i++) order[i] = i;
    for (int64_t i = total_count - 1; i > 0; i--) exchange(order, i, below(&state, i + 1));
    int64_t active = must_fit || total_count < ACTIVE_AT_FIRST ? total_count : ACTIVE_AT_FIRST;

    for (int64_t row = 0; row < rows; row++) lengths[row] = compile_row(s, genes + row * width, code + row * count);
    double total = 0.0;
    uint64_t anywhere = 0;
    for (int64_t q = 0; q < active; q++) {
        int64_t i = order[q];
        cost[i] = run_instance(s, genes, code, lengths, all, i, memory, &visited[i]);
        total += cost[i];
        anywhere |= visited[i];
    }
    double best = total, temperature = hot;
    const double cooling = pow(cold / hot, 1.0 / (double)budget);
    int64_t shortest = INT64_C(1) << 30, runs = active, unchanged = 0;
    int64_t candidate = 0;
    int fits = 0;

    for (; candidate < budget && !fits; candidate++) {
        temperature *= cooling;
        int64_t row = below(&state, rows);
        if (below(&state, 16) > 0)
            while ((anywhere >> row & 1) == 0) row = below(&state, rows);
        int16_t *mine = genes + row * width;
        Code *line = code + row * count;
        memcpy(old_genes, mine, (size_t)width * sizeof *mine);
        const int64_t old_length = lengths[row];
        memcpy(old_code, line, (size_t)old_length * sizeof *line);
        mutate(&state, s, genes, row);
        lengths[row] = compile_row(s, mine, line);

        int same = lengths[row] == old_length && mine[width - 2] == old_genes[width - 2];
        if (same && mine[width - 2] != 1) {
            const int64_t updates = width - 2 - registers;
            same = memcmp(mine + updates, old_genes + updates, (size_t)(registers + 2) * sizeof *mine) == 0;
        }
        if (same) same = memcmp(line, old_code, (size_t)old_length * sizeof *line) == 0;
        if (same) {
            unchanged++;
            continue;
        }

        const uint64_t bit = UINT64_C(1) << row;
        double longer = 0.0;
        if (anywhere & bit) longer = length_cost * (double)(lengths[row] - old_length);
        double bound = total - longer - temperature * log(uniform(&state));
        if (must_fit) {
            if (bound > 1e-9) bound = 1e-9;
            if (longer > 0 && uniform(&state) > exp(-longer / temperature)) bound = -1.0;
        }
        double new_total = 0.0;
        for (int64_t q = 0; q < active; q++)
            if ((visited[order[q]] & bit) == 0) new_total += cost[order[q]];
        int taken = new_total <= bound;
        int64_t count_rerun = 0;
        for (int64_t q = 0; taken && q < active; q++) {
            int64_t i = order[q];
            if ((visited[i] & bit) == 0) continue;
            new_cost[i] = run_instance(s, genes, code, lengths, all, i, memory, &new_visited[i]);
            rerun[count_rerun++] = i;
            new_total += new_cost[i];
            if (new_total > bound) {
                taken = 0;
                if (q > 0) exchange(order, q, q - 1);
            }
        }
        runs += count_rerun;
        if (!taken) {
            memcpy(mine, old_genes, (size_t)width * sizeof *mine);
            lengths[row] = old_length;
            memcpy(line, old_code, (size_t)old_length * sizeof *line);
            continue;
        }
        total = new_total;
        for (int64_t q = 0; q < count_rerun; q++) {
            cost[rerun[q]] = new_cost[rerun[q]];
            visited[rerun[q]] = new_visited[rerun[q]];
        }
        anywhere = 0;
        for (int64_t q = 0; q < active; q++) anywhere |= visited[order[q]];
        if (total < best) best = total;
        if (total > 1e-9) continue;
        if (must_fit) {
            int64_t length = 0;
            for (int64_t r = 0; r < rows; r++)
                if (anywhere >> r & 1) length += lengths[r] + 1;
            if (length < shortest) {
                shortest = length;
                memcpy(best_genes, genes, (size_t)(rows * width) * sizeof *genes);
            }
            continue;
        }
        int64_t joining = 0;
        for (int64_t q = active; q < total_count; q++) {
            int64_t i = order[q];
            cost[i] = run_instance(s, genes, code, lengths, all, i, memory, &visited[i]);
            runs++;
            if (cost[i] > 0 && joining < JOINING_AT_ONCE) {
                exchange(order, active + joining, q);
                joining++;
                total += cost[i];
                anywhere |= visited[i];
            }
        }
        if (joining == 0) {
            fits = 1;
        } else {
            active += joining;
            best = total;
        }
    }
    if (must_fit) memcpy(genes, best_genes, (size_t)(rows * width) * sizeof *genes);
    *result = (Result){fits || must_fit, candidate, runs, active, unchanged, fits || must_fit ? 0.0 : best};
    free(code), free(best_genes), free(memory), free(cost), free(new_cost), free(visited), free(new_visited);
    free(rerun), free(order);
    return 0;
}
