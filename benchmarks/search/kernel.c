/* The search's inner loop once more, in C: src/nram/search/kernel.py function by function, and the block of sixteen
   instances that src/nram/search/lanes.py writes in LLVM, here in GCC's vectors. The random numbers and the order of
   additions are the same, so a chain gives the same table, the same counts and the same cost to the bit. It exists to
   measure what Numba and llvmlite cost or gain, and to check one against the other. It also counts what the other does
   not: candidates that were recognised as unchanged. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX512DQ__
#include <immintrin.h>
#endif

enum { READ, INC, ADD, SUB, DEC, LESS, LESS_EQUAL, EQUAL, MIN, MAX, WRITE };
enum { LANES = 16, CONSTANTS = 3, MOST_ROWS = 64, MOST_REGISTERS = 6, MOST_OPERATIONS = 88 };
enum { JOINING_AT_ONCE = 4, LOOK_UP = 4096, ROW_LENGTH = 2, FRESH = 35 };
enum { MOST_GENES = 3 * MOST_OPERATIONS + MOST_REGISTERS + 2 };
static const double NOT_HALTING = 0.25;

typedef int32_t Numbers __attribute__((vector_size(4 * LANES)));
typedef Numbers Loose __attribute__((aligned(4))); /* the same in an array of Python's, which may begin anywhere */
typedef uint64_t Words __attribute__((vector_size(8 * LANES)));
typedef int64_t Longs __attribute__((vector_size(8 * LANES)));
typedef uint16_t Bits; /* a bit for each lane */

typedef int16_t Code[4];

typedef struct {
    const int64_t (*operations)[3]; /* number of the module, its arguments, whether it writes */
    int64_t count, registers, states, rows, width; /* count: of operations; width: genes of a row */
} Structure;

typedef struct {
    int32_t *starts, *sizes, *limits, *cells, *wanted, *counts; /* [blocks], [cells or output cells], [LANES] */
    int64_t blocks, total, most_cells, most_outputs;
} Instances;

typedef struct {
    int64_t fits, candidates, runs, active, unchanged;
    double best;
} Result;

/* ---- random numbers */

