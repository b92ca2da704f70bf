// Arrays that check their indices, and what a kernel is called with.
//
// Input: the buffers and the threadgroup memory that the runner lays out. Output: elements, or a fault that ends the kernel.
// Invariant: no access leaves its array, so a wrong index cannot change anything before it is reported.
#pragma once
#include <stddef.h>

namespace stub {

// An invocation waits here until all of its threadgroup wait at the same line.
void barrier(int line);

// An invocation waits here until all of its simdgroup wait at the same line.
void meet(int line);

// The number of the invocation in its simdgroup.
unsigned lane();

// Ends the dispatch with a report if there are no buffer and no threadgroup memory that hold all of these bytes.
void check(void const* first, size_t bytes);

// Ends the dispatch with a report.
[[noreturn]] void outside(size_t index, size_t count);

// An array of known length, as `T[N]`.
template <class T, size_t N> struct Array {
    T elements[N];
    T& operator[](unsigned index) {
        if (__builtin_expect(index >= N, 0)) outside(index, N);
        return elements[index];
    }
    T const& operator[](unsigned index) const { return const_cast<Array&>(*this)[index]; }
};

// A buffer: an array of as many elements as the binding has room for.
template <class T> struct Runtime {
    T* elements;
    size_t count;
    T& operator[](unsigned index) {
        if (__builtin_expect(index >= count, 0)) outside(index, count);
        return elements[index];
    }
    T const& operator[](unsigned index) const { return const_cast<Runtime&>(*this)[index]; }
    static Runtime of(void* words, size_t bytes) { return {static_cast<T*>(words), bytes / sizeof(T)}; }
};

struct Binding {
    void* words;
    size_t bytes;
};

typedef unsigned uint3 __attribute__((ext_vector_type(3)));

// Invocations of a simdgroup.
constexpr unsigned SIMDGROUP = 32;

// One invocation, with what its dispatch is given.
struct Invocation {
    unsigned index;
    uint3 group;
    uint3 groups;
    Binding const* bindings;
    void* parameters;
    char* shared;

    template <class T> T array(unsigned slot) const { return T::of(bindings[slot].words, bindings[slot].bytes); }
    template <class T> T& memory(size_t at) const { return *reinterpret_cast<T*>(shared + at); }
    template <class T> T const& block() const { return *static_cast<T const*>(parameters); }
};

// A kernel of the table that the test generates.
struct Kernel {
    unsigned invocations;
    size_t shared_bytes;
    void (*call)(Invocation const&);
};
extern Kernel const* const kernels[];

} // namespace stub
