#include "cc/cpu/dropout.h"

namespace tf_cudnn_rnn::cpu {

PhiloxBlock Philox(PhiloxBlock counter, uint64_t key) {
  uint32_t* c = counter.word;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

template <class C>
void ApplyDropout(const DropoutMask& mask, int layer, int64_t first_element, const C* from, C* to,
                  int64_t n) {
  const C scale = C(1) / (C(1) - C(mask.dropout));
  // Dropped where the number lies below dropout · 2^32.
  const uint64_t threshold =
      static_cast<uint64_t>(static_cast<double>(mask.dropout) * 4294967296.0);
  int64_t i = 0;
  while (i < n) {
    const uint64_t element = static_cast<uint64_t>(first_element + i), block = element / 4;
    // 48 bits of block number, 64 of call number less the 16 that the block takes, 32 of layer.
    const PhiloxBlock random = Philox(
        {{static_cast<uint32_t>(block), static_cast<uint32_t>(layer),
          static_cast<uint32_t>(mask.call),
          static_cast<uint32_t>(mask.call >> 32) ^ (static_cast<uint32_t>(block >> 32) << 16)}},
        mask.seed);
    for (int j = element % 4; j < 4 && i < n; ++j, ++i) {
      to[i] = random.word[j] < threshold ? C(0) : from[i] * scale;
    }
  }
}
template void ApplyDropout(const DropoutMask&, int, int64_t, const float*, float*, int64_t);
template void ApplyDropout(const DropoutMask&, int, int64_t, const double*, double*, int64_t);

}  // namespace tf_cudnn_rnn::cpu
