// RocksDB's skip list without assertions, as the memtable `skip_list_release`.
//
// Debian's library has assertions, which halve the speed of its skip list. This compiles the list
// anew, with -DNDEBUG, from a folder with RocksDB's sources: `bench/run` does it if ROCKSDB_SOURCE
// is set. All of it is for the comparator BytewiseComparator() alone.

#include "rocksdb/comparator.h"
#include "rocksdb/memtablerep.h"
#include "rocksdb/utilities/object_registry.h"
// The sources have this one.
#include "memtable/inlineskiplist.h"

namespace {

using namespace ROCKSDB_NAMESPACE;

// What `MemTable::KeyComparator` does, without its counters.
class KeyOrder final : public MemTableRep::KeyComparator {
 public:
  int operator()(const char* a, const char* b) const override {
    return Compare(GetLengthPrefixedSlice(a), GetLengthPrefixedSlice(b));
  }
  int operator()(const char* a, const Slice& b) const override {
    return Compare(GetLengthPrefixedSlice(a), b);
  }

 private:
  int Compare(const Slice& a, const Slice& b) const {
    const int order =
        users_->Compare(Slice(a.data(), a.size() - 8), Slice(b.data(), b.size() - 8));
    if (order != 0) return order;
    const uint64_t x = DecodeFixed64(a.data() + a.size() - 8);
    const uint64_t y = DecodeFixed64(b.data() + b.size() - 8);
    return x > y ? -1 : x < y;
  }

  const Comparator* const users_ = BytewiseComparator();
};

// The beginning of a `LookupKey` (db/lookup_key.h).
struct LookupKeyStart {
  const char* memtable_key;
};

class Rep final : public MemTableRep {
 public:
  using List = InlineSkipList<const MemTableRep::KeyComparator&>;

  explicit Rep(Allocator* allocator) : MemTableRep(allocator), list_(order_, allocator) {}

  KeyHandle Allocate(const size_t len, char** buf) override { return *buf = list_.AllocateKey(len); }
  void Insert(KeyHandle entry) override { InsertKey(entry); }
  bool InsertKey(KeyHandle entry) override { return list_.Insert(static_cast<char*>(entry)); }
  void InsertConcurrently(KeyHandle entry) override { InsertKeyConcurrently(entry); }
  bool InsertKeyConcurrently(KeyHandle entry) override {
    return list_.InsertConcurrently(static_cast<char*>(entry));
  }
  bool Contains(const char* key) const override { return list_.Contains(key); }
  size_t ApproximateMemoryUsage() override { return 0; }
  void Get(const LookupKey& key, void* arg, bool (*more)(void* arg, const char* entry)) override {
    List::Iterator it(&list_);
    it.Seek(reinterpret_cast<const LookupKeyStart&>(key).memtable_key);
    while (it.Valid() && more(arg, it.key())) it.Next();
  }

  class It final : public MemTableRep::Iterator {
   public:
    explicit It(const List* list) : it_(list) {}
    bool Valid() const override { return it_.Valid(); }
    const char* key() const override { return it_.key(); }
    void Next() override { it_.Next(); }
    void Prev() override { it_.Prev(); }
    void Seek(const Slice&, const char* key) override { it_.Seek(key); }
    void SeekForPrev(const Slice&, const char* key) override { it_.SeekForPrev(key); }
    void SeekToFirst() override { it_.SeekToFirst(); }
    void SeekToLast() override { it_.SeekToLast(); }

   private:
    List::Iterator it_;
  };

  MemTableRep::Iterator* GetIterator(Arena*) override { return new It(&list_); }

 private:
  const KeyOrder order_;
  List list_;
};

class Factory final : public MemTableRepFactory {
 public:
  const char* Name() const override { return "skip_list_release"; }
  bool IsInsertConcurrentlySupported() const override { return true; }
  bool CanHandleDuplicatedKey() const override { return true; }
  using MemTableRepFactory::CreateMemTableRep;
  MemTableRep* CreateMemTableRep(const MemTableRep::KeyComparator&, Allocator* allocator,
                                 const SliceTransform*, Logger*) override {
    return new Rep(allocator);
  }
};

[[maybe_unused]] const auto& registered =
    ObjectLibrary::Default()->AddFactory<MemTableRepFactory>(
        ObjectLibrary::PatternEntry("skip_list_release"),
        [](const std::string&, std::unique_ptr<MemTableRepFactory>* guard, std::string*) {
          guard->reset(new Factory());
          return guard->get();
        });

}  // namespace
