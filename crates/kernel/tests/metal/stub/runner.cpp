// Runs dispatches of kernels on the CPU as a GPU may: threadgroups in any order, invocations in any order between barriers.
//
// Input: a file of 32-bit words. Cases; of each its buffers with their contents, then its dispatches: kernel, threadgroups in three
// dimensions, parameters, and the buffer of each binding. Output: a file with the buffers of all cases afterwards, and one line
// per fault: case, dispatch, what happened; tabs between.
//
// Each dispatch runs twice from the same contents: ascending and descending, threadgroups as well as invocations. Any two
// accesses without a barrier between them so happen in both orders, and where the order matters the contents differ: a race.
// Invocations are coroutines on stacks of their own. Threadgroup memory begins as NaN in every threadgroup.
#include "checked.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace stub {

typedef unsigned Word;
typedef std::vector<Word> Words;

static const Word POISON = 0x7fc0dead;
static const size_t STACK = 1 << 20, GUARD = 64 << 10;
static const unsigned SECONDS = 300;

enum class State { Ready, Waiting, Meeting, Ended, Faulty };

struct Fiber {
    State state = State::Ended;
    bool is_begun = false;
    int line = 0;
    Invocation at = {};
    jmp_buf place = {};
    ucontext_t context = {};
    char* stack = nullptr;
};

static std::vector<Fiber*> fibers;
static Fiber* current;
static Kernel const* code;
static jmp_buf scheduler;
// All that the dispatch may use: its buffers and its threadgroup memory.
static std::vector<Binding> memories;
static std::string fault;
// Case and dispatch, for a report when the process ends.
static char running[64];

// Back to the scheduler; returns when it enters this invocation again.
static void leave(State state) {
    current->state = state;
    if (!_setjmp(current->place)) _longjmp(scheduler, 1);
}

// A coroutine calls one kernel after another.
static void loop() {
    for (;;) {
        code->call(current->at);
        leave(State::Ended);
    }
}

void barrier(int line) {
    current->line = line;
    leave(State::Waiting);
}

void meet(int line) {
    current->line = line;
    leave(State::Meeting);
}

unsigned lane() { return current->at.index % SIMDGROUP; }

void check(void const* first, size_t bytes) {
    char const* begin = static_cast<char const*>(first);
    for (Binding const& memory : memories) {
        char const* from = static_cast<char const*>(memory.words);
        if (begin >= from && begin + bytes <= from + memory.bytes) return;
    }
    fault = "a matrix in no buffer and no threadgroup memory, invocation " + std::to_string(current->at.index);
    leave(State::Faulty);
}

void outside(size_t index, size_t count) {
    uint3 group = current->at.group;
    char text[160];
    snprintf(text, sizeof text, "index %zu of %zu elements, threadgroup %u %u %u, invocation %u", index, count, group.x,
             group.y, group.z, current->at.index);
    fault = text;
    leave(State::Faulty);
    abort();
}

// Runs an invocation to its next barrier or its end.
static void enter(Fiber& fiber) {
    current = &fiber;
    if (_setjmp(scheduler)) return;
    if (current->is_begun) _longjmp(current->place, 1);
    current->is_begun = true;
    getcontext(&current->context);
    current->context.uc_stack.ss_sp = current->stack + GUARD;
    current->context.uc_stack.ss_size = STACK;
    makecontext(&current->context, loop, 0);
    setcontext(&current->context);
}

static void have_fibers(size_t count) {
    while (fibers.size() < count) {
        void* memory = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) abort();
        mprotect(memory, GUARD, PROT_NONE);
        fibers.push_back(new Fiber);
        fibers.back()->stack = static_cast<char*>(memory);
    }
}

// Whether the invocations of a threadgroup that stopped may go on; a fault if they are not all at one barrier or all ended.
static bool wait_together(unsigned count) {
    unsigned ended = 0;
    Fiber const* first = nullptr;
    for (unsigned i = 0; i < count; ++i) {
        Fiber const& fiber = *fibers[i];
        if (fiber.state == State::Ended) {
            ++ended;
        } else if (!first) {
            first = &fiber;
        } else if (first->line != fiber.line) {
            fault = "barriers not reached by all: invocation " + std::to_string(first->at.index) + " waits in line " +
                    std::to_string(first->line) + ", " + std::to_string(fiber.at.index) + " in " +
                    std::to_string(fiber.line);
            return false;
        }
    }
    if (first && ended > 0) {
        fault = "barrier not reached by all: " + std::to_string(ended) + " of " + std::to_string(count) +
                " invocations ended, others wait in line " + std::to_string(first->line);
    }
    return first && ended == 0;
}

// Runs a simdgroup until none of it meets; a fault if some meet and others do not.
static void run_simdgroup(unsigned first, bool is_descending) {
    unsigned count = code->invocations - first < SIMDGROUP ? code->invocations - first : SIMDGROUP;
    for (;;) {
        unsigned meeting = 0;
        for (unsigned i = 0; i < count && fault.empty(); ++i) {
            enter(*fibers[first + (is_descending ? count - 1 - i : i)]);
        }
        for (unsigned i = 0; i < count; ++i) {
            Fiber const& fiber = *fibers[first + i];
            meeting += fiber.state == State::Meeting && fiber.line == fibers[first]->line;
        }
        if (!fault.empty()) return;
        if (meeting == count) continue;
        for (unsigned i = 0; i < count; ++i) {
            if (fibers[first + i]->state != State::Meeting) continue;
            fault = "line " + std::to_string(fibers[first + i]->line) + " not reached by all of a simdgroup";
        }
        return;
    }
}

