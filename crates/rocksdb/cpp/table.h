// A memtable over C functions of Rust.
//
// `Calls` has them as static functions; `Calls::Table` is the type behind their pointers:
//   bool Insert(Table*, char* entry)
//   size_t Seek(const Table*, const char* internal_key, size_t size, bool descends, const char** run, size_t)
//   size_t Follow(const Table*, const char* entry, bool descends, const char** run, size_t room)
//   bool Contains(const Table*, const char* entry);  size_t Bytes(const Table*)
//   void Drop(Table*);  kRun, kBackRun: the most entries of a run, and of one towards smaller keys
#pragma once

#include <algorithm>
#include <atomic>
#include <new>
#include <random>

#include "internal.h"

namespace silvics {

// A key that is searched for. The memtable's form of it may be null, and both are null for the end
// from which a walk begins.
struct Target {
  const char* internal_key;
  size_t size;
  const char* memtable_key;
};

// An iterator gets entries in runs, one call for each: see src/table.rs. The first run of a direction
// is short, because most readers take an entry or two.
template <class Calls>
class RunIterator final : public MemTableRep::Iterator {
 public:
  explicit RunIterator(const typename Calls::Table* table) : table_(table) {}

  bool Valid() const override { return at_ < len_; }
  const char* key() const override { return run_[at_]; }
  void Next() override { Go(false); }
  void Prev() override { Go(true); }

  void Seek(const Slice& internal_key, const char* memtable_key) override {
    Begin(internal_key, memtable_key, false);
  }
  void SeekForPrev(const Slice& internal_key, const char* memtable_key) override {
    Begin(internal_key, memtable_key, true);
  }
  void SeekToFirst() override { Begin(Target{}, false); }
  void SeekToLast() override { Begin(Target{}, true); }

 private:
  static constexpr size_t kFirst = 2;
  static_assert(kFirst <= std::min(Calls::kRun, Calls::kBackRun), "a run fits into run_");

  // Callers that have a memtable key may leave the internal key empty.
  void Begin(const Slice& internal_key, const char* memtable_key, bool descends) {
    const Slice key = internal_key.empty() ? GetLengthPrefixedSlice(memtable_key) : internal_key;
    Begin(Target{key.data(), key.size(), memtable_key}, descends);
  }

  void Begin(const Target& target, bool descends) {
    descends_ = descends;
    room_ = kFirst;
    at_ = 0;
    len_ = Calls::Seek(table_, target, descends, run_, room_);
  }

  void Go(bool descends) {
    if (descends == descends_) {
      if (++at_ < len_) return;
      at_ = len_ - 1;
      room_ = std::min(room_ * 6, descends ? Calls::kBackRun : Calls::kRun);
    } else {
      if (at_ > 0) {
        --at_;
        return;
      }
      descends_ = descends;
      room_ = kFirst;
    }
    len_ = Calls::Follow(table_, run_[at_], descends_, run_, room_);
    at_ = 0;
  }

  const typename Calls::Table* const table_;
  size_t at_ = 0, len_ = 0, room_ = kFirst;
  bool descends_ = false;
  const char* run_[std::max(Calls::kRun, Calls::kBackRun)];
};

template <class Calls>
class TableRep : public MemTableRep {
 public:
  using Table = typename Calls::Table;

  TableRep(Table* table, const MemTableRep::KeyComparator& comparator, Allocator* allocator)
      : MemTableRep(allocator), table_(table), comparator_(comparator) {}
  ~TableRep() override { Calls::Drop(table_); }

  void Insert(KeyHandle entry) override { InsertKey(entry); }
  bool InsertKey(KeyHandle entry) override {
    return Calls::Insert(table_, static_cast<char*>(entry));
  }

  // Hints are left alone. RocksDB gives a memtable the hints that its own list of range deletions
  // has made, and gives that list those of the memtable (`db/memtable.cc`, `MemTable::Add`).
  void InsertWithHint(KeyHandle entry, void** hint) override { InsertKeyWithHint(entry, hint); }
  bool InsertKeyWithHint(KeyHandle entry, void**) override { return InsertKey(entry); }
  void InsertConcurrently(KeyHandle entry) override { InsertKeyConcurrently(entry); }
  bool InsertKeyConcurrently(KeyHandle entry) override { return InsertKey(entry); }
  void InsertWithHintConcurrently(KeyHandle entry, void** hint) override {
    InsertKeyWithHintConcurrently(entry, hint);
  }
  bool InsertKeyWithHintConcurrently(KeyHandle entry, void**) override {
    return InsertKeyConcurrently(entry);
  }

