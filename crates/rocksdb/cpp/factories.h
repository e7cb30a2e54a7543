// The factories of the two memtables.
#pragma once

#include "rocksdb/env.h"
#include "rocksdb/memtablerep.h"

namespace silvics {

ROCKSDB_NAMESPACE::MemTableRepFactory* NewArtFactory();
ROCKSDB_NAMESPACE::MemTableRepFactory* NewSkipListFactory();

// A memtable that takes any comparator.
ROCKSDB_NAMESPACE::MemTableRep* NewSkipListRep(
    const ROCKSDB_NAMESPACE::MemTableRep::KeyComparator&, ROCKSDB_NAMESPACE::Allocator*,
    const ROCKSDB_NAMESPACE::SliceTransform*, ROCKSDB_NAMESPACE::Logger*);

}  // namespace silvics
