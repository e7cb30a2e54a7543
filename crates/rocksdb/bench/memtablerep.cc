// The speed of memtables through RocksDB's interface, side by side in one process.
//
//     memtablerep [ENTRIES [ROUNDS [NAME…]]]
//
// A database has a factory that hands out what RocksDB passes to it: the real comparator, and the
// real arena of a memtable. So the rest of RocksDB is left out, and nothing else differs. Each round
// takes the memtables in one order and then in the opposite one (A B C C B A). Entries have random
// keys of 16 bytes and empty values. A read is one of a present key in random order, and counts.
// Speeds are by processor time. The table at the end has medians, and ratios to the first name.

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../cpp/internal.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"

namespace {

using namespace ROCKSDB_NAMESPACE;

// Makes the memtables of another factory, and keeps the newest one.
class Watching final : public MemTableRepFactory {
 public:
  explicit Watching(std::shared_ptr<MemTableRepFactory> inner) : inner_(std::move(inner)) {}
  const char* Name() const override { return inner_->Name(); }
  bool IsInsertConcurrentlySupported() const override { return true; }
  bool CanHandleDuplicatedKey() const override { return true; }
  using MemTableRepFactory::CreateMemTableRep;
  MemTableRep* CreateMemTableRep(const MemTableRep::KeyComparator& comparator, Allocator* allocator,
                                 const SliceTransform* transform, Logger* logger) override {
    return newest = inner_->CreateMemTableRep(comparator, allocator, transform, logger);
  }
  MemTableRep* newest = nullptr;

 private:
  const std::shared_ptr<MemTableRepFactory> inner_;
};

void Check(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "memtablerep: %s\n", status.ToString().c_str());
    std::exit(1);
  }
}

uint64_t Mix(uint64_t n) {  // SplitMix64
  n += 0x9E3779B97F4A7C15;
  n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9;
  n = (n ^ n >> 27) * 0x94D049BB133111EB;
  return n ^ n >> 31;
}

constexpr size_t kKey = 16;
constexpr uint64_t kNewest = (uint64_t{1} << 56) - 1;

// Key number `n` of a run.
void KeyOf(uint64_t run, uint64_t n, char* key) {
  const uint64_t words[2] = {Mix(run << 40 | n), Mix(~n ^ run)};
  std::memcpy(key, words, kKey);
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Calls `work(thread, first, last)` for shares of `n`, and returns million calls a second of the time
// that the processor worked for the slowest thread: other processes change it less than the clock.
template <class Work>
double Timed(size_t threads, uint64_t n, Work work) {
  std::vector<double> seconds(threads);
  std::vector<std::thread> all;
  for (size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const double began = CpuSeconds();
      work(t, n * t / threads, n * (t + 1) / threads);
      seconds[t] = CpuSeconds() - began;
    });
  }
  for (auto& thread : all) thread.join();
  return static_cast<double>(n) / *std::max_element(seconds.begin(), seconds.end()) / 1e6;
}

void Write(MemTableRep* rep, uint64_t run, uint64_t first, uint64_t last, bool concurrent) {
  for (uint64_t n = first; n < last; ++n) {
    char* to;
    const KeyHandle handle = rep->Allocate(1 + kKey + 8 + 1, &to);
    to[0] = kKey + 8;
    KeyOf(run, n, to + 1);
    const uint64_t trailer = (n + 1) << 8 | 1;
    std::memcpy(to + 1 + kKey, &trailer, 8);
    to[1 + kKey + 8] = 0;
    if (!(concurrent ? rep->InsertKeyConcurrently(handle) : rep->InsertKey(handle))) {
      std::fprintf(stderr, "memtablerep: an insert found a duplicate\n");
      std::exit(1);
    }
  }
}

struct Seen {
  const char* key;
  bool hit;
};

// The key of read `i`, in an order of its own.
uint64_t Pick(uint64_t i, uint64_t entries) { return Mix(i * 3 + 1) % entries; }

uint64_t Read(MemTableRep* rep, uint64_t run, uint64_t first, uint64_t last, uint64_t entries,
              bool by_get) {
  uint64_t hits = 0;
  char key[kKey];
  const std::unique_ptr<MemTableRep::Iterator> it(rep->GetIterator());
  for (uint64_t i = first; i < last; ++i) {
    KeyOf(run, Pick(i, entries), key);
    const LookupKey lookup(Slice(key, kKey), kNewest);
    if (by_get) {
      Seen seen = {key, false};
      rep->Get(lookup, &seen, [](void* arg, const char* entry) {
        auto* seen = static_cast<Seen*>(arg);
        seen->hit = std::memcmp(entry + 1, seen->key, kKey) == 0;
        return false;
      });
      hits += seen.hit;
    } else {
      it->Seek(lookup.internal_key(), lookup.memtable_key().data());
      hits += it->Valid() && std::memcmp(it->key() + 1, key, kKey) == 0;
    }
  }
  return hits;
}

// All entries in order, and back.
uint64_t Scan(MemTableRep* rep, bool back) {
  const std::unique_ptr<MemTableRep::Iterator> it(rep->GetIterator());
  uint64_t sum = 0;
  if (back) {
    for (it->SeekToLast(); it->Valid(); it->Prev()) sum += it->key()[0] == kKey + 8;
  } else {
    for (it->SeekToFirst(); it->Valid(); it->Next()) sum += it->key()[0] == kKey + 8;
  }
  return sum;
}

