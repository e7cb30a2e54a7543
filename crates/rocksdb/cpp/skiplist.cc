// `silvics_skiplist`: the skip list of src/skiplist.rs.

#include "factories.h"
#include "table.h"

extern "C" {
struct SilvicsSkipList;
struct SilvicsCompare {
  const void* comparator;
  int (*compare)(const void* comparator, const char* a, const char* b);
};
struct SilvicsMemory {
  void* allocator;
  char* (*alloc)(void* allocator, size_t bytes);
};
SilvicsSkipList* silvics_skiplist_new(uint32_t order, SilvicsCompare, SilvicsMemory);
void silvics_skiplist_drop(SilvicsSkipList*);
char* silvics_skiplist_allocate(SilvicsSkipList*, size_t bytes);
bool silvics_skiplist_insert(SilvicsSkipList*, char* entry);
bool silvics_skiplist_insert_concurrently(SilvicsSkipList*, char* entry);
size_t silvics_skiplist_seek(const SilvicsSkipList*, const char* key, size_t size,
                             const char* memtable_key, bool descends, const char** run,
                             size_t room);
size_t silvics_skiplist_follow(const SilvicsSkipList*, const char* entry, bool descends,
                               const char** run, size_t room);
bool silvics_skiplist_contains(const SilvicsSkipList*, const char* entry);
}

namespace silvics {
namespace {

struct ListCalls {
  using Table = SilvicsSkipList;
  // Each entry of a run costs a miss, and each step back a search, which may be in vain.
  static constexpr size_t kRun = 2, kBackRun = 4;
  static bool Insert(Table* table, char* entry) { return silvics_skiplist_insert(table, entry); }
  static size_t Seek(const Table* table, const Target& target, bool descends, const char** run,
                     size_t room) {
    return silvics_skiplist_seek(table, target.internal_key, target.size, target.memtable_key,
                                 descends, run, room);
  }
  static size_t Follow(const Table* table, const char* entry, bool descends, const char** run,
                       size_t room) {
    return silvics_skiplist_follow(table, entry, descends, run, room);
  }
  static bool Contains(const Table* table, const char* entry) {
    return silvics_skiplist_contains(table, entry);
  }
  static size_t Bytes(const Table*) { return 0; }  // all is in RocksDB's arena
  static void Drop(Table* table) { silvics_skiplist_drop(table); }
};

int Compare(const void* comparator, const char* a, const char* b) noexcept {
  return (*static_cast<const MemTableRep::KeyComparator*>(comparator))(a, b);
}

// No exception crosses Rust.
char* Alloc(void* allocator, size_t bytes) noexcept {
  try {
    return static_cast<Allocator*>(allocator)->AllocateAligned(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

class ListRep final : public TableRep<ListCalls> {
 public:
  using TableRep::TableRep;

  KeyHandle Allocate(const size_t len, char** buf) override {
    *buf = silvics_skiplist_allocate(table_, len);
    return *buf;
  }
  bool InsertKeyConcurrently(KeyHandle entry) override {
    return silvics_skiplist_insert_concurrently(table_, static_cast<char*>(entry));
  }
};

class ListFactory final : public MemTableRepFactory {
 public:
  const char* Name() const override { return "silvics_skiplist"; }
  bool IsInsertConcurrentlySupported() const override { return true; }
  bool CanHandleDuplicatedKey() const override { return true; }

  using MemTableRepFactory::CreateMemTableRep;
  MemTableRep* CreateMemTableRep(const MemTableRep::KeyComparator& comparator,
                                 Allocator* allocator, const SliceTransform* transform,
                                 Logger* logger) override {
    return NewSkipListRep(comparator, allocator, transform, logger);
  }
};

}  // namespace

MemTableRep* NewSkipListRep(const MemTableRep::KeyComparator& comparator, Allocator* allocator,
                            const SliceTransform*, Logger*) {
  SilvicsSkipList* list = silvics_skiplist_new(static_cast<uint32_t>(OrderOf(comparator)),
                                               {&comparator, Compare}, {allocator, Alloc});
  return new ListRep(list, comparator, allocator);
}

MemTableRepFactory* NewSkipListFactory() { return new ListFactory(); }

}  // namespace silvics
