// Databases over each memtable do the same as one over RocksDB's own.
//
//     db CASE
//
// The plug-in is preloaded. A case prints nothing if all is right; tests/db.rs runs them.

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../cpp/internal.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"

namespace {

using namespace ROCKSDB_NAMESPACE;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "db: %s\n", what.c_str());
  std::_Exit(1);
}

void Check(const Status& status, const char* what) {
  if (!status.ok()) Fail(std::string(what) + ": " + status.ToString());
}

void Expect(bool holds, const std::string& what) {
  if (!holds) Fail(what);
}

// A folder that is removed at the end.
struct Folder {
  std::string path = "/tmp/silvics-rocksdb.XXXXXX";
  Folder() { Expect(mkdtemp(path.data()) != nullptr, "mkdtemp"); }
  ~Folder() {
    if (std::system(("rm -rf " + path).c_str()) != 0) std::perror("rm");
  }
};

// By length, then by bytes: neither of the two orders of bytes.
class ByLength final : public Comparator {
 public:
  const char* Name() const override { return "silvics.test.ByLength"; }
  int Compare(const Slice& a, const Slice& b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

// With timestamps, in the order of bytes otherwise.
class Stamped final : public Comparator {
 public:
  Stamped() : Comparator(8) {}
  const char* Name() const override { return "silvics.test.Stamped"; }
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  using Comparator::CompareWithoutTimestamp;
  int CompareWithoutTimestamp(const Slice& a, bool, const Slice& b, bool) const override {
    return a.compare(b);
  }
  int CompareTimestamp(const Slice& a, const Slice& b) const override { return a.compare(b); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

class Append final : public AssociativeMergeOperator {
 public:
  const char* Name() const override { return "silvics.test.Append"; }
  bool Merge(const Slice&, const Slice* old, const Slice& value, std::string* merged,
             Logger*) const override {
    *merged = (old != nullptr ? old->ToString() : "") + "," + value.ToString();
    return true;
  }
};

const ByLength by_length;
const Stamped stamped;

Options Base(const std::string& memtable) {
  ConfigOptions config;
  config.ignore_unsupported_options = false;  // else an unknown memtable is ignored
  Options options, named;
  Check(GetOptionsFromString(config, options, "memtable_factory=" + memtable, &named), "options");
  named.create_if_missing = true;
  named.merge_operator = std::make_shared<Append>();
  return named;
}

std::unique_ptr<DB> Open(const Options& options, const std::string& path) {
  DB* db;
  Check(DB::Open(options, path, &db), "open");
  return std::unique_ptr<DB>(db);
}

// --- the same operations on each memtable ---

// All that a run of operations has seen.
class Transcript {
 public:
  void Note(const std::string& what) {
    text_ += what;
    text_ += '\n';
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class Run {
 public:
  Run(const Options& options, const std::string& path, uint32_t seed)
      : options_(options), path_(path), random_(seed), db_(Open(options, path)) {}

  std::string Go(int steps) {
    for (int step = 0; step < steps; ++step) Step();
    for (const auto& [snapshot, at] : snapshots_) {
      Iterate(snapshot);
      db_->ReleaseSnapshot(snapshot);
    }
    snapshots_.clear();
    Iterate(nullptr);
    return seen_.text();
  }

 private:
  uint32_t Draw(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  // Short keys with zeros, prefixes of each other, and now and then a long one.
  std::string Key() {
    if (Draw(50) == 0) return std::string(100 + Draw(300), static_cast<char>('a' + Draw(3)));
    std::string key = "p" + std::to_string(Draw(4)) + "/";
    for (uint32_t at = Draw(5); at > 0; --at) key += static_cast<char>(Draw(3) == 0 ? 0 : 254 + Draw(2));
    return key + (Draw(2) == 0 ? std::to_string(Draw(100)) : "");
  }

  std::string Value() { return std::to_string(++values_) + std::string(Draw(40), 'v'); }

  void Step() {
    switch (Draw(20)) {
      case 0: case 1: case 2: case 3: case 4: case 5:
        return Check(db_->Put(WriteOptions(), Key(), Value()), "put");
      case 6: return Check(db_->Delete(WriteOptions(), Key()), "delete");
      case 7: return Check(db_->Merge(WriteOptions(), Key(), Value()), "merge");
      case 8: return Batch();
      case 9: return DropRange();
      case 10: return Snapshot();
      case 11: case 12: return Get(nullptr);
      case 13: return snapshots_.empty() ? Get(nullptr) : Get(Pick());
      case 14: return MultiGet();
      case 15: case 16: return Wander(nullptr);
      case 17: return snapshots_.empty() ? Wander(nullptr) : Wander(Pick());
      case 18: return Draw(20) == 0 ? Iterate(nullptr) : Get(nullptr);
      default: return Rarely();
    }
  }

  // Several writes of one key in a batch have numbers of their own.
  void Batch() {
    WriteBatch batch;
    for (uint32_t at = Draw(6); at > 0; --at) {
      const std::string key = Key();
      Check(batch.Put(key, Value()), "put");
      if (Draw(2) == 0) Check(batch.Delete(key), "delete");
      if (Draw(2) == 0) Check(batch.Merge(key, Value()), "merge");
    }
    WriteOptions options;
    options.memtable_insert_hint_per_batch = Draw(2) == 0;
    Check(db_->Write(options, &batch), "write");
  }

  void DropRange() {
    // RocksDB gives a hint of a prefix to the memtable and to its own list of range deletions, and
    // that list fails an assertion then (`db/memtable.cc`, `MemTable::Add`).
    if (options_.memtable_insert_with_hint_prefix_extractor != nullptr) return;
    std::string low = Key(), high = Key();
    if (options_.comparator->Compare(low, high) > 0) std::swap(low, high);
    Check(db_->DeleteRange(WriteOptions(), db_->DefaultColumnFamily(), low, high), "delete range");
  }

  void Snapshot() {
    if (snapshots_.size() < 8) {
      snapshots_.emplace_back(db_->GetSnapshot(), values_);
    } else {
      const uint32_t at = Draw(static_cast<uint32_t>(snapshots_.size()));
      db_->ReleaseSnapshot(snapshots_[at].first);
      snapshots_.erase(snapshots_.begin() + at);
    }
  }

  const rocksdb::Snapshot* Pick() {
    return snapshots_[Draw(static_cast<uint32_t>(snapshots_.size()))].first;
  }

  static ReadOptions At(const rocksdb::Snapshot* snapshot) {
    ReadOptions options;
    options.snapshot = snapshot;
    options.total_order_seek = true;
    return options;
  }

  void Get(const rocksdb::Snapshot* snapshot) {
    const std::string key = Key();
    std::string value;
    const Status status = db_->Get(At(snapshot), key, &value);
    seen_.Note("get " + key + " " + status.ToString() + " " + value);
  }

  void MultiGet() {
    std::vector<std::string> keys, values;
    for (uint32_t at = 1 + Draw(20); at > 0; --at) keys.push_back(Key());
    const std::vector<Slice> slices(keys.begin(), keys.end());
    const auto statuses = db_->MultiGet(At(nullptr), slices, &values);
    std::vector<PinnableSlice> pinned(keys.size());
    std::vector<Status> again(keys.size());
    db_->MultiGet(At(nullptr), db_->DefaultColumnFamily(), keys.size(), slices.data(), pinned.data(),
                  again.data());
    for (size_t at = 0; at < keys.size(); ++at) {
      seen_.Note("multi " + keys[at] + " " + statuses[at].ToString() + " " + values[at]);
      Expect(statuses[at] == again[at], "a batched MultiGet differs");
      if (again[at].ok()) Expect(pinned[at] == values[at], "a batched MultiGet differs");
    }
  }

  // An iterator that turns around.
  void Wander(const rocksdb::Snapshot* snapshot) {
    ReadOptions options = At(snapshot);
    if (options_.prefix_extractor != nullptr && Draw(3) == 0) {
      options.total_order_seek = false;
      options.prefix_same_as_start = true;
    }
    const bool prefix = options.prefix_same_as_start;
    const std::unique_ptr<Iterator> it(db_->NewIterator(options));
    const std::string key = Key();
    const uint32_t way = prefix ? 0 : Draw(4);
    if (way == 0) it->Seek(key);
    if (way == 1) it->SeekForPrev(key);
    if (way == 2) it->SeekToFirst();
    if (way == 3) it->SeekToLast();
    for (uint32_t left = 1 + Draw(80); it->Valid() && left > 0; --left) {
      seen_.Note("at " + it->key().ToString() + " " + it->value().ToString());
      const bool back = !prefix && (way % 2 == 1) != (Draw(5) == 0);
      if (back) it->Prev(); else it->Next();
    }
    Check(it->status(), "iterator");
  }

  // Everything, in both directions.
  void Iterate(const rocksdb::Snapshot* snapshot) {
    const std::unique_ptr<Iterator> it(db_->NewIterator(At(snapshot)));
    std::vector<std::string> all, back;
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      all.push_back(it->key().ToString() + " " + it->value().ToString());
    }
    for (it->SeekToLast(); it->Valid(); it->Prev()) {
      back.push_back(it->key().ToString() + " " + it->value().ToString());
    }
    Check(it->status(), "iterator");
    Expect(all == std::vector<std::string>(back.rbegin(), back.rend()), "the directions differ");
    for (const auto& entry : all) seen_.Note("entry " + entry);
  }

  void Rarely() {
    if (Draw(40) == 0) {
      Check(db_->Flush(FlushOptions()), "flush");
    } else if (Draw(80) == 0) {
      for (const auto& [snapshot, at] : snapshots_) db_->ReleaseSnapshot(snapshot);
      snapshots_.clear();
      db_.reset();
      db_ = Open(options_, path_);
    }
  }

  const Options options_;
  const std::string path_;
  std::mt19937 random_;
  uint64_t values_ = 0;
  Transcript seen_;
  std::vector<std::pair<const rocksdb::Snapshot*, uint64_t>> snapshots_;
  std::unique_ptr<DB> db_;
};

void Same(const std::string& memtable, const std::function<void(Options&)>& adjust) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    std::string expected;
    for (const std::string& name : {std::string("skip_list"), memtable}) {
      const Folder folder;
      Options options = Base(name);
      adjust(options);
      const std::string seen = Run(options, folder.path, seed).Go(6000);
      if (name == "skip_list") expected = seen;
      Expect(seen == expected, memtable + " differs from skip_list");
    }
    Expect(expected.size() > 100'000, "a run has seen little");
  }
}

void SameInAllOrders(const std::string& memtable) {
  Same(memtable, [](Options&) {});
  Same(memtable, [](Options& options) { options.comparator = ReverseBytewiseComparator(); });
  if (memtable != "silvics_art") {
    Same(memtable, [](Options& options) { options.comparator = &by_length; });
  }
}

// The Bloom filter of prefixes and keys is RocksDB's; hints are given for prefixes.
void SameWithPrefixes(const std::string& memtable) {
  Same(memtable, [](Options& options) {
    options.prefix_extractor.reset(NewFixedPrefixTransform(2));
    options.memtable_prefix_bloom_size_ratio = 0.1;
    options.memtable_whole_key_filtering = true;
  });
  Same(memtable, [](Options& options) {
    options.allow_concurrent_memtable_write = false;
    options.memtable_insert_with_hint_prefix_extractor.reset(NewFixedPrefixTransform(2));
  });
}

// A small buffer is flushed again and again.
void SameWithFlushes(const std::string& memtable) {
  Same(memtable, [](Options& options) { options.write_buffer_size = 64 << 10; });
}

// --- what is refused ---

Status OpenWith(const std::string& memtable, const Comparator* comparator, std::string path) {
  Options options = Base(memtable);
  options.merge_operator.reset();
  options.comparator = comparator;
  DB* db = nullptr;
  const Status status = DB::Open(options, path, &db);
  delete db;
  return status;
}

void Comparators(const std::string&) {
  const Folder folder;
  for (const Comparator* comparator : {static_cast<const Comparator*>(&by_length),
                                       static_cast<const Comparator*>(&stamped)}) {
    const Status status = OpenWith("silvics_art", comparator, folder.path + "/refused");
    Expect(status.IsInvalidArgument(), "silvics_art opens: " + status.ToString());
    for (const char* part : {"silvics_art", "BytewiseComparator", comparator->Name()}) {
      Expect(status.ToString().find(part) != std::string::npos, status.ToString());
    }
    Check(OpenWith("silvics_skiplist", comparator, folder.path + "/" + comparator->Name()),
          "silvics_skiplist");
  }
}

// RocksDB does not validate the options of a column family that is created later.
void ColumnFamilies(const std::string& memtable) {
  const Folder folder;
  const auto db = Open(Base(memtable), folder.path);
  ColumnFamilyOptions later(Base(memtable));
  later.comparator = &by_length;
  ColumnFamilyHandle* family;
  Check(db->CreateColumnFamily(later, "later", &family), "column family");
  for (const char* key : {"ccc", "a", "bb", "b", "aaaa"}) {
    Check(db->Put(WriteOptions(), family, key, key), "put");
  }
  std::string keys;
  {
    const std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions(), family));
    for (it->SeekToFirst(); it->Valid(); it->Next()) keys += it->key().ToString() + " ";
  }
  Expect(keys == "a b bb ccc aaaa ", "the order is " + keys);
  Check(db->DestroyColumnFamilyHandle(family), "column family");
}

void Unknown(const std::string&) {
  ConfigOptions config;
  config.ignore_unsupported_options = false;
  std::shared_ptr<MemTableRepFactory> factory;
  const Status status = MemTableRepFactory::CreateFromString(config, "silvics_unknown", &factory);
  Expect(status.ToString().find("Could not load MemTableRepFactory: silvics_unknown") !=
             std::string::npos,
         status.ToString());
}

// --- threads ---

std::string Numbered(int thread, int n) {
  char key[32];
  std::snprintf(key, sizeof key, "%08u", static_cast<unsigned>(n * 7919 % 1'000'003 * 8 + thread));
  return key;
}

// Every key that a pass begins with is seen, in order, by passes beside writers.
void Passes(DB* db, const std::atomic<int>* done, int writers, bool back) {
  std::vector<int> before(writers);
  int passes = 0;
  for (bool last = false; !last; ++passes) {
    last = true;
    std::map<std::string, int> expected;
    for (int thread = 0; thread < writers; ++thread) {
      before[thread] = done[thread].load();
      last = last && before[thread] < 0;
      const int whole = before[thread] < 0 ? -before[thread] : before[thread];
      for (int n = 0; n < whole; n += 97) expected[Numbered(thread, n)] = n;
    }
    const std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
    std::string previous;
    if (back) it->SeekToLast(); else it->SeekToFirst();
    while (it->Valid()) {
      const std::string key = it->key().ToString();
      Expect(previous.empty() || (back ? key < previous : key > previous), "keys are not in order");
      Expect(it->value() == key, "a value is not that of its key");
      expected.erase(key);
      previous = key;
      if (back) it->Prev(); else it->Next();
    }
    Expect(expected.empty(), "a pass has missed a key");
  }
  Expect(passes > 1, "there was one pass");
}

void Write(DB* db, std::atomic<int>* done, int thread, int count) {
  for (int n = 0; n < count;) {
    WriteBatch batch;
    for (const int until = std::min(count, n + 1 + n % 5); n < until; ++n) {
      const std::string key = Numbered(thread, n);
      Check(batch.Put(key, key), "put");
    }
    WriteOptions options;
    options.disableWAL = true;
    options.memtable_insert_hint_per_batch = thread % 2 == 0;
    Check(db->Write(options, &batch), "write");
    done[thread].store(n);
    if (n % 50 < 5) {  // a thread sees its own writes
      const std::string key = Numbered(thread, n - 1);
      std::string value;
      Check(db->Get(ReadOptions(), key, &value), "get");
      Expect(value == key, "a thread does not see its write");
    }
  }
  done[thread].store(-count);
}

void CountAll(DB* db) {
  const std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
  int entries = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++entries;
  Expect(entries == 60'000, "entries are missing");
}

void Threads(const std::string& memtable) {
  for (const bool unordered : {false, true}) {
    const Folder folder;
    Options options = Base(memtable);
    options.unordered_write = unordered;
    const auto db = Open(options, folder.path);
    constexpr int kWriters = 4, kCount = 15'000;
    std::atomic<int> done[kWriters] = {};
    std::vector<std::thread> all;
    for (int thread = 0; thread < kWriters; ++thread) {
      all.emplace_back(Write, db.get(), done, thread, kCount);
    }
    all.emplace_back(Passes, db.get(), done, kWriters, false);
    all.emplace_back(Passes, db.get(), done, kWriters, true);
    for (auto& thread : all) thread.join();
    uint64_t entries;
    Expect(db->GetIntProperty("rocksdb.num-entries-active-mem-table", &entries) &&
               entries == uint64_t{kWriters} * kCount,
           "entries are missing");
    // Threads come and go between writes and the end of the memtable: its bytes stay the same.
    for (int thread = 0; thread < 8; ++thread) {
      std::thread([&] { CountAll(db.get()); }).join();
    }
    Check(db->Flush(FlushOptions()), "flush");
    CountAll(db.get());
  }
}

// --- the interface, without a database ---

class OwnComparator final : public MemTableRep::KeyComparator {
 public:
  explicit OwnComparator(bool reverse) : reverse_(reverse) {}
  int operator()(const char* a, const char* b) const override {
    return (*this)(a, GetLengthPrefixedSlice(b));
  }
  int operator()(const char* a, const Slice& b) const override {
    const Slice entry = GetLengthPrefixedSlice(a);
    const int order = Slice(entry.data(), entry.size() - 8).compare(Slice(b.data(), b.size() - 8));
    if (order != 0) return reverse_ ? -order : order;
    uint64_t x, y;
    std::memcpy(&x, entry.data() + entry.size() - 8, 8);
    std::memcpy(&y, b.data() + b.size() - 8, 8);
    return x > y ? -1 : x < y;
  }

 private:
  const bool reverse_;
};

class Heap final : public Allocator {
 public:
  char* Allocate(size_t bytes) override { return AllocateAligned(bytes, 0, nullptr); }
  char* AllocateAligned(size_t bytes, size_t, Logger*) override {
    all_.emplace_back(new char[bytes]);
    return all_.back().get();
  }
  size_t BlockSize() const override { return 4096; }

 private:
  std::vector<std::unique_ptr<char[]>> all_;
};

std::string Internal(const std::string& user, uint64_t sequence) {
  const uint64_t trailer = sequence << 8 | 1;
  return user + std::string(reinterpret_cast<const char*>(&trailer), 8);
}

// A KeyComparator that is not RocksDB's, each verb, and duplicates.
void Interface(const std::string& memtable) {
  for (const bool reverse : {false, true}) {
    const OwnComparator comparator(reverse);
    Heap heap;
    std::shared_ptr<MemTableRepFactory> factory;
    Check(MemTableRepFactory::CreateFromString(ConfigOptions(), memtable, &factory), memtable.c_str());
    Expect(factory->IsInsertConcurrentlySupported() && factory->CanHandleDuplicatedKey() &&
               memtable == factory->Name(), "the factory");
    const std::unique_ptr<MemTableRep> rep(
        factory->CreateMemTableRep(comparator, &heap, nullptr, nullptr));
    void *hint = nullptr, *heap_hint = nullptr;
    auto add = [&](const std::string& user, uint64_t sequence, int way) {
      char* to;
      const std::string key = Internal(user, sequence);
      const KeyHandle handle = rep->Allocate(key.size() + 2, &to);
      to[0] = static_cast<char>(key.size());
      std::memcpy(to + 1, key.data(), key.size());
      to[key.size() + 1] = 0;
      if (way == 0) return rep->InsertKey(handle);
      if (way == 1) return rep->InsertKeyWithHint(handle, &hint);
      if (way == 2) return rep->InsertKeyConcurrently(handle);
      return rep->InsertKeyWithHintConcurrently(handle, &heap_hint);
    };
    std::map<std::pair<std::string, uint64_t>, bool> model;
    std::mt19937 random(7);
    for (int n = 0; n < 4000; ++n) {
      const std::string user = std::to_string(random() % 500);
      const uint64_t sequence = random() % 6;
      Expect(add(user, sequence, n % 4) == model.insert({{user, ~sequence}, true}).second,
             "a duplicate is not reported");
    }
    std::vector<std::string> sorted;
    for (const auto& [key, unused] : model) sorted.push_back(Internal(key.first, ~key.second));
    std::sort(sorted.begin(), sorted.end(), [&](const std::string& a, const std::string& b) {
      const std::string entry = static_cast<char>(a.size()) + a;
      return comparator(entry.c_str(), Slice(b)) < 0;
    });
    const std::unique_ptr<MemTableRep::Iterator> it(rep->GetIterator());
    auto here = [&] { return GetLengthPrefixedSlice(it->key()).ToString(); };
    it->SeekToFirst();
    for (const auto& key : sorted) {
      Expect(it->Valid() && here() == key, "a pass differs");
      it->Next();
    }
    Expect(!it->Valid(), "a pass is too long");
    it->SeekToLast();
    for (size_t at = sorted.size(); at > 0; --at, it->Prev()) {
      Expect(it->Valid() && here() == sorted[at - 1], "a pass back differs");
    }
    for (size_t at = 0; at < sorted.size(); at += 13) {
      it->Seek(sorted[at], nullptr);
      Expect(it->Valid() && here() == sorted[at], "a seek differs");
      it->SeekForPrev(sorted[at], nullptr);
      Expect(it->Valid() && here() == sorted[at], "a seek back differs");
      const std::string entry = static_cast<char>(sorted[at].size()) + sorted[at];
      Expect(rep->Contains(entry.c_str()), "a key is missing");
      Expect(rep->ApproximateNumEntries(sorted[0], sorted[at]) == at, "a range is counted wrong");
    }
    const std::string absent = Internal("500", 1), entry = static_cast<char>(absent.size()) + absent;
    Expect(!rep->Contains(entry.c_str()), "an absent key is present");
    std::unordered_set<const char*> sample;
    rep->UniqueRandomSample(sorted.size(), 100, &sample);
    Expect(sample.size() == 100, "a sample has another size");
    rep->MarkReadOnly();
    delete[] static_cast<char*>(heap_hint);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(const std::string&)> cases = {
      {"orders", SameInAllOrders}, {"prefixes", SameWithPrefixes}, {"flushes", SameWithFlushes},
      {"comparators", Comparators}, {"families", ColumnFamilies}, {"unknown", Unknown},
      {"threads", Threads}, {"interface", Interface}};
  const auto found = argc > 1 ? cases.find(argv[1]) : cases.end();
  Expect(found != cases.end(), "usage: db CASE [MEMTABLE]");
  found->second(argc > 2 ? argv[2] : "");
  return 0;
}