static inline uint64_t random_bits(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

static inline int64_t below(uint64_t *state, int64_t n) {
    return (int64_t)(((random_bits(state) >> 32) * (uint64_t)n) >> 32);
}

static inline double uniform(uint64_t *state) {
    return ((double)(random_bits(state) >> 11) + 1.0) * (1.0 / 9007199254740993.0);
}

/* ---- one row: its live code, and changes */

static inline int64_t compile_row(const Structure *s, const int16_t *genes, Code *code, uint8_t *live) {
    const int64_t count = s->count, first_output = CONSTANTS + s->registers;
    memset(live, 0, (size_t)count);
    if (genes[3 * count + s->registers] == 0)
        for (int64_t r = 0; r < s->registers; r++) {
            int64_t value = genes[3 * count + r] - first_output;
            if (value >= 0) live[value] = 1;
        }
    for (int64_t k = count - 1; k >= 0; k--) {
        if (s->operations[k][2] == 1) live[k] = genes[3 * k + 2] == 1;
        if (live[k])
            for (int64_t which = 0; which < s->operations[k][1]; which++) {
                int64_t value = genes[3 * k + which] - first_output;
                if (value >= 0) live[value] = 1;
            }
    }
    int64_t length = 0;
    for (int64_t k = 0; k < count; k++)
        if (live[k]) {
            code[length][0] = (int16_t)s->operations[k][0];
            code[length][1] = genes[3 * k];
            code[length][2] = s->operations[k][1] == 2 ? genes[3 * k + 1] : 0;
            code[length][3] = (int16_t)(first_output + k);
            length++;
        }
    return length;
}

static inline int16_t near_value(uint64_t *state, const Structure *s, int64_t place, const uint8_t *live) {
    int64_t kind = below(state, 8);
    if (kind == 0) return (int16_t)below(state, CONSTANTS);
    if (kind >= 4 && place > 0)
        for (int i = 0; i < 6; i++) {
            int64_t k = below(state, place);
            if (live[k] && s->operations[k][2] == 0) return (int16_t)(CONSTANTS + s->registers + k);
        }
    return (int16_t)(CONSTANTS + below(state, s->registers));
}

static inline int16_t source(uint64_t *state, const Structure *s, int64_t place, const uint8_t *live, int16_t *genes) {
    if (below(state, 100) < FRESH && place > 0) {
        int64_t k = below(state, place);
        for (int i = 0; i < 4 && !(s->operations[k][2] == 0 && !live[k]); i++) k = below(state, place);
        if (s->operations[k][2] == 0) {
            if (!live[k])
                for (int64_t which = 0; which < s->operations[k][1]; which++)
                    if (below(state, 4) > 0) genes[3 * k + which] = near_value(state, s, k, live);
            return (int16_t)(CONSTANTS + s->registers + k);
        }
    }
    return near_value(state, s, place, live);
}

static inline int64_t live_wire(uint64_t *state, const Structure *s, const uint8_t *live, int64_t *place) {
    if (below(state, 3) > 0)
        for (int i = 0; i < 32; i++) {
            int64_t k = below(state, s->count);
            if (live[k]) {
                *place = k;
                return 3 * k + below(state, s->operations[k][1]);
            }
        }
    *place = s->count;
    return 3 * s->count + below(state, s->registers);
}

static inline void rewire(uint64_t *state, const Structure *s, int16_t *genes, const uint8_t *live) {
    const int64_t first_output = CONSTANTS + s->registers;
    int64_t place, wire = live_wire(state, s, live, &place), what = below(state, 100);
    int64_t behind = genes[wire] - first_output;
    if (what < 12 && behind >= 0) {
        genes[wire] = genes[3 * behind + below(state, s->operations[behind][1])];
    } else if (12 <= what && what < 30) {
        if (place == 0) return;
        int64_t k = below(state, place);
        if (s->operations[k][2] == 0 && genes[wire] < first_output + k && !live[k]) {
            int64_t which = below(state, s->operations[k][1]);
            genes[3 * k + which] = genes[wire];
            if (s->operations[k][1] == 2 && below(state, 3) > 0)
                genes[3 * k + 1 - which] = near_value(state, s, k, live);
            genes[wire] = (int16_t)(first_output + k);
        }
    } else if (30 <= what && what < 36) {
        int64_t one = 3 * s->count + below(state, s->registers);
        int64_t other = 3 * s->count + below(state, s->registers);
        if (place < s->count && s->operations[place][1] == 2) one = 3 * place, other = 3 * place + 1;
        int16_t kept = genes[one];
        genes[one] = genes[other];
        genes[other] = kept;
    } else {
        genes[wire] = source(state, s, place, live, genes);
    }
}

static inline void mutate(uint64_t *state, const Structure *s, int16_t *genes, int64_t row, const uint8_t *live) {
    const int64_t halt = 3 * s->count + s->registers;
    int16_t *mine = genes + row * s->width;
    int64_t kind = below(state, 100);
    if (kind < 4) {
        mine[halt] ^= 1;
    } else if (kind < 8) {
        int64_t other = below(state, s->rows);
        memmove(mine, genes + other * s->width, (size_t)s->width * sizeof *mine);
    } else if (kind < 12 && s->states > 1) {
        mine[halt + 1] = (int16_t)below(state, s->states);
    } else if (kind < 18) {
        int64_t k = below(state, s->count);
        for (int i = 0; i < 64 && s->operations[k][2] != 1; i++) k = below(state, s->count);
        if (s->operations[k][2] != 1) return;
        mine[3 * k + 2] ^= 1;
        if (mine[3 * k + 2] == 1)
            for (int which = 0; which < 2; which++)
                if (below(state, 3) > 0) mine[3 * k + which] = source(state, s, k, live, mine);
    } else {
        do rewire(state, s, mine, live);
        while (below(state, 3) == 0);
    }
}

/* ---- lanes */

static const Numbers NUMBER_OF_LANE = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static inline Numbers every(int32_t value) { return value - (Numbers){0}; }

/* A comparison gives -1 where it holds and 0 elsewhere. */
static inline Numbers choose(Numbers condition, Numbers yes, Numbers no) { return (condition & yes) | (~condition & no); }

static inline Numbers where(Bits lanes) { return (every(lanes) >> NUMBER_OF_LANE & 1) != 0; }

#ifdef __AVX512DQ__
static inline Bits bits(Numbers condition) { return _mm512_movepi32_mask((__m512i)condition); }
#else
static inline Bits bits(Numbers condition) {
    Bits found = 0;
    for (int lane = 0; lane < LANES; lane++) found |= (Bits)((condition[lane] & 1) << lane);
    return found;
}
#endif

static inline Numbers read_lanes(const Numbers *memory, Numbers pointer, Bits lanes) {
    const Numbers index = pointer * LANES + NUMBER_OF_LANE;
#ifdef __AVX512DQ__
    return (Numbers)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes, (__m512i)index, memory, 4);
#else
    Numbers found = {0};
    for (int lane = 0; lane < LANES; lane++)
        if (lanes >> lane & 1) found[lane] = ((const int32_t *)memory)[index[lane]];
    return found;
#endif
}

