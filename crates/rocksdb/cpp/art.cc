// `silvics_art`: the byte index of src/art.rs.

#include "factories.h"
#include "rocksdb/options.h"
#include "table.h"

extern "C" {
struct SilvicsArt;
SilvicsArt* silvics_art_new(bool is_reverse);
void silvics_art_drop(SilvicsArt*);
bool silvics_art_insert(SilvicsArt*, char* entry);
size_t silvics_art_seek(const SilvicsArt*, const char* key, size_t size, bool descends,
                        const char** run, size_t room);
size_t silvics_art_follow(const SilvicsArt*, const char* entry, bool descends, const char** run,
                          size_t room);
bool silvics_art_contains(const SilvicsArt*, const char* entry);
size_t silvics_art_bytes(const SilvicsArt*);
}

namespace silvics {
namespace {

struct ArtCalls {
  using Table = SilvicsArt;
  static constexpr size_t kRun = 48, kBackRun = 48;
  static bool Insert(Table* table, char* entry) { return silvics_art_insert(table, entry); }
  static size_t Seek(const Table* table, const Target& target, bool descends, const char** run,
                     size_t room) {
    return silvics_art_seek(table, target.internal_key, target.size, descends, run, room);
  }
  static size_t Follow(const Table* table, const char* entry, bool descends, const char** run,
                       size_t room) {
    return silvics_art_follow(table, entry, descends, run, room);
  }
  static bool Contains(const Table* table, const char* entry) {
    return silvics_art_contains(table, entry);
  }
  static size_t Bytes(const Table* table) { return silvics_art_bytes(table); }
  static void Drop(Table* table) { silvics_art_drop(table); }
};

class ArtFactory final : public MemTableRepFactory {
 public:
  const char* Name() const override { return "silvics_art"; }
  bool IsInsertConcurrentlySupported() const override { return true; }
  bool CanHandleDuplicatedKey() const override { return true; }

  Status ValidateOptions(const DBOptions& db, const ColumnFamilyOptions& family) const override {
    if (!IsByteOrder(OrderOf(family.comparator))) {
      return Status::InvalidArgument(
          "The memtable silvics_art orders keys by their bytes: use BytewiseComparator() or "
          "ReverseBytewiseComparator(), or the memtable silvics_skiplist, which takes any "
          "comparator. The comparator is",
          family.comparator->Name());
    }
    return MemTableRepFactory::ValidateOptions(db, family);
  }

  using MemTableRepFactory::CreateMemTableRep;
  MemTableRep* CreateMemTableRep(const MemTableRep::KeyComparator& comparator,
                                 Allocator* allocator, const SliceTransform* transform,
                                 Logger* logger) override {
    // A program with a KeyComparator of its own promises that it is of bytes: two keys tell the
    // direction.
    const KeyOrder order =
        IsOfMemTable(comparator) ? OrderOf(comparator) : DirectionOf(comparator);
    if (!IsByteOrder(order)) {
      // RocksDB validates the options when it opens a database, but not those of a column family
      // that is created later.
      ROCKSDB_NAMESPACE::Warn(logger,
                              "silvics_art: the comparator of this column family is not one of "
                              "bytes, so its memtables are silvics_skiplist");
      return NewSkipListRep(comparator, allocator, transform, logger);
    }
    SilvicsArt* art = silvics_art_new(order == KeyOrder::kReverseBytes);
    if (art == nullptr) throw std::bad_alloc();
    return new TableRep<ArtCalls>(art, comparator, allocator);
  }
};

}  // namespace

MemTableRepFactory* NewArtFactory() { return new ArtFactory(); }

}  // namespace silvics