static void run_group(Invocation const& at, bool is_descending) {
    unsigned count = code->invocations, simdgroups = (count + SIMDGROUP - 1) / SIMDGROUP;
    for (unsigned i = 0; i < count; ++i) {
        fibers[i]->at = at;
        fibers[i]->at.index = i;
        fibers[i]->state = State::Ready;
    }
    do {
        for (unsigned i = 0; i < simdgroups && fault.empty(); ++i) {
            run_simdgroup((is_descending ? simdgroups - 1 - i : i) * SIMDGROUP, is_descending);
        }
    } while (fault.empty() && wait_together(count));
    if (fault.empty()) return;
    // What did not end never goes on.
    for (Fiber* fiber : fibers) fiber->is_begun &= fiber->state == State::Ended;
}

struct Dispatch {
    unsigned kernel;
    uint3 groups;
    Words parameters;
    Words buffers;
};

struct Case {
    std::vector<Words> buffers;
    std::vector<Dispatch> dispatches;
};

// A buffer where vectors of four are aligned.
static void* aligned(size_t bytes) {
    void* memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!memory) abort();
    return memory;
}

// Runs a dispatch once; the contents of its buffers afterwards, or a fault.
static std::vector<Words> run_in_order(Case const& c, Dispatch const& d, bool is_descending) {
    code = kernels[d.kernel];
    have_fibers(code->invocations);
    std::vector<Binding> held, bindings;
    for (Words const& words : c.buffers) {
        held.push_back({aligned(words.size() * 4), words.size() * 4});
        memcpy(held.back().words, words.data(), words.size() * 4);
    }
    for (Word buffer : d.buffers) bindings.push_back(held[buffer]);
    Words parameters = d.parameters;
    Words poison(code->shared_bytes / 4, POISON);
    char* shared = static_cast<char*>(aligned(code->shared_bytes));
    memories = bindings;
    memories.push_back({shared, code->shared_bytes});
    Invocation at = {0, {}, d.groups, bindings.data(), parameters.data(), shared};
    unsigned count = d.groups.x * d.groups.y * d.groups.z;
    for (unsigned i = 0; i < count && fault.empty(); ++i) {
        unsigned id = is_descending ? count - 1 - i : i;
        at.group = uint3{id % d.groups.x, id / d.groups.x % d.groups.y, id / d.groups.x / d.groups.y};
        memcpy(shared, poison.data(), poison.size() * 4);
        run_group(at, is_descending);
    }
    free(shared);
    std::vector<Words> after;
    for (Binding const& buffer : held) {
        Word const* words = static_cast<Word const*>(buffer.words);
        after.emplace_back(words, words + buffer.bytes / 4);
        free(buffer.words);
    }
    return after;
}

// Runs a dispatch both ways, and says where the contents differ.
static void run(Case& c, Dispatch const& d) {
    std::vector<Words> ascending = run_in_order(c, d, false);
    if (!fault.empty()) return;
    std::vector<Words> descending = run_in_order(c, d, true);
    for (size_t b = 0; b < ascending.size() && fault.empty(); ++b) {
        for (size_t i = 0; i < ascending[b].size() && fault.empty(); ++i) {
            Word x = ascending[b][i], y = descending[b][i];
            char text[128];
            snprintf(text, sizeof text, "race: word %zu of buffer %zu is %#x in ascending order, %#x in descending", i, b, x, y);
            if (x != y) fault = text;
        }
    }
    c.buffers.swap(ascending);
}

struct Reader {
    FILE* file;

    Word word() {
        Word word = 0;
        if (fread(&word, 4, 1, file) != 1) abort();
        return word;
    }
    Words words(size_t count) {
        Words words(count);
        if (fread(words.data(), 4, count, file) != count) abort();
        return words;
    }
    Words list() { return words(word()); }
    Dispatch dispatch() {
        Dispatch d;
        d.kernel = word();
        for (int i = 0; i < 3; ++i) d.groups[i] = word();
        d.parameters = list();
        d.buffers = list();
        return d;
    }
    Case next() {
        Case c;
        c.buffers.resize(word());
        for (Words& buffer : c.buffers) buffer = list();
        c.dispatches.resize(word());
        for (Dispatch& d : c.dispatches) d = dispatch();
        return c;
    }
};

// A signal that ends the process: says where it was.
static void stop(int) {
    (void)!write(1, running, strlen(running));
    _exit(3);
}

static void watch() {
    static char stack[64 << 10];
    stack_t place = {};
    place.ss_sp = stack;
    place.ss_size = sizeof stack;
    sigaltstack(&place, nullptr);
    struct sigaction action = {};
    action.sa_handler = stop;
    action.sa_flags = SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) sigaction(signal, &action, nullptr);
    alarm(SECONDS);
}

static int all(FILE* in, FILE* out) {
    Reader reader = {in};
    Word count = reader.word();
    for (Word number = 0; number < count; ++number) {
        Case c = reader.next();
        for (size_t d = 0; d < c.dispatches.size() && fault.empty(); ++d) {
            snprintf(running, sizeof running, "%u\t%zu\tended by a signal\n", number, d);
            run(c, c.dispatches[d]);
            if (!fault.empty()) printf("%u\t%zu\t%s\n", number, d, fault.c_str());
        }
        fault.clear();
        fflush(stdout);
        for (Words const& buffer : c.buffers) fwrite(buffer.data(), 4, buffer.size(), out);
    }
    return fclose(out);
}

} // namespace stub

int main(int count, char** arguments) {
    FILE* in = count == 3 ? fopen(arguments[1], "rb") : nullptr;
    FILE* out = in ? fopen(arguments[2], "wb") : nullptr;
    if (!out) return 2;
    stub::watch();
    return stub::all(in, out);
}