static inline void write_lanes(Numbers *memory, Numbers pointer, Numbers value, Bits lanes) {
    const Numbers index = pointer * LANES + NUMBER_OF_LANE;
#ifdef __AVX512DQ__
    _mm512_mask_i32scatter_epi32(memory, lanes, (__m512i)index, (__m512i)value, 4);
#else
    for (int lane = 0; lane < LANES; lane++)
        if (lanes >> lane & 1) ((int32_t *)memory)[index[lane]] = value[lane];
#endif
}

typedef struct {
    Code code[MOST_ROWS][MOST_OPERATIONS];
    int64_t lengths[MOST_ROWS];
    Numbers values[CONSTANTS + MOST_REGISTERS + MOST_OPERATIONS], wrong;
    Words visited;
    Numbers *memory;
} Room;

/* Run some lanes of a block; which of them halted. */
static Bits run_block(const Structure *s, const int16_t *genes, Room *room, const Instances *all, int64_t block,
                      Bits lanes) {
    const int64_t registers = s->registers;
    Numbers *const values = room->values, *const memory = room->memory;
    const Numbers size = ((const Loose *)all->sizes)[block], limits = ((const Loose *)all->limits)[block];
    int32_t longest = 0;
    for (int lane = 0; lane < LANES; lane++) longest = limits[lane] > longest ? limits[lane] : longest;
    const Loose *starts = (const Loose *)all->starts + block * all->most_cells;
    for (int64_t address = 0; address < all->most_cells; address++) memory[address] = starts[address];
    for (int number = 0; number < CONSTANTS; number++) values[number] = every(number);
    for (int64_t r = 0; r < registers; r++) values[CONSTANTS + r] = every(0);
    Numbers rows = every((1 << registers) - 1);
    Words visited = {0};
    Bits alive = lanes, halted = 0;
    for (int32_t step = 0; step < longest; step++) {
        alive &= bits(every(step) < limits);
        if (alive == 0) break;
        for (Bits todo = alive; todo != 0;) {
            const int32_t row = ((const int32_t *)&rows)[__builtin_ctz(todo)];
            const Bits here = todo & bits(rows == every(row));
            const Numbers at_work = where(here);
            todo &= (Bits)~here;
            visited |= (Words)__builtin_convertvector(at_work, Longs) & UINT64_C(1) << row;
            const Code *line = room->code[row];
            for (int64_t j = 0; j < room->lengths[row]; j++) {
                const Numbers x = values[line[j][1]], y = values[line[j][2]];
                Numbers z;
                switch (line[j][0]) {
                case READ: z = read_lanes(memory, x, here); break;
                case INC: z = (x + 1) & (x + 1 != size); break;
                case ADD: z = x + y - (size & (x + y >= size)); break;
                case SUB: z = x - y + (size & (x < y)); break;
                case DEC: z = x - 1 + (size & (x == 0)); break;
                case LESS: z = (x < y) & 1; break;
                case LESS_EQUAL: z = (x <= y) & 1; break;
                case EQUAL: z = (x == y) & 1; break;
                case MIN: z = choose(y < x, y, x); break;
                case MAX: z = choose(x < y, y, x); break;
                default: write_lanes(memory, x, y, here); continue;
                }
                values[line[j][3]] = z;
            }
            const int16_t *ending = genes + (row + 1) * s->width - 2;
            if (*ending != 0) {
                alive &= (Bits)~here;
                halted |= here;
                continue;
            }
            Numbers held[MOST_REGISTERS], following = every(ending[1] << registers);
            for (int64_t r = 0; r < registers; r++) held[r] = values[ending[r - registers]];
            for (int64_t r = 0; r < registers; r++) {
                const Numbers new = choose(at_work, held[r], values[CONSTANTS + r]);
                values[CONSTANTS + r] = new;
                following |= (new == 0) & 1 << r;
            }
            rows = choose(at_work, following, rows);
        }
    }
    const Loose *cells = (const Loose *)all->cells + block * all->most_outputs;
    const Loose *wanted = (const Loose *)all->wanted + block * all->most_outputs;
    const Numbers counts = ((const Loose *)all->counts)[block];
    Numbers wrong = {0};
    for (int64_t number = 0; number < all->most_outputs; number++) {
        const Numbers differs = read_lanes(memory, cells[number], lanes) != wanted[number];
        wrong -= differs & (every((int32_t)number) < counts);
    }
    room->wrong = wrong;
    room->visited = visited;
    return halted;
}

