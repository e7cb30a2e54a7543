// Registers the memtables when the shared object is loaded.

#include <cstdio>
#include <mutex>

#include "factories.h"
#include "rocksdb/utilities/object_registry.h"
#include "rocksdb/version.h"

namespace {

using namespace ROCKSDB_NAMESPACE;

void Add(const char* name, MemTableRepFactory* (*make)()) {
  ObjectLibrary::Default()->AddFactory<MemTableRepFactory>(
      ObjectLibrary::PatternEntry(name),
      [make](const std::string&, std::unique_ptr<MemTableRepFactory>* guard, std::string*) {
        guard->reset(make());
        return guard->get();
      });
}

void Register() {
  const std::string headers = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR);
  const std::string library = GetRocksVersionAsString(false);
  if (library != headers) {
    std::fprintf(stderr,
                 "silvics: this plug-in is built for RocksDB %s, and the library is %s: build it "
                 "with the headers of the library\n",
                 headers.c_str(), library.c_str());
    return;
  }
  Add("silvics_art", silvics::NewArtFactory);
  Add("silvics_skiplist", silvics::NewSkipListFactory);
}

}  // namespace

extern "C" void silvics_rocksdb_register() {
  static std::once_flag once;
  std::call_once(once, Register);
}

namespace {
[[maybe_unused]] const bool loaded = (silvics_rocksdb_register(), true);
}