using Figures = std::map<std::string, std::map<std::string, std::vector<double>>>;

void Expect(uint64_t found, uint64_t expected, const char* what) {
  if (found == expected) return;
  std::fprintf(stderr, "memtablerep: %s found %llu of %llu entries\n", what,
               static_cast<unsigned long long>(found), static_cast<unsigned long long>(expected));
  std::exit(1);
}

void Measure(const std::string& name, const std::string& folder, uint64_t entries, uint64_t run,
             size_t writers, Figures& figures) {
  std::shared_ptr<MemTableRepFactory> inner;
  Check(MemTableRepFactory::CreateFromString(ConfigOptions(), name, &inner));
  const auto watching = std::make_shared<Watching>(inner);
  Options options;
  options.create_if_missing = true;
  options.memtable_factory = watching;
  options.write_buffer_size = size_t{1} << 40;
  options.arena_block_size = 1 << 20;
  options.avoid_flush_during_shutdown = true;
  DB* opened;
  Check(DB::Open(options, folder, &opened));
  const std::unique_ptr<DB> db(opened);
  MemTableRep* rep = watching->newest;
  auto note = [&](const std::string& what, double figure) {
    figures[what][name].push_back(figure);
    std::fprintf(stderr, "%s: %s: %.3f\n", name.c_str(), what.c_str(), figure);  // progress
  };
  note("write, Mop/s, threads: " + std::to_string(writers),
       Timed(writers, entries, [&](size_t, uint64_t first, uint64_t last) {
         Write(rep, run, first, last, writers > 1);
       }));
  for (const bool by_get : {true, false}) {
    for (const size_t threads : {1, 2}) {
      std::vector<uint64_t> hits(threads);
      const uint64_t reads = std::min<uint64_t>(entries, 500'000) * threads;
      note((by_get ? "get, Mop/s, threads: " : "seek, Mop/s, threads: ") + std::to_string(threads),
           Timed(threads, reads, [&](size_t thread, uint64_t first, uint64_t last) {
             hits[thread] = Read(rep, run, first, last, entries, by_get);
           }));
      uint64_t all = 0;
      for (const uint64_t some : hits) all += some;
      Expect(all, reads, by_get ? "get" : "seek");
    }
  }
  for (const bool back : {false, true}) {
    if (back && entries > 1'000'000 && name != "silvics_art") continue;  // a search for each entry
    uint64_t seen = 0;
    note(back ? "scan back, Mentry/s" : "scan, Mentry/s",
         Timed(1, entries, [&](size_t, uint64_t, uint64_t) { seen = Scan(rep, back); }));
    Expect(seen, entries, "scan");
  }
  // A write through the database makes it count the bytes of the memtable anew.
  WriteOptions unlogged;
  unlogged.disableWAL = true;
  Check(db->Put(unlogged, "one more", ""));
  uint64_t bytes;
  if (!db->GetIntProperty(DB::Properties::kCurSizeAllMemTables, &bytes)) std::exit(1);
  note("bytes an entry", static_cast<double>(bytes) / static_cast<double>(entries));
  note("of them outside the arena",
       static_cast<double>(rep->ApproximateMemoryUsage()) / static_cast<double>(entries));
}

double Median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  const size_t half = all.size() / 2;
  return all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
}

void Print(const Figures& figures, const std::vector<std::string>& names) {
  std::printf("%-28s", "");
  for (const auto& name : names) std::printf(" %24s", name.c_str());
  std::printf("\n");
  for (const auto& [what, all] : figures) {
    std::printf("%-28s", what.c_str());
    double first = 0;
    for (const auto& name : names) {
      const auto of_name = all.find(name);
      if (of_name == all.end()) {
        std::printf(" %24s", "-");
        continue;
      }
      const double median = Median(of_name->second);
      if (first == 0) first = median;
      std::printf(" %13.3f (%6.2f x)", median, first > 0 ? median / first : 0);
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t entries = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 1;
  std::vector<std::string> names(argv + std::min(argc, 3), argv + argc);
  if (names.empty()) names = {"skip_list", "silvics_art", "silvics_skiplist"};
  const char* tmp = std::getenv("TMPDIR");
  std::string folder = std::string(tmp != nullptr ? tmp : "/tmp") + "/memtablerep.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror("memtablerep: mkdtemp");
    return 1;
  }
  Figures figures;
  uint64_t run = 0;
  for (int round = 0; round < rounds; ++round) {
    for (const size_t writers : {1, 2}) {
      for (const bool again : {false, true}) {
        for (size_t at = 0; at < names.size(); ++at) {
          const std::string& name = names[again ? names.size() - 1 - at : at];
          const std::string database = folder + "/" + std::to_string(++run);
          Measure(name, database, entries, run, writers, figures);
          Check(DestroyDB(database, Options()));
        }
      }
    }
  }
  rmdir(folder.c_str());
  std::printf("%llu entries, medians of %d\n", static_cast<unsigned long long>(entries), rounds * 2);
  Print(figures, names);
  return 0;
}