static inline double cost_of(const Room *room, const Instances *all, int64_t block, Bits halted, int64_t lane) {
    double cost = (double)((const int32_t *)&room->wrong)[lane] / (double)all->counts[block * LANES + lane];
    return halted >> lane & 1 ? cost : cost + NOT_HALTING;
}

static inline uint64_t visited_by(const Room *room, int64_t lane) { return ((const uint64_t *)&room->visited)[lane]; }

static inline void exchange_numbers(int32_t *array, int64_t height, int64_t one, int64_t other) {
    int32_t *a = array + one / LANES * height * LANES + one % LANES;
    int32_t *b = array + other / LANES * height * LANES + other % LANES;
    for (int64_t i = 0; i < height; i++, a += LANES, b += LANES) {
        int32_t kept = *a;
        *a = *b;
        *b = kept;
    }
}

static void exchange(const Instances *all, int64_t one, int64_t other) {
    exchange_numbers(all->starts, all->most_cells, one, other);
    exchange_numbers(all->cells, all->most_outputs, one, other);
    exchange_numbers(all->wanted, all->most_outputs, one, other);
    exchange_numbers(all->sizes, 1, one, other);
    exchange_numbers(all->limits, 1, one, other);
    exchange_numbers(all->counts, 1, one, other);
}

/* ---- the chain */

