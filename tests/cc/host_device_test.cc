// What HostDevice asks of the operating system.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "cc/cpu/cpu_cudnn.h"
#include "cc/rnn/device.h"

namespace tf_cudnn_rnn {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Whether Linux was asked for huge pages at `address`: "hg" among the flags of its mapping.
bool AskedForHugePages(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    unsigned long begin, end;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const uintptr_t wanted = reinterpret_cast<uintptr_t>(address);
      inside = begin <= wanted && wanted < end;
    } else if (inside && line.rfind("VmFlags:", 0) == 0) {
      return (line + " ").find(" hg ") != std::string::npos;
    }
  }
  return false;
}

bool LinuxHasHugePages() {
  return std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good() &&
         std::ifstream("/proc/self/smaps").good();
}

class HostDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LinuxHasHugePages()) GTEST_SKIP() << "no transparent huge pages";
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    memory_ = static_cast<char*>(memory);
  }
  void TearDown() override {
    if (memory_) munmap(memory_, kBytes);
  }

  static constexpr size_t kBytes = 16 * kMiB;
  char* memory_ = nullptr;
  HostDevice device_{cpu::Api(), nullptr, DeviceTraits()};
};

// TensorFlow's tensors begin within a page. What else lies in it is not theirs.
TEST_F(HostDeviceTest, AsksForHugePagesInsideALargeBlockOnly) {
  device_.WillWrite(memory_ + 64, 8 * kMiB);
  EXPECT_FALSE(AskedForHugePages(memory_));
  EXPECT_TRUE(AskedForHugePages(memory_ + 4096));
  EXPECT_TRUE(AskedForHugePages(memory_ + 8 * kMiB - 1));
  EXPECT_FALSE(AskedForHugePages(memory_ + 8 * kMiB));
}

TEST_F(HostDeviceTest, LeavesSmallBlocksAlone) {
  device_.WillWrite(memory_, 4 * kMiB - 1);
  EXPECT_FALSE(AskedForHugePages(memory_));
  device_.WillWrite(nullptr, 0);
}

TEST_F(HostDeviceTest, OfItsOwnMemoryToo) {
  void* memory;
  ASSERT_TRUE(device_.Allocate(kBytes, &memory).ok());
  EXPECT_TRUE(AskedForHugePages(static_cast<char*>(memory) + kMiB));
}

}  // namespace
}  // namespace tf_cudnn_rnn
