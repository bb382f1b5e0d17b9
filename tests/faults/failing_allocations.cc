// A library to preload: makes one allocation fail, the n-th after allocations_arm() of those that
// the call stack says to be beneath a function of the op library, and keeps count of what the
// library has not freed. test_allocation_failures.py builds and drives it.
#include <execinfo.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}

namespace {

std::atomic<bool> armed{false};
std::atomic<bool> fired{false};
std::atomic<int> left{0};
uintptr_t library_begin, library_end;    // the op library
uintptr_t standard_begin, standard_end;  // libstdc++
thread_local bool looking = false;

// Allocations that are the library's own, or tensors that TensorFlow made for it, and not freed.
constexpr size_t kSlots = 1 << 16;
std::atomic<void*> slots[kSlots];
std::atomic<long> live{0};

bool Within(const void* address, uintptr_t begin, uintptr_t end) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  return begin <= value && value < end;
}

// `beneath`: a function of the library waits for the allocation. `own`: it made it itself or
// through the C++ standard library.
__attribute__((noinline)) void Look(bool* own, bool* beneath) {
  void* frames[48];
  const int count = backtrace(frames, 48);
  bool direct = true;
  // The first are this function's, Allocate's and the allocator's.
  for (int i = 3; i < count; ++i) {
    if (Within(frames[i], library_begin, library_end)) {
      *beneath = true;
      *own = direct;
      return;
    }
    direct = direct && Within(frames[i], standard_begin, standard_end);
  }
}

void Remember(void* memory) {
  for (size_t i = reinterpret_cast<uintptr_t>(memory) / 16, n = 0; n < kSlots; ++i, ++n) {
    void* empty = nullptr;
    if (slots[i % kSlots].compare_exchange_strong(empty, memory)) {
      ++live;
      return;
    }
  }
}

// Slots that become free break the chains of others, so all are searched; there are few.
void Forget(void* memory) {
  if (memory == nullptr || live.load(std::memory_order_relaxed) == 0) return;
  for (size_t i = reinterpret_cast<uintptr_t>(memory) / 16, n = 0; n < kSlots; ++i, ++n) {
    void* expected = memory;
    if (slots[i % kSlots].load(std::memory_order_relaxed) != memory) {
      if (n > 64) return;  // longer chains do not occur
      continue;
    }
    if (slots[i % kSlots].compare_exchange_strong(expected, nullptr)) {
      --live;
      return;
    }
  }
}

template <class F>
__attribute__((noinline)) void* Allocate(bool aligned, F allocate) {
  if (!armed.load(std::memory_order_relaxed) || looking) return allocate();
  looking = true;
  bool own = false, beneath = false;
  Look(&own, &beneath);
  looking = false;
  if (beneath && left.fetch_sub(1) == 1) {
    fired = true;
    errno = ENOMEM;
    return nullptr;
  }
  void* const memory = allocate();
  if (memory != nullptr && (own || (aligned && beneath))) Remember(memory);
  return memory;
}

}  // namespace

extern "C" {

// Addresses are those of /proc/self/maps. nth counts from 1.
void allocations_arm(int nth, uintptr_t library, uintptr_t library_limit, uintptr_t standard,
                     uintptr_t standard_limit) {
  void* frames[4];
  backtrace(frames, 4);  // loads what it needs now
  library_begin = library;
  library_end = library_limit;
  standard_begin = standard;
  standard_end = standard_limit;
  left = nth;
  fired = false;
  armed = true;
}

// Whether the allocation has failed.
int allocations_disarm() {
  armed = false;
  return fired;
}

// How many of the allocations made while armed, the library's own and its tensors, are not freed.
long allocations_live() { return live; }

void* malloc(size_t size) {
  return Allocate(false, [=] { return __libc_malloc(size); });
}

void* calloc(size_t count, size_t size) {
  return Allocate(false, [=] { return __libc_calloc(count, size); });
}

void* realloc(void* memory, size_t size) {
  Forget(memory);
  return Allocate(false, [=] { return __libc_realloc(memory, size); });
}

void* memalign(size_t alignment, size_t size) {
  return Allocate(true, [=] { return __libc_memalign(alignment, size); });
}

void* aligned_alloc(size_t alignment, size_t size) {
  return Allocate(true, [=] { return __libc_memalign(alignment, size); });
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = Allocate(true, [=] { return __libc_memalign(alignment, size); });
  return *memory == nullptr ? ENOMEM : 0;
}

void free(void* memory) {
  Forget(memory);
  __libc_free(memory);
}

}  // extern "C"