static inline int64_t length_of(const int64_t *lengths, int64_t rows, uint64_t anywhere) {
    int64_t length = 0;
    for (int64_t row = 0; row < rows; row++)
        if (anywhere >> row & 1) length += lengths[row] + ROW_LENGTH;
    return length;
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void *zeros(int64_t count, size_t size) {
    size_t bytes = ((size_t)count * size + 63) / 64 * 64;
    void *found = aligned_alloc(64, bytes > 0 ? bytes : 64);
    if (found == NULL) abort();
    return memset(found, 0, bytes);
}

int run_chain(int64_t seed, const Structure *structure, int16_t *genes, const Instances *instances, int64_t budget,
              double hot, double cold, double length_cost, int64_t at_first, int64_t must_fit, volatile double *watch,
              Result *result) {
    const Structure copy = *structure, *s = &copy;
    const Instances of = *instances, *all = &of;
    const int64_t registers = s->registers, rows = s->rows, width = s->width, places = all->blocks * LANES;
    if (s->count > MOST_OPERATIONS || registers > MOST_REGISTERS || rows > MOST_ROWS) return 1;

    uint64_t state = (uint64_t)seed * UINT64_C(0x9E3779B97F4A7C15) + UINT64_C(0x632BE59BD9B4E019);
    for (int i = 0; i < 16; i++) random_bits(&state);

    Room *room = zeros(1, sizeof *room);
    room->memory = zeros(all->most_cells, sizeof *room->memory);
    int64_t *const lengths = room->lengths, old_length;
    uint8_t live[MOST_ROWS][MOST_OPERATIONS], old_live[MOST_OPERATIONS];
    Code old_code[MOST_OPERATIONS];
    int16_t old_genes[MOST_GENES];
    int16_t *best_genes = zeros(rows * width, sizeof *best_genes);
    double *cost = zeros(places, sizeof *cost), *new_cost = zeros(places, sizeof *new_cost);
    uint64_t *visited = zeros(places, sizeof *visited), *new_visited = zeros(places, sizeof *new_visited);
    Bits *rerun = zeros(all->blocks, sizeof *rerun);
    int64_t *turn = zeros(all->blocks, sizeof *turn);
    memcpy(best_genes, genes, (size_t)(rows * width) * sizeof *genes);
    for (int64_t block = 0; block < all->blocks; block++) turn[block] = block;

    int64_t active = must_fit ? all->total : least(at_first, all->total);
    for (int64_t row = 0; row < rows; row++)
        lengths[row] = compile_row(s, genes + row * width, room->code[row], live[row]);
    double total = 0.0;
    uint64_t anywhere = 0;
    for (int64_t block = 0; block * LANES < active; block++) {
        int64_t in_play = least(LANES, active - block * LANES);
        Bits halted = run_block(s, genes, room, all, block, (Bits)((1 << in_play) - 1));
        for (int64_t lane = 0; lane < in_play; lane++) {
            int64_t place = block * LANES + lane;
            cost[place] = cost_of(room, all, block, halted, lane);
            visited[place] = visited_by(room, lane);
            total += cost[place];
            anywhere |= visited[place];
        }
    }
    int64_t length = length_of(lengths, rows, anywhere), shortest = must_fit ? length : INT64_C(1) << 30;
    int64_t runs = active, unchanged = 0, candidate = 0;
    double best = total, temperature = hot;
    const double cooling = pow(cold / hot, 1.0 / (double)budget);
    int fits = 0, stopped = 0;

    for (; candidate < budget && !fits; candidate++) {
        temperature *= cooling;
        if (candidate % LOOK_UP == 0) {
            watch[1] = (double)candidate, watch[2] = total, watch[3] = (double)active;
            if (watch[0] != 0) {
                stopped = 1;
                break;
            }
        }
        int64_t row = below(&state, rows);
        if (below(&state, 16) > 0)
            while ((anywhere >> row & 1) == 0) row = below(&state, rows);
        int16_t *mine = genes + row * width;
        Code *line = room->code[row];
        memcpy(old_genes, mine, (size_t)width * sizeof *mine);
        old_length = lengths[row];
        memcpy(old_code, line, (size_t)old_length * sizeof *line);
        memcpy(old_live, live[row], (size_t)s->count);
        mutate(&state, s, genes, row, old_live);
        lengths[row] = compile_row(s, mine, line, live[row]);

        int same = lengths[row] == old_length && mine[width - 2] == old_genes[width - 2];
        if (same && mine[width - 2] == 0) {
            const int64_t updates = width - 2 - registers;
            same = memcmp(mine + updates, old_genes + updates, (size_t)(registers + 2) * sizeof *mine) == 0;
        }
        if (same) same = memcmp(line, old_code, (size_t)old_length * sizeof *line) == 0;
        if (same) {
            unchanged++;
            continue;
        }

        const uint64_t bit = UINT64_C(1) << row;
        const double energy = total + length_cost * (double)length - temperature * log(uniform(&state));
        double bound = energy;
        if (anywhere & bit) bound -= length_cost * (double)lengths[row];
        if (must_fit && bound > 1e-9) bound = 1e-9;
        double new_total = 0.0;
        uint64_t now = 0;
        const int64_t blocks_in_play = (active + LANES - 1) / LANES;
        for (int64_t block = 0; block < blocks_in_play; block++) {
            int lanes = 0;
            for (int64_t place = block * LANES; place < least(active, (block + 1) * LANES); place++)
                if ((visited[place] & bit) == 0) {
                    new_total += cost[place];
                    now |= visited[place];
                } else {
                    lanes |= 1 << (place - block * LANES);
                }
            rerun[block] = (Bits)lanes;
        }
        int taken = new_total <= bound;
        for (int64_t q = 0; taken && q < blocks_in_play; q++) {
            const int64_t block = turn[q];
            if (rerun[block] == 0) continue;
            const Bits halted = run_block(s, genes, room, all, block, rerun[block]);
            for (int lanes = rerun[block]; lanes != 0; lanes &= lanes - 1) {
                const int64_t lane = __builtin_ctz((unsigned)lanes), place = block * LANES + lane;
                new_cost[place] = cost_of(room, all, block, halted, lane);
                new_visited[place] = visited_by(room, lane);
                new_total += new_cost[place];
                now |= new_visited[place];
                runs++;
            }
            if (new_total > bound) {
                taken = 0;
                if (q > 0) turn[q] = turn[q - 1], turn[q - 1] = block;
            }
        }
        int64_t new_length = 0;
        if (taken) {
            new_length = length_of(lengths, rows, now);
            taken = new_total + length_cost * (double)new_length <= energy;
        }
        if (!taken) {
            memcpy(mine, old_genes, (size_t)width * sizeof *mine);
            lengths[row] = old_length;
            memcpy(line, old_code, (size_t)old_length * sizeof *line);
            memcpy(live[row], old_live, (size_t)s->count);
            continue;
        }
        total = new_total, length = new_length, anywhere = now;
        for (int64_t block = 0; block < blocks_in_play; block++)
            for (int lanes = rerun[block]; lanes != 0; lanes &= lanes - 1) {
                const int64_t place = block * LANES + __builtin_ctz((unsigned)lanes);
                cost[place] = new_cost[place];
                visited[place] = new_visited[place];
            }
        if (total < best) best = total;
        if (total > 1e-9) continue;
        if (must_fit) {
            if (length < shortest) {
                shortest = length;
                memcpy(best_genes, genes, (size_t)(rows * width) * sizeof *genes);
            }
            continue;
        }

        int64_t joining = 0;
        for (int64_t place = active; place < all->total && joining < JOINING_AT_ONCE;) {
            const int64_t block = place / LANES, until = least(all->total, (block + 1) * LANES);
            const int lanes = ((1 << (until - place)) - 1) << (place - block * LANES);
            const Bits halted = run_block(s, genes, room, all, block, (Bits)lanes);
            runs += until - place;
            for (int64_t other = place; other < until; other++) {
                const int64_t lane = other - block * LANES, place_to_be = active + joining;
                const double failed = cost_of(room, all, block, halted, lane);
                if (failed > 0 && joining < JOINING_AT_ONCE) {
                    exchange(all, place_to_be, other);
                    cost[place_to_be] = failed;
                    visited[place_to_be] = visited_by(room, lane);
                    total += failed;
                    anywhere |= visited_by(room, lane);
                    joining++;
                }
            }
            place = until;
        }
        if (joining == 0) {
            fits = 1;
        } else {
            active += joining;
            length = length_of(lengths, rows, anywhere);
            best = total;
            for (int64_t block = 0; block < all->blocks; block++) turn[block] = block;
        }
    }
    if (must_fit && !stopped) {
        memcpy(genes, best_genes, (size_t)(rows * width) * sizeof *genes);
        fits = 1;
    }
    *result = (Result){fits, candidate, runs, active, unchanged, fits ? 0.0 : best};
    free(room->memory), free(room), free(best_genes), free(cost), free(new_cost), free(visited), free(new_visited);
    free(rerun), free(turn);
    return 0;
}
