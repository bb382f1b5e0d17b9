// Several threads on one recurrence: where a batch has too few rows to divide, the units of each
// time step are.
//
// A step is a matter of microseconds, too short to hand to a pool. So the members stay together for
// a whole task: one of them leads, the others wait in a loop for pieces of the leader's work. The
// leader never needs them: it takes every piece that nobody has begun, so a member that comes late,
// or never because the pool is busy, costs speed and no deadlock.
#ifndef TF_CUDNN_RNN_OPS_CC_CPU_TEAM_H_
#define TF_CUDNN_RNN_OPS_CC_CPU_TEAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

namespace tf_cudnn_rnn::cpu {

class Team {
 public:
  explicit Team(int members) : members_(members), begun_(new Piece[members]) {}

  int members() const { return members_; }

  // Each member's thread calls this once, with its number. The first to come runs lead(); the
  // others help until it has returned.
  template <class F>
  void Work(int member, const F& lead) {
    if (has_leader_.exchange(true)) return Help(member);
    lead();
    finished_.store(true, std::memory_order_release);
  }

  // For the leader: runs piece(0) … piece(members − 1), each once, on the threads that are there,
  // and returns when all are done.
  template <class F>
  void Run(const F& piece) {
    if (members_ == 1) return piece(0);
    call_ = [](const void* f, int i) { (*static_cast<const F*>(f))(i); };
    argument_ = &piece;
    done_.store(0, std::memory_order_relaxed);
    const uint32_t round = round_.load(std::memory_order_relaxed) + 1;
    round_.store(round, std::memory_order_release);
    for (int i = 0; i < members_; ++i) Try(i, round);
    for (int spins = 0; done_.load(std::memory_order_acquire) < members_; ++spins) Pause(spins);
  }

 private:
  struct alignas(64) Piece {
    std::atomic<uint32_t> round{0};  // the last round in which somebody began this piece
  };

  // A piece that is still free belongs to a round that is not over, so that call_ and argument_ are
  // that round's.
  void Try(int i, uint32_t round) {
    uint32_t previous = round - 1;
    if (!begun_[i].round.compare_exchange_strong(previous, round, std::memory_order_acq_rel))
      return;
    call_(argument_, i);
    done_.fetch_add(1, std::memory_order_acq_rel);
  }

  void Help(int member) {
    uint32_t seen = 0;
    for (int spins = 0; !finished_.load(std::memory_order_acquire); ++spins) {
      const uint32_t round = round_.load(std::memory_order_acquire);
      if (round == seen) {
        Pause(spins);
        continue;
      }
      seen = round;
      spins = 0;
      // Its own piece first, whose weights are in this core's cache from the last step.
      for (int i = 0; i < members_; ++i) Try((member + i) % members_, round);
    }
  }

  static void Pause(int spins) {
    // Where threads outnumber cores the one that is waited for must get its turn.
    if (spins % 256 == 255) return std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const int members_;
  std::unique_ptr<Piece[]> begun_;
  void (*call_)(const void*, int) = nullptr;
  const void* argument_ = nullptr;
  alignas(64) std::atomic<uint32_t> round_{0};
  alignas(64) std::atomic<int> done_{0};
  std::atomic<bool> has_leader_{false};
  std::atomic<bool> finished_{false};
};

// Gives a member its part of the panels; Arguments has panel_begin and panel_end.
template <class Panels, class Arguments>
void DividePanels(const Team& team, int member, const Panels& panels, Arguments* arguments) {
  arguments->panel_begin = panels.count * member / team.members();
  arguments->panel_end = panels.count * (member + 1) / team.members();
}

}  // namespace tf_cudnn_rnn::cpu

#endif  // TF_CUDNN_RNN_OPS_CC_CPU_TEAM_H_
