// What a memtable needs of RocksDB beyond its public headers. These classes are private, but a
// memtable gets pointers to them. Their layouts here are those of RocksDB 7.8, from
// memory/allocator.h, db/lookup_key.h, db/memtable.h and db/dbformat.h; `register.cc` refuses a
// library of another version.
#pragma once

#include <cstring>
#include <typeinfo>

#include "rocksdb/comparator.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/version.h"

#if ROCKSDB_MAJOR != 7 || ROCKSDB_MINOR != 8
#error "internal.h is for RocksDB 7.8: compare the headers that it names with this version's"
#endif

namespace ROCKSDB_NAMESPACE {

// memory/allocator.h. `Arena` has no other base, so a pointer to one is a pointer to the other.
class Allocator {
 public:
  virtual ~Allocator() {}
  virtual char* Allocate(size_t bytes) = 0;
  virtual char* AllocateAligned(size_t bytes, size_t huge_page_size = 0,
                                Logger* logger = nullptr) = 0;
  virtual size_t BlockSize() const = 0;
};

// db/lookup_key.h.
class LookupKey {
 public:
  LookupKey(const Slice& user_key, uint64_t sequence, const Slice* timestamp = nullptr);
  ~LookupKey() {
    if (start_ != space_) delete[] start_;
  }
  LookupKey(const LookupKey&) = delete;
  void operator=(const LookupKey&) = delete;

  Slice memtable_key() const { return Slice(start_, static_cast<size_t>(end_ - start_)); }
  Slice internal_key() const { return Slice(kstart_, static_cast<size_t>(end_ - kstart_)); }

 private:
  const char* start_;
  const char* kstart_;
  const char* end_;
  char space_[200];
};

}  // namespace ROCKSDB_NAMESPACE

namespace silvics {

using namespace ROCKSDB_NAMESPACE;

// src/skiplist.rs has the same numbers.
enum class KeyOrder : uint32_t {
  kBytes,         // BytewiseComparator()
  kReverseBytes,  // ReverseBytewiseComparator()
  kOther,         // another comparator
};

inline bool IsByteOrder(KeyOrder order) { return order != KeyOrder::kOther; }

inline KeyOrder OrderOf(const Comparator* comparator) {
  if (comparator == BytewiseComparator()) return KeyOrder::kBytes;
  if (comparator == ReverseBytewiseComparator()) return KeyOrder::kReverseBytes;
  return KeyOrder::kOther;
}

// Whether it is the KeyComparator of a memtable of RocksDB. A program may drive a memtable with a
// KeyComparator of its own.
inline bool IsOfMemTable(const MemTableRep::KeyComparator& comparator) {
  return std::strstr(typeid(comparator).name(), "MemTable13KeyComparator") != nullptr;
}

// The order of a KeyComparator, as far as it is known.
//
// A `MemTable::KeyComparator` has its own table of functions, then that of the
// `InternalKeyComparator` in it, and then the address of the user's comparator. The address is
// compared, and not followed.
inline KeyOrder OrderOf(const MemTableRep::KeyComparator& comparator) {
  if (!IsOfMemTable(comparator)) return KeyOrder::kOther;
  const Comparator* user;
  std::memcpy(&user, reinterpret_cast<const char*>(&comparator) + 2 * sizeof(void*), sizeof user);
  return OrderOf(user);
}

// The direction in which a KeyComparator orders two keys.
inline KeyOrder DirectionOf(const MemTableRep::KeyComparator& comparator) {
  // The varint32 of 9, a user key of one byte, and the trailer of a put with sequence number 1.
  static constexpr char kLow[] = "\x09" "a" "\x01\x01\0\0\0\0\0\0";
  static constexpr char kHigh[] = "\x09" "b" "\x01\x01\0\0\0\0\0\0";
  return comparator(kLow, kHigh) < 0 ? KeyOrder::kBytes : KeyOrder::kReverseBytes;
}

}  // namespace silvics
