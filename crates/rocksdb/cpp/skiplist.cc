// Until silvics_skiplist is here.
#include "factories.h"
namespace silvics {
ROCKSDB_NAMESPACE::MemTableRep* NewSkipListRep(
    const ROCKSDB_NAMESPACE::MemTableRep::KeyComparator& c, ROCKSDB_NAMESPACE::Allocator* a,
    const ROCKSDB_NAMESPACE::SliceTransform* t, ROCKSDB_NAMESPACE::Logger* l) {
  return ROCKSDB_NAMESPACE::SkipListFactory().CreateMemTableRep(c, a, t, l);
}
}