  bool Contains(const char* key) const override { return Calls::Contains(table_, key); }

  // A table may grow a little without inserts: a thread that frees what writers have replaced gets
  // a cache for it. RocksDB adds the bytes of a memtable to a sum when it becomes read-only, just
  // before it says so, and subtracts them when it drops the memtable (`db/memtable_list.cc`). So
  // they do not change from then on.
  size_t ApproximateMemoryUsage() override {
    const size_t before = bytes_.load(std::memory_order_relaxed);
    if (read_only_.load(std::memory_order_acquire)) return before;
    const size_t now = Calls::Bytes(table_);
    if (now != before) bytes_.store(now, std::memory_order_relaxed);
    return now;
  }
  void MarkReadOnly() override {
    if (bytes_.load(std::memory_order_relaxed) == 0) ApproximateMemoryUsage();
    read_only_.store(true, std::memory_order_release);
  }

  // Most lookups end at the first entry. No pin is held while the callback runs.
  void Get(const LookupKey& key, void* arg, bool (*more)(void* arg, const char* entry)) override {
    const Slice internal = key.internal_key();
    const Target target = {internal.data(), internal.size(), key.memtable_key().data()};
    const char* run[16];
    size_t len = Calls::Seek(table_, target, false, run, 1);
    while (len > 0) {
      for (size_t at = 0; at < len; ++at) {
        if (!more(arg, run[at])) return;
      }
      len = Calls::Follow(table_, run[len - 1], false, run, 16);
    }
  }

  // Exact. It takes some nanoseconds for each entry of the range.
  uint64_t ApproximateNumEntries(const Slice& start, const Slice& end) override;
  void UniqueRandomSample(const uint64_t num_entries, const uint64_t target_sample_size,
                          std::unordered_set<const char*>* entries) override;

  MemTableRep::Iterator* GetIterator(Arena* arena) override {
    using It = RunIterator<Calls>;
    if (arena == nullptr) return new It(table_);
    // RocksDB calls the destructor alone, which has nothing to free.
    return new (reinterpret_cast<Allocator*>(arena)->AllocateAligned(sizeof(It))) It(table_);
  }

 protected:
  Table* const table_;
  const MemTableRep::KeyComparator& comparator_;

 private:
  std::atomic<bool> read_only_{false};
  std::atomic<size_t> bytes_{0};  // as they were reported last
};

template <class Calls>
uint64_t TableRep<Calls>::ApproximateNumEntries(const Slice& start, const Slice& end) {
  // The entries from a key on, up to the same entry.
  const char* last = nullptr;
  const Target target = {end.data(), end.size(), nullptr};
  if (Calls::Seek(table_, target, false, &last, 1) == 0) last = nullptr;
  if (last != nullptr && comparator_(last, start) < 0) return 0;
  RunIterator<Calls> it(table_);
  uint64_t count = 0;
  for (it.Seek(start, nullptr); it.Valid() && it.key() != last; it.Next()) ++count;
  return count;
}

// Selection sampling: Knuth, volume 2, section 3.4.2, algorithm S.
template <class Calls>
void TableRep<Calls>::UniqueRandomSample(const uint64_t num_entries,
                                         const uint64_t target_sample_size,
                                         std::unordered_set<const char*>* entries) {
  entries->clear();
  std::minstd_rand random(static_cast<uint32_t>(num_entries) + 1);
  RunIterator<Calls> it(table_);
  uint64_t seen = 0;
  for (it.SeekToFirst(); it.Valid() && entries->size() < target_sample_size; it.Next(), ++seen) {
    const uint64_t left = num_entries > seen ? num_entries - seen : 1;
    const uint64_t wanted = target_sample_size - entries->size();
    if (wanted >= left || random() % left < wanted) entries->insert(it.key());
  }
}

}  // namespace silvics
